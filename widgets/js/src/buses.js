/**
 * Buses: many links to one switch, or to switches that serve the same devices, share wires on free ground. A
 * track runs beside each row (or column) of devices, each of them has a stub to it, and a trunk joins the tracks.
 *
 * @typedef {import("./types.js").Line} Line
 * @typedef {import("./types.js").Point} Point
 * @typedef {import("./types.js").Rect} Rect
 * @typedef {{hubs: string[], lines: Line[]}} Group switches with the same neighbours, and their links
 * @typedef {{x: number, y: number, id: string}} Dot where wires of a bus join, with one of its lines
 * @typedef {{level: number, names: string[], track: number | null}} Row
 */

import { CLEARANCE, centre, clamped, grown, hullRect, meets, overlap, rectOf, within } from "./geometry.js";

/** Links of a group at least, and the share of them that boxes must be in the way of. */
const FEWEST = 4;
const BLOCKED = 0.3;
/** Share of them that must find a way along the bus. */
const MOST_OF = 0.8;
/** Groups of several switches each from which on their links are a tangle. */
const TANGLE = 3;
/** Distance of a track from its row, from the next track at least and at most, and from boxes beyond. */
const STEP = 18;
const NARROW = 10;
const WIDE = 30;
const BEYOND = 10;
/** Distance of one that has no room for these, at least. */
const LEAST = 5;
/** Tracks beside a row at most. */
const MOST_TRACKS = 12;
/** Half the width that a wire needs. */
const HALF = 3;

/**
 * Corners of the lines that run along buses, by id, from the first end of the line to the second; and the dots
 * that tell wires which join from those which cross.
 * @param {import("./types.js").Shown} shown @param {Map<string, Rect>} boxes
 * @returns {{routes: Map<string, Point[]>, dots: Dot[]}}
 */
export function busesOf(shown, boxes) {
  const groups = hubGroups(shown).filter(({ lines }) => lines.length >= FEWEST);
  const tangled = groups.filter(({ hubs }) => hubs.length > 1).length >= TANGLE;
  const routes = new Map();
  const dots = [];
  /** Wires that are there, across and down. @type {Rect[][]} */
  const wires = [[], []];
  const turned = new Map([...boxes].map(([name, box]) => [name, turnedRect(box)]));
  for (const group of groups) {
    if (!(tangled && group.hubs.length > 1) && !isBlocked(group, boxes)) continue;
    const across = new Bus(group, boxes, wires);
    const down = new Bus(group, turned, wires.toReversed().map((each) => each.map(turnedRect)));
    const isAcross = across.score <= down.score;
    const best = isAcross ? across : down;
    if (best.routes.size < MOST_OF * group.lines.length) continue;
    for (const [id, corners] of best.routes) routes.set(id, isAcross ? corners : corners.map(({ x, y }) => ({ x: y, y: x })));
    dots.push(...joints(group.lines, routes, boxes));
    best.wires.forEach((list, i) => wires[isAcross ? i : 1 - i].push(...list.map((rect) => (isAcross ? rect : turnedRect(rect)))));
  }
  return { routes, dots };
}

/**
 * Corners from which wires lead in three directions or four.
 * @param {Line[]} lines of one bus @param {Map<string, Point[]>} routes @param {Map<string, Rect>} boxes @returns {Dot[]}
 */
function joints(lines, routes, boxes) {
  const corners = new Map();
  /** Straight pieces of wire. @type {Map<string, Rect>} */
  const pieces = new Map();
  for (const { id, a, b } of lines.filter((line) => routes.has(line.id))) {
    const way = routes.get(id);
    for (const { x, y } of way) if (!corners.has(`${x} ${y}`)) corners.set(`${x} ${y}`, { x, y, id });
    const stops = [clamped(boxes.get(a), way[0]), ...way, clamped(boxes.get(b), way[way.length - 1])];
    for (const piece of stops.slice(1).map((p, i) => hullRect([rectOf(stops[i]), rectOf(p)]))) pieces.set(Object.values(piece).join(), piece);
  }
  const wires = [...pieces.values()];
  const leaves = ({ x, y }) => [
    wires.some((r) => r.y1 === y && r.y2 === y && r.x1 < x && x <= r.x2), wires.some((r) => r.y1 === y && r.y2 === y && r.x1 <= x && x < r.x2),
    wires.some((r) => r.x1 === x && r.x2 === x && r.y1 < y && y <= r.y2), wires.some((r) => r.x1 === x && r.x2 === x && r.y1 <= y && y < r.y2),
  ];
  return [...corners.values()].filter((corner) => leaves(corner).filter(Boolean).length > 2);
}

/** The same with abscissas and ordinates exchanged. @param {Rect} r @returns {Rect} */
const turnedRect = ({ x1, y1, x2, y2 }) => ({ x1: y1, y1: x1, x2: y2, y2: x2 });

