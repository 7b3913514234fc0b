/**
 * Patterns: the selected devices linked as a star, in pairs or as a full mesh, and a selection stamped
 * several times in a row or a grid. Links that are there stay as they are. No DOM.
 *
 * @typedef {import("./types.js").Drawing} Drawing
 * @typedef {{devices: string[], hosts: string[]}} Chosen
 */

import { rectsOf } from "./arrange.js";
import { clip, paste } from "./clones.js";
import { grown, hullRect, overlap } from "./geometry.js";
import { EditError, addLink, endsKey } from "./model.js";
import { HOST_PADDING } from "./style.js";

/** Links of one pattern, and how often something is stamped. */
const MOST_LINKS = 20_000;
const MOST_STAMPS = 64;
/** Room between two stamps; a host has a name above it. */
const GAP = { x: 26, y: 32 };
const HOST_GAP = { x: 40, y: 56 };

/**
 * What a selection links: its devices, and of each host its NICs or else its GPUs; with `gpus` its GPUs, which
 * are what is meshed in a host.
 * @param {Drawing} drawing @param {Chosen} chosen @param {{gpus?: boolean}} [how]
 * @returns {string[]} in the order of the drawing
 */
export function endsOfSelection({ topology }, { devices, hosts }, { gpus = false } = {}) {
  const kinds = gpus ? ["gpu"] : ["nic", "gpu"];
  const inHosts = hosts.flatMap((host) => {
    const inside = topology.devices.filter((d) => d.host === host);
    return kinds.map((kind) => inside.filter((d) => d.kind === kind)).find((list) => list.length) ?? inside;
  });
  const alone = topology.devices.filter((d) => devices.includes(d.name) && !hosts.includes(d.host));
  const names = new Set([...inHosts, ...alone].map((d) => d.name));
  return topology.devices.map((d) => d.name).filter((name) => names.has(name));
}

/** All to one. @param {string[]} names @param {string} hub @returns {[string, string][]} */
export const star = (names, hub) => names.filter((name) => name !== hub).map((name) => [name, hub]);

/** Each to each. @param {string[]} names @returns {[string, string][]} */
export const mesh = (names) => names.flatMap((a, i) => names.slice(i + 1).map((b) => /** @type {[string, string]} */ ([a, b])));

/**
 * The first of one group with the first of the other, and so on: two hosts, two kinds, or else two rows or
 * columns.
 * @param {Drawing} drawing @param {string[]} names @returns {[string, string][]}
 */
export function pairs(drawing, names) {
  const chosen = new Set(names);
  const devices = drawing.topology.devices.filter((d) => chosen.has(d.name));
  const groups = [byValue(devices, "host"), byValue(devices, "kind"), byPlace(drawing, names)];
  const found = groups.find((list) => list.length === 2 && list[0].length === list[1].length);
  if (!found) {
    throw new EditError("linking in pairs needs two groups of the same size: two hosts, two kinds or two rows; select them");
  }
  return found[0].map((name, i) => [name, found[1][i]]);
}

/** @param {import("./types.js").Device[]} devices @param {"host" | "kind"} key @returns {string[][]} */
function byValue(devices, key) {
  const groups = new Map();
  for (const d of devices) groups.set(d[key], [...(groups.get(d[key]) ?? []), d.name]);
  return [...groups.values()];
}

/** Two halves that a gap parts, across or down, wider than those within them. @returns {string[][]} none where it is not in the middle */
function byPlace({ positions }, names) {
  const half = names.length / 2;
  if (!Number.isInteger(half) || !half) return [];
  const cut = (axis) => {
    const order = names.toSorted((p, q) => positions[p][axis] - positions[q][axis]);
    const gaps = order.slice(1).map((name, i) => positions[name][axis] - positions[order[i]][axis]);
    const within = gaps.filter((_, i) => i !== half - 1);
    return { order, axis, clear: gaps[half - 1] - Math.max(0, ...within) };
  };
  const [x, y] = [cut(0), cut(1)];
  const { order, axis, clear } = x.clear > y.clear ? x : y;
  if (clear <= 0) return [];
  const along = (list) => list.toSorted((p, q) => positions[p][1 - axis] - positions[q][1 - axis]);
  return [along(order.slice(0, half)), along(order.slice(half))];
}

/**
 * Link pairs that are not linked yet.
 * @param {Drawing} drawing @param {[string, string][]} wanted @param {Partial<import("./types.js").LinkPreset>} preset
 * @returns {{drawing: Drawing, made: number, there: number}}
 */
