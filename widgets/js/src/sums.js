/**
 * Sums as colours that merge: a chunk on its way that is a sum is a pie of the colours of the ranks whose
 * contributions are in it, and where one is added to another a ring spreads from the device.
 *
 * @typedef {{at: import("./types.js").Point, r: number}} Token
 */

import { chunkCell } from "./buffers.js";
import { centre } from "./geometry.js";
import { originColor } from "./style.js";

/** Contributions above which no slice could be told from the next: the pie then shows how many are in. */
const MOST_SLICES = 16;
/** A pie is larger than a dot, so that its slices can be seen. */
const LARGER = 1.5;
/** Seconds at normal speed for which a ring spreads, how far in drawing units, and how many there are at once. */
const PULSE = 0.5;
const FAR = 22;
const MOST_PULSES = 80;

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
 * The additions that are so recent that a ring still spreads from them, the last first.
 * @param {import("./buffers.js").Arrival[]} arrivals sorted by time @param {number} time µs @param {number} span µs
 */
export function recent(arrivals, time, span) {
  let end = arrivals.length;
  for (let low = 0; low < end; ) {
    const middle = (low + end) >> 1;
    if (arrivals[middle].time <= time) low = middle + 1;
    else end = middle;
  }
  const found = [];
  for (let i = end - 1; i >= 0 && time - arrivals[i].time < span && found.length < MOST_PULSES; i--) {
    if (arrivals[i].adds) found.push({ ...arrivals[i], age: (time - arrivals[i].time) / span });
  }
  return found;
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
    const cell = chunkCell(canvas, device, chunk);
    const rect = stage.rect(device);
    if (!rect) continue;
    const { x, y } = cell ? { x: cell.x + cell.width / 2, y: cell.y + cell.height / 2 } : centre(rect);
    const far = still ? 0.4 : age;
    ctx.beginPath();
    ctx.arc(x, y, 5 + far * FAR, 0, 2 * Math.PI);
    ctx.strokeStyle = chunkColors[chunk];
    ctx.globalAlpha = still ? 0.8 : 1 - age;
    ctx.lineWidth = 3 - 1.6 * far;
    ctx.stroke();
  }
  ctx.globalAlpha = 1;
}
