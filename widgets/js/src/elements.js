/** Devices, hosts and lines as the elements that cytoscape draws. */

import { GROUP } from "./compactor.js";
import { counts, isGroup } from "./folded.js";
import { KINDS } from "./model.js";

/** A device by its name or a group by its key. */
export const endId = (end) => (isGroup(end) ? `g:${end}` : `d:${end}`);
export const hostId = (name) => `h:${name}`;
export const lineId = (id) => `l:${id}`;

/** Width of a line in drawing units. @param {import("./types.js").Line} line @param {boolean} thin */
const lineWidth = ({ forth, back }, thin) => {
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
  data: { id: hostId(host), name: host, label: host },
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

/** @param {import("./types.js").Line} line @param {{bend: number, thin: boolean}} how */
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
