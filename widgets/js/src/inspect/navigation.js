/**
 * Navigation of the inspector: a click on the cluster looks at a chunk on its way or in a buffer, the
 * direction of a link that lies on that side, a GPU, a host; in the charts arrows move among rows and
 * sends. A click also selects, as ever: what is selected is edited, what is looked at is explained.
 */

import { cellAt } from "../buffers.js";
import { pointOn } from "../geometry.js";
import { tokenAt } from "../tokens.js";

/** Pixels around a chunk on its way within which it is touched. */
const REACH = 10;

/** @param {import("./inspector.js").Inspector} inspector */
export function listen(inspector) {
  const { canvas } = inspector;
  canvas.stage.cy.on("tap", (event) => {
    if (!listens(inspector)) return;
    // Cytoscape takes the focus from whatever has it when the pointer goes down.
    canvas.dom.root.focus({ preventScroll: true });
    inspector.look(touched(inspector, event));
  });
}

const listens = ({ open, canvas }) =>
  (open || (canvas.presenter.on && canvas.playback !== null)) && !canvas.stale && canvas.mode === "select";

/**
 * Look at what was touched of a device.
 * @param {import("./inspector.js").Inspector} inspector @param {string} name @param {import("../types.js").Point} p
 */
export function touchDevice(inspector, name, p) {
  if (listens(inspector)) inspector.look(tokenTouched(inspector.canvas, p) ?? onDevice(inspector, name, p));
}

/** What of the plan is at a place of the drawing; null of nothing. @returns {Partial<import("./plan.js").Focus> | null} */
function touched(inspector, { target, position }) {
  const { canvas, plan } = inspector;
  const token = tokenTouched(canvas, position);
  if (token) return token;
  if (target === canvas.stage.cy) return null;
  if (target.isEdge()) return linkAt(canvas, plan, { target, position });
  const name = target.data("name");
  if (target.hasClass("host")) return { host: name };
  if (target.hasClass("group")) return { host: canvas.shown.byKey.get(name)?.host ?? null };
  return onDevice(inspector, name, position);
}

function tokenTouched(canvas, p) {
  const token = tokenAt(canvas, p, REACH / canvas.stage.cy.zoom());
  return token && { chunk: token.chunk, transfer: canvas.playback.flights.indexOf(token) };
}

/** The chunk of a cell, or the rank. */
function onDevice({ canvas, plan }, name, p) {
  const chunk = cellAt(canvas, name, p);
  if (chunk !== null) return { chunk };
  return plan.rankOf.has(name) ? { rank: plan.rankOf.get(name) } : null;
}

/** The link whose lane is on the side of a line that was touched. @returns {{link: [string, string]} | null} */
function linkAt(canvas, plan, { target, position }) {
  const line = canvas.stage.lineOf(target.data("a"), target.data("b"));
  if (!line || line.parts) return null;
  if (!line.back) return { link: [line.a, line.b] };
  const curve = canvas.stage.curve(line);
  const far = (side) => {
    const each = Array.from({ length: 25 }, (_, i) => pointOn(curve, i / 24, side * curve.lane));
    return Math.min(...each.map(({ x, y }) => Math.hypot(x - position.x, y - position.y)));
  };
  const forth = far(1) <= far(-1);
  return { link: forth ? [line.a, line.b] : [line.b, line.a] };
}

/** Look at what is selected, for the keyboard. @param {import("./inspector.js").Inspector} inspector @returns {boolean} whether there is anything */
export function lookAtSelected(inspector) {
  const { selection } = inspector.canvas;
  const { plan } = inspector;
  const rank = selection.devices.map((name) => plan.rankOf.get(name)).find((each) => each !== undefined);
  const [link, host] = [selection.links[0], selection.hosts[0]];
  if (rank !== undefined) inspector.look({ rank });
  else if (link) inspector.look({ link });
  else if (host !== undefined) inspector.look({ host });
  else return false;
  return true;
}

/**
 * The keyboard in the charts: up and down among the rows, left and right among the sends of one, from
 * its title on. Enter looks at what one is at.
 */
export class Navigator {
  /** @param {import("./inspector.js").Inspector} inspector */
  constructor(inspector) {
    this.inspector = inspector;
    /** Which row, and which of its sends; -1 is its title. */
    this.row = 0;
    this.send = -1;
    const { element } = inspector.chart;
    element.addEventListener("keydown", (event) => this.#key(event));
    element.addEventListener("focus", () => this.#say());
    element.addEventListener("blur", () => inspector.chart.invalidate());
  }

  /** Other rows are shown. */
  reset() {
    this.row = 0;
    this.send = -1;
  }

  /** @returns {import("./plan.js").Sent | null} */
  get at() {
    return this.inspector.chart.rows[this.row]?.sends[this.send] ?? null;
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (!this.#does(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {string} key @returns {boolean} whether it was ours */
  #does(key) {
    const { inspector } = this;
    const { chart } = inspector;
    const page = Math.max(1, Math.floor(chart.element.clientHeight / 26));
    const rows = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page }[key];
    const sends = { ArrowLeft: -1, ArrowRight: 1 }[key];
    const zoom = { "+": 1.5, "=": 1.5, "-": 1 / 1.5 }[key];
    if (rows) this.#move(this.row + rows);
    else if (sends) this.#along(sends);
    else if (zoom) chart.zoom(zoom, this.at?.start ?? inspector.canvas.clock.time);
    else if (key === "0") chart.zoom(0, 0);
    else if (key === "Enter") this.#enter();
    else return key === "Escape" && inspector.clear();
    return true;
  }

  /** To another row, to the send there that is nearest in time. @param {number} row */
  #move(row) {
    const { rows } = this.inspector.chart;
    if (!rows.length) return;
    const { at } = this;
    this.row = Math.min(rows.length - 1, Math.max(0, row));
    if (at) this.send = nearest(rows[this.row].sends, at.start);
    this.#arrive();
  }

  /** @param {number} by */
  #along(by) {
    const row = this.inspector.chart.rows[this.row];
    if (!row) return;
    this.send = Math.min(row.sends.length - 1, Math.max(-1, this.send + by));
    this.#arrive();
  }

  #enter() {
    const { inspector, at } = this;
    const row = inspector.chart.rows[this.row];
    if (at) inspector.lookAtSend(at);
    else if (row) inspector.lookWithin(row.subject);
    this.#say();
  }

  #arrive() {
    const { chart } = this.inspector;
    chart.reveal(chart.rows[this.row]);
    chart.invalidate();
    this.#say();
  }

  /** Say where one is. */
  #say() {
    const { inspector, at } = this;
    const row = inspector.chart.rows[this.row];
    if (row) inspector.drawer.say(at ? inspector.sentence(at) : `${row.title}: ${row.sends.length} ${row.sends.length === 1 ? "send" : "sends"}`);
    inspector.chart.invalidate();
  }

  /** Be at a send that was clicked. @param {import("./plan.js").Sent} send */
  stepTo(send) {
    const { rows } = this.inspector.chart;
    const row = rows.findIndex(({ sends }) => sends.includes(send));
    if (row >= 0) Object.assign(this, { row, send: rows[row].sends.indexOf(send) });
  }
}

function nearest(sends, time) {
  let best = 0;
  sends.forEach(({ start }, k) => {
    if (Math.abs(start - time) < Math.abs(sends[best].start - time)) best = k;
  });
  return best;
}
