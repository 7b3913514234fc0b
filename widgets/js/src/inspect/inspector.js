/**
 * Looking into a schedule: a drawer with charts and a list, and the path of a chunk on the cluster.
 * What is looked at is `focus`, which the host may set and read; it is not the selection, and it
 * moves neither the view nor the time.
 *
 * @typedef {import("./plan.js").Focus} Focus
 * @typedef {import("./plan.js").Sent} Sent
 */

import { Chart } from "./chart.js";
import { Drawer } from "./drawer.js";
import { Navigator, listen } from "./navigation.js";
import { PathView } from "./path.js";
import { PARTS, Plan, fitting, matcher, missing, named, whole } from "./plan.js";
import { ReportList, sentence } from "./report.js";
import { rowsOf } from "./rows.js";

let drawers = 0;

export class Inspector {
  /** @param {import("../canvas.js").Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    drawers += 1;
    this.hintId = `tl-in-hint-${drawers}`;
    /** @type {"links" | "ranks" | "chunks"} */
    this.by = "links";
    /** What the charts are narrowed to: all else is left out. It is a part of the focus. @type {Focus | null} */
    this.narrowed = null;
    /** Whether the critical path is marked. */
    this.marked = true;
    /** Whether there was a scene before. */
    this.hadScene = false;
    /** @type {Focus | null} */
    this.focus = null;
    /** Sends that belong to it; null where all do. @type {ReturnType<typeof matcher>} */
    this.match = null;
    this.chart = new Chart(this);
    this.list = new ReportList(this);
    this.navigator = new Navigator(this);
    this.drawer = new Drawer(this);
    this.path = new PathView(this);
  }

  get element() {
    return this.drawer.element;
  }

  /** Listen to clicks on the cluster, once there is one. */
  listen() {
    listen(this);
  }

  /** Whether the drawer is on the screen. */
  get open() {
    return this.canvas.model.get("inspect") === true && this.canvas.playback !== null;
  }

  /** What is known of the scene; made when it is first asked for. @returns {Plan | null} */
  get plan() {
    const { playback } = this.canvas;
    if (!playback) return null;
    if (this.planOf !== playback) {
      this.planOf = playback;
      this.known = new Plan(playback);
    }
    return this.known;
  }

  /** The send that is looked at. @returns {Sent | null} */
  get chosen() {
    const transfer = this.focus?.transfer ?? null;
    return transfer === null ? null : this.plan.sends[transfer];
  }

  // ---- what comes from the canvas and its host --------------------------------------------------

  /** Another scene, or none. Transfers of the last one mean nothing in it. */
  loaded() {
    const given = whole(this.canvas.model.get("focus"));
    const focus = this.hadScene ? whole({ ...given, transfer: null }) : given;
    this.shownRows = null;
    this.chart.window = null;
    // Without a scene the host has it, and it is looked at when one comes.
    if (this.canvas.playback) this.#set(focus && fitting(focus, this.plan));
    else Object.assign(this, { focus: null, match: null, narrowed: null });
    this.hadScene ||= this.canvas.playback !== null;
    this.refreshOpen();
  }

  /** The host set the focus. */
  given() {
    const given = whole(this.canvas.model.get("focus"));
    if (!this.plan || JSON.stringify(given) === JSON.stringify(this.focus)) return;
    const wrong = Object.values(missing(given, this.plan));
    if (wrong.length) this.canvas.refuse(wrong.join("; "));
    this.#set(fitting(given, this.plan));
  }

  /** The drawer was opened or closed, here or by the host. */
  refreshOpen() {
    const { canvas, drawer } = this;
    drawer.element.hidden = !this.open;
    drawer.fitHeight();
    if (this.open) this.#refresh();
    canvas.wake();
  }

  /** The theme or the drawing changed. */
  repainted() {
    this.chart.invalidate();
    if (this.open) this.list.refresh();
    this.path.refresh();
  }

  // ---- what the user does -------------------------------------------------------------------------

  /** @param {boolean} on */
  show(on) {
    const { canvas } = this;
    if (on && !canvas.playback) return canvas.say("There is no schedule to inspect");
    canvas.tell({ inspect: on });
    this.refreshOpen();
    canvas.say(on ? "Inspector open: arrows walk among the sends, Enter looks at one" : "Inspector closed");
    if (on) this.chart.element.focus({ preventScroll: true });
    else canvas.dom.root.focus({ preventScroll: true });
    return undefined;
  }

  /** Look at something else. @param {Partial<Focus> | null} wanted */
  look(wanted) {
    if (!this.plan) return;
    const focus = whole(wanted);
    const wrong = Object.values(missing(focus, this.plan));
    if (wrong.length) this.canvas.refuse(wrong.join("; "));
    else this.#set(focus);
  }

  /** Look at something in the charts, which stay narrowed as they are. @param {Partial<Focus>} part */
  lookWithin(part) {
    this.look({ ...this.narrowed, ...part });
  }

  /** @param {Sent} send */
  lookAtSend(send) {
    this.lookWithin({ chunk: send.chunk, transfer: send.i });
  }

  /** Show nothing but what is looked at, and what was typed or chosen. @param {Partial<Focus>} [part] */
  narrow(part) {
    this.narrowed = whole({ ...this.focus, ...part, transfer: null });
    this.look(this.narrowed);
  }

  /** Show the rest again. */
  widen() {
    this.narrowed = null;
    this.#refresh();
  }

  /** @param {string} part */
  drop(part) {
    if (this.narrowed) this.narrowed = whole({ ...this.narrowed, [part]: null });
    this.look({ ...this.focus, transfer: null, [part]: null });
  }

  /** Look at nothing. @returns {boolean} whether there was something */
  clear() {
    if (!this.focus) return false;
    this.look(null);
    return true;
  }

  /** @param {{by?: "links" | "ranks" | "chunks", marked?: boolean}} how */
  arrange(how) {
    Object.assign(this, how);
    this.#refresh();
  }

  /** Whether a row is what is looked at. @param {Partial<Focus>} subject */
  isLookedAt(subject) {
    return Object.entries(subject).every(([part, value]) => String(this.focus?.[part] ?? null) === String(value));
  }

  // ---- bringing the parts in line ------------------------------------------------------------------

  /** @param {Focus | null} focus */
  #set(focus) {
    const { canvas } = this;
    this.focus = focus;
    this.match = focus ? matcher(focus, this.plan) : null;
    const { narrowed } = this;
    const within = narrowed && PARTS.every((part) => narrowed[part] === null || String(narrowed[part]) === String(focus?.[part]));
    if (!within) this.narrowed = null;
    // Said in full, also where the host left parts out.
    if (JSON.stringify(canvas.model.get("focus") ?? null) !== JSON.stringify(focus)) canvas.tell({ focus });
    if (this.open) this.#refresh();
    this.path.refresh();
    canvas.redrawAll();
  }

  #refresh() {
    const { plan, chart, narrowed } = this;
    const mark = [this.by, JSON.stringify(narrowed)].join();
    if (this.shownRows !== mark) {
      this.shownRows = mark;
      chart.show(rowsOf(plan, { by: this.by, only: matcher(narrowed, plan) }));
      this.navigator.reset();
    }
    this.#reveal();
    this.drawer.refresh();
    this.list.refresh();
    chart.invalidate();
  }

  /** Scroll to the row of what is looked at. */
  #reveal() {
    const { chart, chosen, match } = this;
    if (!match && !chosen) return;
    const subject = chart.rows.find((row) => this.isLookedAt(row.subject));
    const belongs = chosen ? (send) => send === chosen : match;
    const row = subject ?? chart.rows.find(({ sends }) => sends.some(belongs));
    if (row) chart.reveal(row, { amid: true });
  }

  /** A send in one sentence. @param {Sent} send */
  sentence(send) {
    return sentence(this.plan, send);
  }

  /** What is looked at, in a few words. */
  get title() {
    return this.plan ? named(this.focus, this.plan).map(({ text }) => text).join(", ") : "";
  }

  /** Called in each frame in which something moved. */
  draw() {
    if (this.open) this.chart.draw(this.canvas.clock.time);
  }

  destroy() {
    this.chart.destroy();
  }
}
