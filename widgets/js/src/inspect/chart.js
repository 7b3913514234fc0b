/**
 * The charts of the drawer: bars over time and cells over epochs side by side, with one set of rows.
 * Rows that are not seen are not drawn, and while the film plays only the cursors move.
 *
 * @typedef {import("./rows.js").Row} Row
 */

import { h, wiped } from "../dom.js";
import { FONT } from "../style.js";
import { short } from "../units.js";
import { Span, barAt, barOf, drawGantt } from "./gantt.js";
import { cellAt, columnsIn, drawGrid, widthFor } from "./grid.js";
import { heightOf, rowAt, seen, ticks } from "./rows.js";

/** Pixels of the line with the names of the charts and of the axis below it. */
const AXIS = 36;
/** Pixels between the two charts, and at the right. */
const GAP = 22;
const NO_PATH = new Map();

export class Chart {
  /** @param {import("./inspector.js").Inspector} inspector */
  constructor(inspector) {
    this.inspector = inspector;
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.heads = h("div", { class: "tl-in-heads" });
    this.veil = h("i", { class: "tl-in-veil" });
    this.cursor = h("i", { class: "tl-in-cursor" });
    this.plot = h("div", { class: "tl-in-plot", "aria-hidden": "true" }, this.veil, this.cursor);
    this.column = h("i", { class: "tl-in-column", "aria-hidden": "true" });
    this.view = h("div", { class: "tl-in-view" }, this.canvas, this.plot, this.column, this.heads);
    this.sizer = h("div", { class: "tl-in-sizer" }, this.view);
    this.element = h("div", {
      class: "tl-in-charts", tabindex: 0, role: "group", "aria-describedby": inspector.hintId,
      "aria-label": "Sends over time and over epochs",
    }, this.sizer);
    /** µs that are shown; null is all. @type {[number, number] | null} */
    this.window = null;
    /** @type {Row[]} */
    this.rows = [];
    this.dirty = true;
    /** How often it was painted: not while only the cursors move. */
    this.painted = 0;
    this.element.addEventListener("scroll", () => this.invalidate());
    this.resized = new ResizeObserver(() => this.invalidate());
    this.resized.observe(this.element);
  }

  destroy() {
    this.resized.disconnect();
  }

  /** What is shown changed: paint in the next frame. */
  invalidate() {
    this.dirty = true;
    this.inspector.canvas.wake();
  }

  /** @param {Row[]} rows */
  show(rows) {
    this.rows = rows;
    this.headWidth = this.#titleWidth();
    this.sizer.style.height = `${AXIS + heightOf(rows) + 6}px`;
    this.element.scrollTop = 0;
    this.invalidate();
  }

  // ---- where things are ------------------------------------------------------------------------

