/**
 * Drawings as immutable snapshots: edits as pure functions, each of which returns a new drawing that
 * shares what did not change or the very same one when nothing did, and their history. No DOM, no
 * graph library.
 *
 * @typedef {import("./types.js").Drawing} Drawing
 * @typedef {import("./types.js").Topology} Topology
 * @typedef {import("./types.js").Device} Device
 * @typedef {import("./types.js").Link} Link
 * @typedef {import("./types.js").Kind} Kind
 */

/** What each kind is called, how large it is drawn, and what it does unless it says otherwise. */
export const KINDS = {
  gpu: { label: "GPU", width: 78, height: 60, stores: true, copies: true, reduces: true },
  switch: { label: "switch", width: 124, height: 34, stores: false, copies: false, reduces: false },
  memory: { label: "memory", width: 92, height: 46, stores: true, copies: true, reduces: false },
  nic: { label: "NIC", width: 70, height: 34, stores: false, copies: false, reduces: false },
};

/** An edit that cannot be done; the message is shown to the user unchanged. */
export class EditError extends Error {}

/** @type {Drawing} */
export const EMPTY = {
  topology: { name: "untitled", devices: [], links: [], limits: [] },
  positions: {},
};

/** @param {Partial<Device> & {name: string, kind: Kind}} device @returns {Device} */
const wholeDevice = (device) => {
  const { stores, copies, reduces } = KINDS[device.kind];
  return { host: null, stores, copies, reduces, buffer_bytes: null, ...dropNulls(device) };
};

/** Null flags mean "as usual for the kind", like absent ones. @param {any} device @returns {any} */
const dropNulls = (device) =>
  Object.fromEntries(Object.entries(device).filter(([, value]) => value !== null));

/** Fill in what the format lets a writer leave out. @param {any} topology @returns {Topology} */
export const wholeTopology = (topology) => ({
  name: topology?.name ?? EMPTY.topology.name,
  devices: (topology?.devices ?? []).map(wholeDevice),
  links: (topology?.links ?? []).map((link) => ({ alpha: 0, medium: "", count: 1, ...link })),
  limits: topology?.limits ?? [],
});

/** @param {any} drawing @returns {Drawing} */
export const wholeDrawing = (drawing) =>
  asStepOf(drawing?.document, {
    topology: wholeTopology(drawing?.topology),
    positions: drawing?.positions ?? {},
    ...(drawing?.annotations?.length ? { annotations: drawing.annotations } : {}),
  });

/**
 * The drawing as a step of a document, which an edit leaves alone and undo may leave.
 * @param {string | undefined} document @param {Drawing} drawing @returns {Drawing}
 */
export const asStepOf = (document, drawing) => (document === drawing.document ? drawing : { ...drawing, document });

/**
 * Text equal for topologies that move data alike, whatever they are called; a schedule is out of
 * date when it differs.
 * @param {Topology} topology
 */
export const signature = (topology) =>
  JSON.stringify([
    topology.devices.map((d) => [
      d.name, d.kind, d.host, d.stores, d.copies, d.reduces, d.buffer_bytes,
    ]),
    topology.links.map((l) => [l.src, l.dst, l.bandwidth, l.alpha, l.medium, l.count]),
    topology.limits.map((l) => [l.name, l.links, l.bandwidth]),
  ]);

/** First of stem0, stem1 ... that is not taken. @param {Set<string>} taken @param {string} stem */
export const freeName = (taken, stem) => {
  let i = 0;
  while (taken.has(stem + i)) i++;
  return stem + i;
};

/** @param {Topology} topology */
export const deviceNames = (topology) => new Set(topology.devices.map((d) => d.name));

/** @param {Topology} topology */
export const hostNames = (topology) =>
  /** @type {Set<string>} */ (new Set(topology.devices.map((d) => d.host).filter((h) => h !== null)));

/** @param {Drawing} drawing @param {Partial<Topology>} changes @returns {Drawing} */
const withTopology = (drawing, changes) => ({
  ...drawing,
  topology: { ...drawing.topology, ...changes },
});

/** Change the entries for which `edit` returns another object; keep the array if none does. */
const mapped = (list, edit) => {
  const next = list.map(edit);
  return next.some((item, i) => item !== list[i]) ? next : list;
};

/** @param {object} item @param {object} values */
const edited = (item, values) =>
  Object.entries(values).every(([key, value]) => item[key] === value) ? item : { ...item, ...values };

/**
 * @param {Drawing} drawing
 * @param {{kind: Kind, position: [number, number], name?: string, host?: string | null}} what
 * @returns {Drawing}
 */
