/**
 * Blocks in a grid: hosts and racks are drawn in rows that look well while they are open, and when they are folded a few boxes,
 * or a thin strip of them, are left. So blocks move, as wholes, into rows of a number that suits the canvas, before the room that
 * folding frees is closed. Switches above and below stay there, those that stand in a single row of blocks come to them, or
 * between two halves of the blocks.
 *
 * @typedef {import("./types.js").Drawing} Drawing
 * @typedef {import("./types.js").Point} Point
 * @typedef {import("./types.js").Rect} Rect
 * @typedef {Record<string, [number, number]>} Positions
 * @typedef {{key: string, members: import("./types.js").Device[]}} Item what moves as a whole: a rack, a host, a switch outside them
 * @typedef {{items: Item[], hull: Rect, aside: Map<string, number>}} Unit items that keep their places towards one another, in one cell of the
 *   grid, but for those that move aside so that links to the cell below pass them
 * @typedef {{units: Item[][], loose: Item[], racks: boolean}} Blocks what may stand in a grid, and what stands outside it
 * @typedef {{tiers: (Unit[] | Item[])[], units: Unit[], inner: Item[], hull: Rect}} Part units above, between or below switches, those switches
 *   that stand among them, and what comes above what of these
 * @typedef {{item: Item, dx: number, dy: number}} Move
 * @typedef {{from: Rect, to: Rect, dx: number, dy: number, off: [number, number], members: string[]}} Shift of an item, with its boxes
 *   before and after, and how far it stands beside its place in the grid
 * @typedef {{from: number, to: number, need: number}[]} Room intervals of an axis that keep their length
 */

import { Compactor, SLOT, boxAt } from "./compactor.js";
import { centre, grown, hullRect, overlap, rectAt } from "./geometry.js";
import { HOST_PADDING } from "./style.js";

/** Room between blocks, in the drawing; between pods, whose frames have titles; and between planes of a torus. */
const GAP = { x: 16, y: 34 };
const WIDE_GAP = { x: 56, y: 64 };
/** What the box of a folded rack takes of the screen, and the switches above and below all racks. */
const CELL = { x: 216, y: 122 };
const SWITCHES = 150;
/** How much wider than high a grid of many racks is, and one of hosts: as a canvas is between the columns of the designer. */
const WIDE = { racks: 2, hosts: 1.3 };
/** How much larger a grid has to make boxes before hosts leave the places that they were given. */
const WORTH = 1.25;
/** How far beyond a block what is there goes with it. */
const NEAR = 60;

/** How large boxes are in a grid of so many columns, less where a last row is left empty. @param {number[]} counts @param {number} columns @param {{cell: {x: number, y: number}, switches: number, wide: number}} room */
function worthOf(counts, columns, { cell, switches, wide }) {
  const rows = counts.reduce((sum, count) => sum + Math.ceil(count / columns), 0);
  const full = counts.reduce((sum, count) => sum + count, 0) / (rows * columns);
  return Math.min(wide / (columns * cell.x), 1 / (rows * cell.y + switches)) * full ** 2;
}

/** How many blocks a row should have: as large boxes as may be, and a last row that is not left empty. @param {number[]} counts blocks in each part of the drawing */
export function columnsFor(counts, { cell = CELL, switches = SWITCHES, wide = WIDE.racks } = {}) {
  const value = (columns) => worthOf(counts, columns, { cell, switches, wide });
  return Array.from({ length: Math.max(...counts) }, (_, i) => i + 1).reduce((best, columns) => (value(columns) > value(best) ? columns : best), 1);
}

/**
 * Where devices stand when blocks are in a grid, and the way there and back; null where they are better left as they are.
 * @param {Blocks} blocks @param {Drawing} drawing
 * @param {{stood?: Map<string, Point>, groups: import("./types.js").Group[]}} how middles of items when they were folded: one that was
 *   moved since stands beside its place as far; and what is folded where all of this level is
 * @returns {{positions: Positions, rooms: {x: Room, y: Room}, off: Map<string, [number, number]>, to: (p: Point) => Point, back: (p: Point, at?: Point) => Point} | null}
 *   `positions` are those in the grid itself, `off` has those devices that stand beside it
 */