/** Switches by what they are joined with, a link with the one that is farther from the devices. @returns {Group[]} */
function hubGroups({ devices, groups, lines }) {
  const switches = [...devices.filter((d) => d.kind === "switch").map((d) => d.name), ...groups.filter(({ members }) => members.every((d) => d.kind === "switch")).map(({ key }) => key)];
  const joined = new Map(switches.map((name) => [name, new Set()]));
  for (const { a, b } of lines) {
    joined.get(a)?.add(b);
    joined.get(b)?.add(a);
  }
  const alike = new Map();
  for (const [name, near] of joined) {
    const key = [...near].sort().join("\n");
    if (!alike.has(key)) alike.set(key, { hubs: [], lines: [] });
    alike.get(key).hubs.push(name);
  }
  const home = new Map([...alike.values()].flatMap((group) => group.hubs.map((hub) => [hub, group])));
  const levels = levelsOf(lines, joined);
  for (const line of lines) {
    const [p, q] = [levels.get(line.a), levels.get(line.b)];
    if (p !== q) home.get(p > q ? line.a : line.b)?.lines.push(line);
  }
  return [...alike.values()];
}

/** Links from what is no switch to each device. @param {Line[]} lines @param {Map<string, Set<string>>} joined what each switch is joined with */
function levelsOf(lines, joined) {
  const ground = lines.flatMap(({ a, b }) => [a, b]).filter((end) => !joined.has(end));
  const levels = new Map(ground.map((name) => [name, 0]));
  const left = new Map(joined);
  for (let level = 1; left.size; level++) {
    const next = [...left].filter(([, near]) => [...near].some((name) => levels.has(name))).map(([name]) => name);
    if (!next.length) break;
    for (const name of next) left.delete(name);
    for (const name of next) levels.set(name, level);
  }
  return levels;
}

/** Whether boxes are in the way of many of the links. @param {Group} group @param {Map<string, Rect>} boxes */
function isBlocked({ lines }, boxes) {
  const hit = lines.filter(({ a, b }) => {
    const [p, q] = [centre(boxes.get(a)), centre(boxes.get(b))];
    return [...boxes].some(([name, box]) => name !== a && name !== b && meets(grown(box, CLEARANCE), p, q));
  });
  return hit.length >= BLOCKED * lines.length;
}

/** The links of one group along rows: its tracks, its trunk, and the corners of each link. */
class Bus {
  /** @param {Group} group @param {Map<string, Rect>} boxes @param {Rect[][]} wires of other buses, along rows and across them */
  constructor({ hubs, lines }, boxes, [along, across]) {
    this.hubs = new Set(hubs);
    this.boxes = boxes;
    /** @type {Rect[][]} */
    this.wires = [[], []];
    this.routes = new Map();
    const ends = [...new Set(lines.flatMap(({ a, b }) => [a, b]))];
    this.alone = hubs.length === 1 ? hubs[0] : null;
    this.others = [...boxes].filter(([name]) => name !== this.alone);
    this.rows = rowsOf(ends, boxes);
    this.trunk = this.rows.length > 1 ? this.#trunk(across) : null;
    if (this.rows.length < 2 || this.trunk !== null) {
      const far = ({ level }) => Math.abs(level - centre(boxes.get(hubs[0])).y);
      for (const row of this.rows.toSorted((p, q) => far(q) - far(p))) this.#lay(row, along);
      for (const line of lines) this.#route(line);
    }
    const length = this.wires.flat().reduce((sum, { x1, y1, x2, y2 }) => sum + x2 - x1 + y2 - y1, 0);
    const tracks = new Set(this.rows.map(({ track }) => track)).size;
    // More links first, then fewer tracks, then less wire.
    this.score = (lines.length - this.routes.size) * 1e6 + tracks * 1e3 + length;
  }

