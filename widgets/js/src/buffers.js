/**
 * Buffers: what every device holds at a time, drawn inside its box as a cell per chunk or, above a
 * number of them, as one bar. Time may run either way; going on costs only what arrived.
 *
 * A level is the share of a chunk that is there. Of a chunk that is reduced it is the share of
 * the contributions that are in.
 *
 * @typedef {import("./types.js").Scene} Scene
 * @typedef {{time: number, device: string, chunk: number, level: number, adds?: boolean}} Arrival adds: to what was there
 */

export class Buffers {
  /** @param {Scene} scene */
  constructor(scene) {
    this.chunks = scene.chunks.length;
    this.devices = scene.topology.devices.filter((d) => d.stores).map((d) => d.name);
    this.start = startLevels(scene, this.devices);
    /** How many contribute to each chunk. */
    this.givers = contributors(scene).map((each) => each.length);
    /** Ranks whose contributions a transfer carries, by its index. @type {Map<number, number[]>} */
    this.parts = new Map();
    const reduced = new Set(scene.chunks.flatMap((chunk, i) => (chunk.reduced ? [i] : [])));
    /** @type {Arrival[]} */
    this.arrivals = [...copied(scene, reduced), ...added(scene, reduced, this.parts)]
      .filter((arrival) => this.start.has(arrival.device))
      .sort((a, b) => a.time - b.time);
    this.#rewind();
  }

  #rewind() {
    this.next = 0;
    /** @type {Map<string, Float32Array>} */
    this.levels = new Map([...this.start].map(([name, levels]) => [name, levels.slice()]));
  }

  /**
   * Go to a time; `next` counts what has arrived, so an equal one means an equal picture.
   * @param {number} time µs
   */
  seek(time) {
    // Scenes write times with eight digits, the last arrival perhaps a little after the end.
    const until = time * (1 + 1e-7) + 1e-9;
    if (this.next && this.arrivals[this.next - 1].time > until) this.#rewind();
    while (this.next < this.arrivals.length && this.arrivals[this.next].time <= until) {
      const { device, chunk, level } = this.arrivals[this.next++];
      const levels = /** @type {Float32Array} */ (this.levels.get(device));
      levels[chunk] = Math.max(levels[chunk], level);
    }
    return this.levels;
  }
}

/** @param {Scene} scene @param {string[]} devices */
function startLevels(scene, devices) {
  const givers = contributors(scene);
  const levels = new Map(devices.map((name) => [name, new Float32Array(scene.chunks.length)]));
  for (const [device, chunks] of Object.entries(scene.holds)) {
    for (const chunk of chunks) {
      const at = levels.get(device);
      if (at) at[chunk] = scene.chunks[chunk].reduced ? 1 / givers[chunk].length : 1;
    }
  }
  return levels;
}

/** Devices that hold each chunk at the start. @param {Scene} scene @returns {string[][]} */
function contributors(scene) {
  const givers = scene.chunks.map(() => []);
  for (const [device, chunks] of Object.entries(scene.holds)) {
    for (const chunk of chunks) givers[chunk].push(device);
  }
  return givers;
}

/** Arrivals of chunks that are only copied: fractions add up. @returns {Arrival[]} */
function copied(scene, reduced) {
  const have = new Map();
  return scene.transfers
    .filter(([chunk]) => !reduced.has(chunk))
    .map(([chunk, , device, , time, fraction = 1]) => ({ chunk, device, time, fraction }))
    .sort((a, b) => a.time - b.time)
    .map(({ chunk, device, time, fraction }) => {
      const key = `${chunk} ${device}`;
      const level = Math.min(1, (have.get(key) ?? 0) + fraction);
      have.set(key, level);
      return { time, device, chunk, level: level > 1 - 1e-6 ? 1 : level };
    });
}

/**
 * Arrivals of chunks that are added up: who contributed travels along; of a send that names its terms
 * these do, else all that is at its source. @param {Map<number, number[]>} parts gets the ranks of what each carries
 * @returns {Arrival[]}
 */
function added(scene, reduced, parts) {
  if (!reduced.size) return [];
  const ranks = scene.topology.devices.filter((d) => d.kind === "gpu").map((d) => d.name);
  const rankOf = new Map(ranks.map((name, rank) => [name, rank]));
  const named = (scene.terms ?? []).map((each) => new Set(each.ranks.map((rank) => ranks[rank])));
  const givers = contributors(scene);
  const inside = new Map();
  for (const chunk of reduced) {
    for (const device of givers[chunk]) inside.set(`${chunk} ${device}`, new Set([device]));
  }
  const moves = scene.transfers
    .map(([chunk, src, dst, start, end], i) => ({ index: i, chunk, src, dst, start, end, terms: named[scene.carried?.[i]] }))
    .filter(({ chunk }) => reduced.has(chunk));
  const tolerance = scene.epoch_duration * 1e-6;
  const events = moves.flatMap((move, i) => [
    { time: move.start + tolerance, i, leaves: true },
    { time: move.end, i, leaves: false },
  ]);
  const carried = new Map();
  /** @type {Arrival[]} */
  const arrivals = [];
  for (const { time, i, leaves } of events.sort((a, b) => a.time - b.time)) {
    const { index, chunk, src, dst: device, terms } = moves[i];
    if (leaves) {
      const all = terms ?? new Set(inside.get(`${chunk} ${src}`));
      carried.set(i, all);
      parts.set(index, [...all].map((name) => rankOf.get(name) ?? 0).sort((a, b) => a - b));
      continue;
    }
    const key = `${chunk} ${device}`;
    const sum = inside.get(key) ?? new Set();
    const before = sum.size;
    for (const giver of carried.get(i) ?? []) sum.add(giver);
    inside.set(key, sum);
    arrivals.push({ time, device, chunk, level: sum.size / givers[chunk].length, adds: before > 0 && sum.size > before });
  }
  return arrivals;
}

// ---- drawing ----------------------------------------------------------------------------------------

/** Chunks above which a buffer is one bar. */
const MOST_CELLS = 256;
/** Size of a buffer inside its box, in drawing units. */
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
export function areaOf(canvas, name) {
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
