/**
 * Where devices lie: places for those that have none, free spots, and lining up.
 *
 * @typedef {import("./types.js").Drawing} Drawing
 * @typedef {import("./types.js").Rect} Rect
 */

import { grown, hullRect, overlap, rectAt } from "./geometry.js";
import { EditError, KINDS, move } from "./model.js";
import { HOST_PADDING } from "./style.js";

const STEP = { x: 104, y: 92 };

/** Rectangle of each device by name. @param {Drawing} drawing @returns {Map<string, Rect>} */
export const rectsOf = ({ topology, positions }) =>
  new Map(
    topology.devices
      .filter((d) => positions[d.name])
      .map((d) => [d.name, rectAt(positions[d.name], d.kind)]),
  );

/**
 * Box of each host around its devices.
 * @param {{devices: import("./types.js").Device[]}} shown @param {Map<string, Rect>} rects of the devices
 * @returns {Map<string, Rect>}
 */
export function hostRects({ devices }, rects) {
  const inside = new Map();
  for (const { name, host } of devices) {
    if (host !== null && rects.has(name)) inside.set(host, [...(inside.get(host) ?? []), rects.get(name)]);
  }
  return new Map([...inside].map(([host, list]) => [host, grown(hullRect(list), HOST_PADDING)]));
}

/**
 * Give every device without a position one: a block per host, switches above what they serve,
 * beside what is placed already.
 * @param {Drawing} drawing @returns {Drawing}
 */
export function placeMissing(drawing) {
  const missing = drawing.topology.devices.filter((d) => !drawing.positions[d.name]);
  if (!missing.length) return drawing;
  const known = hullRect([...rectsOf(drawing).values()]);
  const alone = missing.filter((d) => d.host === null);
  const hosts = new Map(missing.filter((d) => d.host !== null).map((d) => [d.host, []]));
  for (const d of missing) hosts.get(d.host)?.push(d);
  /** @type {Record<string, [number, number]>} */
  const to = {};
  let x = known ? known.x2 + STEP.x : 0;
  const top = known ? known.y1 : 0;
  const columns = Math.ceil(Math.sqrt(2 * Math.max(2, ...[...hosts.values()].map((list) => list.length))));
  const above = alone.filter((d) => d.kind === "switch");
  const left = x;
  for (const list of hosts.values()) x += block(list, { x, y: top, columns, to }) + 70;
  const rest = hosts.size ? alone.filter((d) => d.kind !== "switch") : alone;
  if (rest.length) x += block(rest, { x, y: top, columns: Math.ceil(Math.sqrt(rest.length)), to });
  if (hosts.size) {
    const gap = Math.max(150, (x - left) / Math.max(1, above.length));
    const first = (left + x - gap * (above.length - 1)) / 2;
    above.forEach((d, i) => (to[d.name] = [first + i * gap, top - 150]));
  }
  return move(drawing, to);
}

/** Place a host's devices in rows, switches between two halves; returns the block's width. */
function block(devices, { x, y, columns, to }) {
  const of = (...kinds) => devices.filter((d) => kinds.includes(d.kind));
  const [gpus, switches] = [of("gpu"), of("switch")];
  const half = switches.length ? Math.ceil(gpus.length / 2) : gpus.length;
  const rows = [
    ...inRows(gpus.slice(0, half), columns),
    switches,
    ...inRows(gpus.slice(half), columns),
    of("memory", "nic"),
  ].filter((row) => row.length);
  const wide = (row) => row.length * Math.max(STEP.x, ...row.map((d) => KINDS[d.kind].width + 24));
  const width = Math.max(...rows.map(wide));
  rows.forEach((row, r) => {
    const gap = wide(row) / row.length;
    const start = x + (width - wide(row)) / 2;
    row.forEach((d, i) => (to[d.name] = [start + (i + 0.5) * gap, y + r * STEP.y]));
  });
  return width;
}

const inRows = (list, columns) =>
  Array.from({ length: Math.ceil(list.length / columns) }, (_, r) =>
    list.slice(r * columns, (r + 1) * columns),
  );

