/**
 * Copies of devices: paste, duplicate, and hosts repeated and joined.
 *
 * @typedef {import("./types.js").Drawing} Drawing
 * @typedef {import("./types.js").Device} Device
 *
 * @typedef {object} Clip what was copied
 * @property {import("./types.js").Topology} topology
 * @property {Record<string, [number, number]>} positions
 * @property {string[]} hosts those copied as a whole: they become new hosts
 * @property {import("./types.js").Annotation[]} annotations those that stand beside or around what was copied
 */

import { rectsOf } from "./arrange.js";
import { hullRect, overlap } from "./geometry.js";
import { EditError, addDevice, addLink, deviceNames, freeName, hostNames } from "./model.js";
import { noteRect, notesOf } from "./notes.js";

/** How far from the nearest device a note may stand that is copied with it. */
const BESIDE = 90;

/**
 * @param {Drawing} drawing
 * @param {{devices: string[], hosts: string[]}} selection
 * @returns {Clip | null} null when nothing is selected
 */
export function clip(drawing, { devices, hosts }) {
  const { topology, positions } = drawing;
  const taken = topology.devices.filter((d) => devices.includes(d.name) || hosts.includes(d.host));
  if (!taken.length) return null;
  const names = new Set(taken.map((d) => d.name));
  const inside = ({ src, dst }) => names.has(src) && names.has(dst);
  return {
    topology: {
      ...topology,
      devices: taken,
      links: topology.links.filter(inside),
      limits: topology.limits.filter((l) => l.links.every(([src, dst]) => inside({ src, dst }))),
    },
    positions: Object.fromEntries(taken.map((d) => [d.name, positions[d.name]])),
    hosts: [...hostNames(topology)].filter((host) =>
      topology.devices.every((d) => d.host !== host || names.has(d.name)),
    ),
    annotations: notesBeside(drawing, names),
  };
}

/**
 * Notes whose nearest device is among some and not far, and frames that hold nothing but some of these.
 * @param {Drawing} drawing @param {Set<string>} names
 */
function notesBeside(drawing, names) {
  const rects = notesOf(drawing).length ? [...rectsOf(drawing)] : [];
  return notesOf(drawing).filter((note) => {
    const r = noteRect(note);
    if (note.kind === "frame") {
      const held = rects.filter(([, rect]) => overlap(r, rect));
      return held.length > 0 && held.every(([name]) => names.has(name));
    }
    const far = ([, rect]) => Math.hypot(Math.max(0, rect.x1 - r.x2, r.x1 - rect.x2), Math.max(0, rect.y1 - r.y2, r.y1 - rect.y2));
    const nearest = rects.reduce((p, q) => (far(q) < far(p) ? q : p));
    return far(nearest) <= BESIDE && names.has(nearest[0]);
  });
}

/**
 * Put a clip into a drawing under new names.
 * @param {Drawing} drawing
 * @param {Clip} clip
 * @param {[number, number]} by how far from where it was copied
 * @returns {{drawing: Drawing, names: Map<string, string>, hosts: Map<string, string>}} old to new
 */
export function paste(drawing, clip, [dx, dy]) {
  const { topology } = drawing;
  const there = hostNames(topology);
  const hosts = renamed(clip.hosts, there);
  const names = renamed(
    clip.topology.devices.map((d) => d.name),
    deviceNames(topology),
    (name) => inRenamedHost(name, clip, hosts),
  );
  const to = (name) => /** @type {string} */ (names.get(name));
  const limitNames = renamed(clip.topology.limits.map((l) => l.name), new Set(topology.limits.map((l) => l.name)));
  const pasted = {
    devices: clip.topology.devices.map((d) => ({
      ...d,
      name: to(d.name),
      host: d.host === null ? null : hosts.get(d.host) ?? (there.has(d.host) ? d.host : null),
    })),
    links: clip.topology.links.map((l) => ({ ...l, src: to(l.src), dst: to(l.dst) })),
    limits: clip.topology.limits.map((l) => ({
      ...l,
      name: limitNames.get(l.name),
      links: l.links.map(([src, dst]) => /** @type {[string, string]} */ ([to(src), to(dst)])),
    })),
  };
  const places = Object.entries(clip.positions).map(([name, [x, y]]) => [to(name), [x + dx, y + dy]]);
  const notes = clip.annotations.map((note) => ({ ...note, x: Math.round(note.x + dx), y: Math.round(note.y + dy) }));
  return {
    drawing: {
      ...drawing,
      topology: {
        ...topology,
        devices: [...topology.devices, ...pasted.devices],
        links: [...topology.links, ...pasted.links],
        limits: [...topology.limits, ...pasted.limits],
      },
      positions: { ...drawing.positions, ...Object.fromEntries(places) },
      ...(notes.length ? { annotations: [...notesOf(drawing), ...notes] } : {}),
    },
    names,
    hosts,
  };
}

/** Free names for copies: the number at the end goes up. */
function renamed(names, taken, proposal = (name) => name) {
  const used = new Set(taken);
  return new Map(
    names.map((name) => {
      const wish = proposal(name);
      const next = wish !== name && !used.has(wish) ? wish : numbered(used, wish);
      used.add(next);
      return [name, next];
    }),
  );
}

