/**
 * Shapes on the drawing, in its own coordinates.
 *
 * @typedef {import("./types.js").Point} Point
 * @typedef {import("./types.js").Rect} Rect
 *
 * @typedef {object} Curve a quadratic one from a to b; `c` is its control point, null if straight
 * @property {Point} a
 * @property {Point} b
 * @property {Point | null} c
 * @property {[Point, Point][]} [legs] the straight parts of one that has corners or is cut short
 * @property {number[]} [lengths] of these
 * @property {number} length
 *
 * @typedef {number | Point[] | "stubs"} Route how a link runs: how far it bends to the side; along corners, which
 *   are those of a bus; or as a short piece at either end, outwards
 */

import { KINDS } from "./model.js";

/**
 * @param {[number, number]} position
 * @param {import("./types.js").Kind | {width: number, height: number}} what a kind of device, or a size
 * @returns {Rect}
 */
export const rectAt = ([x, y], what) => {
  const { width, height } = typeof what === "string" ? KINDS[what] : what;
  return { x1: x - width / 2, y1: y - height / 2, x2: x + width / 2, y2: y + height / 2 };
};

/** @param {Rect} r @param {number} by @returns {Rect} */
export const grown = (r, by) => ({ x1: r.x1 - by, y1: r.y1 - by, x2: r.x2 + by, y2: r.y2 + by });

/** @param {Rect} a @param {Rect} b */
export const overlap = (a, b) => a.x1 < b.x2 && b.x1 < a.x2 && a.y1 < b.y2 && b.y1 < a.y2;

/** @param {Rect} r @param {Point} p */
export const within = (r, p) => p.x >= r.x1 && p.x <= r.x2 && p.y >= r.y1 && p.y <= r.y2;

/** @param {Rect} r @returns {Point} */
export const centre = (r) => ({ x: (r.x1 + r.x2) / 2, y: (r.y1 + r.y2) / 2 });

/** The rectangle that is only a point. @param {Point} p @returns {Rect} */
export const rectOf = ({ x, y }) => ({ x1: x, y1: y, x2: x, y2: y });

/** @param {Rect[]} rects @returns {Rect | null} null of none */
export const hullRect = (rects) => {
  if (!rects.length) return null;
  const all = { x1: Infinity, y1: Infinity, x2: -Infinity, y2: -Infinity };
  for (const r of rects) {
    all.x1 = Math.min(all.x1, r.x1);
    all.y1 = Math.min(all.y1, r.y1);
    all.x2 = Math.max(all.x2, r.x2);
    all.y2 = Math.max(all.y2, r.y2);
  }
  return all;
};

/** Where the way from the middle of `r` to `to` leaves it. @param {Rect} r @param {Point} to */
export const borderPoint = (r, to) => {
  const m = centre(r);
  const dx = to.x - m.x;
  const dy = to.y - m.y;
  if (!dx && !dy) return m;
  const t = Math.min(
    dx ? (r.x2 - r.x1) / 2 / Math.abs(dx) : Infinity,
    dy ? (r.y2 - r.y1) / 2 / Math.abs(dy) : Infinity,
    1,
  );
  return { x: m.x + dx * t, y: m.y + dy * t };
};

/**
 * The control point of a curve that deviates by `bend` to the side, as cytoscape places it.
 * @param {Point} p @param {Point} q @param {number} bend @returns {Point | null}
 */
const controlPoint = (p, q, bend) => {
  if (!bend) return null;
  const length = Math.hypot(q.x - p.x, q.y - p.y) || 1;
  return {
    x: (p.x + q.x) / 2 - ((q.y - p.y) / length) * bend,
    y: (p.y + q.y) / 2 + ((q.x - p.x) / length) * bend,
  };
};

/** The point of a box that is nearest to another. @param {Rect} r @param {Point} p @returns {Point} */
export const clamped = (r, { x, y }) => ({ x: Math.max(r.x1, Math.min(r.x2, x)), y: Math.max(r.y1, Math.min(r.y2, y)) });

/** Length of the pieces that are left of a link that closes a row. */
export const STUB = 30;

