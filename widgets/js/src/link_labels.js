/**
 * Labels of links: their bandwidth beside the line, with a halo, where there is room between devices and
 * other labels; none where names could not be read either.
 *
 * @typedef {import("./types.js").Line} Line
 * @typedef {import("./types.js").Rect} Rect
 */

import { grown, overlap, pointOn, rectOf } from "./geometry.js";
import { hostNameRect } from "./pointing.js";
import { FONT } from "./style.js";
import { digits } from "./units.js";

/** Zooms below which there are none, and none with a unit. */
const FARTHEST = 0.45;
const WITH_UNIT = 0.8;
/** Pixels of a letter's height, of the shortest line with a label and of one with a unit, too. */
const SIZE = 10.5;
const SHORTEST = 34;
const LONG = 80;
/** Places along a line that are tried. */
const PLACES = [0.5, 0.43, 0.57, 0.36, 0.64, 0.29, 0.71, 0.22, 0.78];
/** Pixels of a cell in which what is taken is looked up. */
const CELL = 80;

/** What is taken of the screen. */
export class Taken {
  constructor() {
    /** @type {Map<string, Rect[]>} */
    this.cells = new Map();
  }

  /** @param {Rect} rect */
  add(rect) {
    for (const key of cellsOf(rect)) this.cells.set(key, [...(this.cells.get(key) ?? []), rect]);
  }

  /** @param {Rect} rect */
  hits(rect) {
    return cellsOf(rect).some((key) => this.cells.get(key)?.some((other) => overlap(other, rect)));
  }
}

/** @param {Rect} rect */
function cellsOf({ x1, y1, x2, y2 }) {
  const keys = [];
  for (let i = Math.floor(x1 / CELL); i <= Math.floor(x2 / CELL); i++) {
    for (let j = Math.floor(y1 / CELL); j <= Math.floor(y2 / CELL); j++) keys.push(`${i} ${j}`);
  }
  return keys;
}

/** What a line says: `50`, `4 × 25`, and `50 / 25` where the ways differ. @param {Line} line @param {boolean} unit */
export function labelOf({ forth, back, parts }, unit) {
  const figure = ({ bandwidth, count }) => (count > 1 && !parts ? `${count} × ${digits(bandwidth / count)}` : digits(bandwidth));
  const [there, again] = [figure(forth), back ? figure(back) : null];
  const text = again === null || again === there ? there : `${there} / ${again}`;
  return unit ? `${text} GB/s` : text;
}

export class LinkLabels {
  /** @param {import("./canvas.js").Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.on = false;
    /** How many are on the screen. */
    this.count = 0;
    /** @type {Map<string, number>} */
    this.widths = new Map();
  }

  /** @param {boolean} on */
  turn(on) {
    this.on = on;
    this.canvas.panels.refresh();
    this.canvas.redrawAll();
    this.canvas.say(on ? "Bandwidths are shown" : "Bandwidths are hidden");
  }

  /** @param {CanvasRenderingContext2D} ctx in drawing units */
  draw(ctx) {
    this.count = 0;
    const { stage, colors } = this.canvas;
    const zoom = stage.cy.zoom();
    if (!this.on || zoom < FARTHEST) return;
    ctx.save();
    ctx.font = `600 ${SIZE / zoom}px ${FONT}`;
    Object.assign(ctx, {
      textAlign: "center", textBaseline: "middle", lineJoin: "round", lineWidth: 4 / zoom, strokeStyle: colors.bg, fillStyle: colors.text,
    });
    for (const { text, x, y } of this.#placed(ctx, zoom)) {
      ctx.strokeText(text, x, y);
      ctx.fillText(text, x, y);
      this.count += 1;
    }
    ctx.restore();
  }

  /** Labels that find room, with their places in the drawing. */
  #placed(ctx, zoom) {
    const { stage, shown } = this.canvas;
    const view = stage.cy.extent();
    const taken = new Taken();
    for (const { x1, y1, x2, y2 } of this.#covered().filter((rect) => overlap(rect, view))) {
      taken.add({ x1: x1 * zoom, y1: y1 * zoom, x2: x2 * zoom, y2: y2 * zoom });
    }
    const labels = [];
    for (const line of shown.lines) {
      const curve = stage.shape(line);
      // The short pieces of a link that closes a row have no room for any.
      const length = curve && stage.routeOf(line) !== "stubs" ? curve.length * zoom : 0;
      if (length < SHORTEST) continue;
      const text = labelOf(line, zoom >= WITH_UNIT && length >= LONG);
      const half = this.#width(ctx, text, zoom) / 2 + 2;
      const fits = (p) => overlap(grown(rectOf(p), 1), view) && !taken.hits(labelRect(p.x * zoom, p.y * zoom, half));
      const free = PLACES.map((t) => pointOn(curve, t)).find(fits);
      if (!free) continue;
      taken.add(labelRect(free.x * zoom, free.y * zoom, half));
      labels.push({ text, ...free });
    }
    return labels;
  }

  /** Boxes of devices and folded hosts, and the names above open hosts. @returns {Rect[]} */
  #covered() {
    const { stage, shown } = this.canvas;
    const boxes = [...shown.devices.map((d) => d.name), ...shown.groups.map(({ key }) => key)];
    const names = [...stage.rooms.keys()].map((host) => hostNameRect(stage, host));
    return [...boxes.map((name) => stage.rect(name)), ...names].filter(Boolean);
  }

  /** Width of a text in pixels. */
  #width(ctx, text, zoom) {
    if (!this.widths.has(text)) this.widths.set(text, ctx.measureText(text).width * zoom);
    return /** @type {number} */ (this.widths.get(text));
  }
}

const labelRect = (x, y, half) => ({ x1: x - half, x2: x + half, y1: y - SIZE * 0.7, y2: y + SIZE * 0.7 });
