/**
 * Path of a chunk on the cluster: arrows along its links, numbered in the order of time, with how long
 * it waited where; a link, a rank or a host that is looked at has a frame. The rest fades.
 */

import { chunkCell } from "../buffers.js";
import { lineId } from "../elements.js";
import { centre, grown, pointOn, trace } from "../geometry.js";
import { endsKey } from "../model.js";
import { FONT, inkOn, vivid } from "../style.js";
import { duration } from "../units.js";

/** Numbers on one line, and sends of a path of which the order can be read on the cluster. */
const MOST_NUMBERS = 2;
const MOST_NUMBERED = 120;

export class PathView {
  /** @param {import("./inspector.js").Inspector} inspector */
  constructor(inspector) {
    this.inspector = inspector;
    this.refresh();
  }

  /** What is looked at, the drawing or the folding changed. */
  refresh() {
    const { inspector } = this;
    const { canvas, focus, match } = inspector;
    this.sides = new Map();
    this.waits = new Map();
    /** Lines that something looked at runs along; null where nothing is. @type {Set<string> | null} */
    this.used = null;
    if (!canvas.shown) return;
    if (focus && inspector.plan && !canvas.stale) {
      const { plan, chosen } = inspector;
      const chunk = focus.chunk;
      const sends = chunk !== null ? plan.pathOf(chunk) : match ? plan.sends.filter(match) : [chosen];
      this.numbered = chunk !== null || !match;
      this.count = sends.length;
      sends.forEach((send, k) => this.#lay(send, k));
      this.used = new Set([...this.sides.values()].map(({ line }) => lineId(line.id)));
    }
    canvas.refade();
  }

  #lay(send, k) {
    const lane = this.inspector.canvas.shown.lanes.get(endsKey(send.src, send.dst));
    if (!lane) return;
    const key = `${lane.line.id}${lane.forth}`;
    const side = this.sides.get(key) ?? { ...lane, numbers: [], chosen: false };
    side.numbers.push(k + 1);
    side.chosen ||= send === this.inspector.chosen;
    this.sides.set(key, side);
    if (!send.wait) return;
    const known = this.waits.get(send.src) ?? [];
    this.waits.set(send.src, [...known, send.wait]);
  }

  /** Which lines step back, by id; null where none does. @returns {((id: string) => boolean) | null} */
  get faded() {
    const { used } = this;
    return used && ((id) => !used.has(id));
  }

  /** Whether what is on its way belongs to what is looked at; null where all does. */
  get match() {
    const { focus, match } = this.inspector;
    if (!focus || this.inspector.canvas.stale) return null;
    return focus.chunk === null ? match : ({ chunk }) => chunk === focus.chunk;
  }

  /** @param {CanvasRenderingContext2D} ctx in drawing units */
  draw(ctx) {
    const { inspector } = this;
    const { canvas, focus } = inspector;
    if (!this.used) return;
    const color = this.#color(focus);
    if (this.numbered || focus.link) for (const side of this.sides.values()) this.#arrow(ctx, side, color);
    if (focus.rank !== null) this.#frame(ctx, canvas.stage.rect(this.#home(inspector.plan.ranks[focus.rank])), 9);
    if (focus.host !== null) this.#frame(ctx, canvas.stage.hostRect(focus.host), 18);
    if (!this.numbered || this.count > MOST_NUMBERED) return;
    for (const side of this.sides.values()) this.#number(ctx, side, color);
    for (const [name, waits] of this.waits) this.#wait(ctx, name, waits);
  }