  /** Where the wire runs that joins the tracks: the nearest free place to the switches. @returns {number | null} */
  #trunk(taken) {
    const [first, last] = [this.rows[0], this.rows.at(-1)];
    const y1 = Math.max(...first.names.map((name) => this.boxes.get(name).y2));
    const y2 = Math.min(...last.names.map((name) => this.boxes.get(name).y1));
    const middles = [...this.hubs].map((hub) => centre(this.boxes.get(hub)).x);
    const middle = middles.reduce((sum, x) => sum + x, 0) / middles.length;
    const near = [...this.others.map(([, box]) => box), ...taken].filter((box) => box.y1 < y2 && y1 < box.y2);
    const spots = [middle, ...near.flatMap((box) => [box.x1 - BEYOND, box.x2 + BEYOND])];
    const free = spots.filter((x) => near.every((box) => box.x1 >= x + HALF || box.x2 <= x - HALF));
    if (!free.length) return null;
    const best = free.reduce((p, q) => (Math.abs(q - middle) < Math.abs(p - middle) ? q : p));
    this.wires[1].push({ x1: best - HALF, y1, x2: best + HALF, y2 });
    return best;
  }

  /** Whether the trunk leads straight into the only switch. */
  get #enters() {
    const box = this.trunk !== null && this.alone !== null && this.boxes.get(this.alone);
    return Boolean(box) && this.trunk > box.x1 + HALF && this.trunk < box.x2 - HALF;
  }

  /** Find a track for a row: on the side of the trunk or the switches, and where one is already if it can be. */
  #lay(row, taken) {
    const devices = row.names.filter((name) => name !== this.alone);
    if (!devices.length && this.#enters) return;
    const own = (devices.length ? devices : row.names).map((name) => this.boxes.get(name));
    const { y1, y2 } = hullRect(own);
    const xs = [...row.names.map((name) => centre(this.boxes.get(name)).x), ...(this.trunk === null ? [] : [this.trunk])];
    const [x1, x2] = [Math.min(...xs) - HALF, Math.max(...xs) + HALF];
    const near = this.others.map(([, box]) => box).filter((box) => box.x1 < x2 && x1 < box.x2);
    const free = this.#sides(row).map((side) => {
      const beyond = near.map((box) => (side > 0 ? (box.y2 > y2 + 0.5 ? box.y1 - y2 : Infinity) : (box.y1 < y1 - 0.5 ? y1 - box.y2 : Infinity)));
      const spots = offsets(Math.min(Infinity, ...beyond)).map((off) => (side > 0 ? y2 + off : y1 - off));
      return spots.find((y) => !taken.some((wire) => overlap(wire, { x1, y1: y - HALF, x2, y2: y + HALF })));
    }).filter((y) => y !== undefined);
    const laid = this.rows.map(({ track }) => track).filter((track) => track !== null);
    row.track = free.find((y) => laid.some((track) => Math.abs(track - y) < 1)) ?? free[0] ?? null;
    if (row.track !== null) this.wires[0].push({ x1, y1: row.track - HALF, x2, y2: row.track + HALF });
  }

  /** The sides of a row on which its track may run, 1 below and -1 above. */
  #sides(row) {
    if (this.rows.length < 2) return [1, -1];
    if (row === this.rows[0]) return [1];
    if (row === this.rows.at(-1)) return [-1];
    const [hub] = this.hubs;
    return centre(this.boxes.get(hub)).y >= row.level ? [1, -1] : [-1, 1];
  }

  /** Find the corners of a line, unless it would run beneath a box. @param {Line} line */
  #route({ id, a, b }) {
    const hub = this.hubs.has(a) ? a : b;
    const name = hub === a ? b : a;
    const [from, to] = [name, hub].map((end) => this.rows.find(({ names }) => names.includes(end)));
    const [here, there] = [name, hub].map((end) => centre(this.boxes.get(end)).x);
    if (from.track === null) return;
    const corners = [{ x: here, y: from.track }];
    if (from !== to && from.track !== to.track) {
      corners.push({ x: this.trunk, y: from.track });
      if (!this.#enters) {
        if (to.track === null) return;
        corners.push({ x: this.trunk, y: to.track }, { x: there, y: to.track });
      }
    } else {
      const box = this.boxes.get(hub);
      if (from.track <= box.y1 || from.track >= box.y2) corners.push({ x: there, y: from.track });
    }
    const apart = corners.filter((p, i) => !i || p.x !== corners[i - 1].x || p.y !== corners[i - 1].y);
    // A track that meets the switch itself ends at its side.
    const kept = apart.length > 1 && within(this.boxes.get(hub), apart[apart.length - 1]) ? apart.slice(0, -1) : apart;
    if (!this.#clear(kept, [name, hub])) return;
    this.routes.set(id, hub === a ? kept.toReversed() : kept);
  }

  /** Whether a way passes no box but those of its ends. @param {Point[]} corners @param {string[]} ends */
  #clear(corners, ends) {
    const way = [clamped(this.boxes.get(ends[0]), corners[0]), ...corners, clamped(this.boxes.get(ends[1]), corners.at(-1))];
    const strips = way.slice(1).map((p, i) => grown(hullRect([rectOf(way[i]), rectOf(p)]), 1));
    return this.others.every(([name, box]) => ends.includes(name) || !strips.some((strip) => overlap(strip, box)));
  }
}

/** Names by the ordinates of their middles, from above. @returns {Row[]} */
function rowsOf(names, boxes) {
  const rows = new Map();
  for (const name of names) {
    const level = Math.round(centre(boxes.get(name)).y);
    if (!rows.has(level)) rows.set(level, { level, names: [], track: null });
    rows.get(level).names.push(name);
  }
  return [...rows.values()].sort((p, q) => p.level - q.level);
}

/** Distances from a row at which a track may run before what is beyond. @param {number} gap */
function offsets(gap) {
  if (gap < 2 * LEAST) return [];
  if (gap < STEP + BEYOND) return [gap / 2];
  const step = Math.max(NARROW, Math.min(WIDE, gap / MOST_TRACKS));
  const count = Math.min(MOST_TRACKS, 1 + Math.floor((gap - BEYOND - STEP) / step));
  return Array.from({ length: count }, (_, i) => STEP + step * i);
}