  /**
   * Measure; everything else goes by what this finds. Only here the page is asked for its layout, which it
   * would have to find anew in every frame.
   * @returns {boolean} whether there is anything to be seen
   */
  #measure() {
    const { clientWidth: width, clientHeight: height } = this.element;
    if (!width) return false;
    const { plan } = this.inspector;
    const head = Math.min(this.headWidth, width * 0.26);
    this.view.style.height = `${height}px`;
    const room = Math.max(80, width - head - 2 * GAP);
    const grid = widthFor(plan.columns, room);
    this.frame = { width, height, head, gantt: { x: head + 8, width: room - grid }, grid: { x: head + 8 + room - grid + GAP, width: grid } };
    const [from, to] = this.window ?? [0, plan.makespan];
    this.span = new Span(from, to, this.frame.gantt);
    this.page = null;
    return true;
  }

  /** Pixels from the top of the view to that of the first row. */
  get shift() {
    return AXIS - this.element.scrollTop;
  }

  /** The width that the longest of the titles needs. */
  #titleWidth() {
    const ctx = this.canvas.getContext("2d");
    ctx.font = `500 11px ${FONT}`;
    const longest = this.rows.reduce((most, { title }) => (title.length > most.length ? title : most), "");
    return Math.max(64, ctx.measureText(longest).width + 20);
  }

  // ---- painting --------------------------------------------------------------------------------

  /** Called in each frame in which something moved. @param {number} time µs */
  draw(time) {
    this.#follow(time);
    if (this.dirty && !this.#measure()) return;
    this.dirty = false;
    const columns = this.#columnsAt(time);
    if (this.page?.first !== columns.first) this.#paint(columns);
    this.#cursors(time, columns);
  }

  /** Move the window with the film where it shows a part of it. */
  #follow(time) {
    if (!this.window || !this.inspector.canvas.clock.playing) return;
    const [from, to] = this.window;
    if (time >= from && time <= to) return;
    const { makespan } = this.inspector.plan;
    const start = Math.max(0, Math.min(makespan - (to - from), time));
    this.window = [start, start + to - from];
    this.dirty = true;
  }

  #columnsAt(time) {
    const { plan } = this.inspector;
    return columnsIn(this.frame.grid, { columns: plan.columns, current: plan.columnAt(time) });
  }

  #paint(columns) {
    this.page = columns;
    const { inspector, frame } = this;
    const { colors, chunkColors } = inspector.canvas;
    const ctx = wiped(this.canvas);
    const { scrollTop } = this.element;
    const picture = {
      ctx, rows: this.rows, shift: this.shift, colors, chunkColors,
      range: seen(this.rows, scrollTop, scrollTop + frame.height - AXIS),
      match: inspector.match, chosen: inspector.chosen, picked: this.element.matches(":focus") ? inspector.navigator.at : null,
      critical: inspector.marked ? inspector.plan.critical : NO_PATH,
    };
    ctx.save();
    this.#ground(ctx, picture.range);
    this.#clip(ctx, frame.gantt);
    drawGantt(picture, this.span);
    ctx.restore();
    ctx.save();
    this.#clip(ctx, frame.grid);
    drawGrid(picture, columns);
    ctx.restore();
    this.#axes(ctx, columns);
    this.#titles(picture.range);
    this.plot.style.cssText = `left:${frame.gantt.x}px;width:${frame.gantt.width}px;top:${AXIS - 4}px`;
    this.painted += 1;
  }

  #clip(ctx, { x, width }) {
    ctx.beginPath();
    ctx.rect(x - 3, AXIS - 2, width + 6, this.frame.height);
    ctx.clip();
  }

  /** Rows told apart, and the lines of the axis behind the bars. */
  #ground(ctx, [from, to]) {
    const { colors } = this.inspector.canvas;
    const { gantt } = this.frame;
    ctx.beginPath();
    ctx.rect(0, AXIS, this.frame.width, this.frame.height);
    ctx.clip();
    ctx.fillStyle = colors.empty;
    ctx.globalAlpha = 0.4;
    for (let r = from; r < to; r++) {
      const row = this.rows[r];
      ctx.fillRect(gantt.x, this.shift + row.top + 1, gantt.width, row.height - 2);
    }
    ctx.globalAlpha = 0.8;
    ctx.fillStyle = colors.line;
    for (const time of this.#ticks()) ctx.fillRect(Math.round(this.span.place(time)), AXIS, 1, this.frame.height);
    ctx.globalAlpha = 1;
  }

  #ticks() {
    return ticks(this.span.from, this.span.to, Math.floor(this.frame.gantt.width / 52));
  }

  #axes(ctx, columns) {
    const { plan, canvas: { colors } } = this.inspector;
    const { gantt, grid } = this.frame;
    ctx.textBaseline = "alphabetic";
    ctx.textAlign = "left";
    ctx.font = `640 11px ${FONT}`;
    ctx.fillStyle = colors.text;
    ctx.fillText("Time", gantt.x, 13);
    const title = plan.planned ? "Planned epochs" : "Steps";
    ctx.fillText(title, grid.x, 13);
    const wide = ctx.measureText(title).width;
    const timeWide = ctx.measureText("Time").width;
    ctx.font = `11px ${FONT}`;
    ctx.fillStyle = colors.dim;
    ctx.fillText("µs", gantt.x + timeWide + 5, 13);
    const part = columns.count < plan.columns ? `${columns.first}–${columns.first + columns.count - 1} of ${plan.columns}` : plan.planned ? "" : "of the player";
    if (ctx.measureText(part).width + wide + 5 < grid.width) ctx.fillText(part, grid.x + wide + 5, 13);
    ctx.font = `10px ${FONT}`;
    for (const time of this.#ticks()) {
      const x = this.span.place(time);
      ctx.textAlign = x < gantt.x + 8 ? "left" : x > gantt.x + gantt.width - 10 ? "right" : "center";
      ctx.fillText(short(time), x, AXIS - 8);
    }
    const every = Math.ceil(20 / columns.each);
    ctx.textAlign = "center";
    for (let k = 0; k < columns.count; k += every) {
      ctx.fillText(String(columns.first + k), columns.x + (k + 0.5) * columns.each, AXIS - 8);
    }
  }

  /** Titles are elements, so that they can be read, clicked and found by name. */
  #titles([from, to]) {
    const { inspector, frame, heads } = this;
    while (heads.childElementCount > to - from) heads.lastChild.remove();
    while (heads.childElementCount < to - from) heads.append(h("button", { type: "button", tabindex: -1 }, h("span")));
    heads.style.top = `${AXIS}px`;
    for (let r = from; r < to; r++) {
      const row = this.rows[r];
      // Changed in place: one that is being clicked has to stay.
      const button = heads.children[r - from];
      button.firstChild.textContent = row.title;
      button.title = row.title;
      button.dataset.row = r;
      button.toggleAttribute("data-at", r === inspector.navigator.row && inspector.navigator.send < 0);
      button.setAttribute("aria-pressed", String(inspector.isLookedAt(row.subject)));
      button.style.cssText = `top:${this.shift + row.top - AXIS}px;height:${row.height}px;width:${frame.head}px`;
    }
  }

  /** The only thing that changes while the film plays. */
  #cursors(time, columns) {
    const { gantt } = this.frame;
    const x = this.span.place(time) - gantt.x;
    this.cursor.style.transform = `translateX(${x}px)`;
    this.veil.style.transform = `translateX(${Math.max(0, x)}px)`;
    const current = this.inspector.plan.columnAt(time) - columns.first;
    const place = `${current} ${columns.first} ${columns.each} ${columns.x}`;
    if (this.columnShown === place) return;
    this.columnShown = place;
    this.column.style.cssText = `top:${AXIS - 20}px;left:${columns.x + current * columns.each - 1}px;width:${columns.each + 1}px`;
  }

  // ---- what the pointer and the keys ask -------------------------------------------------------

  /** @param {PointerEvent | WheelEvent} event @returns {import("../types.js").Point} in the view */
  local(event) {
    const box = this.view.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  /**
   * What is at a place of the view.
   * @param {import("../types.js").Point} p
   * @returns {{row: Row | null, send: import("./plan.js").Sent | null, time: number} | null} with the time to
   *   which a click there goes; null beside the charts
   */
  at({ x, y }) {
    if (!this.frame || !this.page) return null;
    const { gantt, grid } = this.frame;
    const top = y - this.shift;
    const inRow = y >= AXIS && this.rows.length > 0 && top < heightOf(this.rows);
    const row = inRow ? this.rows[rowAt(this.rows, top)] : null;
    if (x >= gantt.x - 3 && x <= gantt.x + gantt.width + 3) {
      const time = this.span.time(x);
      const send = row && barAt(row, { time, y: top - row.top, slack: 2.5 / this.span.scale });
      return { row, send, time };
    }
    if (x < grid.x || x > this.page.x + this.page.count * this.page.each) return null;
    const { plan } = this.inspector;
    if (!row) {
      const column = this.page.first + Math.min(this.page.count - 1, Math.floor((x - grid.x) / this.page.each));
      return { row, send: null, time: plan.columnStarts[column] };
    }
    const cell = cellAt(row, this.page, { x, y: top - row.top, match: this.inspector.match });
    return cell && { row, send: cell.send, time: plan.columnStarts[cell.column] };
  }

  /** Scroll to a row that is not seen: as little as shows it, or so that its neighbours are seen too. @param {Row} row */
  reveal(row, { amid = false } = {}) {
    const room = this.element.clientHeight - AXIS - 8;
    const { scrollTop } = this.element;
    const above = row.top < scrollTop;
    if (!above && row.top + row.height <= scrollTop + room) return;
    if (amid) this.element.scrollTop = row.top - room / 4;
    else this.element.scrollTop = above ? row.top : row.top + row.height - room;
  }

  /** Show more or less of the time around a moment. @param {number} factor above 1 shows less @param {number} around µs */
  zoom(factor, around) {
    const { makespan } = this.inspector.plan;
    const [from, to] = this.window ?? [0, makespan];
    const width = Math.min(makespan, Math.max(makespan / 2000, (to - from) / factor));
    const share = (around - from) / Math.max(1e-12, to - from);
    this.#setWindow(around - share * width, width);
  }

  /** @param {number} by µs */
  pan(by) {
    if (this.window) this.#setWindow(this.window[0] + by, this.window[1] - this.window[0]);
  }

  #setWindow(from, width) {
    const { makespan } = this.inspector.plan;
    const start = Math.max(0, Math.min(makespan - width, from));
    this.window = width >= makespan * (1 - 1e-9) ? null : [start, start + width];
    this.invalidate();
  }

  /** Where a send's bar is on the page, for whoever has to point at it. @param {import("./plan.js").Sent} send */
  placeOf(send) {
    const bar = barOf({ rows: this.rows, shift: this.shift }, this.span, send);
    const box = this.view.getBoundingClientRect();
    return bar && { x: box.left + bar.x + bar.width / 2, y: box.top + bar.y + bar.height / 2, width: bar.width };
  }
}
