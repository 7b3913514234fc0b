/**
 * What is on the screen of a large drawing: a folded host is one box, switches that serve the same
 * hosts are one too, the links between two boxes are one bundle with their bandwidths added up,
 * and the room that folding frees is closed. Pure functions: no DOM, no graph library.
 *
 * @typedef {import("./types.js").Drawing} Drawing
 * @typedef {import("./types.js").Group} Group
 * @typedef {import("./types.js").Shown} Shown
 * @typedef {import("./types.js").Topology} Topology
 */

import { Compactor } from "./compactor.js";
import { endsKey, linesOf } from "./model.js";

/** Devices above which hosts are folded unless they were opened. */
export const MOST_DEVICES = 300;
/** Alike switches that are worth one box. */
const FEWEST_ALIKE = 3;

/** Keys of groups begin with characters that no device's name should have. */
export const hostKey = (host) => `\u0002${host}`;
const alikeKey = (name) => `\u0003${name}`;

/** Whether an end of a line on the screen is a group. @param {string} end */
export const isGroup = (end) => end < "\u0004";

/** @type {WeakMap<object, Group[]>} */
const groupCache = new WeakMap();

/** Everything in a topology that can be folded. @param {Topology} topology @returns {Group[]} */
export function groupsOf(topology) {
  const known = groupCache.get(topology);
  if (known) return known;
  const hosts = new Map();
  for (const d of topology.devices) {
    if (d.host === null) continue;
    if (hosts.has(d.host)) hosts.get(d.host).push(d);
    else hosts.set(d.host, [d]);
  }
  const groups = [...hosts]
    .filter(([, members]) => members.length > 1)
    .map(([host, members]) => ({ key: hostKey(host), title: host, host, members }));
  const all = groups.length ? [...groups, ...alike(topology)] : groups;
  groupCache.set(topology, all);
  return all;
}

/** Switches outside hosts whose links lead to the same hosts and switches. @param {Topology} topology */
function alike({ devices, links }) {
  const home = new Map(devices.map((d) => [d.name, d.host === null ? d.name : hostKey(d.host)]));
  const loose = devices.filter((d) => d.host === null && d.kind !== "gpu");
  const near = new Map(loose.map((d) => [d.name, []]));
  for (const { src, dst, bandwidth } of links) {
    near.get(src)?.push(`>${home.get(dst)} ${bandwidth}`);
    near.get(dst)?.push(`<${home.get(src)} ${bandwidth}`);
  }
  const sets = new Map();
  for (const d of loose) {
    const key = `${d.kind} ${near.get(d.name).sort().join()}`;
    if (sets.has(key)) sets.get(key).push(d);
    else sets.set(key, [d]);
  }
  return [...sets.values()]
    .filter((members) => members.length >= FEWEST_ALIKE)
    .map((members) => ({
      key: alikeKey(members[0].name), host: null, members,
      title: `${members[0].name} … ${members.at(-1).name}`,
    }));
}

const PLURALS = { gpu: ["GPU", "GPUs"], switch: ["switch", "switches"], memory: ["memory", "memories"], nic: ["NIC", "NICs"] };

/** What a group has, such as "8 GPUs · 1 switch". @param {Group} group */
export function counts({ members }) {
  const kinds = Object.keys(PLURALS).map((kind) => [kind, members.filter((d) => d.kind === kind).length]);
  return kinds
    .filter(([, count]) => count)
    .map(([kind, count]) => `${count} ${PLURALS[kind][count === 1 ? 0 : 1]}`)
    .join(" · ");
}

/**
 * @param {Drawing} drawing @param {Set<string>} folded keys of groups
 * @returns {Shown}
 */
export function shownOf({ topology, positions }, folded) {
  const groups = folded.size ? groupsOf(topology).filter((group) => folded.has(group.key)) : [];
  if (!groups.length) {
    const lines = linesOf(topology);
    return {
      devices: topology.devices, groups, lines, positions, lanes: lanesOf(lines), home: new Map(),
      byKey: new Map(), toDrawing: (point) => point,
    };
  }
  const home = new Map(groups.flatMap(({ key, members }) => members.map((d) => [d.name, key])));
  const devices = topology.devices.filter((d) => !home.has(d.name));
  const compactor = new Compactor({ devices, groups, positions });
  return {
    devices, groups, home, byKey: new Map(groups.map((group) => [group.key, group])),
    positions: compactor.positions(), toDrawing: (point) => compactor.toDrawing(point),
    ...bundled(linesOf(topology), home),
  };
}

/** Lines between what is shown, and for each link its line and which way it goes. */
function bundled(all, home) {
  const bundles = new Map();
  const lines = [];
  const lanes = new Map();
  for (const line of all) {
    const [a, b] = [home.get(line.a) ?? line.a, home.get(line.b) ?? line.b];
    if (a === b) continue;
    if (a === line.a && b === line.b) {
      lines.push(line);
      lay(lanes, line, { line, forth: true });
      continue;
    }
    let bundle = bundles.get(endsKey(a, b));
    const forth = Boolean(bundle) || !bundles.has(endsKey(b, a));
    if (!forth) bundle = bundles.get(endsKey(b, a));
    if (!bundle) {
      bundle = { id: endsKey(a, b), a, b, forth: null, back: null, parts: [] };
      bundles.set(bundle.id, bundle);
      lines.push(bundle);
    }
    const [to, fro] = forth ? ["forth", "back"] : ["back", "forth"];
    bundle[to] = added(bundle[to], line.forth, forth ? [a, b] : [b, a]);
    if (line.back) bundle[fro] = added(bundle[fro], line.back, forth ? [b, a] : [a, b]);
    bundle.parts.push(line);
    lay(lanes, line, { line: bundle, forth });
  }
  return { lines, lanes };
}

/** The links of a bundle as one. */
function added(sum, link, [src, dst]) {
  if (!sum) return { ...link, src, dst };
  return {
    ...sum,
    bandwidth: sum.bandwidth + link.bandwidth,
    alpha: Math.max(sum.alpha, link.alpha),
    count: sum.count + link.count,
    medium: sum.medium === link.medium ? sum.medium : "",
  };
}

/** Say on which side of which line a link and its opposite travel. */
function lay(lanes, { a, b, back }, { line, forth }) {
  lanes.set(endsKey(a, b), { line, forth });
  if (back) lanes.set(endsKey(b, a), { line, forth: !forth });
}

/** @param {import("./types.js").Line[]} lines each as it is */
function lanesOf(lines) {
  const lanes = new Map();
  for (const line of lines) lay(lanes, line, { line, forth: true });
  return lanes;
}

/** Pairs of ends of the links of a line, one for both ways. @param {import("./types.js").Line} line */
export const endsOf = (line) => (line.parts ?? [line]).map(({ a, b }) => /** @type {[string, string]} */ ([a, b]));

/**
 * Lines of which all or a part is off, by id.
 * @param {Map<string, {line: import("./types.js").Line}>} lanes @param {[string, string][]} off
 */
export function switchedOff(lanes, off) {
  const links = new Map();
  for (const { line } of lanes.values()) links.set(line.id, (links.get(line.id) ?? 0) + 1);
  const gone = new Map();
  for (const [src, dst] of off) {
    const id = lanes.get(endsKey(src, dst))?.line.id;
    if (id !== undefined) gone.set(id, (gone.get(id) ?? 0) + 1);
  }
  const whole = [...gone.keys()].filter((id) => gone.get(id) >= links.get(id));
  return { whole: new Set(whole), part: new Set([...gone.keys()].filter((id) => !whole.includes(id))) };
}
