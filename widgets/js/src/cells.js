/** The buffers inside the GPU boxes: a cell per chunk, or above a number of them one bar. */

const MOST_CELLS = 256;
const AREA = { width: 60, height: 24 };

/**
 * @param {CanvasRenderingContext2D} ctx in drawing units
 * @param {import("./canvas.js").Canvas} canvas
 */
export function drawCells(ctx, canvas) {
  const { playback, buffers, colors, chunkColors } = canvas;
  if (!playback || canvas.stale) return;
  const levels = buffers.seek(canvas.clock.time);
  const draw = buffers.chunks <= MOST_CELLS ? cells : bar;
  const buckets = new Map([[colors.empty, []]]);
  for (const [name, held] of levels) {
    const area = areaOf(canvas, name);
    if (!area) continue;
    draw(buckets, held, { area, chunkColors, empty: colors.empty, playback });
  }
  fill(ctx, buckets);
}

/**
 * Draw what has arrived over what was drawn before: levels only rise while time goes on.
 * @param {CanvasRenderingContext2D} ctx in drawing units
 * @param {import("./canvas.js").Canvas} canvas
 * @param {number} from how many had arrived in the last picture
 */
export function drawArrivals(ctx, canvas, from) {
  const { playback, buffers, colors, chunkColors } = canvas;
  const arrived = buffers.arrivals.slice(from, buffers.next);
  const areas = new Map(arrived.map(({ device }) => [device, null]));
  for (const name of areas.keys()) areas.set(name, areaOf(canvas, name));
  const buckets = new Map([[colors.empty, []]]);
  if (buffers.chunks <= MOST_CELLS) {
    for (const { device, chunk } of arrived) {
      const area = areas.get(device);
      if (area) filled(buckets, cellOf(area, gridOf(buffers.chunks, area), chunk), { level: buffers.levels.get(device)[chunk], color: chunkColors[chunk] });
    }
  } else {
    for (const [name, area] of areas) {
      if (area) bar(buckets, buffers.levels.get(name), { area, chunkColors, empty: colors.empty, playback });
    }
  }
  fill(ctx, buckets);
}

/** @param {CanvasRenderingContext2D} ctx @param {Map<string, number[][]>} buckets rectangles by colour */
function fill(ctx, buckets) {
  for (const [color, rects] of buckets) {
    ctx.fillStyle = color;
    ctx.beginPath();
    for (const [x, y, width, height] of rects) ctx.rect(x, y, width, height);
    ctx.fill();
  }
}

/** Where the buffer of a device is drawn; null where the device is not. @param {string} name */
function areaOf(canvas, name) {
  const rect = canvas.stage.rect(name);
  if (!rect) return null;
  const tall = rect.y2 - rect.y1 > 50;
  return {
    x: (rect.x1 + rect.x2 - AREA.width) / 2,
    y: rect.y2 - (tall ? AREA.height + 8 : 20),
    width: AREA.width,
    height: tall ? AREA.height : 13,
  };
}

/**
 * Where the cell of a chunk is in the buffer of a device; null where there are only bars.
 * @param {import("./canvas.js").Canvas} canvas @param {string} name @param {number} chunk
 */
export function chunkCell(canvas, name, chunk) {
  const area = canvas.buffers.chunks <= MOST_CELLS ? areaOf(canvas, name) : null;
  return area && cellOf(area, gridOf(canvas.buffers.chunks, area), chunk);
}

/**
 * The chunk whose cell is at a point of the drawing, null where there is none.
 * @param {import("./canvas.js").Canvas} canvas @param {string} name of a device @param {import("./types.js").Point} p
 */
export function cellAt(canvas, name, p) {
  const { chunks, levels } = canvas.buffers;
  const area = chunks <= MOST_CELLS && levels.has(name) ? areaOf(canvas, name) : null;
  if (!area) return null;
  const { columns, rows } = gridOf(chunks, area);
  const column = Math.floor(((p.x - area.x) / area.width) * columns);
  const row = Math.floor(((p.y - area.y) / area.height) * rows);
  const chunk = row * columns + column;
  return column >= 0 && column < columns && row >= 0 && row < rows && chunk < chunks ? chunk : null;
}

/** Columns and rows with large cells, near squares, and few places left empty. */
function gridOf(count, { width, height }) {
  let best = { columns: count, rows: 1, size: 0 };
  for (let rows = 1; rows <= Math.min(count, 16); rows++) {
    const columns = Math.ceil(count / rows);
    const full = count / (columns * rows);
    const size = Math.min(width / columns, (height / rows) * 0.8) * full * full;
    if (size > best.size) best = { columns, rows, size };
  }
  return best;
}

const put = (buckets, color, rect) => {
  const list = buckets.get(color);
  if (list) list.push(rect);
  else buckets.set(color, [rect]);
};

/** Where a chunk has its cell. */
function cellOf(area, { columns, rows }, chunk) {
  const [w, h] = [area.width / columns, area.height / rows];
  const gap = Math.min(1.4, w * 0.18);
  return { x: area.x + (chunk % columns) * w, y: area.y + Math.floor(chunk / columns) * h, width: w - gap, height: h - gap };
}

/** A cell per chunk; one that is there in part is filled from below. */
function cells(buckets, held, { area, chunkColors, empty }) {
  const grid = gridOf(held.length, area);
  held.forEach((level, chunk) => {
    const cell = cellOf(area, grid, chunk);
    if (level < 1) put(buckets, empty, [cell.x, cell.y, cell.width, cell.height]);
    filled(buckets, cell, { level, color: chunkColors[chunk] });
  });
}

function filled(buckets, { x, y, width, height }, { level, color }) {
  if (level > 0) put(buckets, color, [x, y + height * (1 - level), width, height * level]);
}

/** One bar, a segment per origin, as long as the share of all chunks that is there. */
function bar(buckets, held, { area, chunkColors, empty, playback }) {
  const perOrigin = new Float64Array(playback.origins.length);
  const color = [];
  held.forEach((level, chunk) => {
    perOrigin[playback.originOf[chunk]] += level;
    color[playback.originOf[chunk]] = chunkColors[chunk];
  });
  const [y, height] = [area.y + 5, area.height - 8];
  put(buckets, empty, [area.x, y, area.width, height]);
  let x = area.x;
  perOrigin.forEach((sum, origin) => {
    const width = (sum / held.length) * area.width;
    if (width > 0) put(buckets, color[origin], [x, y, width, height]);
    x += width;
  });
}