  /** A device, or the box that it is folded into. @param {string} name */
  #home(name) {
    return this.inspector.canvas.shown.home.get(name) ?? name;
  }

  #color({ chunk }) {
    const { canvas, chosen } = this.inspector;
    const of = chunk ?? (this.numbered ? chosen.chunk : null);
    return of === null ? canvas.colors.accent : vivid(canvas.chunkColors[of], canvas.theme);
  }

  /** Frames around the cell of a chunk in every buffer; drawn above the cells. @param {CanvasRenderingContext2D} ctx */
  drawCells(ctx) {
    const { canvas, focus } = this.inspector;
    if (!this.used || focus.chunk === null) return;
    ctx.strokeStyle = canvas.colors.select;
    ctx.lineWidth = 1.4;
    ctx.beginPath();
    for (const name of canvas.buffers.levels.keys()) {
      const cell = chunkCell(canvas, name, focus.chunk);
      if (cell) ctx.roundRect(cell.x - 1, cell.y - 1, cell.width + 2, cell.height + 2, 1.5);
    }
    ctx.stroke();
  }

  #aside({ line, forth }, curve) {
    return line.back ? (forth ? 1 : -1) * Math.max(2, curve.width / 4 + 1) : 0;
  }

  #at(side, curve) {
    return (share) => pointOn(curve, side.forth ? share : 1 - share, this.#aside(side, curve));
  }

  #arrow(ctx, side, color) {
    const curve = this.inspector.canvas.stage.curve(side.line);
    if (!curve) return;
    const at = this.#at(side, curve);
    ctx.lineCap = "round";
    ctx.lineJoin = "round";
    for (const [stroke, wide] of [[this.inspector.canvas.colors.bg, 3], [color, 0]]) {
      ctx.strokeStyle = stroke;
      ctx.lineWidth = (side.chosen ? 5 : 3.4) + wide;
      ctx.beginPath();
      trace(ctx, curve, this.#aside(side, curve), side.forth ? [0.02, 0.97] : [0.03, 0.98]);
      head(ctx, at(0.97), at(0.9), 9);
      ctx.stroke();
    }
  }

  #number(ctx, side, color) {
    const curve = this.inspector.canvas.stage.curve(side.line);
    if (!curve) return;
    const { numbers } = side;
    const more = numbers.length - MOST_NUMBERS;
    const text = numbers.slice(0, MOST_NUMBERS).join(", ") + (more > 0 ? ` +${more}` : "");
    // Paths that run against each other keep their numbers apart.
    const { x, y } = this.#at(side, curve)(0.42);
    this.#pill(ctx, { x, y, text, fill: color, ink: inkOn(color), size: side.chosen ? 12.5 : 11 });
  }

  #wait(ctx, name, waits) {
    const { canvas } = this.inspector;
    const rect = canvas.stage.rect(this.#home(name));
    if (!rect) return;
    const longest = Math.max(...waits);
    const most = waits.some((each) => each < longest * 0.999) ? "≤ " : "";
    const text = `waits ${most}${duration(longest)}`;
    this.#pill(ctx, { x: centre(rect).x, y: rect.y2 + 7, text, fill: canvas.colors.memory, ink: inkOn(canvas.colors.memory), size: 10 });
  }

  #pill(ctx, { x, y, text, fill, ink, size }) {
    const { canvas } = this.inspector;
    const scale = Math.min(1.8, Math.max(1, 0.85 / canvas.stage.cy.zoom()));
    ctx.font = `700 ${size * scale}px ${FONT}`;
    const height = (size + 6) * scale;
    const width = Math.max(height, ctx.measureText(text).width + 9 * scale);
    ctx.beginPath();
    ctx.roundRect(x - width / 2, y - height / 2, width, height, height / 2);
    ctx.fillStyle = fill;
    ctx.fill();
    ctx.strokeStyle = canvas.colors.bg;
    ctx.lineWidth = 1.6 * scale;
    ctx.stroke();
    ctx.fillStyle = ink;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    ctx.fillText(text, x, y + 0.6);
  }

  #frame(ctx, rect, radius) {
    if (!rect) return;
    const r = grown(rect, 4);
    ctx.beginPath();
    ctx.roundRect(r.x1, r.y1, r.x2 - r.x1, r.y2 - r.y1, radius + 4);
    ctx.strokeStyle = this.inspector.canvas.colors.accent;
    ctx.lineWidth = 3;
    ctx.stroke();
  }
}

/** Two strokes of an arrow's head at `tip`. */
function head(ctx, tip, from, size) {
  const angle = Math.atan2(tip.y - from.y, tip.x - from.x);
  for (const side of [-1, 1]) {
    ctx.moveTo(tip.x, tip.y);
    ctx.lineTo(tip.x - size * Math.cos(angle + side * 0.5), tip.y - size * Math.sin(angle + side * 0.5));
  }
}
