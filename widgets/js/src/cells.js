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
    const rect = canvas.stage.rect(name);
    if (!rect) continue;
    const tall = rect.y2 - rect.y1 > 50;
    const area = {
      x: (rect.x1 + rect.x2 - AREA.width) / 2,
      y: rect.y2 - (tall ? AREA.height + 8 : 20),
      width: AREA.width,
      height: tall ? AREA.height : 13,
    };
    draw(buckets, held, { area, chunkColors, empty: colors.empty, playback });
  }
  for (const [color, rects] of buckets) {
    ctx.fillStyle = color;
    ctx.beginPath();
    for (const [x, y, width, height] of rects) ctx.rect(x, y, width, height);
    ctx.fill();
  }
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

/** A cell per chunk; one that is there in part is filled from below. */
function cells(buckets, held, { area, chunkColors, empty }) {
  const { columns, rows } = gridOf(held.length, area);
  const [w, h] = [area.width / columns, area.height / rows];
  const gap = Math.min(1.4, w * 0.18);
  held.forEach((level, chunk) => {
    const x = area.x + (chunk % columns) * w;
    const y = area.y + Math.floor(chunk / columns) * h;
    if (level < 1) put(buckets, empty, [x, y, w - gap, h - gap]);
    if (level > 0) {
      const full = (h - gap) * level;
      put(buckets, chunkColors[chunk], [x, y + h - gap - full, w - gap, full]);
    }
  });
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