export function addDevice(drawing, { kind, position, name, host = null }) {
  if (!KINDS[kind]) {
    throw new EditError(`cannot add a ${kind}; kinds are ${Object.keys(KINDS).join(", ")}`);
  }
  const taken = deviceNames(drawing.topology);
  if (name !== undefined) checkName(taken, name);
  const device = wholeDevice({ kind, name: name ?? freeName(taken, kind), host });
  return {
    ...drawing,
    topology: { ...drawing.topology, devices: [...drawing.topology.devices, device] },
    positions: { ...drawing.positions, [device.name]: rounded(position) },
  };
}

/** @param {[number, number]} position @returns {[number, number]} */
const rounded = ([x, y]) => [Math.round(x), Math.round(y)];

/** @param {Set<string>} taken @param {string} name */
function checkName(taken, name) {
  if (!name.trim()) throw new EditError("a device needs a name that is not empty");
  if (taken.has(name)) throw new EditError(`there is a device called ${name} already; choose another name`);
}

/** @param {Partial<Link>} values @param {string} where */
function checkLink(values, where) {
  const { bandwidth, alpha, count } = values;
  if (bandwidth !== undefined && !(bandwidth > 0 && Number.isFinite(bandwidth))) {
    throw new EditError(`link ${where} needs a positive bandwidth, got ${bandwidth} GB/s`);
  }
  if (alpha !== undefined && !(alpha >= 0 && Number.isFinite(alpha))) {
    throw new EditError(`link ${where} needs an alpha of zero or more, got ${alpha} µs`);
  }
  if (count !== undefined && !(Number.isInteger(count) && count >= 1)) {
    throw new EditError(`link ${where} stands for ${count} links; give 1 or more`);
  }
}

/**
 * Link two devices. Over an existing link it lays one more in parallel: bandwidths and counts add
 * up and the larger alpha stays, as in Python.
 *
 * @param {Drawing} drawing
 * @param {string} src
 * @param {string} dst
 * @param {Partial<import("./types.js").LinkPreset> & {both?: boolean}} [preset] both: also back
 * @returns {Drawing}
 */
export function addLink(drawing, src, dst, { both = true, bandwidth = 50, alpha = 0, medium = "" } = {}) {
  const names = deviceNames(drawing.topology);
  for (const end of [src, dst]) {
    if (!names.has(end)) throw new EditError(`cannot link ${end}: no device is called so`);
  }
  if (src === dst) throw new EditError(`cannot link ${src} to itself; link two different devices`);
  const values = { bandwidth, alpha, medium };
  checkLink(values, `${src}->${dst}`);
  let { links } = drawing.topology;
  for (const [from, to] of both ? [[src, dst], [dst, src]] : [[src, dst]]) {
    links = laid(links, { src: from, dst: to, ...values, count: 1 });
  }
  return withTopology(drawing, { links });
}

/** @param {Link[]} links @param {Link} link */
function laid(links, link) {
  const at = links.findIndex((have) => have.src === link.src && have.dst === link.dst);
  if (at < 0) return [...links, link];
  const have = links[at];
  return links.with(at, {
    ...have,
    bandwidth: have.bandwidth + link.bandwidth,
    alpha: Math.max(have.alpha, link.alpha),
    count: have.count + link.count,
  });
}

/**
 * Remove devices with their links, links, and hosts with all that is in them.
 *
 * @param {Drawing} drawing
 * @param {{devices?: string[], links?: [string, string][], hosts?: string[]}} what
 * @returns {Drawing}
 */
export function remove(drawing, { devices = [], links = [], hosts = [] }) {
  const { topology, positions } = drawing;
  const inHosts = topology.devices.filter((d) => d.host !== null && hosts.includes(d.host));
  const gone = new Set([...devices, ...inHosts.map((d) => d.name)]);
  const cut = new Set(links.map(([src, dst]) => endsKey(src, dst)));
  const remaining = topology.links.filter(
    (l) => !gone.has(l.src) && !gone.has(l.dst) && !cut.has(endsKey(l.src, l.dst)),
  );
  const left = topology.devices.filter((d) => !gone.has(d.name));
  if (left.length === topology.devices.length && remaining.length === topology.links.length) return drawing;
  return {
    ...drawing,
    topology: { ...topology, devices: left, links: remaining, limits: limitsOn(topology.limits, remaining) },
    positions: Object.fromEntries(Object.entries(positions).filter(([name]) => !gone.has(name))),
  };
}

/** A link's two ends as one text. @param {string} src @param {string} dst */
export const endsKey = (src, dst) => `${src}\u0001${dst}`;

/** The ends of which it is the key. @param {string} key */
export const keyEnds = (key) => key.split("\u0001");

