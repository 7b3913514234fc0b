/**
 * The rows of the charts: one for each link, rank or chunk that sends anything, in the order of
 * the cluster, and in each as many lanes as sends go on at once. Pure functions.
 *
 * @typedef {import("./plan.js").Plan} Plan
 * @typedef {import("./plan.js").Sent} Sent
 *
 * @typedef {object} Row
 * @property {string} title
 * @property {Partial<import("./plan.js").Focus>} subject what a click on the title looks at
 * @property {Sent[]} sends in order of time
 * @property {Int32Array} lane of each send
 * @property {number} lanes
 * @property {number} top in pixels, from the first row
 * @property {number} height in pixels
 */

import { endsKey } from "../model.js";
import { byTime } from "./plan.js";

export const KINDS_OF_ROWS = /** @type {const} */ (["links", "ranks", "chunks"]);

/** Pixels of a row with one lane, of each lane more, and of the tallest row. */
const HEIGHT = { first: 20, lane: 5, most: 80 };

/**
 * @param {Plan} plan
 * @param {{by: typeof KINDS_OF_ROWS[number], only?: ((send: Sent) => boolean) | null}} how `only` leaves out
 *   all sends that it does not hold for
 * @returns {Row[]}
 */
export function rowsOf(plan, { by, only = null }) {
  const keyOf = { links: ({ src, dst }) => endsKey(src, dst), ranks: ({ dst }) => dst, chunks: ({ chunk }) => chunk }[by];
  const sorted = new Map();
  for (const send of plan.sends) {
    if (only && !only(send)) continue;
    const key = keyOf(send);
    const have = sorted.get(key);
    if (have) have.push(send);
    else sorted.set(key, [send]);
  }
  const rows = [];
  let top = 0;
  for (const { key, title, subject } of heads(plan, by)) {
    const sends = sorted.get(key);
    if (!sends) continue;
    sends.sort(byTime);
    // On a link the next one sets out while the last bytes of the one before are on their way.
    const packed = packedIn(sends, by === "links" ? (send) => send.sent : (send) => send.end);
    const height = Math.min(HEIGHT.most, HEIGHT.first + (packed.lanes - 1) * HEIGHT.lane);
    rows.push({ title, subject, sends, ...packed, top, height });
    top += height;
  }
  return rows;
}

/** All rows that there may be, in order. A rank's row has what arrives there. */
function heads(plan, by) {
  const { devices, links } = plan.scene.topology;
  if (by === "links") {
    return links.map(({ src, dst }) => ({ key: endsKey(src, dst), title: `${src} → ${dst}`, subject: { link: [src, dst] } }));
  }
  if (by === "chunks") {
    return plan.scene.chunks.map(({ label }, chunk) => ({ key: chunk, title: label, subject: { chunk } }));
  }
  return devices
    .filter(({ name }) => plan.rankOf.has(name))
    .map(({ name }) => ({ key: name, title: name, subject: { rank: plan.rankOf.get(name) } }));
}

/**
 * Put sends into lanes so that none lies on another: each into the first that is free.
 * @param {Sent[]} sends in order of time @param {(send: Sent) => number} until µs
 */
export function packedIn(sends, until) {
  const free = [];
  const lane = new Int32Array(sends.length);
  sends.forEach((send, k) => {
    const slack = 1e-9 * Math.abs(send.start);
    let at = free.findIndex((time) => time <= send.start + slack);
    if (at < 0) at = free.length;
    free[at] = until(send);
    lane[k] = at;
  });
  return { lane, lanes: Math.max(1, free.length) };
}

/** Pixels that all rows take. @param {Row[]} rows */
export const heightOf = (rows) => (rows.length ? rows.at(-1).top + rows.at(-1).height : 0);

/** Index of the row at a height, or of the nearest one. @param {Row[]} rows @param {number} y */
export function rowAt(rows, y) {
  let [low, high] = [0, rows.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (rows[middle].top <= y) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Rows that are seen between two heights: from the first, to before the last. @param {Row[]} rows @returns {[number, number]} */
export const seen = (rows, from, to) => (rows.length ? [rowAt(rows, from), rowAt(rows, to) + 1] : [0, 0]);

/** Place of a lane in its row, in pixels from its top. @param {Row} row @param {number} lane */
export function laneBox({ height, lanes }, lane) {
  const margin = lanes > 1 ? 2 : 3;
  const each = (height - 2 * margin) / lanes;
  return { y: margin + lane * each, height: Math.max(1, each - (each > 3 ? 1 : 0)) };
}

/** Numbers that are pleasant to read, at most so many, that divide a span. @param {number} from @param {number} to @param {number} most */
export function ticks(from, to, most) {
  const rough = (to - from) / Math.max(1, most);
  if (!(rough > 0)) return [from];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough * (1 - 1e-9));
  const found = [];
  for (let k = Math.ceil(from / step - 1e-9) + 0; k * step <= to * (1 + 1e-9); k++) found.push(k * step);
  return found;
}
