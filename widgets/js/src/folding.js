/**
 * Folding of large drawings: a folded host is one box, switches that serve the same hosts are one too,
 * and the links between two boxes are one bundle with their bandwidths added up.
 *
 * @typedef {import("./types.js").Drawing} Drawing
 * @typedef {import("./types.js").Group} Group
 * @typedef {import("./types.js").Shown} Shown
 * @typedef {import("./types.js").Topology} Topology
 */

import { blockGrid, middleOf } from "./block_grid.js";
import { Compactor, isBlock } from "./compactor.js";
import { h } from "./dom.js";
import { endsKey, linesOf } from "./model.js";
import { podsOf, racksOf } from "./pods.js";

/** Devices above which hosts are folded unless they were opened. */
export const MOST_DEVICES = 300;
/** Devices from which on folding is offered. */
const OFFERED = 64;
/** Blocks from which on a row of them is too wide. */
const FEWEST_BLOCKS = 6;
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
  const home = new Map(topology.devices.map((d) => [d.name, d.host === null ? d.name : hostKey(d.host)]));
  const all = groups.length ? [...groups, ...alike(topology, home)] : groups;
  groupCache.set(topology, all);
  return all;
}

/** Pods, and where there are no hosts the switches that serve the same pods. @param {Topology} topology @returns {Group[]} */
function podGroups(topology) {
  const pods = podsOf(topology);
  if (!pods.length || groupsOf(topology).length) return pods;
  const home = new Map(topology.devices.map((d) => [d.name, d.name]));
  for (const { key, members } of pods) for (const d of members) home.set(d.name, key);
  const rows = alike(topology, home).filter(({ members }) => members.every((d) => home.get(d.name) === d.name));
  return [...pods, ...rows];
}

/**
 * Switches outside hosts whose links lead to the same hosts and switches.
 * @param {Topology} topology @param {Map<string, string>} home key of the host or pod of each device, else its name
 */
