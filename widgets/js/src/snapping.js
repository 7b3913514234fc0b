/**
 * Snapping: what is dragged stops on the lines of other devices, which are drawn while it lies on them, and
 * on a grid where that is turned on. Alt or Ctrl while dragging turns it off.
 *
 * @typedef {import("./types.js").Rect} Rect
 * @typedef {import("./types.js").Point} Point
 * @typedef {{axis: "x" | "y", at: number, from: number, to: number}} Guide
 */

import { centre, hullRect } from "./geometry.js";

/** Side of a cell of the grid, in drawing units. */
export const GRID = 20;
/** Pixels within which a line is snapped to, and a guide reaches beyond what it joins. */
const REACH = 6;
const BEYOND = 14;
/** Pixels between two lines of the grid from which it is drawn. */
const FINEST = 9;

/**
 * How far a rectangle is from lying in line with others: its edges with their edges, its middle with their
 * middles.
 * @param {Rect} rect @param {Rect[]} others @param {number} reach @returns {{x: number, y: number, on: {x: boolean, y: boolean}}}
 */
export function shiftToLines(rect, others, reach) {
  const along = (axis) => {
    let best = null;
    for (const other of others) {
      for (const [i, line] of linesOf(other, axis).entries()) {
        const by = line - linesOf(rect, axis)[i];
        if (Math.abs(by) <= reach && (best === null || Math.abs(by) < Math.abs(best))) best = by;
      }
    }
    return best;
  };
  const [x, y] = [along("x"), along("y")];
  return { x: x ?? 0, y: y ?? 0, on: { x: x !== null, y: y !== null } };
}

/** Lines of a rectangle across an axis: its middle and its two edges. @param {Rect} r @param {"x" | "y"} axis */
const linesOf = (r, axis) => [centre(r)[axis], r[`${axis}1`], r[`${axis}2`]];

/** The lines that a rectangle shares with others. @param {Rect} rect @param {Rect[]} others @returns {Guide[]} */
export function guidesOf(rect, others) {
  /** @type {Map<string, Guide>} */
  const guides = new Map();
  for (const axis of /** @type {const} */ (["x", "y"])) {
    const cross = axis === "x" ? "y" : "x";
    for (const other of others) {
      for (const [i, at] of linesOf(rect, axis).entries()) {
        if (Math.abs(linesOf(other, axis)[i] - at) > 0.5) continue;
        const key = `${axis}${i}`;
        const have = guides.get(key) ?? { axis, at, from: rect[`${cross}1`], to: rect[`${cross}2`] };
        guides.set(key, { ...have, from: Math.min(have.from, other[`${cross}1`]), to: Math.max(have.to, other[`${cross}2`]) });
      }
    }
  }
  return clearest([...guides.values()]);
}

/** Middles tell enough: edges are dropped where the middle of the same axis is shared. @param {Guide[]} guides */
function clearest(guides) {
  const axes = ["x", "y"].map((axis) => guides.filter((guide) => guide.axis === axis));
  return axes.flatMap((list) => (list.length === 3 ? list.slice(0, 1) : list));
}

/** @param {number} value */
const toGrid = (value) => Math.round(value / GRID) * GRID;