const numbered = (used, name) => freeName(used, name.replace(/\d+$/, "") || name);

/** host0/gpu3 in a copy of host0 called host1 becomes host1/gpu3. */
function inRenamedHost(name, clip, hosts) {
  const { host } = clip.topology.devices.find((d) => d.name === name);
  const fresh = host === null ? undefined : hosts.get(host);
  return fresh && name.startsWith(host) ? fresh + name.slice(host.length) : name;
}

/**
 * Place copies of a host beside it and join them all, the first one included.
 *
 * ``switch`` joins every exit of every host to one new switch, ``rails`` exit i of every host to
 * new switch i. A host's exits are its NICs, or its GPUs where it has none.
 *
 * @param {Drawing} drawing
 * @param {string} host
 * @param {{times: number, join?: "switch" | "rails" | null, bandwidth?: number, alpha?: number,
 *   medium?: string}} how times: number of copies
 * @returns {{drawing: Drawing, hosts: string[]}} with the names of all of them
 */
export function repeatHost(drawing, host, { times, join = null, ...preset }) {
  if (!(Number.isInteger(times) && times >= 1 && times <= 256)) {
    throw new EditError(`cannot repeat ${host} ${times} times; give a whole number from 1 to 256`);
  }
  const original = clip(drawing, { devices: [], hosts: [host] });
  if (!original) throw new EditError(`no host is called ${host}; select one`);
  const { next, blocks } = laidOut(drawing, { original, host, times });
  const joined = join === null ? next : joinedBy(join, next, { blocks, preset });
  return { drawing: joined, hosts: blocks.map((block) => block.host) };
}

/** The copies in one row, or in two facing rows when there are four hosts or more. */
function laidOut(drawing, { original, host, times }) {
  const rects = rectsOf(drawing);
  const names = original.topology.devices.map((d) => d.name);
  const box = hullRect(names.map((name) => rects.get(name)));
  const others = [...rects].filter(([name]) => !names.includes(name)).map(([, rect]) => rect);
  const stride = [box.x2 - box.x1 + 110, box.y2 - box.y1 + 330];
  const columns = times + 1 >= 4 ? Math.ceil((times + 1) / 2) : times + 1;
  const shift = clearOf(others, { box, stride, columns });
  const blocks = [{ host, names }];
  let next = drawing;
  for (let i = 1; i <= times; i++) {
    const by = [(i % columns) * stride[0] + shift, Math.floor(i / columns) * stride[1]];
    const made = paste(next, original, /** @type {[number, number]} */ (by));
    next = made.drawing;
    blocks.push({ host: made.hosts.get(host), names: names.map((name) => made.names.get(name)) });
  }
  return { next, blocks };
}

/** How far right the copies must go so that they cover nothing that is drawn already. */
function clearOf(others, { box, stride, columns }) {
  const right = box.x1 + stride[0];
  const blocked = others.filter(
    (r) => r.x2 > right && r.x1 < right + stride[0] * columns && r.y2 > box.y1 && r.y1 < box.y1 + 2 * stride[1],
  );
  return blocked.length ? Math.max(0, Math.max(...blocked.map((r) => r.x2)) + 60 - right) : 0;
}

/** @param {string} join @param {Drawing} drawing */
function joinedBy(join, drawing, { blocks, preset }) {
  if (join !== "switch" && join !== "rails") {
    throw new EditError(`cannot join hosts by ${join}; ways are switch and rails`);
  }
  const kind = new Map(drawing.topology.devices.map((d) => [d.name, d.kind]));
  const ofKind = (names, which) => names.filter((name) => kind.get(name) === which);
  const exits = blocks.map(({ names }) => {
    const nics = ofKind(names, "nic");
    return nics.length ? nics : ofKind(names, "gpu");
  });
  if (!exits[0].length) throw new EditError(`${blocks[0].host} has no NIC and no GPU to join`);
  const rails = join === "switch" ? [exits.flat()] : exits[0].map((_, i) => exits.map((list) => list[i]));
  const spots = railSpots(drawing, { blocks, count: rails.length });
  let next = drawing;
  rails.forEach((ends, i) => {
    next = addDevice(next, { kind: "switch", position: spots[i], ...railName(next, join) });
    const name = next.topology.devices.at(-1).name;
    for (const end of ends) next = addLink(next, end, name, preset);
  });
  return next;
}

const railName = ({ topology }, join) => ({
  name: freeName(deviceNames(topology), join === "rails" ? "rail" : "switch"),
});

/** Places for the joining switches: above a single row of hosts, between two rows. */
function railSpots(drawing, { blocks, count }) {
  const rects = rectsOf(drawing);
  const boxes = blocks.map(({ names }) => hullRect(names.map((name) => rects.get(name))));
  const all = hullRect(boxes);
  const rows = new Set(boxes.map((box) => box.y1));
  const y = rows.size > 1 ? (boxes[0].y2 + Math.max(...rows)) / 2 : all.y1 - 150;
  const gap = Math.max(150, Math.min(280, (all.x2 - all.x1) / count));
  const first = (all.x1 + all.x2) / 2 - (gap * (count - 1)) / 2;
  return Array.from({ length: count }, (_, i) => /** @type {[number, number]} */ ([first + i * gap, y]));
}
