/**
 * Report on what is looked at, as a list beside the charts: the path of a chunk with its waits, what
 * arrives at a rank, what a link carries, what enters a host; while nothing is looked at, the critical
 * path. The sentence of a send is made from the templates that come with the scene
 * (`ccl/explain/narration.py`), so that Python and the canvas say the same.
 *
 * @typedef {import("./plan.js").Plan} Plan
 * @typedef {import("./plan.js").Sent} Sent
 * @typedef {{title: string, facts: string, sends: Sent[]}} Report
 */

import { h } from "../dom.js";
import { bytes, digits, duration, share, short } from "../units.js";
import { byTime } from "./plan.js";

/** Shares of a chunk within this of 1 are all of it, and times within this share of the makespan one. */
const SAME = 1e-7;

/** A template with what stands for its `{holes}`. @param {string} template @param {Record<string, string | number>} holes */
const filled = (template, holes) => template.replace(/\{(\w+)\}/g, (all, name) => String(holes[name] ?? all));

/** When a send begins and when all of it has arrived. @param {Sent} send */
const times = ({ start, end }) => `${short(start)} – ${short(end)} µs`;

/** A send in one sentence; only its facts where the scene has no reasons. @param {Plan} plan @param {Sent} send */
export function sentence(plan, send) {
  const { details, scene } = plan;
  const terms = scene.terms?.[scene.carried?.[send.i] ?? -1];
  const label = scene.chunks[send.chunk].label + (terms ? ` of ${terms.label}` : "");
  if (!details) return `${send.src} → ${send.dst}: ${label}, ${times(send)}`;
  const { phrases, reasons, rows } = details;
  const [reason, by, ready, epoch] = rows[send.i];
  const before = by < 0 ? null : plan.sends[by];
  const whole = Math.abs(send.fraction - 1) <= SAME;
  const text = filled(phrases[reasons[reason]], {
    src: send.src, dst: send.dst,
    chunk: whole ? label : filled(phrases.part, { share: short(100 * send.fraction, 3), chunk: label }),
    start: short(send.start), end: short(send.end), ready: short(ready),
    wait: short(send.wait),
    before: before ? scene.chunks[before.chunk].label : "",
    from: before ? before.src : "", over: before ? `${before.src} → ${before.dst}` : "",
  });
  const planned = epoch * scene.epoch_duration;
  if (epoch < 0 || planned <= send.start + SAME * plan.makespan) return text;
  return text + filled(phrases.earlier, { epoch, planned: short(planned) });
}

/** Why there are no reasons. @param {Plan} plan */
const unexplained = (plan) =>
  `The schedule says of its ${digits(plan.sends.length)} transfers when they go and where, not why they wait.`;

/** How long something waited. @param {number} us */
const waited = (us) => `waited ${duration(us)}`;

/** Rows of the list; nobody reads more. */
const MOST = 200;
/** Names of devices in one line. */
const MOST_NAMES = 4;

export class ReportList {
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
    const report = reportOn(plan, focus);
    const shown = report.sends.slice(0, MOST);
    const stop = Math.max(0, shown.indexOf(inspector.chosen));
    const items = shown.map((send, k) => this.#item(send, { k, stop: k === stop }));
    const more = report.sends.length - MOST;
    element.replaceChildren(
      h("header", {}, h("b", {}, report.title), h("span", {}, report.facts)),
      ...(plan.details ? [] : [h("p", {}, unexplained(plan))]),
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

  /** A row of a chunk's path keeps that path; any other leads to the path of its chunk. @param {Sent} send */
  #choose(send) {
    const { inspector } = this;
    inspector.look({ ...inspector.focus, chunk: inspector.focus?.chunk ?? (inspector.focus ? null : send.chunk), transfer: send.i });
    inspector.navigator.stepTo(send);
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

/** What there is to say of a focus. @param {Plan} plan @param {import("./plan.js").Focus | null} focus @returns {Report} */
export function reportOn(plan, focus) {
  const chunk = focus?.chunk ?? (focus && !focus.link && focus.rank === null && focus.host === null ? plan.sends[focus.transfer].chunk : null);
  if (chunk !== null) return chunkPath(plan, chunk);
  if (!focus) return criticalPath(plan);
  if (focus.link) return carried(plan, focus.link);
  return focus.rank !== null ? arrivals(plan, plan.ranks[focus.rank]) : entering(plan, focus.host);
}

const counted = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;

const listed = (names) =>
  names.length > MOST_NAMES ? `${names.slice(0, MOST_NAMES - 1).join(", ")} and ${names.length - MOST_NAMES + 1} more` : names.join(", ");

function chunkPath(plan, chunk) {
  const { label, size } = plan.scene.chunks[chunk];
  const sends = plan.pathOf(chunk);
  const last = sends.reduce((most, { end }) => Math.max(most, end), 0);
  const facts = `${bytes(size)}, at first in ${listed(plan.holders(chunk))}; ${counted(sends.length, "send")} until ${duration(last)}`;
  return { title: `Path of ${label}`, facts, sends };
}

function criticalPath(plan) {
  const sends = [...plan.critical.keys()].map((i) => plan.sends[i]);
  if (!sends.length) {
    return { title: counted(plan.sends.length, "transfer"), facts: "Click a bar, a chunk, a link or a GPU to look at it", sends };
  }
  return { title: "Critical path", facts: `${counted(sends.length, "send")} that make the makespan of ${duration(plan.makespan)}`, sends };
}

function carried(plan, [src, dst]) {
  const sends = plan.sends.filter((send) => send.src === src && send.dst === dst).sort(byTime);
  const busy = sends.reduce((sum, send) => sum + send.sent - send.start, 0);
  return { title: `${src} → ${dst}`, facts: `${counted(sends.length, "send")}, busy ${share(busy / (plan.makespan || 1))} of the time`, sends };
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
