/**
 * Items of the context menu: the commands that fit what is selected and the place that was pointed at.
 * No DOM, no graph library.
 *
 * @typedef {object} Item
 * @property {string} label
 * @property {string} [keys] that do the same
 * @property {string} [command]
 * @property {object} [args]
 * @property {boolean} [checked] of a switch: whether it is on
 * @property {(Item | null)[]} [items] those of a submenu; null parts groups
 *
 * @typedef {object} Situation
 * @property {import("./types.js").Drawing} drawing
 * @property {import("./types.js").Selection} selection
 * @property {{position: [number, number], host: string | null}} place what was pointed at, in the drawing
 * @property {string | null} device the one pointed at
 * @property {boolean} ground whether that is the empty ground
 * @property {string[]} folded hosts that are folded
 * @property {{labels: boolean, grid: boolean, map: boolean, following?: boolean}} shown what is drawn beside the drawing; whether
 *   the view follows a chunk, where there are any
 * @property {boolean} copied whether there is something to paste
 * @property {boolean} builds whether the page around builds clusters by numbers
 * @property {boolean} note whether a note or frame is selected
 * @property {boolean} viewing whether the drawing is only looked at
 * @property {{past: boolean, future: boolean}} history whether there are steps
 * @property {import("./types.js").LinkPreset} preset of the next link
 */

import { endsOfSelection } from "./patterns.js";
import { KINDS } from "./model.js";
import { podsOf, racksOf } from "./pods.js";
import { digits } from "./units.js";

/** Commands that change nothing but the view, or only move devices. */
const VIEWING = new Set(["align", "color_links", "copy", "find", "fit", "fold", "follow", "grid", "labels", "layout", "map", "select_all", "shortcuts", "zoom_selection"]);
const KEYS = { gpu: "G", switch: "S", memory: "M", nic: "N" };
/** Link types of the drawing that a menu offers. */
const MOST_TYPES = 8;

/** @param {Situation} situation @returns {(Item | null)[]} */
export function itemsFor(situation) {
  const sections = situation.ground ? ofGround(situation) : ofSelection(situation);
  const fitting = situation.viewing ? sections.map((items) => items.filter(onlyViews)) : sections;
  return parted(fitting);
}

/** Sections with a line between each two. @param {Item[][]} sections @returns {(Item | null)[]} */
const parted = (sections) =>
  sections.filter((items) => items.length).flatMap((items, i) => (i ? [null, ...items] : items));

/** @param {Item} item @returns {boolean} */
const onlyViews = ({ command, items }) =>
  items ? items.every((each) => each === null || onlyViews(each)) : VIEWING.has(/** @type {string} */ (command));

/** @param {Situation} situation @returns {Item[][]} */
function ofGround({ drawing, place, copied, builds, note, history, shown }) {
  const some = drawing.topology.devices.length > 0;
  const hosts = drawing.topology.devices.some((d) => d.host !== null);
  return [
    only(note, { label: "Change the text", keys: "F2", command: "rename" }, { label: "Delete", keys: "Del", command: "delete" }),
    adding(place, (label) => `Add a ${label} here`),
    [
      { label: "Add a note here", keys: "E", command: "note", args: { at: place.position } },
      { label: "Add a frame here", keys: "X", command: "frame", args: { at: place.position } },
      ...only(builds, { label: "Hosts, leaves, spines …", keys: "D", command: "build" }),
      ...only(copied, { label: "Paste here", keys: "Ctrl+V", command: "paste", args: { at: place.position } }),
      ...only(some, { label: "Select all", keys: "Ctrl+A", command: "select_all" }),
    ],
    [
      ...only(history.past, { label: "Undo", keys: "Ctrl+Z", command: "undo" }),
      ...only(history.future, { label: "Redo", keys: "Ctrl+Shift+Z", command: "redo" }),
    ],
    [
      ...only(some, { label: "Find", keys: "Ctrl+F", command: "find" }, { label: "Fit", keys: "F", command: "fit" }),
      ...only(some, { label: "Lay out anew", keys: "Q", command: "layout" }),
      ...only(hosts, { label: "Fold or open all hosts", keys: "O", command: "fold" }),
      ...only(podsOf(drawing.topology).length + racksOf(drawing).length > 0, { label: "Fold or open racks and pods", keys: "R", command: "fold", args: { level: "next" } }),
      ...only(some, { label: "Bandwidths on the links", keys: "B", command: "labels", checked: shown.labels }),
      ...only(some, { label: "Colours of links", keys: "C", command: "color_links" }),
      ...only(some, { label: "Overview", keys: "Y", command: "map", checked: shown.map }),
      { label: "Snap to a grid", keys: "#", command: "grid", checked: shown.grid },
      ...only(shown.following !== undefined, { label: "Follow a chunk", keys: "W", command: "follow", checked: shown.following }),
      { label: "Keyboard", keys: "?", command: "shortcuts", args: { on: true } },
    ],
  ];
}

