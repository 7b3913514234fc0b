/**
 * What every device holds at a time. Time may run either way; going on costs only what arrived.
 *
 * A level is the share of a chunk that is there. Of a chunk that is reduced it is the share of
 * the contributions that are in.
 *
 * @typedef {import("./types.js").Scene} Scene
 * @typedef {{time: number, device: string, chunk: number, level: number}} Arrival
 */

export class Buffers {
  /** @param {Scene} scene */
  constructor(scene) {
    this.chunks = scene.chunks.length;
    this.devices = scene.topology.devices.filter((d) => d.stores).map((d) => d.name);
    this.start = startLevels(scene, this.devices);
    const reduced = new Set(scene.chunks.flatMap((chunk, i) => (chunk.reduced ? [i] : [])));
    /** @type {Arrival[]} */
    this.arrivals = [...copied(scene, reduced), ...added(scene, reduced)]
      .filter((arrival) => this.start.has(arrival.device))
      .sort((a, b) => a.time - b.time);
    this.#rewind();
  }

  #rewind() {
    this.next = 0;
    /** @type {Map<string, Float32Array>} */
    this.levels = new Map([...this.start].map(([name, levels]) => [name, levels.slice()]));
  }

  /**
   * Go to a time; `next` counts what has arrived, so an equal one means an equal picture.
   * @param {number} time µs
   */
  seek(time) {
    const until = time * (1 + 1e-9) + 1e-9;
    if (this.next && this.arrivals[this.next - 1].time > until) this.#rewind();
    while (this.next < this.arrivals.length && this.arrivals[this.next].time <= until) {
      const { device, chunk, level } = this.arrivals[this.next++];
      const levels = /** @type {Float32Array} */ (this.levels.get(device));
      levels[chunk] = Math.max(levels[chunk], level);
    }
    return this.levels;
  }
}

/** @param {Scene} scene @param {string[]} devices */
function startLevels(scene, devices) {
  const givers = contributors(scene);
  const levels = new Map(devices.map((name) => [name, new Float32Array(scene.chunks.length)]));
  for (const [device, chunks] of Object.entries(scene.holds)) {
    for (const chunk of chunks) {
      const at = levels.get(device);
      if (at) at[chunk] = scene.chunks[chunk].reduced ? 1 / givers[chunk].length : 1;
    }
  }
  return levels;
}

/** Devices that hold each chunk at the start. @param {Scene} scene @returns {string[][]} */
function contributors(scene) {
  const givers = scene.chunks.map(() => []);
  for (const [device, chunks] of Object.entries(scene.holds)) {
    for (const chunk of chunks) givers[chunk].push(device);
  }
  return givers;
}

/** Arrivals of chunks that are only copied: fractions add up. @returns {Arrival[]} */
function copied(scene, reduced) {
  const have = new Map();
  return scene.transfers
    .filter(([chunk]) => !reduced.has(chunk))
    .map(([chunk, , device, , time, fraction = 1]) => ({ chunk, device, time, fraction }))
    .sort((a, b) => a.time - b.time)
    .map(({ chunk, device, time, fraction }) => {
      const key = `${chunk} ${device}`;
      const level = Math.min(1, (have.get(key) ?? 0) + fraction);
      have.set(key, level);
      return { time, device, chunk, level: level > 1 - 1e-6 ? 1 : level };
    });
}

/** Arrivals of chunks that are added up: who contributed travels along. @returns {Arrival[]} */
function added(scene, reduced) {
  if (!reduced.size) return [];
  const givers = contributors(scene);
  const inside = new Map();
  for (const chunk of reduced) {
    for (const device of givers[chunk]) inside.set(`${chunk} ${device}`, new Set([device]));
  }
  const moves = scene.transfers.filter(([chunk]) => reduced.has(chunk));
  const tolerance = scene.epoch_duration * 1e-6;
  const events = moves.flatMap((move, i) => [
    { time: move[3] + tolerance, i, leaves: true },
    { time: move[4], i, leaves: false },
  ]);
  const carried = new Map();
  /** @type {Arrival[]} */
  const arrivals = [];
  for (const { time, i, leaves } of events.sort((a, b) => a.time - b.time)) {
    const [chunk, src, device] = moves[i];
    if (leaves) {
      carried.set(i, new Set(inside.get(`${chunk} ${src}`)));
      continue;
    }
    const key = `${chunk} ${device}`;
    const sum = inside.get(key) ?? new Set();
    for (const giver of carried.get(i) ?? []) sum.add(giver);
    inside.set(key, sum);
    arrivals.push({ time, device, chunk, level: sum.size / givers[chunk].length });
  }
  return arrivals;
}
