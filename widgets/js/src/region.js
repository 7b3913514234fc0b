/**
 * Region of a cut: the outline around a set of devices that leaves the others out. A raster is filled
 * around the members, carved around the others, and its border is walked and smoothed.
 *
 * @typedef {import("./types.js").Rect} Rect
 * @typedef {import("./types.js").Point} Point
 */

import { centre, grown, hullRect, overlap, rectOf } from "./geometry.js";

/** Side of a cell; larger drawings have larger ones. */
const CELL = 10;
const MOST_CELLS = 1_000_000;
/** Room between the members and the border; a single one is ringed closely. */
const MARGIN = 24;
const CLOSE_MARGIN = 11;
const CORRIDOR = 14;
const CARVE = 8;

/** Room for the name of a host inside the region. */
const HOST_NAME = 26;

/**
 * The outlines of a cut on the screen. The side with fewer devices is outlined: a cut is the same from
 * both. A whole host counts as its box with the name above it.
 * @param {Iterable<string>} named devices on one side of it
 * @param {object} scene
 * @param {import("./types.js").Topology} scene.topology
 * @param {import("./types.js").Shown} scene.shown
 * @param {(end: string) => Rect | null | undefined} scene.rect of a device, or of a group by its key
 * @param {(host: string) => Rect | null | undefined} scene.hostRect
 */
export function regionOf(named, { topology, shown, rect, hostRect }) {
  const inside = outlinedSide(named, topology);
  const split = new Set(topology.devices.filter((d) => !inside.has(d.name)).map((d) => d.host));
  const rects = { in: [], out: [] };
  const hosts = new Set();
  for (const d of shown.devices) {
    if (!inside.has(d.name)) rects.out.push(rect(d.name));
    else if (d.host === null || split.has(d.host)) rects.in.push(rect(d.name));
    else hosts.add(d.host);
  }
  for (const { key, members } of shown.groups) {
    const within = members.filter((d) => inside.has(d.name)).length;
    // A group that is cut in two has a frame of its own.
    if (within === members.length) rects.in.push(rect(key));
    else if (!within) rects.out.push(rect(key));
  }
  for (const host of hosts) {
    const box = hostRect(host);
    if (box) rects.in.push({ ...box, y1: box.y1 - HOST_NAME });
  }
  return outline(rects.in.filter(Boolean), rects.out.filter(Boolean));
}

/**
 * Names of the side of a cut that is outlined: that with fewer devices.
 * @param {Iterable<string>} names of one side @param {import("./types.js").Topology} topology
 */
export function outlinedSide(names, { devices }) {
  const named = new Set(names);
  const others = devices.map((d) => d.name).filter((name) => !named.has(name));
  return others.length && others.length < devices.length - others.length ? new Set(others) : named;
}

/**
 * @param {Rect[]} inside rectangles to enclose
 * @param {Rect[]} outside rectangles to leave out
 * @returns {Point[][]} closed outlines, more than one only where the members lie apart
 */
export function outline(inside, outside) {
  const all = hullRect(inside);
  if (!all) return [];
  const alone = inside.length === 1;
  const box = grown(all, alone ? CLOSE_MARGIN : MARGIN);
  if (!outside.some((r) => overlap(grown(r, alone ? 0 : CARVE), box))) {
    return [corners(box, alone ? 16 : 26)];
  }
  const raster = new Raster(box);
  for (const r of inside) raster.fill(grown(r, MARGIN - 4), 1);
  for (const [p, q] of spanningTree(inside.map(centre))) raster.line(p, q, CORRIDOR);
  for (const r of outside) raster.fill(grown(r, CARVE), 0);
  for (const r of inside) raster.fill(grown(r, CARVE), 1);
  return raster.outlines().map((points) => smooth(smooth(points)));
}

/** A rectangle with rounded corners as points. @param {Rect} r @param {number} radius */
function corners(r, radius) {
  const middles = [
    [r.x2 - radius, r.y1 + radius, -0.5],
    [r.x2 - radius, r.y2 - radius, 0],
    [r.x1 + radius, r.y2 - radius, 0.5],
    [r.x1 + radius, r.y1 + radius, 1],
  ];
  return middles.flatMap(([x, y, turn]) =>
    Array.from({ length: 7 }, (_, i) => {
      const angle = (turn + i / 12) * Math.PI;
      return { x: x + radius * Math.cos(angle), y: y + radius * Math.sin(angle) };
    }),
  );
}

