/**
 * Racks in a grid: hosts are drawn in rows that are as wide as they look well, and when racks are folded a few boxes are left of
 * each row. So racks move, as wholes, into rows of a number that suits a wide canvas, read like the lines of a text, before the
 * room that folding frees is closed. Switches stay where they are, above the racks or between them.
 *
 * @typedef {import("./types.js").Group} Group
 * @typedef {import("./types.js").Point} Point
 * @typedef {import("./types.js").Rect} Rect
 * @typedef {Record<string, [number, number]>} Positions
 * @typedef {{from: Rect, to: Rect, dx: number, dy: number, off: [number, number], members: string[]}} Shift of a rack, with its boxes
 *   before and after, and how far it stands beside its place in the grid
 */

import { centre, grown, hullRect, overlap, rectAt } from "./geometry.js";
import { HOST_PADDING } from "./style.js";

/** Room between racks, in the drawing. */
const GAP = { x: 16, y: 34 };
/** What the box of a folded rack takes of the screen, the switches above and below all racks, and how much wider a canvas is than high. */
const CELL = { x: 216, y: 122 };
const SWITCHES = 150;
const WIDE = 2;
/** How far beyond a rack what is there goes with it. */
const NEAR = 60;

/** How many racks a row should have: as large boxes as may be, and a last row that is not left empty. @param {number[]} counts racks in each part of the drawing */
export function columnsFor(counts) {
  const most = Math.max(...counts);
  const value = (columns) => {
    const rows = counts.reduce((sum, count) => sum + Math.ceil(count / columns), 0);
    const full = counts.reduce((sum, count) => sum + count, 0) / (rows * columns);
    return Math.min(WIDE / (columns * CELL.x), 1 / (rows * CELL.y + SWITCHES)) * full ** 2;
  };
  return Array.from({ length: most }, (_, i) => i + 1).reduce((best, columns) => (value(columns) > value(best) ? columns : best), 1);
}

/**
 * Where devices stand when racks are in a grid, and the way there and back; null where switches stand among racks.
 * @param {Group[]} racks in their order @param {import("./types.js").Drawing} drawing
 * @param {Map<string, Point>} stood middles of racks when they were folded: one that was moved since stands beside its place as far
 * @returns {{positions: Positions, off: Map<string, [number, number]>, to: (p: Point) => Point, back: (p: Point) => Point} | null}
 *   `positions` are those in the grid itself, `off` has those devices that stand beside it
 */
export function rackGrid(racks, { topology, positions }, stood = new Map()) {
  const rect = (d) => rectAt(positions[d.name], d.kind);
  const boxes = new Map(racks.map(({ key, members }) => [key, grown(/** @type {Rect} */ (hullRect(members.map(rect))), HOST_PADDING)]));
  const placed = new Set(racks.flatMap(({ members }) => members.map((d) => d.name)));
  const loose = topology.devices.filter((d) => !placed.has(d.name)).map(rect);
  const homes = new Map(racks.map(({ key }) => [key, movedTo(boxes.get(key), stood.get(key))]));
  const parts = partsOf(racks, homes, loose);
  const hulls = parts.map((part) => /** @type {Rect} */ (hullRect(part.map(({ key }) => homes.get(key)))));
  if (hulls.some((hull) => loose.some((each) => overlap(hull, each)))) return null;
  const columns = columnsFor(parts.map((part) => part.length));
  const shifts = parts.flatMap((part, i) => shiftsOf(part, { boxes, homes, hull: hulls[i], columns }));
  if (!shifts.length || parts.some((part, i) => heightOf(part, homes, columns) > hulls[i].y2 - hulls[i].y1 + GAP.y)) return null;
  const moved = { ...positions };
  for (const { dx, dy, off, members } of shifts) {
    for (const name of members) moved[name] = [positions[name][0] + dx - off[0], positions[name][1] + dy - off[1]];
  }
  const off = new Map(shifts.filter((each) => each.off.some(Boolean)).flatMap((each) => each.members.map((name) => [name, each.off])));
  return { positions: moved, off, to: (p) => along(shifts, p, "from"), back: (p) => along(shifts, p, "to") };
}

/** A box about another middle. @param {Rect} r @param {Point} [at] @returns {Rect} */
function movedTo(r, at = centre(r)) {
  const { x, y } = centre(r);
  return { x1: r.x1 + at.x - x, x2: r.x2 + at.x - x, y1: r.y1 + at.y - y, y2: r.y2 + at.y - y };
}

/** Racks above, between and below switches. @param {Group[]} racks @param {Map<string, Rect>} homes @param {Rect[]} loose @returns {Group[][]} */
function partsOf(racks, homes, loose) {
  const parts = new Map();
  for (const rack of racks) {
    const { y } = centre(homes.get(rack.key));
    const above = loose.filter((each) => centre(each).y < y).length;
    parts.set(above, [...(parts.get(above) ?? []), rack]);
  }
  return [...parts.values()];
}

/** @param {Group[]} part @param {Map<string, Rect>} homes */
const largest = (part, homes) => {
  const rects = part.map(({ key }) => homes.get(key));
  return { width: Math.max(...rects.map(({ x1, x2 }) => x2 - x1)), height: Math.max(...rects.map(({ y1, y2 }) => y2 - y1)) };
};

/** Height of a part that has so many columns. */
const heightOf = (part, homes, columns) => Math.ceil(part.length / columns) * (largest(part, homes).height + GAP.y);

/** @returns {Shift[]} */
function shiftsOf(part, { boxes, homes, hull, columns }) {
  const { width, height } = largest(part, homes);
  const pitch = { x: width + GAP.x, y: height + GAP.y };
  const left = centre(hull).x - (Math.min(columns, part.length) * pitch.x - GAP.x) / 2;
  return part.map(({ key, members }, i) => {
    const [from, home] = [boxes.get(key), centre(homes.get(key))];
    const dx = left + (i % columns) * pitch.x + width / 2 - home.x;
    const dy = hull.y1 + Math.floor(i / columns) * pitch.y + height / 2 - home.y;
    const off = /** @type {[number, number]} */ ([centre(from).x - home.x, centre(from).y - home.y]);
    return { from, off, to: { x1: from.x1 + dx, x2: from.x2 + dx, y1: from.y1 + dy, y2: from.y2 + dy }, dx, dy, members: members.map((d) => d.name) };
  });
}

/** A point with the rack that it is on or near to; one that is near to none stays. @param {Shift[]} shifts @param {Point} p @param {"from" | "to"} side */
function along(shifts, p, side) {
  const far = ({ from, to }) => away(side === "from" ? from : to, p);
  const nearest = shifts.reduce((best, each) => (far(each) < far(best) ? each : best));
  if (far(nearest) > NEAR) return p;
  const sign = side === "from" ? 1 : -1;
  return { x: p.x + sign * nearest.dx, y: p.y + sign * nearest.dy };
}

/** How far a point is from a box. @param {Rect} r @param {Point} p */
const away = (r, p) => Math.hypot(Math.max(0, r.x1 - p.x, p.x - r.x2), Math.max(0, r.y1 - p.y, p.y - r.y2));
