/**
 * A scene made ready for looking into: its sends with what is known of each, and which belong to a
 * chunk, a link, a rank or a host. No DOM.
 *
 * @typedef {object} Sent one transfer of the scene
 * @property {number} i its place among the transfers
 * @property {number} chunk
 * @property {string} src
 * @property {string} dst
 * @property {number} start µs
 * @property {number} sent µs at which the link is free again
 * @property {number} end µs
 * @property {number} fraction of the chunk
 * @property {number} column of the grid it is planned in, or -1
 * @property {number} wait µs for which what it carries lay at its src before, where that is known
 */

import { endsKey } from "../model.js";

/** Share of a makespan below which two times are the same. */
const SAME = 1e-7;

export class Plan {
  /** @param {import("../player.js").Playback} playback */
  constructor(playback) {
    const { scene } = playback;
    this.scene = scene;
    this.details = scene.details ?? null;
    this.makespan = playback.makespan;
    const rows = this.details?.rows;
    /** Whether the columns of the grid are epochs that were planned. */
    this.planned = Boolean(rows?.some(([, , , epoch]) => epoch >= 0));
    /** @type {Sent[]} */
    this.sends = playback.flights.map(({ chunk, src, dst, start, sent, end, fraction }, i) => ({
      i, chunk, src, dst, start, end, fraction,
      sent: rows ? rows[i][4] : sent,
      column: this.planned ? rows[i][3] : playback.epochAt(start),
      wait: rows && start - rows[i][2] > SAME * this.makespan ? start - rows[i][2] : 0,
    }));
    /** Place of each transfer on the critical path. */
    this.critical = new Map((this.details?.critical ?? []).map((i, k) => [i, k]));
    this.#columns(playback);
    const { devices } = scene.topology;
    this.ranks = devices.filter((d) => d.kind === "gpu").map((d) => d.name);
    this.rankOf = new Map(this.ranks.map((name, rank) => [name, rank]));
    this.hostOf = new Map(devices.map((d) => [d.name, d.host]));
    this.hosts = [...new Set(devices.map((d) => d.host).filter((host) => host !== null))];
    this.links = new Set(scene.topology.links.map((l) => endsKey(l.src, l.dst)));
  }

  /** For each column of the grid the µs at which it begins: that of the first send of it or of a later one. */
  #columns({ epochs, step }) {
    if (!this.planned) {
      this.columns = epochs;
      this.columnStarts = Float64Array.from({ length: epochs }, (_, e) => e * step);
      return;
    }
    this.columns = this.sends.reduce((most, { column }) => Math.max(most, column), 0) + 1;
    this.columnStarts = new Float64Array(this.columns).fill(Infinity);
    for (const { column, start } of this.sends) {
      if (column >= 0) this.columnStarts[column] = Math.min(this.columnStarts[column], start);
    }
    for (let e = this.columns - 2; e >= 0; e--) {
      this.columnStarts[e] = Math.min(this.columnStarts[e], this.columnStarts[e + 1]);
    }
  }

  /** The last column that has begun at a time. @param {number} time µs */
  columnAt(time) {
    let [low, high] = [0, this.columns - 1];
    const until = time + SAME * this.makespan;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.columnStarts[middle] <= until) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** The whole way of a chunk, in order of time. @param {number} chunk */
  wayOf(chunk) {
    return this.sends.filter((send) => send.chunk === chunk).sort(byTime);
  }

  /** Sends that arrive at a device, in order of arrival. @param {string} name */
  arrivalsAt(name) {
    return this.sends.filter(({ dst }) => dst === name).sort((a, b) => a.end - b.end || a.i - b.i);
  }

  /** Devices that have a chunk at the start. @param {number} chunk */
  holders(chunk) {
    return Object.entries(this.scene.holds).filter(([, chunks]) => chunks.includes(chunk)).map(([name]) => name);
  }
}

/** @param {Sent} a @param {Sent} b */
export const byTime = (a, b) => a.start - b.start || a.end - b.end || a.i - b.i;
