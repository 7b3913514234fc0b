/**
 * Which part of its wire a link has for itself. Links of a bus share wires: of some that are to be marked, each is
 * marked from one of its ends to where the first link joins that is not marked, since what lies beyond is everybody's.
 *
 * @typedef {import("./geometry.js").Curve} Curve
 * @typedef {import("./types.js").Line} Line
 * @typedef {import("./types.js").Point} Point
 * @typedef {{line: Line, atB: boolean, own: number, drawn: number, length: number}} OwnWire `atB`: that it is marked from its second end;
 *   then units from there to where others join, and to where what is marked of another begins; and units of all of it
 */

/** Units that two wires have in common at least where they run together and do not only cross. */
const TOGETHER = 0.5;

/**
 * @param {Line[]} lines all that run along buses @param {Map<string, boolean>} marked ids of those to be marked, and
 *   whether from their second end @param {(line: Line) => Curve} curveOf
 * @returns {Map<string, OwnWire>} by id
 */
export function ownWires(lines, marked, curveOf) {
  if (!lines.some(({ id }) => marked.has(id))) return new Map();
  const others = new Wires();
  for (const line of lines) if (!marked.has(line.id)) others.add(curveOf(line).legs);
  const found = lines.filter(({ id }) => marked.has(id)).map((line) => {
    const atB = /** @type {boolean} */ (marked.get(line.id));
    const { legs, length } = curveOf(line);
    const way = atB ? legs.map(([p, q]) => /** @type {[Point, Point]} */ ([q, p])).toReversed() : legs;
    return { line, atB, way, length, own: Math.min(length, others.joins(way)) };
  });
  // What marked ones share is drawn once, or the dashes of one would fill the gaps of another.
  const drawn = new Wires();
  return new Map(found.toSorted((p, q) => q.own - p.own).map(({ way, ...wire }) => {
    const free = Math.min(wire.own, drawn.joins(way));
    drawn.add(cutShort(way, free));
    return [wire.line.id, { ...wire, drawn: free }];
  }));
}

/** Whether a corner of a marked line lies on the part that is its own, and does not end it. @param {OwnWire} wire @param {Curve} curve @param {Point} corner */
export function isOwn({ atB, own, length }, { legs, lengths }, { x, y }) {
  const at = legs.findIndex(([, q]) => Math.hypot(q.x - x, q.y - y) < TOGETHER);
  const far = lengths.slice(0, at + 1).reduce((sum, each) => sum + each, 0);
  return at >= 0 && (atB ? length - far : far) < own - TOGETHER;
}

/** The first units of a way. @param {[Point, Point][]} way @param {number} left */
function cutShort(way, left) {
  /** @type {[Point, Point][]} */
  const kept = [];
  for (const [p, q] of way) {
    const length = lengthOf([p, q]);
    const share = Math.min(1, left / (length || 1));
    if (left > 0) kept.push([p, { x: p.x + share * (q.x - p.x), y: p.y + share * (q.y - p.y) }]);
    left -= length;
  }
  return kept;
}

const lengthOf = ([p, q]) => Math.hypot(q.x - p.x, q.y - p.y);

/** Straight pieces of wires, across and down, by where they run. */
class Wires {
  constructor() {
    /** @type {Map<string, [number, number][]>} */
    this.runs = new Map();
  }

  /** @param {[Point, Point][]} legs */
  add(legs) {
    for (const leg of legs) {
      const { key, from, to } = runOf(leg);
      if (!this.runs.has(key)) this.runs.set(key, []);
      this.runs.get(key).push([Math.min(from, to), Math.max(from, to)]);
    }
  }

  /** Units along a way to where it first runs together with one of these. @param {[Point, Point][]} way */
  joins(way) {
    let before = 0;
    for (const leg of way) {
      const { key, from, to } = runOf(leg);
      const starts = (this.runs.get(key) ?? []).map(([low, high]) => {
        const [first, last] = from < to ? [low - from, high - from] : [from - high, from - low];
        const start = Math.max(0, first);
        return Math.min(Math.abs(to - from), last) - start > TOGETHER ? start : Infinity;
      });
      const nearest = starts.reduce((p, q) => Math.min(p, q), Infinity);
      if (nearest < Infinity) return before + nearest;
      before += lengthOf(leg);
    }
    return Infinity;
  }
}

/** The line on which a piece lies, and from where to where; a slanted one lies on none. @param {[Point, Point]} leg */
function runOf([p, q]) {
  if (Math.abs(p.y - q.y) < TOGETHER) return { key: `across ${Math.round(p.y)}`, from: p.x, to: q.x };
  if (Math.abs(p.x - q.x) < TOGETHER) return { key: `down ${Math.round(p.x)}`, from: p.y, to: q.y };
  return { key: "slanted", from: 0, to: 0 };
}
