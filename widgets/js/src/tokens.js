/** Chunks on their way, as dots on the links, and how busy the links are. */

import { pointOn, trace } from "./geometry.js";
import { between } from "./style.js";
import { drawSums } from "./sums.js";

/** Dots above which outlines and tails cannot be seen but would cost half of the time. */
const MANY_TOKENS = 800;

/** Of when the load of links is shown, in words. */
export const HEATS = { now: "now", run: "whole run" };

/** Opacity of chunks that step back. */
const FAINT = 0.14;

/**
 * Draw the chunks in flight, bucketed by colour: one path and one fill for each.
 * @param {CanvasRenderingContext2D} ctx in drawing units
 * @param {import("./canvas.js").Canvas} canvas
 * @returns {number} how many there are
 */
export function drawTokens(ctx, canvas) {
  const { match } = canvas.inspector.path;
  const { parts } = canvas.buffers ?? { parts: new Map() };
  const buckets = new Map();
  const faint = new Map();
  const sums = [];
  const count = placed(canvas, (flight, token) => {
    if ((parts.get(flight.index)?.length ?? 0) > 1 && !(match && !match(flight))) sums.push({ flight, token });
    const into = match && !match(flight) ? faint : buckets;
    const color = canvas.chunkColors[flight.chunk];
    const bucket = into.get(color);
    if (bucket) bucket.push(token);
    else into.set(color, [token]);
  });
  const few = count < MANY_TOKENS;
  const ring = canvas.colors.bg;
  for (const [color, tokens] of faint) paintTokens(ctx, tokens, { color, few: false, ring, opacity: FAINT });
  for (const [color, tokens] of buckets) paintTokens(ctx, tokens, { color, few, ring, opacity: 1 });
  if (few) drawSums(ctx, canvas, sums);
  return count;
}

/** Where the parts of a chunk are that are on their way. @param {import("./canvas.js").Canvas} canvas @param {number} chunk */
export function placesOf(canvas, chunk) {
  const found = [];
  placed(canvas, (flight, { at }) => flight.chunk === chunk && found.push(at));
  return found;
}

/**
 * The flight whose dot is the nearest to a point of the drawing, null where none is in reach.
 * @param {import("./canvas.js").Canvas} canvas @param {import("./types.js").Point} p @param {number} reach
 */
export function tokenAt(canvas, p, reach) {
  let best = null;
  let least = reach;
  placed(canvas, (flight, { at }) => {
    const far = Math.hypot(at.x - p.x, at.y - p.y);
    if (far < least) [best, least] = [flight, far];
  });
  return best;
}

/**
 * Find the places of the dots that are not beneath a device.
 * @param {import("./canvas.js").Canvas} canvas
 * @param {(flight: import("./player.js").Flight, token: ReturnType<typeof place>) => void} each
 * @returns {number} how many chunks are in flight
 */
function placed(canvas, each) {
  const { playback, clock, stage } = canvas;
  if (!playback || canvas.stale || clock.time >= clock.end) return 0;
  const flights = playback.inFlight(clock.time);
  const radius = radiusFor(flights.length, stage.cy.zoom());
  const seen = new Map();
  const { time } = clock;
  const tails = flights.length < MANY_TOKENS;
  for (const flight of flights) {
    const lane = canvas.shown.lanes.get(flight.key);
    const curve = lane && stage.curve(lane.line);
    if (!curve) continue;
    let sides = seen.get(lane.line);
    if (!sides) seen.set(lane.line, (sides = [0, 0]));
    const behind = sides[Number(lane.forth)]++;
    const token = place(flight, { time, curve, forth: lane.forth, behind, radius, tails });
    if (!hidden(curve, token.along)) each(flight, token);
  }
  return flights.length;
}

/** Smaller dots where there are many, about as large on the screen at every zoom. */
function radiusFor(count, zoom) {
  const pixels = 3.8 - 1.9 * Math.min(1, Math.max(0, (count - 200) / 1800));
  return Math.max(pixels * 0.85, Math.min(6.5, pixels / zoom));
}

/** Whether a place on a line is beneath a device that the line crosses. */
const hidden = ({ covered }, along) =>
  covered !== null && covered[Math.min(covered.length - 1, Math.floor(along * covered.length))];

