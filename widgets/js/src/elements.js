/**
 * Elements of the graph: the boxes, bends and widths of what is shown of a drawing, and the elements
 * that cytoscape draws of them. No DOM, no cytoscape.
 *
 * @typedef {import("./types.js").Line} Line
 * @typedef {import("./types.js").Rect} Rect
 * @typedef {import("./types.js").Shown} Shown
 */

import { GROUP, counts, isGroup } from "./folding.js";
import { bendAround, centre, rectAt } from "./geometry.js";
import { KINDS } from "./model.js";

/** A device by its name or a group by its key. */
export const endId = (end) => (isGroup(end) ? `g:${end}` : `d:${end}`);
export const hostId = (name) => `h:${name}`;
export const lineId = (id) => `l:${id}`;

/** Links above which they are drawn thinner and fainter. */
export const MANY_LINKS = 800;
/** Links above which they are not led around devices: nobody can follow that many anyway. */
const MOST_BENT = 900;
/** Elements above which chunks are shown even where their line is beneath a device. */
export const MOST_COVERED = 1200;

/** Boxes of the devices and groups that are shown, by name and key. @param {Shown} shown @returns {Map<string, Rect>} */
export const boxesOf = ({ devices, groups, positions }) =>
  new Map([
    ...devices.map((d) => /** @type {const} */ ([d.name, rectAt(positions[d.name], d.kind)])),
    ...groups.map(({ key }) => /** @type {const} */ ([key, rectAt(positions[key], GROUP)])),
  ]);

/** How much each line bends to go around the devices in its way, by id. @param {Shown} shown @returns {Map<string, number>} */
export function bendsOf(shown) {
  const boxes = boxesOf(shown);
  const { lines } = shown;
  const buses = busesOf(shown);
  return new Map(
    lines.map((line) => {
      if (lines.length > MOST_BENT) return [line.id, 0];
      const [from, to] = [line.a, line.b].map((end) => centre(boxes.get(end)));
      const straight = isBus(line, { boxes, buses, from, to });
      return [line.id, straight ? 0 : bendAround(from, to, withoutEnds(boxes, line))];
    }),
  );
}

/** What each switch is joined with. @param {Shown} shown @returns {Map<string, Set<string>>} */
function busesOf({ devices, lines }) {
  const found = new Map(devices.filter((d) => d.kind === "switch").map((d) => [d.name, new Set()]));
  for (const { a, b } of lines) {
    found.get(a)?.add(b);
    found.get(b)?.add(a);
  }
  return found;
}

/**
 * Whether a line runs straight across or down, behind nothing but what its switch is joined with too:
 * such lines lie on one another, and look like the bus that they are.
 */
function isBus({ a, b }, { boxes, buses, from, to }) {
  if (Math.abs(from.x - to.x) >= 1 && Math.abs(from.y - to.y) >= 1) return false;
  return [a, b].some((end) => {
    const joined = buses.get(end);
    if (!joined) return false;
    const strangers = [...boxes].filter(([name]) => name !== a && name !== b && !joined.has(name));
    return bendAround(from, to, strangers.map(([, box]) => box)) === 0;
  });
}

/** All boxes but those of the ends of a line. @param {Map<string, Rect>} boxes @param {Line} line */
export const withoutEnds = (boxes, { a, b }) =>
  [...boxes].filter(([name]) => name !== a && name !== b).map(([, box]) => box);

/** Width of a line in drawing units. @param {Line} line @param {boolean} [thin] */
export const lineWidth = ({ forth, back }, thin) => {
  const bandwidth = Math.max(forth.bandwidth, back?.bandwidth ?? 0);
  const width = Math.min(7, 1.3 + Math.log2(1 + bandwidth / 20));
  return thin ? width * 0.45 : width;
};

/** The name without the host's, which stands above the box. @param {import("./types.js").Device} d */
export const shortName = ({ name, host }) => {
  if (!host || !name.startsWith(host)) return name;
  return name.slice(host.length).replace(/^[\s/.:_-]+/, "") || name;
};

export const hostElement = (host) => ({
  group: "nodes",
  data: { id: hostId(host), name: host },
  classes: "host",
});

/** @param {import("./types.js").Device} device @param {[number, number]} position */
export const deviceElement = (device, [x, y], colors) => ({
  group: "nodes",
  data: {
    id: endId(device.name),
    name: device.name,
    label: shortName(device),
    parent: device.host === null ? undefined : hostId(device.host),
    width: KINDS[device.kind].width,
    height: KINDS[device.kind].height,
    color: colors[device.kind],
  },
  position: { x, y },
  classes: `device ${device.kind}`,
});

/** @param {import("./types.js").Group} group @param {[number, number]} position */
export const groupElement = (group, [x, y], colors) => ({
  group: "nodes",
  data: {
    id: endId(group.key),
    name: group.key,
    label: `${group.title}\n${counts(group)}`,
    color: colors[group.members.some((d) => d.kind === "gpu") ? "gpu" : group.members[0].kind],
    ...GROUP,
  },
  position: { x, y },
  classes: "group",
});

/** @param {Line} line @param {{bend: number, thin: boolean}} how */
export const lineElement = (line, { bend, thin }) => ({
  group: "edges",
  data: {
    id: lineId(line.id),
    source: endId(line.a),
    target: endId(line.b),
    a: line.a,
    b: line.b,
    bend,
    width: lineWidth(line, thin),
  },
  classes: [line.back ? "" : "oneway", bend ? "bent" : "", thin ? "thin" : "", line.parts ? "bundle" : ""].join(" "),
});