/** @param {Situation} situation @returns {Item[][]} */
function ofSelection(situation) {
  const { selection, copied, place } = situation;
  const nodes = selection.devices.length + selection.hosts.length > 0;
  const inHost = selection.hosts.length === 1 && !selection.devices.length;
  const named = selection.devices.length + selection.hosts.length === 1 && !selection.links.length;
  return [
    only(named, { label: "Rename", keys: "F2", command: "rename" }),
    inHost ? [{ label: "Add here", items: adding(place, (label) => `A ${label}`) }] : [],
    selection.links.length ? ofLinks(situation) : [],
    nodes ? [...linking(situation), ...arranging(situation)] : [],
    nodes ? housing(situation) : [],
    [
      ...only(nodes, { label: "Copy", keys: "Ctrl+C", command: "copy" }),
      ...only(copied, { label: "Paste here", keys: "Ctrl+V", command: "paste", args: { at: place.position } }),
      ...only(nodes, { label: "Duplicate", keys: "Ctrl+D", command: "duplicate" }),
      ...only(inHost, { label: "Repeat", items: repeating(selection.hosts[0]) }),
      ...only(nodes && !inHost, { label: "Stamp", items: STAMPS }),
    ],
    only(nodes, { label: "Frame around it", keys: "X", command: "frame" }),
    [{ label: "Zoom to selection", keys: "Z", command: "zoom_selection" }],
    [{ label: "Delete", keys: "Del", command: "delete" }],
  ];
}

/** @type {Item[]} */
const STAMPS = [2, 4, 8, 16].map((times) => ({
  label: `${times} in all`, keys: { 2: "2", 4: "4", 8: "8" }[times], command: "stamp", args: { times },
}));

/** Links by pattern. @param {Situation} situation @returns {Item[]} */
function linking({ drawing, selection, device }) {
  const names = endsOfSelection(drawing, selection);
  const meshed = endsOfSelection(drawing, selection, { gpus: true });
  const switches = drawing.topology.devices.filter((d) => d.kind === "switch" && names.includes(d.name));
  const hub = names.includes(device ?? "") ? device : switches.length === 1 ? switches[0].name : null;
  const items = [
    ...only(names.length > 1 && hub !== null, { label: `All to ${hub}`, keys: "*", command: "link_by", args: { how: "star", hub } }),
    ...only(names.length > 1 && names.length % 2 === 0, { label: "In pairs", keys: "J", command: "link_by", args: { how: "pairs" } }),
    ...only(meshed.length > 1, { label: "Each to each", keys: "K", command: "link_by", args: { how: "mesh" } }),
  ];
  return only(items.length > 0, { label: "Link", items });
}

/** @param {boolean} fits @param {...Item} items */
const only = (fits, ...items) => (fits ? items : []);

/** @returns {Item[]} one for each kind of device */
const adding = ({ position, host }, title) =>
  Object.entries(KINDS).map(([kind, { label }]) => ({
    label: title(label), keys: KEYS[kind], command: "add", args: { kind, position, host },
  }));