export function blockGrid(blocks, drawing, { stood = new Map(), groups }) {
  const items = [...blocks.units.flat(), ...blocks.loose];
  const boxes = new Map(items.map((item) => [item.key, boxOf(item, drawing)]));
  const homes = new Map(items.map(({ key }) => [key, movedTo(boxes.get(key), stood.get(key))]));
  const off = new Map(items.map(({ key }) => [key, beside(boxes.get(key), homes.get(key))]));
  const plan = planOf(blocks, { drawing, homes, off, groups });
  if (!plan) return null;
  const { moves, rooms } = placed(plan, homes);
  const shifts = moves.map(({ item: { key, members }, dx, dy }) => {
    const from = boxes.get(key);
    return { from, off: off.get(key), to: by(from, dx, dy), dx, dy, members: members.map((d) => d.name) };
  });
  const moved = { ...drawing.positions };
  for (const each of shifts) for (const name of each.members) moved[name] = sum(drawing.positions[name], [each.dx - each.off[0], each.dy - each.off[1]]);
  const aside = new Map(shifts.filter((each) => each.off.some(Boolean)).flatMap((each) => each.members.map((name) => [name, each.off])));
  return { positions: moved, rooms, off: aside, to: (p) => along(shifts, p, { side: "from" }), back: (p, at) => along(shifts, p, { side: "to", at }) };
}

/** @param {Item} item @param {Drawing} drawing @returns {Rect} */
function boxOf({ members }, { positions }) {
  const hull = /** @type {Rect} */ (hullRect(members.map((d) => rectAt(positions[d.name], d.kind))));
  return members.some((d) => d.host !== null) ? grown(hull, HOST_PADDING) : hull;
}

/** Middle of an item in the drawing. @param {Item} item @param {Drawing} drawing */
export const middleOf = (item, drawing) => centre(boxOf(item, drawing));

/** @param {Rect} r @param {number} dx @param {number} dy @returns {Rect} */
const by = (r, dx, dy) => ({ x1: r.x1 + dx, x2: r.x2 + dx, y1: r.y1 + dy, y2: r.y2 + dy });

/** @param {[number, number]} p @param {[number, number]} q @returns {[number, number]} */
const sum = (p, q) => [p[0] + q[0], p[1] + q[1]];

/** A box about another middle. @param {Rect} r @param {Point} [at] */
const movedTo = (r, at = centre(r)) => by(r, at.x - centre(r).x, at.y - centre(r).y);

/** How far a box stands beside its home. @param {Rect} box @param {Rect} home @returns {[number, number]} */
const beside = (box, home) => [centre(box).x - centre(home).x, centre(box).y - centre(home).y];

// ---- which grid -----------------------------------------------------------------------------------

/** @param {Blocks} blocks @returns {{parts: Part[], columns: number, gap: {x: number, y: number}, snake: boolean, loose: Item[]} | null} */
function planOf(blocks, { drawing, homes, off, groups }) {
  const { loose, racks } = blocks;
  const linked = racks ? new Map() : linksBetween(blocks.units, drawing.topology);
  const whole = blocks.units.some((items) => items.length > 1);
  const sets = racks || whole ? blocks.units : linked.size ? bays(blocks.units.flat(), homes) : inLines(blocks.units, homes);
  const units = sets.map((items) => ({ items, hull: hullOf(items, homes), aside: new Map() }));
  const parts = partsOf(units, { loose, homes, racks });
  if (!parts || units.length < 2) return null;
  const counts = parts.flatMap(({ tiers, inner }) => tiers.filter((tier) => tier !== inner).map((tier) => tier.length));
  const gap = sets.some((items) => items.length > 1) ? WIDE_GAP : GAP;
  if (racks) return { parts, columns: columnsFor(counts), gap, snake: false, loose };
  const at = homePositions(drawing.positions, [...blocks.units.flat(), ...loose], off);
  const { cell, hang, strip, rest } = folded(units, { topology: drawing.topology, positions: at, groups });
  const slant = linked.size && !whole ? mostAside(units, homes) : 0;
  const pitch = { x: cell.x + gap.x + slant, y: cell.y + gap.y + hang };
  const room = { cell: pitch, switches: loose.length ? Math.max(SWITCHES, rest) : 0, wide: WIDE.hosts };
  const columns = columnsFor(counts, room);
  if (worthOf(counts, columns, room) < WORTH * Math.min(WIDE.hosts / strip.x, 1 / strip.y)) return null;
  const between = whole ? linked : linksBetween(sets, drawing.topology);
  const snake = parts.length === 1 && lengthOf(between, columns, true) < lengthOf(between, columns, false);
  if (snake) for (const unit of units) stepAside(unit, homes);
  return { parts, columns, gap: { x: gap.x, y: gap.y + hang }, snake, loose };
}