/**
 * Where a chunk is, how far along its line, and where its tail ends. Those sent side by side follow one another,
 * and none lies over the devices at the ends, whose names are to be read.
 */
function place(flight, { time, curve, forth, behind, radius, tails }) {
  const whole = Math.max(1e-9, flight.end - flight.start);
  const gap = Math.min(0.25, (behind * radius * 2.4) / curve.length);
  const margin = Math.min(0.25, (radius * 1.2) / curve.length);
  const share = margin + (1 - 2 * margin) * Math.min(1, Math.max(0, (time - flight.start) / whole - gap));
  const end = Math.max(0, share - (radius * 3.6) / curve.length);
  const side = forth ? curve.lane : -curve.lane;
  const along = forth ? share : 1 - share;
  const at = pointOn(curve, along, side);
  const tail = tails ? pointOn(curve, forth ? end : 1 - end, side) : at;
  return { along, at, tail, r: radius * (flight.fraction < 1 ? 0.55 + 0.45 * flight.fraction : 1) };
}

/** @param {CanvasRenderingContext2D} ctx */
function paintTokens(ctx, tokens, { color, few, ring, opacity }) {
  ctx.fillStyle = color;
  if (!few) {
    ctx.globalAlpha = opacity;
    ctx.beginPath();
    for (const { at, r } of tokens) ctx.rect(at.x - r * 0.8, at.y - r * 0.8, r * 1.6, r * 1.6);
    ctx.fill();
    ctx.globalAlpha = 1;
    return;
  }
  ctx.strokeStyle = color;
  ctx.globalAlpha = 0.45;
  ctx.lineCap = "round";
  ctx.lineWidth = tokens[0].r * 1.1;
  ctx.beginPath();
  for (const { at, tail } of tokens) {
    ctx.moveTo(tail.x, tail.y);
    ctx.lineTo(at.x, at.y);
  }
  ctx.stroke();
  ctx.globalAlpha = 1;
  ctx.beginPath();
  for (const { at, r } of tokens) {
    ctx.moveTo(at.x + r, at.y);
    ctx.arc(at.x, at.y, r, 0, 2 * Math.PI);
  }
  ctx.fill();
  ctx.strokeStyle = ring;
  ctx.lineWidth = 0.9;
  ctx.stroke();
}

/**
 * Colour each direction of each link by how busy it is in the epoch shown, or in the whole run; of two
 * plans by which of them it is busier in.
 * @param {CanvasRenderingContext2D} ctx in drawing units
 * @param {import("./canvas.js").Canvas} canvas
 */
export function drawHeat(ctx, canvas) {
  const { playback, clock, stage, colors } = canvas;
  if (!canvas.heat || !playback || canvas.stale) return;
  const { contrast } = canvas;
  const ofOne = () => (canvas.heatOf === "run" ? playback.loadOfRun : playback.load(playback.epochAt(clock.time)));
  const load = contrast ? contrast.load(canvas.heatOf, clock.time) : ofOne();
  ctx.lineCap = "round";
  for (const { line, forth, share } of shares(canvas.shown.lanes, load)) {
    const curve = stage.curve(line);
    const far = Math.abs(share);
    if (!curve || far <= 0) continue;
    const side = (forth ? 1 : -1) * Math.max(1.6, curve.width / 4 + 0.8);
    ctx.strokeStyle = contrast
      ? between(contrast.same, share > 0 ? contrast.more : contrast.less, far)
      : between(colors.cold, colors.hot, share);
    ctx.lineWidth = Math.max(2, curve.width / 2) + far;
    ctx.beginPath();
    trace(ctx, curve, side);
    ctx.stroke();
  }
}

/** How busy each side of each line is: the mean over the links of a bundle. */
function shares(lanes, load) {
  const sides = new Map();
  for (const [key, { line, forth }] of lanes) {
    const side = `${line.id}${forth}`;
    const have = sides.get(side) ?? { line, forth, share: 0 };
    have.share += (load.get(key) ?? 0) / (line.parts?.length ?? 1);
    sides.set(side, have);
  }
  return sides.values();
}
