/**
 * The list beside the charts: the way of a chunk with its waits, what arrives at a rank, what a link
 * carries, what enters a host; while nothing is looked at, the critical path.
 *
 * @typedef {import("./plan.js").Plan} Plan
 * @typedef {import("./plan.js").Sent} Sent
 * @typedef {{title: string, facts: string, sends: Sent[], short?: boolean}} Telling
 */

import { h } from "../dom.js";
import { bytes, duration, short } from "../units.js";
import { byTime } from "./plan.js";
import { sentence, silence, times, waited } from "./told.js";

/** Rows of the list; nobody reads more. */
const MOST = 200;
/** Names of devices in one line. */
const MOST_NAMES = 4;

export class List {
  /** @param {import("./inspector.js").Inspector} inspector */
  constructor(inspector) {
    this.inspector = inspector;
    this.element = h("aside", { class: "tl-in-list", role: "region", "aria-label": "Sends in order" });
    this.element.addEventListener("keydown", (event) => this.#key(event));
  }

  /** What is looked at changed. */
  refresh() {
    const { inspector, element } = this;
    const { plan, focus } = inspector;
    if (!plan) return;
    const telling = tell(plan, focus);
    const shown = telling.sends.slice(0, MOST);
    const stop = Math.max(0, shown.indexOf(inspector.chosen));
    const items = shown.map((send, k) => this.#item(send, { k, stop: k === stop }));
    const more = telling.sends.length - MOST;
    element.replaceChildren(
      h("header", {}, h("b", {}, telling.title), h("span", {}, telling.facts)),
      ...(plan.details ? [] : [h("p", {}, silence(plan))]),
      h("ol", {}, ...items, ...(more > 0 ? [h("li", { class: "tl-in-more" }, `and ${more} more`)] : [])),
    );
    element.scrollTop = 0;
    element.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }

  /** @param {Sent} send @param {{k: number, stop: boolean}} place in the list, and whether Tab stops there */
  #item(send, { k, stop }) {
    const { inspector } = this;
    const { plan } = inspector;
    const color = inspector.canvas.chunkColors[send.chunk];
    const button = h(
      "button",
      { type: "button", tabindex: stop ? 0 : -1, "aria-current": send === inspector.chosen ? "true" : null, onclick: () => this.#choose(send) },
      h("i", { style: `background:${color}`, "aria-hidden": "true" }),
      h("b", {}, String(k + 1)), h("time", {}, times(send)),
      ...(send.wait ? [h("em", {}, waited(send.wait))] : []),
      h("span", {}, sentence(plan, send)),
    );
    return h("li", {}, button);
  }

  /** A row of a chunk's way keeps its way; any other leads to the way of its chunk. @param {Sent} send */
  #choose(send) {
    const { inspector } = this;
    inspector.look({ ...inspector.focus, chunk: inspector.focus?.chunk ?? (inspector.focus ? null : send.chunk), transfer: send.i });
    inspector.walk.stepTo(send);
  }

  /** Arrows walk in the list. @param {KeyboardEvent} event */
  #key(event) {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (event.key === "Escape" ? !this.inspector.clear() : !by) return;
    event.preventDefault();
    event.stopPropagation();
    if (!by) return this.inspector.chart.element.focus({ preventScroll: true });
    const all = [...this.element.querySelectorAll("button")];
    const at = all.indexOf(/** @type {any} */ (document.activeElement));
    return all[Math.min(all.length - 1, Math.max(0, at + by))]?.focus();
  }
}

/** What there is to tell. @param {Plan} plan @param {import("./focus.js").Focus | null} focus @returns {Telling} */
export function tell(plan, focus) {
  const chunk = focus?.chunk ?? (focus && !focus.link && focus.rank === null && focus.host === null ? plan.sends[focus.transfer].chunk : null);
  if (chunk !== null) return way(plan, chunk);
  if (!focus) return path(plan);
  if (focus.link) return carried(plan, focus.link);
  return focus.rank !== null ? arrivals(plan, plan.ranks[focus.rank]) : entering(plan, focus.host);
}

const counted = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;

const listed = (names) =>
  names.length > MOST_NAMES ? `${names.slice(0, MOST_NAMES - 1).join(", ")} and ${names.length - MOST_NAMES + 1} more` : names.join(", ");

function way(plan, chunk) {
  const { label, size } = plan.scene.chunks[chunk];
  const sends = plan.wayOf(chunk);
  const last = sends.reduce((most, { end }) => Math.max(most, end), 0);
  const facts = `${bytes(size)}, at first in ${listed(plan.holders(chunk))}; ${counted(sends.length, "send")} until ${duration(last)}`;
  return { title: `Path of ${label}`, facts, sends };
}

function path(plan) {
  const sends = [...plan.critical.keys()].map((i) => plan.sends[i]);
  if (!sends.length) {
    return { title: counted(plan.sends.length, "transfer"), facts: "Click a bar, a chunk, a link or a GPU to look at it", sends };
  }
  return { title: "Critical path", facts: `${counted(sends.length, "send")} that make the makespan of ${duration(plan.makespan)}`, sends };
}

function carried(plan, [src, dst]) {
  const sends = plan.sends.filter((send) => send.src === src && send.dst === dst).sort(byTime);
  const busy = sends.reduce((sum, send) => sum + send.sent - send.start, 0);
  const share = plan.makespan > 0 ? busy / plan.makespan : 0;
  return { title: `${src} → ${dst}`, facts: `${counted(sends.length, "send")}, busy ${short(100 * share, 3)} % of the time`, sends };
}

function arrivals(plan, name) {
  const sends = plan.arrivalsAt(name);
  const chunks = new Set(sends.map(({ chunk }) => chunk)).size;
  return { title: `Arrivals at ${name}`, facts: `${counted(chunks, "chunk")} in ${counted(sends.length, "send")}, as they arrive`, sends };
}

function entering(plan, host) {
  const sends = plan.sends
    .filter(({ src, dst }) => plan.hostOf.get(dst) === host && plan.hostOf.get(src) !== host)
    .sort((a, b) => a.end - b.end || a.i - b.i);
  const chunks = new Set(sends.map(({ chunk }) => chunk)).size;
  return { title: `Into ${host}`, facts: `${counted(chunks, "chunk")} in ${counted(sends.length, "send")} from elsewhere, as they arrive`, sends };
}