export function linkAll(drawing, wanted, preset) {
  if (wanted.length > MOST_LINKS) {
    throw new EditError(`these are ${wanted.length.toLocaleString("en")} links; select fewer devices, at most ${MOST_LINKS.toLocaleString("en")} links`);
  }
  const have = new Set(drawing.topology.links.flatMap(({ src, dst }) => [endsKey(src, dst), endsKey(dst, src)]));
  const missing = wanted.filter(([a, b]) => !have.has(endsKey(a, b)));
  if (!missing.length) return { drawing, made: 0, there: wanted.length };
  const links = missing.flatMap(([a, b]) => newLinks(drawing, { a, b, preset }));
  const topology = { ...drawing.topology, links: [...drawing.topology.links, ...links] };
  return { drawing: { ...drawing, topology }, made: missing.length, there: wanted.length - missing.length };
}

/** The links of one pair, as if they were drawn alone. */
function newLinks(drawing, { a, b, preset }) {
  const alone = { ...drawing, topology: { ...drawing.topology, links: [], limits: [] } };
  return addLink(alone, a, b, preset).topology.links;
}

/**
 * Copies of a selection, so that there are `times` of it: up to four in a row, more in two.
 * @param {Drawing} drawing @param {Chosen} chosen @param {number} times
 * @returns {{drawing: Drawing, devices: string[], hosts: string[]}} with the names of all, the first included
 */
export function stamp(drawing, chosen, times) {
  if (!(Number.isInteger(times) && times >= 2 && times <= MOST_STAMPS)) {
    throw new EditError(`cannot stamp ${times} times; give a whole number from 2 to ${MOST_STAMPS}`);
  }
  const original = clip(drawing, chosen);
  if (!original) throw new EditError("nothing to stamp; select devices or a host");
  const columns = times <= 4 ? times : Math.ceil(times / 2);
  const offsets = Array.from({ length: times }, (_, i) => /** @type {const} */ ([i % columns, Math.floor(i / columns)]));
  const stride = strideOf(drawing, original);
  const down = roomBelow(drawing, { original, offsets, stride });
  const hosts = new Set(original.hosts);
  const devices = original.topology.devices.filter((d) => !hosts.has(d.host)).map((d) => d.name);
  let next = drawing;
  for (const [i, j] of offsets.slice(1)) {
    const made = paste(next, original, [i * stride.x, j * stride.y + (i || j ? down : 0)]);
    next = made.drawing;
    for (const host of made.hosts.values()) hosts.add(host);
    const fresh = new Map(next.topology.devices.map((d) => [d.name, d.host]));
    devices.push(...[...made.names.values()].filter((name) => !hosts.has(fresh.get(name))));
  }
  return { drawing: next, devices, hosts: [...hosts] };
}

/** Box of what is stamped, with those of its hosts. */
function boxOf(drawing, original) {
  const rects = rectsOf(drawing);
  const box = hullRect(original.topology.devices.map((d) => rects.get(d.name)));
  return original.hosts.length ? grown(box, HOST_PADDING) : box;
}

function strideOf(drawing, original) {
  const { x1, y1, x2, y2 } = boxOf(drawing, original);
  const gap = original.hosts.length ? HOST_GAP : GAP;
  return { x: x2 - x1 + gap.x, y: y2 - y1 + gap.y };
}

/** How far down the copies go so that they cover nothing that is drawn already. */
function roomBelow(drawing, { original, offsets, stride }) {
  const mine = new Set(original.topology.devices.map((d) => d.name));
  const others = [...rectsOf(drawing)].filter(([name]) => !mine.has(name)).map(([, rect]) => rect);
  const box = boxOf(drawing, original);
  const at = (i, j, down) => ({
    x1: box.x1 + i * stride.x, x2: box.x2 + i * stride.x, y1: box.y1 + j * stride.y + down, y2: box.y2 + j * stride.y + down,
  });
  for (let row = 0; row < MOST_STAMPS; row++) {
    const down = row * stride.y;
    if (offsets.slice(1).every(([i, j]) => others.every((rect) => !overlap(grown(at(i, j, down), 4), rect)))) return down;
  }
  return 0;
}

/**
 * Which of the selected devices the others are linked to: the one pointed at, or else the only switch.
 * @param {Drawing} drawing @param {string[]} names @param {string | undefined} pointed
 */
export function hubOf({ topology }, names, pointed) {
  if (pointed !== undefined && names.includes(pointed)) return pointed;
  const switches = topology.devices.filter((d) => d.kind === "switch" && names.includes(d.name));
  if (switches.length === 1) return switches[0].name;
  throw new EditError("a star needs its middle: point at one of the selected devices, or select one switch with the others");
}
