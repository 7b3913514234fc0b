/**
 * Minimap: everything that is drawn in small, with a frame around what is in view. A press or a drag moves
 * the view there; a wheel over it zooms, arrows move the view while it has the focus.
 *
 * @typedef {import("./types.js").Rect} Rect
 * @typedef {import("./types.js").Point} Point
 */

import { h, wiped } from "./dom.js";
import { centre, grown, hullRect } from "./geometry.js";

/** Pixels of the map at most, and its margin. */
const MOST = { width: 190, height: 130 };
const MARGIN = 8;
/** Lines above which they are left out. */
const MOST_LINES = 3000;
/** Share of the view that an arrow moves it. */
const STEP = 0.25;
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/**
 * How a drawing lies in the map.
 * @param {Rect} box of all there is to see @param {{width: number, height: number}} most
 * @returns {{width: number, height: number, scale: number, x: number, y: number}} size, and where the drawing begins
 */
export function mapOf({ x1, y1, x2, y2 }, most = MOST) {
  const [w, high] = [Math.max(1, x2 - x1), Math.max(1, y2 - y1)];
  const scale = Math.min((most.width - 2 * MARGIN) / w, (most.height - 2 * MARGIN) / high);
  const size = { width: Math.round(w * scale + 2 * MARGIN), height: Math.round(high * scale + 2 * MARGIN) };
  return { ...size, scale, x: x1 - MARGIN / scale, y: y1 - MARGIN / scale };
}

export class Minimap {
  /** @param {import("./canvas.js").Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.on = false;
    this.dragging = false;
    this.ground = h("canvas");
    this.element = h("div", {
      class: "tl-minimap tl-float", hidden: true, tabindex: 0, role: "group",
      "aria-label": "Overview: arrows move the view",
      onpointerdown: (event) => this.#press(event),
      onpointermove: (event) => this.dragging && this.#go(event),
      onpointerup: () => (this.dragging = false),
      onpointercancel: () => (this.dragging = false),
      onkeydown: (event) => this.#key(event),
    }, this.ground);
    for (const type of ["mousedown", "touchstart"]) this.element.addEventListener(type, (event) => event.stopPropagation());
  }

  /** @param {boolean} on */
  turn(on) {
    this.on = on;
    this.element.hidden = !on;
    this.canvas.panels.refresh();
    this.canvas.redrawAll();
    this.canvas.say(on ? "The overview is shown" : "The overview is hidden");
  }

  /** Draw it anew; what is drawn and the view changed. */
  draw() {
    const { stage, colors, shown } = this.canvas;
    if (!this.on) return;
    const items = [...shown.devices.map((d) => [d.name, d.kind]), ...shown.groups.map(({ key }) => [key, "gpu"])];
    const rects = items.map(([name, kind]) => ({ rect: stage.rect(name), kind })).filter(({ rect }) => rect);
    const all = hullRect(rects.map(({ rect }) => rect));
    this.element.toggleAttribute("data-empty", !all);
    if (!all) return;
    const map = mapOf(grown(all, 20));
    this.map = map;
    Object.assign(this.ground.style, { width: `${map.width}px`, height: `${map.height}px` });
    const ctx = wiped(this.ground);
    ctx.scale(map.scale, map.scale);
    ctx.translate(-map.x, -map.y);
    this.#drawLines(ctx);
    for (const { rect, kind } of rects) {
      ctx.fillStyle = colors[kind];
      ctx.fillRect(rect.x1, rect.y1, rect.x2 - rect.x1, rect.y2 - rect.y1);
    }
    const { x1, y1, x2, y2 } = stage.cy.extent();
    ctx.strokeStyle = colors.select;
    ctx.lineWidth = 1.5 / map.scale;
    ctx.strokeRect(x1, y1, x2 - x1, y2 - y1);
  }

  #drawLines(ctx) {
    const { stage, colors, shown } = this.canvas;
    if (shown.lines.length > MOST_LINES) return;
    ctx.beginPath();
    for (const { a, b } of shown.lines) {
      const [from, to] = [stage.rect(a), stage.rect(b)].map((r) => r && centre(r));
      if (!from || !to) continue;
      ctx.moveTo(from.x, from.y);
      ctx.lineTo(to.x, to.y);
    }
    ctx.globalAlpha = 0.5;
    ctx.strokeStyle = colors.link;
    ctx.lineWidth = 0.8 / this.map.scale;
    ctx.stroke();
    ctx.globalAlpha = 1;
  }

  /** @param {PointerEvent} event */
  #press(event) {
    if (event.button) return;
    this.dragging = true;
    this.element.setPointerCapture(event.pointerId);
    this.#go(event);
  }

  /** The middle of the view goes to where the pointer is. @param {PointerEvent} event */
  #go(event) {
    if (!this.map) return;
    const box = this.ground.getBoundingClientRect();
    const { scale, x, y } = this.map;
    this.centreOn({ x: (event.clientX - box.left) / scale + x, y: (event.clientY - box.top) / scale + y });
  }

  /** @param {Point} p in the drawing */
  centreOn(p) {
    const { cy } = this.canvas.stage;
    cy.pan({ x: cy.width() / 2 - p.x * cy.zoom(), y: cy.height() / 2 - p.y * cy.zoom() });
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const arrow = ARROWS[event.key];
    if (!arrow || event.ctrlKey || event.metaKey || event.altKey) return;
    const { cy } = this.canvas.stage;
    cy.panBy({ x: -arrow[0] * STEP * cy.width(), y: -arrow[1] * STEP * cy.height() });
    event.preventDefault();
    event.stopPropagation();
  }
}
