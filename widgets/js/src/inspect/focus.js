/**
 * What is looked at: a chunk, a link, a rank, a host, one transfer, or several of these at once.
 * Pure functions; `null` is nothing.
 *
 * @typedef {import("./plan.js").Plan} Plan
 * @typedef {import("./plan.js").Sent} Sent
 * @typedef {{chunk: number | null, link: [string, string] | null, rank: number | null,
 *   host: string | null, transfer: number | null}} Focus
 */

import { endsKey } from "../model.js";

export const PARTS = /** @type {const} */ (["chunk", "link", "rank", "host", "transfer"]);

/** @param {Partial<Focus> | null | undefined} given parts that are left out are nothing @returns {Focus | null} */
export function whole(given) {
  const focus = Object.fromEntries(PARTS.map((part) => [part, given?.[part] ?? null]));
  return PARTS.some((part) => focus[part] !== null) ? /** @type {Focus} */ (focus) : null;
}

/** What a plan does not have of a focus, in words for each part. @param {Plan} plan @returns {Record<string, string>} */
export function missing(focus, plan) {
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
 * @param {Focus | null} focus @param {Plan} plan @returns {((send: Sent) => boolean) | null}
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
  ].filter((test) => test !== false);
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
  ].filter((each) => each !== false);
}