/** The two ends that are drawn of a link that is cut short. @param {Rect} from @param {Rect} to @returns {Curve} */
function stubsBetween(from, to) {
  const [p, q] = [centre(from), centre(to)];
  const length = Math.hypot(q.x - p.x, q.y - p.y) || 1;
  const [dx, dy] = [(p.x - q.x) / length, (p.y - q.y) / length];
  const a = borderPoint(from, { x: p.x + 1e4 * dx, y: p.y + 1e4 * dy });
  const b = borderPoint(to, { x: q.x - 1e4 * dx, y: q.y - 1e4 * dy });
  return alongLegs([[a, { x: a.x + STUB * dx, y: a.y + STUB * dy }], [{ x: b.x - STUB * dx, y: b.y - STUB * dy }, b]]);
}

/** @param {[Point, Point][]} legs @returns {Curve} */
function alongLegs(legs) {
  const lengths = legs.map(lengthOf);
  return { a: legs[0][0], b: legs[legs.length - 1][1], c: null, legs, lengths, length: lengths.reduce((sum, each) => sum + each, 0) || 1 };
}

/** @param {[Point, Point]} leg */
const lengthOf = ([p, q]) => Math.hypot(q.x - p.x, q.y - p.y);

/** The visible part of a link between two devices. @param {Rect} from @param {Rect} to @param {Route} [way] @returns {Curve} */
export const curveBetween = (from, to, way = 0) => {
  if (way === "stubs") return stubsBetween(from, to);
  if (typeof way !== "number") {
    const stops = [clamped(from, way[0]), ...way, clamped(to, way[way.length - 1])];
    return alongLegs(stops.slice(1).map((p, i) => [stops[i], p]));
  }
  const bend = way;
  const p = centre(from);
  const q = centre(to);
  const c = controlPoint(p, q, bend);
  const a = borderPoint(from, c ?? q);
  const b = borderPoint(to, c ?? p);
  const chord = Math.hypot(b.x - a.x, b.y - a.y);
  const length = c
    ? (chord + Math.hypot(c.x - a.x, c.y - a.y) + Math.hypot(b.x - c.x, b.y - c.y)) / 2
    : chord;
  return { a, b, c, length: length || 1 };
};

/** A point so far along straight parts, `side` to the right of them. @param {Curve} curve */
function onLegs({ legs, lengths }, left, side) {
  let i = 0;
  while (i < legs.length - 1 && left >= lengths[i]) left -= lengths[i++];
  const [p, q] = legs[i];
  const length = lengths[i] || 1;
  const dx = (q.x - p.x) / length;
  const dy = (q.y - p.y) / length;
  return { x: p.x + dx * left - dy * side, y: p.y + dy * left + dx * side };
}

/**
 * A point of the curve, `side` to the right of the way from a to b.
 * @param {Curve} curve @param {number} t from 0 at a to 1 at b @param {number} side
 * @returns {Point}
 */
export const pointOn = (curve, t, side = 0) => {
  if (curve.legs) return onLegs(curve, t * curve.length, side);
  const { a, b, c } = curve;
  const s = 1 - t;
  const x = c ? s * s * a.x + 2 * s * t * c.x + t * t * b.x : a.x + (b.x - a.x) * t;
  const y = c ? s * s * a.y + 2 * s * t * c.y + t * t * b.y : a.y + (b.y - a.y) * t;
  if (!side) return { x, y };
  const dx = c ? s * (c.x - a.x) + t * (b.x - c.x) : b.x - a.x;
  const dy = c ? s * (c.y - a.y) + t * (b.y - c.y) : b.y - a.y;
  const length = Math.hypot(dx, dy) || 1;
  return { x: x - (dy / length) * side, y: y + (dx / length) * side };
};

/** Pieces of a bent curve that are drawn straight. */
const PIECES = 24;

/** Runs of places between which a curve is straight. @param {Curve} curve @returns {number[][]} from 0 to 1 */
export const runsOf = (curve) => {
  if (curve.legs) {
    let from = 0;
    return curve.legs.map((_, i) => {
      const start = from;
      from += curve.lengths[i] / curve.length;
      return [start, i === curve.legs.length - 1 ? 1 : Math.max(start, from - 1e-9)];
    });
  }
  return curve.c ? [Array.from({ length: PIECES + 1 }, (_, i) => i / PIECES)] : [[0, 1]];
};

/**
 * Lay the path of a curve, `side` to the right of the way from a to b.
 * @param {CanvasRenderingContext2D} ctx @param {Curve} curve @param {number} side @param {[number, number]} [part] of it
 */
