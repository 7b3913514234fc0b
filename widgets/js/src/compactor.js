/**
 * Closing the room that folding frees: each axis is mapped by its own rising function, so what is left of or above
 * something stays so.
 *
 * @typedef {import("./types.js").Group} Group
 * @typedef {import("./types.js").Rect} Rect
 */

import { centre, grown, hullRect, overlap, rectAt } from "./geometry.js";
import { KINDS } from "./model.js";
import { HOST_PADDING } from "./style.js";

/** Size of a folded group, and of the room around its middle that it keeps. */
export const GROUP = { width: 164, height: 58 };
export const SLOT = { x: 200, y: 88 };
/** Room between two blocks that is left as it was. */
const MOST_GAP = 64;
/** Room between two switches of a row. */
const APART = 28;

/** A rising piecewise linear function that shortens where nothing needs the length. */
export class Axis {
  /** @param {{from: number, to: number, need: number}[]} intervals what lies where, and what it needs */
  constructor(intervals) {
    const alike = new Map(intervals.map((each) => [`${each.from} ${each.to} ${each.need}`, each]));
    const blocks = [...alike.values()];
    const stops = [...new Set(blocks.flatMap(({ from, to }) => [from, to]))].sort((p, q) => p - q);
    this.stops = stops;
    this.images = stops.slice(0, 1);
    for (let i = 0; i + 1 < stops.length; i++) {
      const [from, to] = [stops[i], stops[i + 1]];
      const over = blocks.filter((block) => block.from <= from && block.to >= to);
      const length = over.length
        ? (to - from) * Math.max(...over.map((block) => Math.min(1, block.need / (block.to - block.from))))
        : Math.min(to - from, MOST_GAP);
      this.images.push(this.images[i] + length);
    }
  }

  /** @param {number} value */
  at(value) {
    return between(value, this.stops, this.images);
  }

  /** @param {number} image */
  back(image) {
    return between(image, this.images, this.stops);
  }
}

/** Map along a polygon; beyond its ends by shifting. */
function between(value, from, to) {
  const last = from.length - 1;
  if (last < 0) return value;
  if (value <= from[0]) return value - from[0] + to[0];
  if (value >= from[last]) return value - from[last] + to[last];
  let [low, high] = [0, last];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (from[middle] <= value) low = middle;
    else high = middle;
  }
  return to[low] + ((value - from[low]) / (from[high] - from[low] || 1)) * (to[high] - to[low]);
}

/** Whether a group takes the place of a block, as a host or a pod does, and is no row of switches. @param {Group} group */
export const isBlock = ({ host, pod }) => host !== null || Boolean(pod);

/**
 * Closes the room that folded hosts leave. Each axis is mapped by its own rising function, so what is
 * left of or above something stays so, and what does not overlap does not begin to.
 */
export class Compactor {
  /**
   * @param {object} what
   * @param {import("./types.js").Device[]} what.devices those that are shown
   * @param {Group[]} what.groups the folded ones
   * @param {Record<string, [number, number]>} what.positions of all devices
   * @param {{x: {from: number, to: number, need: number}[], y: {from: number, to: number, need: number}[]}} [what.rooms] what
   *   else needs its length
   */
  constructor({ devices, groups, positions, rooms = { x: [], y: [] } }) {
    this.places = positions;
    this.groups = groups;
    this.devices = devices;
    const rect = (d) => rectAt(positions[d.name], d.kind);
    const open = new Map();
    for (const d of devices) {
      if (d.host !== null) open.set(d.host, [...(open.get(d.host) ?? []), rect(d)]);
    }
    this.loose = devices.filter((d) => d.host === null);
    this.rects = new Map(groups.map(({ key, members }) => [key, hullRect(members.map(rect))]));
    const inHosts = groups.filter(isBlock);
    const folded = inHosts.map(({ key }) => grown(/** @type {Rect} */ (this.rects.get(key)), HOST_PADDING));
    const whole = [...open.values()].map((rects) => grown(/** @type {Rect} */ (hullRect(rects)), HOST_PADDING));
    const single = this.loose.map(rect);
    const boxes = groups.filter((group) => !isBlock(group)).map(({ key }) => boxAt(centre(this.rects.get(key))));
    const interval = (r, axis, need) => ({ from: r[`${axis}1`], to: r[`${axis}2`], need });
    const as = (rects, axis, need) => rects.map((r) => interval(r, axis, need ?? Infinity));
    const blocks = [...folded, ...whole];
    const beside = single.filter((r) => blocks.some((block) => block.y1 < r.y2 && r.y1 < block.y2));
    // Rows of switches need their height; their width they get by standing apart, unless they stand beside hosts.
    this.x = new Axis([...as(folded, "x", SLOT.x), ...as([...whole, ...beside], "x"), ...rooms.x]);
    this.y = new Axis([...as(folded, "y", SLOT.y), ...as(whole, "y"), ...as([...single, ...boxes], "y"), ...rooms.y]);
  }

