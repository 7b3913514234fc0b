/**
 * Racks and pods: hosts, or GPUs with their switches, that belong together above hosts. They are found from the
 * names of hosts, such as `rack1/host3`, or from what is in one piece without the switches at the top. Hosts whose
 * names tell no racks stand in such of 32 GPUs, as a bill of parts counts them (`gallery/costs/floor.py`).
 *
 * @typedef {import("./types.js").Group} Group
 * @typedef {import("./types.js").Topology} Topology
 */

/** Pods at least, and hosts of each; GPUs of each where there are no hosts. */
const FEWEST_PODS = 2;
const FEWEST_HOSTS = 2;
const FEWEST_GPUS = 4;

/** GPUs of a rack that names do not tell, racks at least, and units of height that hosts of a row differ by at most. */
const RACK_GPUS = 32;
const FEWEST_RACKS = 4;
const LEVEL = 1;

/** Keys of pods begin with a character that no device's name should have. @param {string} title */
export const podKey = (title) => `\u0003pod ${title}`;

/** @type {WeakMap<object, Group[]>} */
const known = new WeakMap();

/** The pods of a topology, none where nothing is found. @param {Topology} topology @returns {Group[]} */
export function podsOf(topology) {
  const have = known.get(topology);
  if (have) return have;
  const found = named(topology) ?? pieces(topology) ?? [];
  const pods = found.map(({ title, members }) => ({ key: podKey(title), title, host: null, pod: true, members }));
  known.set(topology, pods);
  return pods;
}

/** @type {WeakMap<object, Group[]>} */
const racksAt = new WeakMap();

/**
 * Racks of neighbours in a row, in the order of the drawing; none where names tell them, or there are few.
 * @param {import("./types.js").Drawing} drawing @returns {Group[]}
 */
export function racksOf({ topology, positions }) {
  const have = racksAt.get(positions);
  if (have) return have;
  const hosts = new Map();
  for (const d of topology.devices) if (d.host !== null) hosts.set(d.host, [...(hosts.get(d.host) ?? []), d]);
  const racks = [];
  let [row, gpus] = [NaN, 0];
  for (const [host, devices] of named(topology) ? [] : hosts) {
    const many = devices.filter((d) => d.kind === "gpu").length;
    const y = positions[devices[0].name]?.[1];
    if (!(Math.abs(y - row) <= LEVEL) || gpus + many > RACK_GPUS) {
      racks.push({ hosts: [], members: [] });
      gpus = 0;
    }
    [row, gpus] = [y, gpus + many];
    racks.at(-1).hosts.push(host);
    racks.at(-1).members.push(...devices);
  }
  const enough = racks.length >= FEWEST_RACKS && racks.filter((rack) => rack.hosts.length > 1).length > racks.length / 2;
  const found = (enough ? racks : []).map((rack) => {
    const title = [...new Set([rack.hosts[0], rack.hosts.at(-1)])].join(" … ");
    return { key: podKey(title), title, host: null, pod: true, members: rack.members };
  });
  racksAt.set(positions, found);
  return found;
}

/** Hosts by what stands before the last separator of their names. @param {Topology} topology */
function named({ devices }) {
  const pods = new Map();
  for (const d of devices) {
    if (d.host === null) continue;
    const title = /^(.+)[/.:_-][^/.:_-]+$/.exec(d.host)?.[1];
    if (title === undefined) return null;
    pods.set(title, [...(pods.get(title) ?? []), d]);
  }
  return checked([...pods].map(([title, members]) => ({ title, members })));
}

/** What is in one piece without the switches that are farthest from the GPUs. @param {Topology} topology */
function pieces({ devices, links }) {
  const near = new Map(devices.map((d) => [d.name, []]));
  for (const { src, dst } of links) {
    near.get(src).push(dst);
    near.get(dst).push(src);
  }
  const levels = new Map(devices.filter((d) => d.kind === "gpu").map((d) => [d.name, 0]));
  for (const [name, level] of levels) {
    for (const other of near.get(name)) if (!levels.has(other)) levels.set(other, level + 1);
  }
  const loose = devices.filter((d) => d.host === null && d.kind !== "gpu");
  const top = Math.max(...loose.map((d) => levels.get(d.name) ?? 0));
  const kept = new Set(devices.filter((d) => d.host !== null || d.kind === "gpu" || levels.get(d.name) !== top).map((d) => d.name));
  const found = [];
  for (const { name } of devices) {
    if (!kept.delete(name)) continue;
    const piece = new Set([name]);
    for (const each of piece) for (const other of near.get(each)) if (kept.delete(other)) piece.add(other);
    found.push(devices.filter((d) => piece.has(d.name)));
  }
  return checked(found.map((members, i) => ({ title: `pod ${i}`, members })));
}

/** Pods if they are such: several, each with hosts or GPUs enough. @param {{title: string, members: import("./types.js").Device[]}[]} pods */
function checked(pods) {
  const enough = pods.every(({ members }) => {
    const hosts = new Set(members.map((d) => d.host).filter((host) => host !== null)).size;
    return hosts >= FEWEST_HOSTS || (!hosts && members.filter((d) => d.kind === "gpu").length >= FEWEST_GPUS);
  });
  return pods.length >= FEWEST_PODS && enough ? pods : null;
}