/** What is left of the limits when only `links` are. */
function limitsOn(limits, links) {
  const there = new Set(links.map((l) => endsKey(l.src, l.dst)));
  const next = mapped(limits, (limit) => {
    const left = limit.links.filter(([src, dst]) => there.has(endsKey(src, dst)));
    return left.length === limit.links.length ? limit : { ...limit, links: left };
  });
  return next.every((limit) => limit.links.length) ? next : next.filter((limit) => limit.links.length);
}

/** @param {Drawing} drawing @param {string} device @param {string} name @returns {Drawing} */
export function renameDevice(drawing, device, name) {
  const taken = deviceNames(drawing.topology);
  if (!taken.has(device)) throw new EditError(`cannot rename ${device}: no device is called so`);
  if (device !== name) checkName(taken, name);
  return renameDevices(drawing, { [device]: name });
}

/**
 * Rename devices all at once, so that two may take each other's name.
 * @param {Drawing} drawing @param {Record<string, string>} names old to new @returns {Drawing}
 */
export function renameDevices(drawing, names) {
  const { topology, positions } = drawing;
  const fresh = new Map(Object.entries(names).filter(([old, name]) => old !== name));
  if (!fresh.size) return drawing;
  const to = (name) => fresh.get(name) ?? name;
  const taken = new Set();
  for (const { name } of topology.devices) {
    checkName(taken, to(name));
    taken.add(to(name));
  }
  return {
    ...drawing,
    topology: {
      ...topology,
      devices: mapped(topology.devices, (d) => (fresh.has(d.name) ? { ...d, name: to(d.name) } : d)),
      links: mapped(topology.links, (l) =>
        fresh.has(l.src) || fresh.has(l.dst) ? { ...l, src: to(l.src), dst: to(l.dst) } : l,
      ),
      limits: mapped(topology.limits, (limit) =>
        limit.links.some((ends) => ends.some((end) => fresh.has(end)))
          ? { ...limit, links: limit.links.map(([src, dst]) => [to(src), to(dst)]) }
          : limit,
      ),
    },
    positions: Object.fromEntries(Object.entries(positions).map(([key, at]) => [to(key), at])),
  };
}

/**
 * Give rows of a table their values as one edit.
 * @param {Drawing} drawing
 * @param {{of: "device" | "link", groups: {rows: any[], values: object}[], names?: Record<string, string>}} how
 *   groups: rows that get the same values; names: of devices, old to new
 */
export function editRows(drawing, { of, groups, names = {} }) {
  const edit = (before, { rows, values }) =>
    of === "device" ? editDevices(before, rows, values) : editLinks(before, rows, values, { both: false });
  return renameDevices(groups.reduce(edit, drawing), names);
}

/** @param {Drawing} drawing @param {string} name @returns {Drawing} */
export function renameTopology(drawing, name) {
  if (!name.trim()) throw new EditError("the cluster needs a name that is not empty");
  return name === drawing.topology.name ? drawing : withTopology(drawing, { name });
}

/** Put devices into a host, or into none. @param {Drawing} drawing @returns {Drawing} */
export function setHost(drawing, devices, host) {
  return editDevices(drawing, devices, { host });
}

/** @param {Drawing} drawing @param {string} host @param {string} name @returns {Drawing} */
export function renameHost(drawing, host, name) {
  if (!name.trim()) throw new EditError("a host needs a name that is not empty");
  if (host !== name && hostNames(drawing.topology).has(name)) {
    throw new EditError(`there is a host called ${name} already; choose another name`);
  }
  const inside = drawing.topology.devices.filter((d) => d.host === host).map((d) => d.name);
  return setHost(drawing, inside, name);
}

const DEVICE_KEYS = ["kind", "host", "stores", "copies", "reduces", "buffer_bytes"];

/**
 * @param {Drawing} drawing
 * @param {string[]} devices
 * @param {Partial<Device>} values
 * @returns {Drawing}
 */
export function editDevices(drawing, devices, values) {
  const wrong = Object.keys(values).find((key) => !DEVICE_KEYS.includes(key));
  if (wrong) throw new EditError(`a device has no ${wrong}; there are ${DEVICE_KEYS.join(", ")}`);
  const { buffer_bytes: bytes } = values;
  if (bytes !== undefined && bytes !== null && !(bytes > 0)) {
    throw new EditError(`a buffer of ${bytes} bytes holds nothing; give a positive number or none`);
  }
  const chosen = new Set(devices);
  const next = mapped(drawing.topology.devices, (d) => (chosen.has(d.name) ? edited(d, values) : d));
  return next === drawing.topology.devices ? drawing : withTopology(drawing, { devices: next });
}

const LINK_KEYS = ["bandwidth", "alpha", "medium", "count"];

/**
 * @param {Drawing} drawing
 * @param {[string, string][]} links their ends
 * @param {Partial<Link>} values
 * @param {{both?: boolean}} [options] both: the opposite links too, where there are any
 * @returns {Drawing}
 */