/** @param {string} host @returns {(Item | null)[]} */
function repeating(host) {
  const times = [2, 4, 8];
  const items = (join, how) =>
    times.map((count) => ({
      label: `${count} in all${how}`, command: "repeat_host", args: { host, times: count - 1, join },
    }));
  return [...items(null, ""), null, ...items("switch", ", joined by a switch"), null, ...items("rails", ", joined by rails")];
}

const SIDES = [
  ["left", "Left edges"], ["centre", "Centres"], ["right", "Right edges"], null,
  ["top", "Top edges"], ["middle", "Middles"], ["bottom", "Bottom edges"],
];
const SPREADS = [["distribute_x", "Even gaps across"], ["distribute_y", "Even gaps down"]];

/** What needs two or more units. @param {Situation} situation @returns {Item[]} */
function arranging({ drawing, selection }) {
  const inside = new Set(drawing.topology.devices.filter((d) => selection.hosts.includes(d.host)).map((d) => d.name));
  const units = selection.hosts.length + selection.devices.filter((name) => !inside.has(name)).length;
  const item = (each) => each && { label: each[1], command: "align", args: { how: each[0] } };
  const spreads = units > 2 ? [null, ...SPREADS.map(item)] : [];
  return only(units > 1, { label: "Align", items: [...SIDES.map(item), ...spreads] });
}

/** Hosts: into one, out of it, folding. @param {Situation} situation @returns {Item[]} */
function housing({ drawing, selection, folded }) {
  const { devices, hosts } = selection;
  const housed = hosts.length > 0 || drawing.topology.devices.some((d) => d.host !== null && devices.includes(d.name));
  const label = hosts.some((host) => folded.includes(host)) ? "Open" : "Fold";
  return [
    { label: "Put into a host", keys: "Ctrl+G", command: "host" },
    ...only(housed, { label: "Take out of the host", keys: "Ctrl+Shift+G", command: "ungroup" }),
    ...only(hosts.length > 0, { label, keys: "O", command: "fold", args: { hosts } }),
  ];
}

/** @param {Situation} situation @returns {Item[]} */
function ofLinks(situation) {
  const { links } = situation.selection;
  const forth = new Set(situation.drawing.topology.links.map(({ src, dst }) => `${src}\u0001${dst}`));
  const oneway = links.some(([a, b]) => !forth.has(`${b}\u0001${a}`));
  const twoway = links.some(([a, b]) => forth.has(`${b}\u0001${a}`));
  const way = (label, duplex) => ({ label, command: "edit_links", args: { links, values: { duplex } } });
  return [
    { label: "Link type", items: linkTypes(situation) },
    ...only(oneway, way("Make two-way", true)),
    ...only(twoway, way("Make one-way", false)),
  ];
}

/** The type of the next link, and those that the drawing has. @param {Situation} situation @returns {(Item | null)[]} */
function linkTypes({ drawing, selection, preset }) {
  const types = new Map();
  for (const { bandwidth, alpha, medium, count } of drawing.topology.links) {
    types.set(`${medium} ${bandwidth} ${alpha} ${count}`, { bandwidth, alpha, medium, count });
  }
  const chosen = new Set(selection.links.map(String));
  const have = drawing.topology.links.filter(({ src, dst }) => chosen.has(`${src},${dst}`));
  const item = (values) => ({
    label: typeName(values), command: "edit_links", args: { values },
    checked: have.length > 0 && have.every((link) => Object.entries(values).every(([key, value]) => link[key] === value)),
  });
  const { bandwidth, alpha, medium } = preset;
  const next = { ...item({ bandwidth, alpha, medium, count: 1 }), label: `${typeName(preset)}, as the next link` };
  const others = [...types.values()].filter((each) => typeName(each) !== typeName(preset)).slice(0, MOST_TYPES);
  return others.length ? [next, null, ...others.map(item)] : [next];
}

const typeName = ({ bandwidth, alpha, medium, count = 1 }) =>
  `${medium || "Link"} · ${count > 1 ? `${count} × ` : ""}${digits(bandwidth / count)} GB/s · ${digits(alpha)} µs`;
