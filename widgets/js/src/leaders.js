/**
 * The line from an outline to its label: short, and clear of devices and names where it can be; none where the
 * label is beside the outline.
 *
 * @typedef {import("./types.js").Point} Point
 * @typedef {import("./types.js").Rect} Rect
 * @typedef {{from: Point, to: Point, length: number, hits: number}} Leader hits: what it crosses
 */

import { centre, clamped, meets } from "./geometry.js";

/** Length from which on there is a line. */
export const FAR = 14;
/** Places along an outline from which one may lead, and how many of them, the nearest, are looked at. */
const MOST_STARTS = 72;
const LEAST_STEP = 5;
const NEAREST = 14;
/** What it costs to end a pixel beside the middle of the label: of lines that are as long, the one nearest to it. */
const ASIDE = 0.03;

/** Places along an outline, evenly; one that has no length, as of a canvas that is hidden, is one place. @param {[Point, Point][]} pieces of it @returns {Point[]} */
export function startsAlong(pieces) {
  const length = ([p, q]) => Math.hypot(q.x - p.x, q.y - p.y);
  const step = Math.max(LEAST_STEP, pieces.reduce((sum, piece) => sum + length(piece), 0) / MOST_STARTS);
  let left = 0;
  const found = pieces.flatMap(([p, q]) => {
    const whole = length([p, q]);
    const places = [];
    for (; left < whole; left += step) places.push({ x: p.x + (left / whole) * (q.x - p.x), y: p.y + (left / whole) * (q.y - p.y) });
    left -= whole;
    return places;
  });
  return found.length ? found : pieces.slice(0, 1).map(([p]) => p);
}

/** The shortest line to a label that crosses nothing, else the one that crosses least. @param {Rect} label @param {Point[]} starts @param {Rect[]} obstacles @returns {Leader} */
export function leaderTo(label, starts, obstacles) {
  const middle = centre(label);
  const lines = starts.map((from) => {
    const to = clamped(label, from);
    const length = Math.hypot(to.x - from.x, to.y - from.y);
    return { line: { from, to, length }, cost: length + ASIDE * Math.hypot(to.x - middle.x, to.y - middle.y) };
  }).sort((p, q) => p.cost - q.cost).slice(0, NEAREST).map(({ line }) => line);
  let best = null;
  for (const line of lines) {
    const hits = line.length > FAR ? obstacles.filter((rect) => meets(rect, line.from, line.to)).length : 0;
    if (!best || hits < best.hits) best = { ...line, hits };
    if (!hits) break;
  }
  return best;
}
