/**
 * Sizes of names: the farther away a drawing is seen, the larger they are written, as far as their boxes have room. Boxes
 * of one kind whose names are about as long have one size.
 *
 * @typedef {import("./types.js").Shown} Shown
 * @typedef {(text: string) => number} Measure width of a text whose letters are one unit high
 * @typedef {"device" | "nic" | "block" | "group"} What a group that is a block is named alone
 */

import { counts } from "./folding.js";
import { KINDS } from "./model.js";

/** Zooms below which names are written larger than before. */
export const FAR = [0.9, 0.72, 0.6, 0.5];

/** Sizes that are wished for, near and from farther and farther away, in drawing units; and in presenter mode. */
const SIZES = {
  device: [11, 12.5, 15.5, 19, 26], nic: [10, 12, 15, 18, 20], block: [34, 34, 34, 34, 34], group: [12.5, 13.5, 16, 20, 21],
};
const LARGE_SIZES = {
  device: [18, 19, 20, 22, 26], nic: [16, 17, 18, 19, 20], block: [34, 34, 34, 34, 34], group: [20, 21, 22, 24, 24],
};
/** Of names above a buffer, and of hosts, in presenter mode too. */
export const FILLED = [11, 12.5, 14, 18, 22];
export const LARGE_FILLED = [18, 19, 20, 22, 22];
export const HOST_FONT = [12, 13.5, 16, 20, 25];
export const LARGE_HOST_FONT = [19, 20, 24, 28, 30];

/** Sizes below which none is written, though its end be left out. */
const LEAST = { device: 11, nic: 10, block: 9, group: 9 };
/** Room that a name has in a folded group, beside it in other boxes, and the most that the height of a switch has. */
const ROOM = 142;
const BESIDE = 12;
const SWITCH = 24;
/** Names that are shorter than the longest by no more than this are about as long; and so are all that are shorter than these units. */
const ALIKE = 1.75;
const SHORT = 2.4;

/**
 * The largest sizes that names have room for, by the devices and groups that are shown.
 * @param {Shown} shown @param {boolean} alike whether folded blocks are named alone @param {Measure} measure
 * @returns {Map<string, number>}
 */
export function roomsOf({ devices, groups }, alike, measure) {
  const kinds = new Map();
  const add = (kind, end, lines) => {
    if (!kinds.has(kind)) kinds.set(kind, []);
    kinds.get(kind).push({ end, width: Math.max(SHORT, ...lines.map(measure)) });
  };
  for (const { name, kind, label } of devices.map((d) => ({ ...d, label: shortName(d) }))) add(kind, name, [label]);
  for (const group of groups) add(whatOf(group, alike), group.key, whatOf(group, alike) === "block" ? [group.title] : [group.title, counts(group)]);
  return new Map([...kinds].flatMap(([kind, names]) => fitted(names, KINDS[kind] ? KINDS[kind].width - BESIDE : ROOM)));
}

/** One size for names that are about as long. @param {{end: string, width: number}[]} names @param {number} room @returns {[string, number][]} */
function fitted(names, room) {
  let longest = Infinity;
  return names.toSorted((p, q) => q.width - p.width).map(({ end, width }) => {
    if (longest > ALIKE * width) longest = width;
    return [end, room / longest];
  });
}

/** What a folded group is, as far as its name goes. @param {import("./types.js").Group} group @param {boolean} alike @returns {What} */
export const whatOf = ({ host, pod }, alike) => (alike && (host !== null || Boolean(pod)) ? "block" : "group");

/** The name without the host's, which stands above the box. @param {import("./types.js").Device} d */
export const shortName = ({ name, host }) => {
  if (!host || !name.startsWith(host)) return name;
  return name.slice(host.length).replace(/^[\s/.:_-]+/, "") || name;
};

/**
 * The sizes of a name, near and from afar: `near0`, `near1` and so on, in presenter mode `large0`, and above a buffer `full0`.
 * @param {number} room @param {What} what @param {string} [kind] of a device
 */
export function sizesOf(room, what, kind) {
  const most = kind === "switch" ? SWITCH : Infinity;
  const least = LEAST[what];
  const named = (prefix, sizes, from) => sizes.map((size, i) => [`${prefix}${i}`, Math.max(from(size), Math.min(size, room, most))]);
  return Object.fromEntries([
    ...named("near", SIZES[what], () => least),
    ...named("full", FILLED, () => least),
    // In presenter mode large letters matter more than the ends of long names.
    ...named("large", LARGE_SIZES[what], (size) => (what === "block" ? least : Math.min(size, LARGE_SIZES[what][0]))),
  ]);
}