/** Shortest lines that join all points (Prim). @param {Point[]} points @returns {[Point, Point][]} */
function spanningTree(points) {
  const left = points.slice(1).map((p) => ({ p, to: points[0], far: distance(p, points[0]) }));
  /** @type {[Point, Point][]} */
  const lines = [];
  while (left.length) {
    const i = left.reduce((best, item, k) => (item.far < left[best].far ? k : best), 0);
    const [{ p, to }] = left.splice(i, 1);
    lines.push([p, to]);
    for (const item of left) {
      const far = distance(item.p, p);
      if (far < item.far) Object.assign(item, { to: p, far });
    }
  }
  return lines;
}

const distance = (p, q) => Math.hypot(p.x - q.x, p.y - q.y);

class Raster {
  /** @param {Rect} box what it covers */
  constructor(box) {
    this.cell = Math.max(CELL, Math.sqrt(((box.x2 - box.x1) * (box.y2 - box.y1)) / MOST_CELLS));
    this.x = box.x1 - 2 * this.cell;
    this.y = box.y1 - 2 * this.cell;
    this.width = Math.ceil((box.x2 - this.x) / this.cell) + 2;
    this.height = Math.ceil((box.y2 - this.y) / this.cell) + 2;
    this.cells = new Uint8Array(this.width * this.height);
  }

  /** Set the cells whose middle lies in a rectangle. @param {Rect} r @param {0 | 1} value */
  fill(r, value) {
    const from = (v, origin) => Math.max(1, Math.ceil((v - origin) / this.cell - 0.5));
    const to = (v, origin, size) => Math.min(size - 2, Math.floor((v - origin) / this.cell - 0.5));
    const [left, right] = [from(r.x1, this.x), to(r.x2, this.x, this.width)];
    for (let j = from(r.y1, this.y); j <= to(r.y2, this.y, this.height); j++) {
      if (right >= left) this.cells.fill(value, j * this.width + left, j * this.width + right + 1);
    }
  }

  /** @param {Point} p @param {Point} q @param {number} reach to either side */
  line(p, q, reach) {
    const steps = Math.max(1, Math.ceil(distance(p, q) / this.cell));
    for (let i = 0; i <= steps; i++) {
      const x = p.x + ((q.x - p.x) * i) / steps;
      const y = p.y + ((q.y - p.y) * i) / steps;
      this.fill(grown(rectOf({ x, y }), Math.max(reach, this.cell)), 1);
    }
  }

  at(i, j) {
    return this.cells[j * this.width + i];
  }

  /** Walk every border with the filled cells on the right. @returns {Point[][]} */
  outlines() {
    const next = new Map();
    const add = (i, j, k, l) => {
      const key = i + j * (this.width + 1);
      next.set(key, [...(next.get(key) ?? []), [k, l]]);
    };
    for (let j = 1; j < this.height - 1; j++) {
      for (let i = 1; i < this.width - 1; i++) {
        if (!this.at(i, j)) continue;
        if (!this.at(i, j - 1)) add(i, j, i + 1, j);
        if (!this.at(i + 1, j)) add(i + 1, j, i + 1, j + 1);
        if (!this.at(i, j + 1)) add(i + 1, j + 1, i, j + 1);
        if (!this.at(i - 1, j)) add(i, j + 1, i, j);
      }
    }
    const loops = [];
    for (const key of next.keys()) {
      while (next.get(key).length) loops.push(this.#walk(next, key));
    }
    return loops.filter((loop) => loop.length > 8);
  }

  #walk(next, start) {
    const points = [];
    let key = start;
    do {
      const [i, j] = next.get(key).pop();
      points.push({ x: this.x + i * this.cell, y: this.y + j * this.cell });
      key = i + j * (this.width + 1);
    } while (key !== start);
    return points.filter((p, n) => n % 2 === 0);
  }
}

/** Cut every corner (Chaikin). @param {Point[]} points @returns {Point[]} */
function smooth(points) {
  return points.flatMap((p, i) => {
    const q = points[(i + 1) % points.length];
    return [
      { x: p.x * 0.75 + q.x * 0.25, y: p.y * 0.75 + q.y * 0.25 },
      { x: p.x * 0.25 + q.x * 0.75, y: p.y * 0.25 + q.y * 0.75 },
    ];
  });
}