/**
 * The spot nearest to `[x, y]` where a device of that kind touches none of `taken`.
 * @param {[number, number]} near
 * @param {import("./types.js").Kind} kind
 * @param {Rect[]} taken
 * @returns {[number, number]}
 */
export function freeSpot(near, kind, taken) {
  for (let ring = 0; ring < 40; ring++) {
    for (const [i, j] of ringOf(ring)) {
      const spot = /** @type {[number, number]} */ ([near[0] + i * STEP.x, near[1] + j * STEP.y]);
      const rect = grown(rectAt(spot, kind), 12);
      if (!taken.some((other) => overlap(rect, other))) return spot;
    }
  }
  return near;
}

/** Steps on the square ring around the middle, to the right and below first. */
function ringOf(ring) {
  /** @type {[number, number][]} */
  const steps = [];
  for (let j = -ring; j <= ring; j++) {
    for (let i = -ring; i <= ring; i++) {
      if (Math.max(Math.abs(i), Math.abs(j)) === ring) steps.push([i, j]);
    }
  }
  const rank = ([i, j]) => Math.hypot(i, j) + (i < 0 ? 0.2 : 0) + (j < 0 ? 0.3 : 0);
  return steps.sort((a, b) => rank(a) - rank(b));
}

/** @type {Record<string, (r: Rect, all: Rect) => [number, number]>} how far to move a unit */
const SHIFTS = {
  left: (r, all) => [all.x1 - r.x1, 0],
  right: (r, all) => [all.x2 - r.x2, 0],
  centre: (r, all) => [(all.x1 + all.x2 - r.x1 - r.x2) / 2, 0],
  top: (r, all) => [0, all.y1 - r.y1],
  bottom: (r, all) => [0, all.y2 - r.y2],
  middle: (r, all) => [0, (all.y1 + all.y2 - r.y1 - r.y2) / 2],
};

/**
 * Line up devices; those of a selected host keep their places in it.
 * @param {Drawing} drawing
 * @param {{devices: string[], hosts: string[]}} selection
 * @param {string} how left, centre, right, top, middle, bottom, distribute_x or distribute_y
 * @returns {Drawing}
 */
export function align(drawing, selection, how) {
  const units = unitsOf(drawing, selection);
  if (units.length < 2) throw new EditError("aligning needs two devices or hosts; select more");
  const all = hullRect(units.map((unit) => unit.rect));
  const shift = how.startsWith("distribute_") ? spread(units, how.endsWith("x")) : SHIFTS[how];
  if (!shift) {
    throw new EditError(`cannot align ${how}; ways are ${Object.keys(SHIFTS).join(", ")}, distribute_x, distribute_y`);
  }
  /** @type {Record<string, [number, number]>} */
  const to = {};
  for (const { names, rect } of units) {
    const [dx, dy] = shift(rect, all);
    for (const name of names) {
      const [x, y] = drawing.positions[name];
      to[name] = [x + dx, y + dy];
    }
  }
  return move(drawing, to);
}

/** What moves as one: a whole host, or a single device. */
function unitsOf(drawing, { devices, hosts }) {
  const rects = rectsOf(drawing);
  const inHost = new Map(hosts.map((host) => [host, []]));
  for (const d of drawing.topology.devices) inHost.get(d.host)?.push(d.name);
  const held = new Set([...inHost.values()].flat());
  const groups = [...inHost.values(), ...devices.filter((name) => !held.has(name)).map((name) => [name])];
  return groups
    .map((names) => ({ names, rect: hullRect(names.map((name) => rects.get(name))) }))
    .filter((unit) => unit.rect);
}

/** Equal gaps between middles, the outermost stay. */
function spread(units, sideways) {
  const middle = (r) => (sideways ? r.x1 + r.x2 : r.y1 + r.y2) / 2;
  const order = units.map((unit) => unit.rect).sort((a, b) => middle(a) - middle(b));
  const first = middle(order[0]);
  const gap = (middle(order.at(-1)) - first) / (order.length - 1);
  return (rect) => {
    const by = first + gap * order.indexOf(rect) - middle(rect);
    return sideways ? [by, 0] : [0, by];
  };
}