/** @param {Item[]} items @param {Map<string, Rect>} homes */
const hullOf = (items, homes) => /** @type {Rect} */ (hullRect(items.map(({ key }) => homes.get(key))));

/** The first and the second half. @template T @param {T[]} all @returns {T[][]} */
const halves = (all) => [all.slice(0, Math.ceil(all.length / 2)), all.slice(Math.ceil(all.length / 2))];

/** How many links lead from one set of items to another, by their numbers. @param {Item[][]} sets @returns {Map<string, number>} */
function linksBetween(sets, { links }) {
  const at = new Map(sets.flatMap((items, i) => items.flatMap(({ members }) => members.map((d) => [d.name, i]))));
  const found = new Map();
  for (const { src, dst } of links) {
    const [i, j] = [at.get(src), at.get(dst)];
    if (i === undefined || j === undefined || i === j) continue;
    found.set(`${i} ${j}`, (found.get(`${i} ${j}`) ?? 0) + 1);
  }
  return found;
}

/** Cells that all links pass, when rows are read to and fro or each from the left. @param {Map<string, number>} between */
function lengthOf(between, columns, snake) {
  let length = 0;
  for (const [ends, many] of between) {
    const [[c, r], [d, s]] = ends.split(" ").map((i) => cellOf(Number(i), columns, snake));
    length += many * (Math.abs(c - d) + Math.abs(r - s));
  }
  return length;
}

/** Column and row. @param {number} i @returns {[number, number]} */
function cellOf(i, columns, snake) {
  const row = Math.floor(i / columns);
  return [snake && row % 2 ? columns - 1 - (i % columns) : i % columns, row];
}

/** What moving aside takes of the screen. @param {Unit[]} units @param {Map<string, Rect>} homes */
const mostAside = (units, homes) => (columnsOf(units[0].items, homes).some(({ items }) => items.length > 1) ? SLOT.x / 2 : 0);

/** Let every other host of a column move aside by half a column. @param {Unit} unit @param {Map<string, Rect>} homes */
function stepAside(unit, homes) {
  const columns = columnsOf(unit.items, homes);
  const half = columns.length > 1 ? (columns[1].x1 - columns[0].x1) / 2 : (unit.hull.x2 - unit.hull.x1) / 2;
  for (const { items } of columns) {
    const down = items.toSorted((a, b) => homes.get(a.key).y1 - homes.get(b.key).y1);
    down.forEach(({ key }, i) => unit.aside.set(key, i % 2 ? half : 0));
  }
  if ([...unit.aside.values()].some(Boolean)) unit.hull = { ...unit.hull, x2: unit.hull.x2 + half };
}

/** Units in the order in which a text is read. @param {Item[][]} units @param {Map<string, Rect>} homes */
function inLines(units, homes) {
  const at = new Map(units.map((items) => [items, centre(hullOf(items, homes))]));
  return units.toSorted((a, b) => Math.round(at.get(a).y - at.get(b).y) || at.get(a).x - at.get(b).x);
}

/** Hosts above one another, from the left to the right. @param {Item[]} hosts @param {Map<string, Rect>} homes */
function columnsOf(hosts, homes) {
  /** @type {{items: Item[], x1: number, x2: number}[]} */
  const columns = [];
  for (const item of hosts.toSorted((a, b) => homes.get(a.key).x1 - homes.get(b.key).x1)) {
    const { x1, x2 } = homes.get(item.key);
    const last = columns.at(-1);
    if (!last || last.x2 <= x1) columns.push({ items: [item], x1, x2 });
    else {
      last.items.push(item);
      last.x2 = Math.max(last.x2, x2);
    }
  }
  return columns;
}

/**
 * Hosts that are linked to one another, such as the planes of a torus: columns whose heights repeat are one bay for each period.
 * @param {Item[]} hosts @param {Map<string, Rect>} homes @returns {Item[][]}
 */
