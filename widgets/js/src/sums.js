/**
 * Sums as colours that merge: a chunk on its way that is a sum is a pie of the colours of the ranks whose
 * contributions are in it, and where one is added to another a ring spreads around the cell of the chunk.
 *
 * @typedef {{at: import("./types.js").Point, r: number}} Token
 */

import { areaOf, chunkCell } from "./buffers.js";
import { originColor } from "./style.js";

/** Contributions above which no slice could be told from the next: the pie then shows how many are in. */
const MOST_SLICES = 16;
/** A pie is larger than a dot, so that its slices can be seen. */
const LARGER = 1.5;
/** Seconds at normal speed for which a ring spreads, and how many there are at once. */
const PULSE = 0.5;
const MOST_PULSES = 80;
/** How far a ring spreads and how thick it is at most, as shares of its cell and in drawing units; and how far beyond the buffer. */
const FAR = { share: 0.35, most: 4 };
const THICK = { share: 0.2, most: 2 };
const BEYOND = 2;

/** Colours of the slices of a sum, and the share of the whole that they are. */
export function slices(parts, ranks, all) {
  if (all > MOST_SLICES) return { colors: [], share: parts.length / all };
  return { colors: parts.map((rank) => originColor(rank, ranks)), share: 1 };
}

/**
 * Draw sums on their way, above the dots that they are.
 * @param {CanvasRenderingContext2D} ctx in drawing units @param {import("./canvas.js").Canvas} canvas
 * @param {{token: Token, flight: import("./player.js").Flight}[]} sums
 */
export function drawSums(ctx, canvas, sums) {
  const { buffers, sceneRanks, chunkColors, colors } = canvas;
  for (const { token: { at, r }, flight } of sums) {
    const parts = buffers.parts.get(flight.index) ?? [];
    const { colors: found, share } = slices(parts, sceneRanks.length, buffers.givers[flight.chunk]);
    const wide = r * LARGER;
    const pie = found.length ? found : [chunkColors[flight.chunk]];
    const turn = (2 * Math.PI * share) / pie.length;
    ctx.fillStyle = colors.empty;
    ctx.beginPath();
    ctx.arc(at.x, at.y, wide, 0, 2 * Math.PI);
    ctx.fill();
    pie.forEach((color, i) => {
      ctx.fillStyle = color;
      ctx.beginPath();
      if (turn < 2 * Math.PI) ctx.moveTo(at.x, at.y);
      ctx.arc(at.x, at.y, wide, i * turn - Math.PI / 2, (i + 1) * turn - Math.PI / 2);
      ctx.fill();
    });
    ctx.beginPath();
    ctx.arc(at.x, at.y, wide, 0, 2 * Math.PI);
    ctx.strokeStyle = colors.bg;
    ctx.lineWidth = 0.9;
    ctx.stroke();
  }
}

/**
 * The additions that are so recent that a ring still spreads from them, the last first; of each cell only the last.
 * @param {import("./buffers.js").Arrival[]} arrivals sorted by time @param {number} time µs @param {number} span µs
 */
export function recent(arrivals, time, span) {
  let end = arrivals.length;
  for (let low = 0; low < end; ) {
    const middle = (low + end) >> 1;
    if (arrivals[middle].time <= time) low = middle + 1;
    else end = middle;
  }
  const found = new Map();
  for (let i = end - 1; i >= 0 && time - arrivals[i].time < span && found.size < MOST_PULSES; i--) {
    const { adds, chunk, device } = arrivals[i];
    const cell = `${chunk} ${device}`;
    if (adds && !found.has(cell)) found.set(cell, { ...arrivals[i], age: (time - arrivals[i].time) / span });
  }
  return [...found.values()];
}

/**
 * The ring around a cell, which covers neither the name of its device nor what is beside it.
 * @typedef {{x: number, y: number, width: number, height: number}} Box
 * @param {Box} cell @param {Box} area the buffer of the device @param {number} far from 0 to 1
 */
export function ringAround(cell, area, far) {
  const size = Math.min(cell.width, cell.height);
  const gap = Math.min(FAR.most, size * FAR.share) * (0.3 + 0.7 * far);
  const side = (at, length, from, room) => [Math.max(from - BEYOND, at - gap), Math.min(from + room + BEYOND, at + length + gap)];
  const [x1, x2] = side(cell.x, cell.width, area.x, area.width);
  const [y1, y2] = side(cell.y, cell.height, area.y, area.height);
  return { x: x1, y: y1, width: x2 - x1, height: y2 - y1, round: gap + 1, thick: Math.min(THICK.most, size * THICK.share) * (1 - 0.5 * far) };
}

/**
 * Draw a ring where a contribution was just added to what was there; who wants no motion sees it stand.
 * @param {CanvasRenderingContext2D} ctx in drawing units @param {import("./canvas.js").Canvas} canvas
 */
export function drawPulses(ctx, canvas) {
  const { playback, buffers, clock, stage, chunkColors, stale } = canvas;
  if (!playback || stale || !buffers.givers.some((count) => count > 1)) return;
  if (clock.time >= playback.makespan) return; // what is over shows what is there
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const span = PULSE * clock.pace * clock.stepSize * clock.speed;
  for (const { device, chunk, age } of recent(buffers.arrivals, clock.time, span)) {
    const area = areaOf(canvas, device);
    if (!area) continue;
    const far = still ? 0.4 : age;
    const { x, y, width, height, round, thick } = ringAround(chunkCell(canvas, device, chunk) ?? area, area, far);
    ctx.beginPath();
    ctx.roundRect(x, y, width, height, round);
    ctx.strokeStyle = chunkColors[chunk];
    ctx.globalAlpha = still ? 0.8 : 1 - age;
    ctx.lineWidth = thick;
    ctx.stroke();
  }
  ctx.globalAlpha = 1;
}
