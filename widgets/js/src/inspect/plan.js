/**
 * Queries of a schedule: its sends with what is known of each, and a focus that selects those of a
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
 *
 * @typedef {{chunk: number | null, link: [string, string] | null, rank: number | null,
 *   host: string | null, transfer: number | null}} Focus what is looked at: one or several of these at
 *   once; `null` is nothing
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

  /** The whole path of a chunk, in order of time. @param {number} chunk */
  pathOf(chunk) {
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

// ---- the focus ------------------------------------------------------------------------------------

/** What a focus may have. */
export const PARTS = /** @type {const} */ (["chunk", "link", "rank", "host", "transfer"]);

/** @param {Partial<Focus> | null | undefined} given parts that are left out are nothing @returns {Focus | null} */
export function whole(given) {
  const focus = Object.fromEntries(PARTS.map((part) => [part, given?.[part] ?? null]));
  return PARTS.some((part) => focus[part] !== null) ? /** @type {Focus} */ (focus) : null;
}

/** What a plan does not have of a focus, in words for each part. @param {Plan} plan @returns {Record<string, string>} */
export function missing(focus, plan) {
  /** @type {Record<string, string>} */
  const wrong = {};
  if (!focus) return wrong;
  const among = (value, count) => Number.isInteger(value) && value >= 0 && value < count;
  const range = (what, count) => `there is no ${what}; they go from 0 to ${count - 1}`;
  const { chunk, link, rank, host, transfer } = focus;
  const chunks = plan.scene.chunks.length;
  if (chunk !== null && !among(chunk, chunks)) wrong.chunk = range(`chunk ${chunk}`, chunks);
  if (rank !== null && !among(rank, plan.ranks.length)) wrong.rank = range(`rank ${rank}`, plan.ranks.length);
  if (transfer !== null && !among(transfer, plan.sends.length)) {
    wrong.transfer = range(`transfer ${transfer}`, plan.sends.length);
  }
  if (host !== null && !plan.hosts.includes(host)) wrong.host = `there is no host ${host}`;
  if (link !== null && !plan.links.has(endsKey(link[0], link[1]))) wrong.link = `there is no link ${link.join(" → ")}`;
  return wrong;
}

/** A focus without what a plan does not have. @param {Focus | null} focus @param {Plan} plan */
export function fitting(focus, plan) {
  const gone = Object.keys(missing(focus, plan));
  return gone.length ? whole({ ...focus, ...Object.fromEntries(gone.map((part) => [part, null])) }) : focus;
}

/**
 * Which sends belong to what is looked at; null where all do. A transfer alone is no filter.
 * @param {Focus | null} focus @param {Plan} plan @returns {((send: Pick<Sent, "chunk" | "src" | "dst">) => boolean) | null}
 */
export function matcher(focus, plan) {
  if (!focus) return null;
  const { chunk, link, rank, host } = focus;
  const at = rank === null ? null : plan.ranks[rank];
  const tests = [
    chunk !== null && ((send) => send.chunk === chunk),
    link !== null && ((send) => send.src === link[0] && send.dst === link[1]),
    at !== null && ((send) => send.src === at || send.dst === at),
    host !== null && ((send) => plan.hostOf.get(send.src) === host || plan.hostOf.get(send.dst) === host),
  ].filter(Boolean);
  return tests.length ? (send) => tests.every((test) => test(send)) : null;
}

/**
 * What someone typed: "3" or "chunk 3", "rank 2" or its name, a host, "g0 > g1" or "g0 → g1".
 * @param {string} text @param {Plan} plan @returns {Partial<Focus> | null} null where there is none of that name
 */
export function typed(text, plan) {
  const said = text.trim();
  const known = (focus) => (Object.keys(missing(whole(focus), plan)).length ? null : focus);
  if (plan.rankOf.has(said)) return { rank: plan.rankOf.get(said) };
  if (plan.hosts.includes(said)) return { host: said };
  const ends = said.split(/\s*(?:→|->|>)\s*/);
  if (ends.length === 2) return known({ link: /** @type {[string, string]} */ (ends) });
  const numbered = said.match(/^(?:(chunk|rank)\s*)?(\d+)$/i);
  if (numbered) return known({ [(numbered[1] ?? "chunk").toLowerCase()]: Number(numbered[2]) });
  const label = plan.scene.chunks.findIndex((chunk) => chunk.label === said);
  return label < 0 ? null : { chunk: label };
}

/** What may be typed, for a list of proposals. @param {Plan} plan @param {number} most */
export function proposals(plan, most) {
  const { chunks, topology } = plan.scene;
  return [
    ...plan.ranks, ...plan.hosts,
    ...chunks.slice(0, most).map((_, chunk) => `chunk ${chunk}`),
    ...topology.links.slice(0, most).map(({ src, dst }) => `${src} → ${dst}`),
  ].slice(0, 2 * most);
}

/** The parts that narrow what is shown, named for people. @param {Focus | null} focus @param {Plan} plan */
export function named(focus, plan) {
  if (!focus) return [];
  const { chunk, link, rank, host } = focus;
  return [
    chunk !== null && { part: "chunk", text: plan.scene.chunks[chunk].label },
    link !== null && { part: "link", text: link.join(" → ") },
    rank !== null && { part: "rank", text: plan.ranks[rank] },
    host !== null && { part: "host", text: host },
  ].filter(Boolean);
}
