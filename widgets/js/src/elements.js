/**
 * Elements of the graph: the boxes, bends and widths of what is shown of a drawing, and the elements
 * that cytoscape draws of them. No DOM, no cytoscape.
 *
 * @typedef {import("./types.js").Line} Line
 * @typedef {import("./types.js").Rect} Rect
 * @typedef {import("./types.js").Shown} Shown
 * @typedef {import("./geometry.js").Route} Route
 */

import { busesOf } from "./buses.js";
import { GROUP } from "./compactor.js";
import { counts, isGroup } from "./folding.js";
import { STUB, bendAround, centre, curveBetween, rectAt } from "./geometry.js";
import { KINDS, endsKey } from "./model.js";
import { shortName, sizesOf, whatOf } from "./names.js";

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

/**
 * How each line runs, by id: along a bus where it is one of many to a switch, cut short where it closes a row, and
 * else bent to go around the devices in its way; and where wires of buses join.
 * @param {Shown} shown @returns {{routes: Map<string, Route>, dots: import("./buses.js").Dot[]}}
 */
export function waysOf(shown) {
  const boxes = boxesOf(shown);
  const { lines } = shown;
  const stubs = stubsOf(lines, boxes);
  const { routes: buses, dots } = busesOf(shown, boxes);
  const bent = (line) => {
    const [from, to] = [line.a, line.b].map((end) => centre(boxes.get(end)));
    return lines.length > MOST_BENT ? 0 : bendAround(from, to, withoutEnds(boxes, line));
  };
  return { routes: new Map(lines.map((line) => [line.id, stubs.has(line.id) ? "stubs" : buses.get(line.id) ?? bent(line)])), dots };
}

/** Lines that close rows from which on they are cut short: of fewer each can be followed. */
const FEWEST_STUBS = 12;
/** Gaps of a row at most. */
const MOST_GAPS = 32;

/**
 * Lines that close a row: between their ends stand, evenly and in one line, others that are joined each with the next.
 * @param {Line[]} lines @param {Map<string, Rect>} boxes @returns {Set<string>} ids
 */
function stubsOf(lines, boxes) {
  const spot = (x, y) => `${Math.round(x)} ${Math.round(y)}`;
  const at = new Map([...boxes].map(([name, box]) => [spot(centre(box).x, centre(box).y), name]));
  const joined = new Set(lines.flatMap(({ a, b }) => [endsKey(a, b), endsKey(b, a)]));
  const closes = ({ a, b }) => {
    const [p, q] = [centre(boxes.get(a)), centre(boxes.get(b))];
    for (let gaps = 2; gaps <= MOST_GAPS; gaps++) {
      let last = a;
      for (let i = 1; i <= gaps; i++) {
        const next = at.get(spot(p.x + (i / gaps) * (q.x - p.x), p.y + (i / gaps) * (q.y - p.y)));
        // Where the first is joined with others of the row too, it is no ring but a mesh.
        if (!joined.has(endsKey(last, next)) || (i > 1 && i < gaps && joined.has(endsKey(a, next)))) break;
        if (i === gaps) return true;
        last = next;
      }
    }
    return false;
  };
  const found = lines.filter(closes).map(({ id }) => id);
  return new Set(found.length < FEWEST_STUBS ? [] : found);
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

export const hostElement = (host) => ({
  group: "nodes",
  data: { id: hostId(host), name: host },
  classes: "host",
});

/** @param {import("./types.js").Device} device @param {{position: [number, number], room: number, colors: any}} how room: largest size of its name */
export const deviceElement = (device, { position: [x, y], room, colors }) => ({
  group: "nodes",
  data: {
    id: endId(device.name),
    name: device.name,
    label: shortName(device),
    parent: device.host === null ? undefined : hostId(device.host),
    width: KINDS[device.kind].width,
    height: KINDS[device.kind].height,
    color: colors[device.kind],
    ...sizesOf(room, device.kind === "nic" ? "nic" : "device", device.kind),
  },
  position: { x, y },
  classes: `device ${device.kind}`,
});

/** @param {import("./types.js").Group} group @param {{position: [number, number], room: number, alike: boolean, colors: any}} how alike: that all hosts have the same */
export const groupElement = (group, { position: [x, y], room, alike, colors }) => ({
  group: "nodes",
  data: {
    id: endId(group.key),
    name: group.key,
    label: whatOf(group, alike) === "block" ? group.title : `${group.title}\n${counts(group)}`,
    ...sizesOf(room, whatOf(group, alike)),
    color: colors[group.members.some((d) => d.kind === "gpu") ? "gpu" : group.members[0].kind],
    ...GROUP,
  },
  position: { x, y },
  classes: whatOf(group, alike) === "block" ? "group named" : "group",
});

/** How far a point is on the way from p to q, from 0 to 1, and how far beside it. */
const beside = (p, q, { x, y }) => {
  const [dx, dy] = [q.x - p.x, q.y - p.y];
  const whole = dx * dx + dy * dy || 1;
  return [((x - p.x) * dx + (y - p.y) * dy) / whole, ((y - p.y) * dx - (x - p.x) * dy) / Math.sqrt(whole)];
};

/** Dashes and gaps of a piece of a line that is cut short: it ends in dots. Together `STUB`. */
const ENDING = [14, 4, 5, 4, 3];

/** What cytoscape needs to draw a line that has corners, or of which only the ends are to be seen. */
function turns(way, { from, to }) {
  const { a, b, legs } = curveBetween(from, to, way);
  const ends = [[a, from], [b, to]].map(([p, box]) => [p.x - centre(box).x, p.y - centre(box).y]);
  const points = way === "stubs" ? [legs[0][1], legs[1][0]] : way;
  const found = points.map((point) => beside(centre(from), centre(to), point));
  const gap = Math.hypot(points[0].x - points.at(-1).x, points[0].y - points.at(-1).y);
  return { start: ends[0], end: ends[1], weights: found.map(([share]) => share), distances: found.map(([, far]) => far), dash: [...ENDING, gap, ...ENDING.toReversed(), 9] };
}

/** @param {Line} line @param {{way: Route, thin: boolean, boxes: {from: Rect, to: Rect}}} how its boxes are those of its ends */
export const lineElement = (line, { way, thin, boxes }) => ({
  group: "edges",
  data: {
    id: lineId(line.id),
    source: endId(line.a),
    target: endId(line.b),
    a: line.a,
    b: line.b,
    width: lineWidth(line, thin),
    ...(typeof way === "number" ? { bend: way } : turns(way, boxes)),
  },
  classes: [line.back ? "" : "oneway", way === "stubs" ? "turned stubs" : typeof way !== "number" ? "turned" : way ? "bent" : "", thin ? "thin" : "", line.parts ? "bundle" : ""].join(" "),
});