export function trace(ctx, curve, side, [from, to] = [0, 1]) {
  for (const run of runsOf(curve)) {
    run.forEach((t, i) => {
      const { x, y } = pointOn(curve, Math.min(to, Math.max(from, t)), side);
      if (i) ctx.lineTo(x, y);
      else ctx.moveTo(x, y);
    });
  }
}

/** Points around all of a curve. @param {Curve} curve @returns {Point[]} */
export const cornersOf = ({ a, b, c, legs }) => legs?.flat() ?? (c ? [a, c, b] : [a, b]);

/** Parts of a curve that are looked at on their own. */
const PARTS = 48;

/**
 * Which parts of a curve are beneath rectangles that it crosses; null where none is.
 * @param {Curve} curve @param {Rect[]} rects without those of the two ends
 * @returns {boolean[] | null}
 */
export function coveredParts(curve, rects) {
  const reach = grown(hullRect(cornersOf(curve).map(rectOf)), 1);
  const crossed = rects.filter((rect) => overlap(rect, reach));
  if (!crossed.length) return null;
  const parts = Array.from({ length: PARTS }, (_, i) =>
    crossed.some((rect) => within(rect, pointOn(curve, (i + 0.5) / PARTS))),
  );
  return parts.some(Boolean) ? parts : null;
}

const BENDS = [0, 60, -60, 95, -95, 140, -140, 200, -200, 280, -280];
/** Room between a link and what it passes. */
export const CLEARANCE = 5;
/** Points of a link that are looked at. */
const MOST_SAMPLES = 400;

/**
 * How far a link has to bend so that it crosses no other device: the least of a few bends, or the
 * one that crosses the fewest.
 * @param {Point} p @param {Point} q @param {Rect[]} obstacles without the two ends
 */
export function bendAround(p, q, obstacles) {
  const length = Math.hypot(q.x - p.x, q.y - p.y);
  const reach = hullRect([p, q].map(rectOf));
  const near = obstacles.map((r) => grown(r, CLEARANCE)).filter((r) => overlap(r, grown(reach, 150)));
  let best = 0;
  let fewest = Infinity;
  for (const bend of BENDS) {
    if (Math.abs(bend) > length * 0.7) break;
    const hits = crossings(p, q, { bend, near });
    if (hits < fewest) [best, fewest] = [bend, hits];
    if (!hits) break;
  }
  return best;
}

/** Whether the straight way from p to q meets a box. @param {Rect} r @param {Point} p @param {Point} q */
export function meets(r, p, q) {
  let [from, to] = [0, 1];
  for (const [low, high, at, step] of [[r.x1, r.x2, p.x, q.x - p.x], [r.y1, r.y2, p.y, q.y - p.y]]) {
    if (!step && (at < low || at > high)) return false;
    if (!step) continue;
    const [one, other] = [(low - at) / step, (high - at) / step];
    from = Math.max(from, Math.min(one, other));
    to = Math.min(to, Math.max(one, other));
  }
  return from <= to;
}

/** @param {Point} p @param {Point} q @param {{bend: number, near: Rect[]}} how */
function crossings(p, q, { bend, near }) {
  const curve = { a: p, b: q, c: controlPoint(p, q, bend), length: 1 };
  const samples = Math.min(MOST_SAMPLES, Math.max(8, Math.ceil(Math.hypot(q.x - p.x, q.y - p.y) / 12)));
  const hit = new Set();
  for (let i = 1; i < samples; i++) {
    const at = pointOn(curve, i / samples);
    near.forEach((r, k) => within(r, at) && hit.add(k));
  }
  return hit.size;
}

/** Columns that so many players may stand in: the first, unless drawings are larger in another by `GAIN`. */
const COLUMNS = { 2: [2, 1], 3: [3, 1], 4: [2, 4] };
const GAIN = 1.15;

/** Height of what stands around a drawing: its head, and the legend. */
const AROUND = 86;

/**
 * In how many columns drawings are largest.
 * @param {number} count of players @param {{width: number, height: number}} room of all
 * @param {{w: number, h: number}} shape of a drawing
 */
export function columns(count, room, shape) {
  const zoom = (across) =>
    Math.min(room.width / across / shape.w, (room.height / Math.ceil(count / across) - AROUND) / shape.h);
  const [usual, other] = COLUMNS[count];
  return zoom(other) > GAIN * zoom(usual) ? other : usual;
}