  /** Where everything that is shown stands, groups by their keys. @param {Map<string, [number, number]>} off how far devices stand beside their places */
  positions(off = new Map()) {
    /** @type {Record<string, [number, number]>} */
    const to = {};
    for (const d of this.devices) to[d.name] = this.#image(this.places[d.name]);
    for (const group of this.groups) {
      const { key } = group;
      const r = this.rects.get(key);
      const wide = isBlock(group) ? grown(r, HOST_PADDING) : r;
      to[key] = [
        (this.x.at(wide.x1) + this.x.at(wide.x2)) / 2, (this.y.at(wide.y1) + this.y.at(wide.y2)) / 2,
      ];
    }
    this.#clear(to);
    this.#spread(to);
    this.#displace(to, off);
    return to;
  }

  /** Move what stands beside its place, which makes no room for it. */
  #displace(to, off) {
    const ends = [...this.devices.map(({ name }) => ({ end: name, name })), ...this.groups.map(({ key, members }) => ({ end: key, name: members[0].name }))];
    for (const { end, name } of off.size ? ends : []) {
      const [dx, dy] = off.get(name) ?? [0, 0];
      const { x, y } = this.toDrawing({ x: to[end][0], y: to[end][1] });
      if (dx || dy) to[end] = this.#image([x + dx, y + dy]);
    }
  }

  /** Switches that are one box stand below the hosts that they would cover. */
  #clear(to) {
    const blocks = this.groups.filter(isBlock).map(({ key }) => boxAt({ x: to[key][0], y: to[key][1] }));
    for (const group of this.groups.filter((each) => !isBlock(each))) {
      const [x, y] = to[group.key];
      const hit = blocks.filter((block) => overlap(block, boxAt({ x, y })));
      if (hit.length) to[group.key] = [x, Math.max(...hit.map(({ y2 }) => y2)) + SLOT.y];
    }
  }

  /** @param {[number, number]} place */
  #image([x, y]) {
    return /** @type {[number, number]} */ ([this.x.at(x), this.y.at(y)]);
  }

  /** @param {import("./types.js").Point} point in the drawing @returns on the screen */
  fromDrawing({ x, y }) {
    return { x: this.x.at(x), y: this.y.at(y) };
  }

  /** @param {import("./types.js").Point} point on the screen @returns in the drawing */
  toDrawing({ x, y }) {
    return { x: this.x.back(x), y: this.y.back(y) };
  }

  /** Let the switches of a row that has become too short stand apart. */
  #spread(to) {
    const rows = new Map();
    for (const d of this.loose) {
      const y = this.places[d.name][1];
      if (rows.has(y)) rows.get(y).push(d);
      else rows.set(y, [d]);
    }
    for (const row of rows.values()) {
      row.sort((a, b) => this.places[a.name][0] - this.places[b.name][0]);
      const need = row.map((d) => KINDS[d.kind].width + APART);
      const fits = row.every((d, i) => !i || to[d.name][0] - to[row[i - 1].name][0] >= (need[i] + need[i - 1]) / 2 - 1);
      if (fits) continue;
      const middle = row.reduce((sum, d) => sum + to[d.name][0], 0) / row.length;
      let left = middle - need.reduce((sum, each) => sum + each, 0) / 2;
      row.forEach((d, i) => {
        to[d.name] = [left + need[i] / 2, to[d.name][1]];
        left += need[i];
      });
    }
  }
}

/** @param {import("./types.js").Point} middle @returns {Rect} */
export const boxAt = ({ x, y }) => ({
  x1: x - GROUP.width / 2, y1: y - GROUP.height / 2, x2: x + GROUP.width / 2, y2: y + GROUP.height / 2,
});