export function editLinks(drawing, links, values, { both = true } = {}) {
  const wrong = Object.keys(values).find((key) => !LINK_KEYS.includes(key));
  if (wrong) throw new EditError(`a link has no ${wrong}; there are ${LINK_KEYS.join(", ")}`);
  if (links.length) checkLink(values, links[0].join("->"));
  const chosen = new Set(links.map(([src, dst]) => endsKey(src, dst)));
  if (both) for (const [src, dst] of links) chosen.add(endsKey(dst, src));
  const next = mapped(drawing.topology.links, (l) =>
    chosen.has(endsKey(l.src, l.dst)) ? edited(l, values) : l,
  );
  return next === drawing.topology.links ? drawing : withTopology(drawing, { links: next });
}

/** Make links two-way or one-way. @param {Drawing} drawing @param {[string, string][]} links */
export function setDuplex(drawing, links, duplex) {
  const have = new Map(drawing.topology.links.map((l) => [endsKey(l.src, l.dst), l]));
  if (!duplex) {
    return remove(drawing, { links: links.map(([src, dst]) => [dst, src]) });
  }
  const missing = links.filter(([src, dst]) => !have.has(endsKey(dst, src)));
  if (!missing.length) return drawing;
  const back = missing.map(([src, dst]) => ({ ...have.get(endsKey(src, dst)), src: dst, dst: src }));
  return withTopology(drawing, { links: [...drawing.topology.links, ...back] });
}

/** @param {Drawing} drawing @param {import("./types.js").Limit[]} limits @returns {Drawing} */
export function editLimits(drawing, limits) {
  const there = new Set(drawing.topology.links.map((l) => endsKey(l.src, l.dst)));
  for (const limit of limits) {
    if (!(limit.bandwidth > 0)) {
      throw new EditError(`limit ${limit.name} needs a positive bandwidth, got ${limit.bandwidth} GB/s`);
    }
    const lost = limit.links.find(([src, dst]) => !there.has(endsKey(src, dst)));
    if (lost) throw new EditError(`limit ${limit.name} names the link ${lost.join("->")}, which does not exist`);
  }
  const names = limits.map((limit) => limit.name);
  const twin = names.find((name, i) => names.indexOf(name) < i);
  if (twin !== undefined) throw new EditError(`two limits are called ${twin}; each needs a name of its own`);
  return withTopology(drawing, { limits });
}

/** @param {Drawing} drawing @param {Record<string, [number, number]>} to @returns {Drawing} */
export function move(drawing, to) {
  const changed = Object.entries(to)
    .map(([name, at]) => /** @type {const} */ ([name, rounded(at)]))
    .filter(([name, [x, y]]) => {
      const old = drawing.positions[name];
      return !old || old[0] !== x || old[1] !== y;
    });
  if (!changed.length) return drawing;
  return { ...drawing, positions: { ...drawing.positions, ...Object.fromEntries(changed) } };
}

const lineCache = new WeakMap();

/**
 * What is drawn between devices: a link with its opposite is one line.
 * @param {Topology} topology
 * @returns {import("./types.js").Line[]}
 */
export function linesOf(topology) {
  const known = lineCache.get(topology.links);
  if (known) return known;
  const lines = new Map();
  for (const link of topology.links) {
    const other = lines.get(endsKey(link.dst, link.src));
    if (other) other.back = link;
    else {
      const id = endsKey(link.src, link.dst);
      lines.set(id, { id, a: link.src, b: link.dst, forth: link, back: null });
    }
  }
  const list = [...lines.values()];
  lineCache.set(topology.links, list);
  return list;
}

/**
 * Undo and redo as a list of snapshots. They share structure, so a step costs what it changed, and it
 * covers edits by mouse, keyboard, inspector and Python alike.
 *
 * @template T
 */
export class History {
  /** @param {T} now @param {number} [limit] snapshots kept */
  constructor(now, limit = 200) {
    this.now = now;
    this.limit = limit;
    /** @type {T[]} */
    this.past = [];
    /** @type {T[]} */
    this.future = [];
  }

  /** @param {T} next @returns {boolean} whether anything changed */
  push(next) {
    if (next === this.now) return false;
    this.past.push(this.now);
    if (this.past.length > this.limit) this.past.shift();
    this.now = next;
    this.future = [];
    return true;
  }

  undo() {
    return this.#step(this.past, this.future);
  }

  redo() {
    return this.#step(this.future, this.past);
  }

  /** @param {T[]} from @param {T[]} to */
  #step(from, to) {
    if (!from.length) return false;
    to.push(this.now);
    this.now = /** @type {T} */ (from.pop());
    return true;
  }
}