function alike({ devices, links }, home) {
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

/** Folded hosts, or pods, that are named alone where all have the same. */
const MANY_ALIKE = 9;

/** What each of many folded hosts has, where all have the same, else "". @param {Group[]} groups */
export function countsOfAll(groups) {
  const all = new Set(groups.filter(isBlock).map(counts));
  return all.size === 1 && groups.filter(isBlock).length >= MANY_ALIKE ? [...all][0] : "";
}

/**
 * @param {Drawing} drawing @param {Set<string>} folded keys of groups
 * @param {Map<string, import("./types.js").Point>} [stood] middles of blocks and switches when they were folded
 * @returns {Shown}
 */
export function shownOf(drawing, folded, stood = new Map()) {
  const { topology, positions } = drawing;
  const racks = racksOf(drawing);
  const all = [...groupsOf(topology), ...racks, ...podGroups(topology)];
  const groups = folded.size ? all.filter((group) => folded.has(group.key)) : [];
  if (!groups.length) {
    const lines = linesOf(topology);
    return {
      devices: topology.devices, groups, lines, positions, lanes: lanesOf(lines), home: new Map(),
      byKey: new Map(), toDrawing: (point) => point, fromDrawing: (point) => point, wayOf: difference, pods: podsOf(topology).map(podShown(new Map())),
    };
  }
  const home = new Map(groups.flatMap(({ key, members }) => members.map((d) => [d.name, key])));
  const devices = topology.devices.filter((d) => !home.has(d.name));
  const blocks = blocksOf(drawing, folded);
  const grid = blocks ? blockGrid(blocks, drawing, { stood, groups: blocks.groups }) : null;
  const compactor = new Compactor({ devices, groups, positions: grid?.positions ?? positions, rooms: grid?.rooms });
  const back = (point) => compactor.toDrawing(point);
  const from = (point, at) => grid?.back(back(point), back(at)) ?? back(point);
  return {
    devices, groups, home, byKey: new Map(groups.map((group) => [group.key, group])),
    positions: compactor.positions(grid?.off),
    toDrawing: (point) => from(point, point),
    fromDrawing: (point) => compactor.fromDrawing(grid?.to(point) ?? point),
    wayOf: (at, to) => difference(from(at, at), from(to, at)),
    pods: podsOf(topology).filter(({ key }) => !folded.has(key)).map(podShown(home)),
    ...bundled(linesOf(topology), home),
  };
}

/**
 * What may stand in a grid: racks where one is folded, else pods or hosts where most are; null where most are open.
 * @param {Drawing} drawing @param {Set<string>} folded
 * @returns {(import("./block_grid.js").Blocks & {groups: Group[]}) | null} with what is folded where all of this level is
 */
function blocksOf(drawing, folded) {
  const { topology } = drawing;
  const racks = racksOf(drawing);
  const loose = (placed) => topology.devices.filter((d) => !placed.has(d.name)).map((d) => ({ key: d.name, members: [d] }));
  const namesOf = (groups) => new Set(groups.flatMap(({ members }) => members.map((d) => d.name)));
  if (racks.some(({ key }) => folded.has(key))) {
    return { units: racks.map((rack) => [rack]), loose: loose(namesOf(racks)), racks: true, groups: [] };
  }
  const pods = podsOf(topology);
  const level = pods.some(({ key }) => folded.has(key)) ? podGroups(topology) : groupsOf(topology);
  const blocks = level.filter(isBlock);
  if (blocks.length < FEWEST_BLOCKS || 2 * blocks.filter(({ key }) => folded.has(key)).length <= blocks.length) return null;
  const units = unitsOf(topology, pods);
  return { units, loose: loose(namesOf(units.flat())), racks: false, groups: level };
}

/** Hosts, or pods as the hosts and switches that they have. @param {Topology} topology @param {Group[]} pods */
function unitsOf(topology, pods) {
  const itemsOf = (devices) => {
    const items = new Map();
    for (const d of devices) {
      const key = d.host === null ? d.name : hostKey(d.host);
      if (items.has(key)) items.get(key).members.push(d);
      else items.set(key, { key, members: [d] });
    }
    return [...items.values()];
  };
  const inHosts = topology.devices.filter((d) => d.host !== null);
  const inPods = new Set(pods.flatMap(({ members }) => members.map((d) => d.name)));
  if (pods.length && inHosts.every((d) => inPods.has(d.name))) return pods.map(({ members }) => itemsOf(members));
  return itemsOf(inHosts).map((item) => [item]);
}

/** @param {import("./types.js").Point} from @param {import("./types.js").Point} to @returns {[number, number]} */
const difference = (from, to) => [to.x - from.x, to.y - from.y];

/** A pod by its title and what is shown of it. @param {Map<string, string>} home @returns {(pod: Group) => {title: string, ends: string[]}} */
const podShown = (home) => ({ title, members }) => ({ title, ends: [...new Set(members.map((d) => home.get(d.name) ?? d.name))] });

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

// ---- which groups are folded ----------------------------------------------------------------------

/** The groups that are folded now, and the line above the canvas that says so with its buttons. */
export class Folding {
  /** @param {import("./canvas.js").Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    /** Keys of what was opened of a large drawing, and of what was folded of a small one. */
    this.opened = new Set();
    this.closed = new Set();
    /** Keys of the racks and pods that are folded. */
    this.pods = new Set();
    /** Middles of what stands in a grid, in the drawing, when it was folded. @type {Map<string, import("./types.js").Point>} */
    this.stood = new Map();
    const button = (label, on) => h("button", { type: "button", onclick: () => this.turn({ on }) }, label);
    this.text = h("span", {});
    this.foldAll = button("Fold all", true);
    this.openAll = button("Open all", false);
    const level = (name) => h("button", { type: "button", onclick: () => this.turn({ level: name }) }, `Fold ${name}s`);
    this.foldRacks = level("rack");
    this.foldPods = level("pod");
    this.element = h(
      "div", { class: "tl-folding", role: "group", "aria-label": "Folded hosts", hidden: true },
      this.text, this.foldRacks, this.foldPods, this.foldAll, this.openAll,
    );
  }

  /** Keys of the groups that are folded; of racks in a folded pod, the pod. @param {Drawing} drawing @returns {Set<string>} */
  folded(drawing) {
    const { topology } = drawing;
    const whole = podGroups(topology).filter(({ key }) => this.pods.has(key));
    const inPods = new Set(whole.flatMap(({ members }) => members.map((d) => d.name)));
    const racks = racksOf(drawing).filter(({ key, members }) => this.pods.has(key) && !members.some((d) => inPods.has(d.name)));
    const pods = [...racks, ...whole];
    const large = topology.devices.length > MOST_DEVICES;
    const single = groupsOf(topology).filter(({ key }) => (large ? !this.opened.has(key) : this.closed.has(key)));
    if (!pods.length) return new Set(single.map(({ key }) => key));
    const within = new Set(pods.flatMap(({ members }) => members.map((d) => d.name)));
    const rest = single.filter(({ members }) => !members.some((d) => within.has(d.name)));
    return new Set([...rest, ...pods].map(({ key }) => key));
  }

  /** What is on the screen of a drawing; lines stay the same while only devices move. @param {Drawing} drawing */
  show(drawing) {
    const folded = this.folded(drawing);
    const mark = [...folded].join();
    const last = this.last;
    const shown = shownOf(drawing, folded, this.#stood(drawing, folded));
    if (last?.topology === drawing.topology && last.mark === mark) {
      Object.assign(shown, { lines: last.shown.lines, lanes: last.shown.lanes });
    }
    this.last = { topology: drawing.topology, mark, shown };
    this.#tell(drawing, shown);
    return shown;
  }

  /** Where blocks stood when they were folded, so that one that is moved moves on the screen; all anew after a layout. */
  #stood(drawing, folded) {
    const blocks = blocksOf(drawing, folded);
    if (!blocks) this.stood = new Map();
    else {
      const middles = new Map([...blocks.units.flat(), ...blocks.loose].map((item) => [item.key, middleOf(item, drawing)]));
      const kept = [...middles].filter(([key, middle]) => this.stood.has(key) && !difference(this.stood.get(key), middle).some(Boolean)).length;
      if (2 * kept < middles.size) this.stood = middles;
    }
    return this.stood;
  }

  #tell(drawing, shown) {
    const { topology } = drawing;
    const hosts = groupsOf(topology).filter((group) => group.host !== null).length;
    const pods = podsOf(topology).length;
    const folded = shown.groups.filter((group) => group.host !== null).length;
    const racks = racksOf(drawing);
    const known = new Set(racks.map(({ key }) => key));
    const inRacks = shown.groups.filter(({ key }) => known.has(key)).length;
    const inPods = shown.groups.filter((group) => group.pod).length - inRacks;
    this.element.hidden = !(hosts || pods) || (!shown.groups.length && topology.devices.length < OFFERED);
    const what = inPods ? `${inPods} of ${pods} pods` : inRacks ? `${inRacks} of ${racks.length} racks` : `${folded} of ${hosts} hosts`;
    const each = countsOfAll(shown.groups);
    const open = hosts ? `All ${hosts} hosts are open` : `All ${pods} pods are open`;
    this.text.textContent = folded || inPods || inRacks ? `${what} folded${each && `, each ${each}`} · double-click opens one` : open;
    this.openAll.hidden = !shown.groups.length;
    this.foldAll.hidden = !hosts || (folded === hosts && !inPods && !inRacks);
    this.foldRacks.hidden = !racks.length || inRacks === racks.length;
    this.foldPods.hidden = !pods || inPods === pods;
  }

  /**
   * Fold or open groups.
   * @param {{hosts?: string[], keys?: string[], on?: boolean, level?: "gpu" | "host" | "rack" | "pod" | "next"}} how by
   *   default what is selected, or all; by default the other way than they are; or everything to a level, or to
   *   the next one above hosts
   */
  turn({ hosts, keys, on, level } = {}) {
    const { canvas } = this;
    const { topology } = canvas.drawing;
    if (level) return this.#toLevel(level);
    const pods = (keys ?? []).filter((key) => this.pods.delete(key));
    if (pods.length) return this.#turned(`${pods.length} opened`);
    const cleared = on !== undefined && !hosts && !keys && this.pods.size > 0;
    if (cleared) this.pods.clear();
    const there = new Set(groupsOf(topology).map(({ key }) => key));
    const wanted = keys ?? (hosts ?? canvas.selection.hosts).map(hostKey);
    const all = !wanted.length || (on !== undefined && !hosts && !keys);
    const chosen = (all ? [...there] : wanted).filter((key) => there.has(key));
    if (!chosen.length && cleared) return this.#turned("All pods opened", { all: true });
    if (!chosen.length) return canvas.say("There are no hosts to fold");
    const now = this.folded(canvas.drawing);
    const fold = on ?? !chosen.some((key) => now.has(key));
    const selected = canvas.selection;
    for (const key of chosen) {
      this.opened[fold ? "delete" : "add"](key);
      this.closed[fold ? "add" : "delete"](key);
    }
    return this.#turned(`${chosen.length === 1 ? "One" : chosen.length} ${fold ? "folded" : "opened"}`, { selected, all });
  }

  /**
   * Fold everything into hosts, racks or pods, or open it; those that are all folded already are opened.
   * @param {"gpu" | "host" | "rack" | "pod" | "next"} level
   */
  #toLevel(level) {
    const { canvas } = this;
    if (level === "gpu" || level === "host") return this.turn({ on: level === "host" });
    const keysOf = (groups) => groups.map(({ key }) => key);
    const above = [
      { name: "rack", keys: keysOf(racksOf(canvas.drawing)) }, { name: "pod", keys: keysOf(podGroups(canvas.drawing.topology)) },
    ].filter(({ keys }) => keys.length);
    const at = above.findIndex(({ keys }) => keys.every((key) => this.pods.has(key)));
    const next = level === "next" ? above[at + 1] : above.find(({ name }) => name === level);
    if (!above.length || (!next && level !== "next")) return canvas.say("No racks or pods are known of this drawing");
    const open = !next || next === above[at];
    this.pods = new Set(open ? [] : next.keys);
    return this.#turned(open ? "Opened" : `${next.keys.length} ${next.name}s folded`, { all: true });
  }

  /** Show what was folded or opened. @param {string} words @param {{selected?: any, all?: boolean}} [how] */
  #turned(words, { selected = this.canvas.selection, all = false } = {}) {
    const { canvas } = this;
    const before = canvas.stage.isFitted;
    canvas.repaint();
    canvas.select(selected);
    if (before || all) canvas.fit();
    return canvas.say(words);
  }

  /** A group in one sentence, for those who listen. @param {string} key */
  describe(key) {
    const group = this.canvas.shown.byKey.get(key);
    return `${group.title}, folded, ${counts(group)}; Enter opens it`;
  }

  /** Middle of a folded host among the positions of the drawing, else null. @param {string} host */
  middle(host) {
    const group = this.canvas.shown.byKey.get(hostKey(host));
    if (!group) return null;
    const places = group.members.map((d) => this.canvas.drawing.positions[d.name]);
    const mean = (i) => places.reduce((sum, place) => sum + place[i], 0) / places.length;
    return /** @type {[number, number]} */ ([mean(0), mean(1)]);
  }

  /**
   * Places in the drawing of what was dragged on the screen: a block that moved as a whole keeps
   * its shape, whatever the folding does to distances.
   * @param {Record<string, [number, number]>} now on the screen
   */
  dragged(now) {
    const { shown, drawing } = this.canvas;
    if (!shown.groups.length) return now;
    /** @type {Record<string, [number, number]>} */
    const to = {};
    const shift = (at, [dx, dy], names) => {
      const way = shown.wayOf({ x: at[0], y: at[1] }, { x: at[0] + dx, y: at[1] + dy });
      for (const name of names) {
        const [x, y] = drawing.positions[name];
        to[name] = [x + way[0], y + way[1]];
      }
    };
    for (const [end, [x, y]] of Object.entries(now)) {
      const at = shown.positions[end];
      const by = /** @type {[number, number]} */ ([x - at[0], y - at[1]]);
      if (Math.hypot(...by) < 0.5) continue;
      const group = shown.byKey.get(end);
      if (group) shift(at, by, group.members.map((d) => d.name));
      else if (drawing.topology.devices[this.canvas.deviceIndex.get(end)].host === null) shift(at, by, [end]);
      else to[end] = [drawing.positions[end][0] + by[0], drawing.positions[end][1] + by[1]];
    }
    return to;
  }
}