function bays(hosts, homes) {
  const columns = columnsOf(hosts, homes);
  const heights = columns.map(({ items }) => items.map(({ key }) => Math.round(centre(homes.get(key)).y)).toSorted((p, q) => p - q).join());
  const repeats = (period) => columns.length % period === 0 && heights.every((each, i) => each === heights[i % period]);
  const period = heights.findIndex((_, i) => repeats(i + 1)) + 1;
  const width = period === columns.length ? 1 : period;
  return Array.from({ length: columns.length / width }, (_, i) => columns.slice(i * width, (i + 1) * width).flatMap(({ items }) => items));
}

/**
 * Units above, between and below switches; null where switches stand among racks or several rows of hosts.
 * @param {Unit[]} units @returns {Part[] | null}
 */
function partsOf(units, { loose, homes, racks }) {
  const sets = new Map();
  for (const unit of units) {
    const { y } = centre(unit.hull);
    const above = loose.filter(({ key }) => centre(homes.get(key)).y < y).length;
    sets.set(above, [...(sets.get(above) ?? []), unit]);
  }
  const parts = [];
  for (const part of [...sets.values()]) {
    const hull = /** @type {Rect} */ (hullRect(part.map((unit) => unit.hull)));
    const row = !racks && part.every((unit) => unit.hull.y1 < centre(hull).y && centre(hull).y < unit.hull.y2);
    const level = { ...hull, x1: -Infinity, x2: Infinity };
    const inner = loose.filter(({ key }) => overlap(row ? level : hull, homes.get(key)));
    if (inner.length && !row) return null;
    const outer = loose.filter((item) => !inner.includes(item)).map(({ key }) => centre(homes.get(key)).y < centre(hull).y);
    parts.push({ units: part, hull, inner, tiers: tiersOf(part, inner, outer) });
  }
  return parts.toSorted((a, b) => a.hull.y1 - b.hull.y1);
}

/** Units and the switches among them: those come to others above or below. @param {Unit[]} units @param {Item[]} inner @param {boolean[]} above where others are */
function tiersOf(units, inner, above) {
  if (!inner.length) return [units];
  if (above.length) return above.includes(true) ? [inner, units] : [units, inner];
  const [first, second] = halves(units);
  return [first, inner, second];
}

/** Positions of the devices of items at their homes. @param {Positions} positions @param {Item[]} items @param {Map<string, [number, number]>} off */
function homePositions(positions, items, off) {
  const to = { ...positions };
  for (const { key, members } of items) {
    const [dx, dy] = off.get(key);
    if (dx || dy) for (const d of members) to[d.name] = sum(positions[d.name], [-dx, -dy]);
  }
  return to;
}

/**
 * What units take of the screen where all is folded and nothing else is done.
 * @param {Unit[]} units
 * @returns {{cell: {x: number, y: number}, hang: number, strip: {x: number, y: number}, rest: number}} the largest unit, how far boxes of switches hang
 *   below one, all of the drawing, and its height without that of the units
 */
function folded(units, { topology, positions, groups }) {
  const within = new Set(groups.flatMap(({ members }) => members.map((d) => d.name)));
  const devices = topology.devices.filter((d) => !within.has(d.name));
  const compactor = new Compactor({ devices, groups, positions });
  const places = compactor.positions();
  const ends = [
    ...groups.map(({ key, members }) => ({ name: members[0].name, box: boxAt({ x: places[key][0], y: places[key][1] }) })),
    ...devices.map((d) => ({ name: d.name, box: rectAt(places[d.name], d.kind) })),
  ];
  const unitAt = new Map(units.flatMap((unit) => unit.items.flatMap(({ members }) => members.map((d) => [d.name, unit]))));
  const rects = new Map(units.map((unit) => [unit, []]));
  for (const { name, box } of ends) rects.get(unitAt.get(name))?.push(box);
  const [cell, all] = [{ x: SLOT.x, y: SLOT.y }, /** @type {Rect} */ (hullRect(ends.map(({ box }) => box)))];
  let hang = 0;
  for (const [unit, inside] of rects) {
    const hull = hullRect(inside);
    if (!hull) continue;
    cell.x = Math.max(cell.x, hull.x2 - hull.x1);
    cell.y = Math.max(cell.y, hull.y2 - hull.y1);
    hang = Math.max(hang, hull.y2 - compactor.y.at(unit.hull.y2));
  }
  const inUnits = /** @type {Rect} */ (hullRect([...rects.values()].flat()));
  const strip = { x: all.x2 - all.x1, y: all.y2 - all.y1 };
  return { cell, hang, strip, rest: strip.y - (inUnits.y2 - inUnits.y1) };
}