export class Snapping {
  /** @param {import("./canvas.js").Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.grid = false;
    /** @type {Guide[]} */
    this.guides = [];
    /** What is being dragged: where all stood, and how far it was moved off the pointer. @type {any} */
    this.drag = null;
  }

  /** @param {boolean} on */
  turn(on) {
    this.grid = on;
    this.canvas.dom.root.toggleAttribute("data-grid", on);
    this.canvas.panels.refresh();
    this.canvas.redrawAll();
    this.canvas.say(on ? "Devices snap to the grid" : "The grid is off");
  }

  listen() {
    const { cy } = this.canvas.stage;
    cy.on("grab", "node", (event) => this.#start(event.target));
    cy.on("drag", "node", (event) => this.#moved(event.originalEvent));
    cy.on("free", "node", () => {
      this.drag = null;
      this.guides = [];
      this.canvas.redrawAll();
    });
  }

  /** A place on the grid, if that is on. @param {[number, number]} place @returns {[number, number]} */
  placed([x, y]) {
    return this.grid ? [toGrid(x), toGrid(y)] : [x, y];
  }

  /** How far a key moves what stands at a place: on the grid to its next line. @param {[number, number]} place @param {[number, number]} by @returns {[number, number]} */
  stride(place, by) {
    if (!this.grid) return by;
    const along = (at, way) => (way ? toGrid(at + Math.sign(way) * GRID) - at : 0);
    return [along(place[0], by[0]), along(place[1], by[1])];
  }

  /** Show on which lines of others devices lie that a key has moved, until it is let go. @param {string[]} names */
  guide(names) {
    const { stage, dom } = this.canvas;
    const moving = new Set(names);
    const rectsIn = (wanted) => stage.cy.nodes(".device, .group").map((node) => node.data("name")).filter(wanted).map((name) => stage.rect(name));
    const now = hullRect(rectsIn((name) => moving.has(name)));
    if (!now) return;
    const { x1, y1, x2, y2 } = stage.cy.extent();
    this.guides = guidesOf(now, rectsIn((name) => !moving.has(name)).filter((r) => r.x1 < x2 && r.x2 > x1 && r.y1 < y2 && r.y2 > y1));
    dom.root.addEventListener("keyup", () => {
      this.guides = [];
      this.canvas.redrawAll();
    }, { once: true });
  }

  #start(node) {
    if (this.drag) return;
    const nodes = this.canvas.stage.cy.nodes(".device, .group");
    this.drag = { node, from: new Map(nodes.map((n) => [n, { ...n.position() }])), off: { x: 0, y: 0 }, moving: null, done: false };
  }

  /** @param {MouseEvent | undefined} event */
  #moved(event) {
    const { drag } = this;
    // Every device of a group reports the same move.
    if (!drag || drag.done) return;
    drag.done = true;
    queueMicrotask(() => (drag.done = false));
    drag.moving ??= this.#movingNodes(drag);
    const free = event?.altKey || event?.ctrlKey || event?.metaKey;
    const { rects, others } = this.#rects(drag);
    if (!rects.length) return;
    const { x, y } = drag.off;
    const now = /** @type {Rect} */ (hullRect(rects));
    const pointed = { x1: now.x1 - x, y1: now.y1 - y, x2: now.x2 - x, y2: now.y2 - y };
    const off = free ? { x: 0, y: 0 } : this.#offset(pointed, others, drag);
    const by = { x: off.x - x, y: off.y - y };
    if (by.x || by.y) for (const node of drag.moving) node.position({ x: node.position().x + by.x, y: node.position().y + by.y });
    drag.off = off;
    const at = { x1: now.x1 + by.x, y1: now.y1 + by.y, x2: now.x2 + by.x, y2: now.y2 + by.y };
    this.guides = free ? [] : guidesOf(at, others);
    this.canvas.redrawAll();
  }

  /** Those that the first move has moved. */
  #movingNodes({ from }) {
    return [...from].filter(([node, { x, y }]) => node.position().x !== x || node.position().y !== y).map(([node]) => node);
  }

  /** Rectangles of what is dragged, and of the others that are in view. */
  #rects({ from, moving }) {
    const { stage } = this.canvas;
    const view = stage.cy.extent();
    const rectOf = (node) => /** @type {Rect} */ (stage.rect(node.data("name")));
    const inView = (r) => r.x1 < view.x2 && r.x2 > view.x1 && r.y1 < view.y2 && r.y2 > view.y1;
    const set = new Set(moving);
    const others = [...from.keys()].filter((node) => !set.has(node)).map(rectOf);
    return { rects: moving.map(rectOf), others: others.filter(inView) };
  }

  /** How far to move off the pointer. @param {Rect} pointed @param {Rect[]} others */
  #offset(pointed, others, { moving, off }) {
    const lines = shiftToLines(pointed, others, REACH / this.canvas.stage.cy.zoom());
    if (!this.grid) return { x: lines.x, y: lines.y };
    const { x, y } = moving[0].position();
    const toNext = (value) => toGrid(value) - value;
    return { x: lines.on.x ? lines.x : toNext(x - off.x), y: lines.on.y ? lines.y : toNext(y - off.y) };
  }

  // ---- drawing -------------------------------------------------------------------------------------

  /** @param {CanvasRenderingContext2D} ctx in drawing units */
  drawGuides(ctx) {
    const zoom = this.canvas.stage.cy.zoom();
    ctx.strokeStyle = this.canvas.colors.relay;
    ctx.lineWidth = 1.2 / zoom;
    for (const { axis, at, from, to } of this.guides) {
      const [start, end] = [from - BEYOND / zoom, to + BEYOND / zoom];
      ctx.beginPath();
      ctx.moveTo(axis === "x" ? at : start, axis === "x" ? start : at);
      ctx.lineTo(axis === "x" ? at : end, axis === "x" ? end : at);
      ctx.stroke();
    }
  }

  /** @param {CanvasRenderingContext2D} ctx in drawing units */
  drawGrid(ctx) {
    const { cy } = this.canvas.stage;
    const zoom = cy.zoom();
    if (!this.grid) return;
    const step = GRID * Math.max(1, 2 ** Math.ceil(Math.log2(FINEST / (GRID * zoom))));
    const { x1, y1, x2, y2 } = cy.extent();
    ctx.strokeStyle = this.canvas.colors.dot;
    ctx.lineWidth = 1 / zoom;
    ctx.beginPath();
    for (let x = Math.floor(x1 / step) * step; x <= x2; x += step) {
      ctx.moveTo(x, y1);
      ctx.lineTo(x, y2);
    }
    for (let y = Math.floor(y1 / step) * step; y <= y2; y += step) {
      ctx.moveTo(x1, y);
      ctx.lineTo(x2, y);
    }
    ctx.stroke();
  }
}