// ---- where everything stands in it ----------------------------------------------------------------

/** @returns {{moves: Move[], rooms: {x: Room, y: Room}}} */
function placed({ parts, columns, gap, snake, loose }, homes) {
  const size = largest(parts.flatMap(({ units }) => units));
  const cell = { x: Math.max(size.x, SLOT.x), y: Math.max(size.y, SLOT.y) };
  const all = /** @type {Rect} */ (hullRect(parts.map(({ hull }) => hull)));
  const squeeze = (x) => (x - centre(all).x) * Math.min(1, (columns * (cell.x + gap.x)) / (all.x2 - all.x1)) + centre(all).x - x;
  /** @type {Move[]} */
  const moves = [];
  /** @type {{x: Room, y: Room}} */
  const rooms = { x: [], y: [] };
  /** @type {{below: number, by: number}[]} */
  const grew = [];
  let down = 0;
  for (const part of parts) {
    let top = part.hull.y1 + down;
    for (const tier of part.tiers) {
      if (tier === part.inner) top = between(part.inner, { top, squeeze, homes, moves }) + gap.y;
      else top = rows(/** @type {Unit[]} */ (tier), { top, columns, cell, gap, snake, middle: centre(part.hull).x, moves, rooms });
    }
    grew.push({ below: part.hull.y2, by: Math.max(0, top - gap.y - part.hull.y2 - down) });
    down += grew.at(-1).by;
  }
  const inner = new Set(parts.flatMap((part) => part.inner));
  for (const item of loose.filter((each) => !inner.has(each))) {
    const { x, y } = centre(homes.get(item.key));
    moves.push({ item, dx: squeeze(x), dy: grew.filter(({ below }) => below <= y).reduce((sum_, each) => sum_ + each.by, 0) });
  }
  return { moves, rooms };
}

/** @param {Unit[]} units */
const largest = (units) => ({
  x: Math.max(...units.map(({ hull }) => hull.x2 - hull.x1)), y: Math.max(...units.map(({ hull }) => hull.y2 - hull.y1)),
});

/** Place switches between two rows of blocks. @returns {number} where they end */
function between(items, { top, squeeze, homes, moves }) {
  const hull = hullOf(items, homes);
  for (const item of items) moves.push({ item, dx: squeeze(centre(homes.get(item.key)).x), dy: top - hull.y1 });
  return top + hull.y2 - hull.y1;
}

/** Place units in rows, the middles of their columns about a line. @returns {number} where they end, with the gap below */
function rows(units, { top, columns, cell, gap, snake, middle, moves, rooms }) {
  const pitch = { x: cell.x + gap.x, y: cell.y + gap.y };
  const left = middle - (Math.min(columns, units.length) * pitch.x - gap.x) / 2;
  units.forEach(({ items, hull, aside }, i) => {
    const [column, row] = cellOf(i, columns, snake);
    const corner = { x: left + column * pitch.x, y: top + row * pitch.y };
    const [dx, dy] = [corner.x + cell.x / 2 - centre(hull).x, corner.y + cell.y / 2 - centre(hull).y];
    for (const item of items) moves.push({ item, dx: dx + (aside.get(item.key) ?? 0), dy });
    for (const axis of ["x", "y"]) {
      const [from, to] = [corner[axis], corner[axis] + cell[axis]];
      rooms[axis].push({ from: to, to: to + gap[axis], need: gap[axis] }, { from, to, need: SLOT[axis] });
    }
  });
  return top + Math.ceil(units.length / columns) * pitch.y;
}

/**
 * A point with the item that another one, by default itself, is on or near to; one that is near to none stays.
 * @param {Shift[]} shifts @param {Point} p @param {{side: "from" | "to", at?: Point}} how
 */
function along(shifts, p, { side, at = p }) {
  const far = (each) => away(each[side], at);
  const nearest = shifts.reduce((best, each) => (far(each) < far(best) ? each : best));
  if (far(nearest) > NEAR) return p;
  const sign = side === "from" ? 1 : -1;
  return { x: p.x + sign * nearest.dx, y: p.y + sign * nearest.dy };
}

/** How far a point is from a box. @param {Rect} r @param {Point} p */
const away = (r, p) => Math.hypot(Math.max(0, r.x1 - p.x, p.x - r.x2), Math.max(0, r.y1 - p.y, p.y - r.y2));
