/**
 * Canvas layers above and below the graph, each redrawn only when what it shows has changed:
 * regions beneath, their borders, buffers and link load above, moving chunks and the half-made link
 * on top.
 */

import { drawArrivals, drawCells } from "./buffers.js";
import { h } from "./dom.js";
import { centre, grown } from "./geometry.js";
import { HOST_FONT, LARGE_HOST_FONT } from "./names.js";
import { FONT } from "./style.js";
import { drawPulses } from "./sums.js";
import { drawHeat, drawTokens } from "./tokens.js";

/** Milliseconds between two pictures of the buffers while playing; the eye needs no more. */
const CELLS_EVERY = 80;

/** Milliseconds after the last step of a pan at which the layers, shifted until then, are drawn anew. */
const SETTLES = 140;

/** Names smaller than so many pixels are left out. */
const LEAST_FONT = 5;
/** Pixels that names of hosts and pods should have from afar, and the size up to which they grow for that. */
const WANTED_FONT = 9;
const MOST_FONT = 36;

export class Overlay {
  /** @param {import("./canvas.js").Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    const layer = (name) => h("canvas", { class: `tl-layer tl-${name}`, "aria-hidden": "true" });
    this.layers = {
      regions: layer("regions"), borders: layer("borders"), cells: layer("cells"), tokens: layer("tokens"),
    };
    this.moved = true;
    /** Whether nothing but how strongly links are seen has changed. */
    this.faded = false;
    /** Where the view was when all was drawn, and when what moves was. */
    this.drawnAt = { x: 0, y: 0 };
    this.tokensAt = { x: 0, y: 0 };
    this.cellsShown = "";
    /** How many arrivals the last picture of the buffers has. */
    this.cellsNext = 0;
    this.cellsAt = 0;
    /** How many chunks were in flight in the last picture. */
    this.tokens = 0;
  }

  /** Everything has to be drawn anew: the view, the graph or the theme changed. */
  invalidate() {
    this.moved = true;
  }

  /** Links step back, or come forth again: what is drawn of them above the graph does, too. */
  refade() {
    this.faded = true;
    this.canvas.wake();
  }

  /** The view was panned: what is drawn is shifted until it stands still. */
  pan() {
    clearTimeout(this.settling);
    this.settling = setTimeout(() => {
      if (!this.canvas.alive) return;
      this.canvas.stage.settle();
      this.canvas.redrawAll();
    }, SETTLES);
  }

  /** Nothing but the view moved: shift what was drawn to where it is now. */
  shift() {
    this.#shift();
    if (this.moved) return this.draw(performance.now());
    const { x, y } = this.canvas.stage.cy.pan();
    shifted(this.layers.tokens.style, x - this.tokensAt.x, y - this.tokensAt.y);
    return undefined;
  }

  /** What is drawn anew only when something moves on it. */
  #shift() {
    const { stage, cutView } = this.canvas;
    const { x, y } = stage.cy.pan();
    // Buffers that fill are drawn anew all the time, where they are.
    this.moved ||= this.canvas.clock.playing && (x !== this.drawnAt.x || y !== this.drawnAt.y);
    if (this.moved) this.drawnAt = { x, y };
    const [dx, dy] = [x - this.drawnAt.x, y - this.drawnAt.y];
    const { regions, borders, cells } = this.layers;
    for (const { style } of [regions, borders, cells, ...cutView.labels]) shifted(style, dx, dy);
  }

  /** @param {number} now milliseconds, the clock of the page */
  draw(now) {
    const { canvas } = this;
    this.#shift();
    if (this.moved) {
      canvas.cutView.place();
      this.#clear(this.layers.regions, (ctx) => {
        canvas.snapping.drawGrid(ctx);
        drawPods(ctx, canvas);
        canvas.notes.drawFrames(ctx);
        canvas.cutView.drawGround(ctx);
      });
      canvas.minimap.draw();
    }
    if (this.moved || this.faded) this.#clear(this.layers.borders, (ctx) => drawBorders(ctx, canvas));
    const shown = this.cellsNext;
    if (this.moved || this.#cellsChanged(now)) {
      const onlyMore = !this.moved && !canvas.heat && shown <= canvas.buffers.next;
      this.#clear(this.layers.cells, (ctx) => {
        drawHeat(ctx, canvas);
        // The load lies above the links, and the hops of what is looked at above the load.
        if (canvas.heat) canvas.inspector.path.draw(ctx);
        if (onlyMore) drawArrivals(ctx, canvas, shown);
        else drawCells(ctx, canvas);
        canvas.inspector.path.drawCells(ctx);
      }, { keep: onlyMore });
      this.cellsNext = canvas.buffers?.next ?? 0;
    }
    this.tokensAt = { ...canvas.stage.cy.pan() };
    shifted(this.layers.tokens.style, 0, 0);
    this.#clear(this.layers.tokens, (ctx) => {
      drawPulses(ctx, canvas);
      this.tokens = drawTokens(ctx, canvas);
      drawGesture(ctx, canvas);
    });
    this.moved = false;
    this.faded = false;
  }

  /** Whether the buffers or the load look different from what is on the screen. */
  #cellsChanged(now) {
    const { playback, buffers, clock, heat } = this.canvas;
    if (!playback) return false;
    if (clock.playing && now - this.cellsAt < CELLS_EVERY) return false;
    buffers.seek(clock.time);
    const shown = `${buffers.next} ${heat ? (this.canvas.contrast ?? playback).epochAt(clock.time) : ""}`;
    if (shown === this.cellsShown) return false;
    this.cellsShown = shown;
    this.cellsAt = now;
    return true;
  }

  /** Empty a layer unless what is on it is kept, set it to drawing units, and draw. */
  #clear(element, draw, { keep = false } = {}) {
    const { stage, dom } = this.canvas;
    const ratio = Math.min(2, devicePixelRatio || 1);
    const [width, height] = [dom.stage.clientWidth, dom.stage.clientHeight].map((v) => Math.round(v * ratio));
    if (element.width !== width || element.height !== height) Object.assign(element, { width, height });
    const ctx = element.getContext("2d");
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    if (!keep) ctx.clearRect(0, 0, width, height);
    const { x, y } = stage.cy.pan();
    const zoom = stage.cy.zoom();
    ctx.setTransform(zoom * ratio, 0, 0, zoom * ratio, x * ratio, y * ratio);
    draw(ctx);
  }
}

/** @param {CSSStyleDeclaration} style @param {number} dx @param {number} dy pixels */
function shifted(style, dx, dy) {
  style.translate = dx || dy ? `${dx}px ${dy}px` : "";
}

/** What lies above the graph and stands still. */
function drawBorders(ctx, canvas) {
  canvas.stage.drawDots(ctx);
  canvas.cutView.drawWires(ctx);
  drawHostNames(ctx, canvas);
  canvas.markView.draw(ctx);
  canvas.sketchView.draw(ctx);
  canvas.cutView.drawBorders(ctx);
  canvas.inspector.path.draw(ctx);
  canvas.linkLabels.draw(ctx);
  canvas.notes.drawNotes(ctx);
  canvas.finding.draw(ctx);
  canvas.snapping.drawGuides(ctx);
}

/** Names of hosts above their boxes, with a halo: cytoscape would draw them beneath the links. */
function drawHostNames(ctx, { stage, colors }) {
  const hosts = [...stage.rooms.keys()].map((host) => ({ host, ...stage.hostRect(host) }));
  const size = hostSize(ctx, stage, hosts);
  if (size * stage.cy.zoom() < LEAST_FONT) return;
  ctx.font = `600 ${size}px ${FONT}`;
  ctx.textAlign = "center";
  ctx.textBaseline = "alphabetic";
  ctx.lineJoin = "round";
  ctx.lineWidth = size / 2.4;
  ctx.strokeStyle = colors.bg;
  ctx.fillStyle = colors.dim;
  for (const { host, x1, x2, y1 } of hosts) {
    ctx.strokeText(host, (x1 + x2) / 2, y1 - 7);
    ctx.fillText(host, (x1 + x2) / 2, y1 - 7);
  }
}

/** Size of the names of hosts: the farther away, the larger, unless the longest would be wider than its box. */
function hostSize(ctx, stage, hosts) {
  const sizes = stage.large ? LARGE_HOST_FONT : HOST_FONT;
  ctx.font = `600 100px ${FONT}`;
  const room = hosts.map(({ host, x1, x2 }) => (100 * (x2 - x1)) / ctx.measureText(host).width);
  return Math.max(sizes[0], Math.min(fromAfar(stage, sizes), ...room));
}

/** Size that names of hosts and pods are wished to have. @param {import("./stage.js").Stage} stage @param {number[]} sizes */
const fromAfar = (stage, sizes) => Math.max(sizes[stage.distance], Math.min(MOST_FONT, WANTED_FONT / stage.cy.zoom()));

/** Quiet frames of racks and pods, with their names. */
function drawPods(ctx, { stage, colors }) {
  const size = fromAfar(stage, stage.large ? LARGE_HOST_FONT : HOST_FONT);
  ctx.font = `600 ${size}px ${FONT}`;
  ctx.textAlign = "left";
  ctx.textBaseline = "alphabetic";
  ctx.lineWidth = 1.2;
  for (const { title, below, rect: { x1, y1, x2, y2 } } of stage.podFrames()) {
    ctx.beginPath();
    ctx.roundRect(x1, y1, x2 - x1, y2 - y1, 18);
    ctx.fillStyle = colors.box;
    ctx.globalAlpha = 0.72;
    ctx.fill();
    ctx.globalAlpha = 1;
    ctx.strokeStyle = colors.boxLine;
    ctx.stroke();
    ctx.fillStyle = colors.dim;
    ctx.fillText(title, x1 + 8, below ? y2 + size + 3 : y1 - 7);
  }
}

/** The ports of the device under the pointer, and the link that is being drawn. */
function drawGesture(ctx, canvas) {
  const { pull, hovered, stage, colors, mode } = canvas;
  if (pull) {
    const from = stage.rect(pull.from);
    const over = pull.over && stage.rect(pull.over);
    if (!from) return;
    const to = over ? nearestPort(stage.ports(pull.over), centre(from)) : pull.to;
    ring(ctx, from, colors);
    if (over) ring(ctx, over, colors);
    if (!to) return;
    const a = nearestPort(stage.ports(pull.from), to);
    ctx.beginPath();
    ctx.moveTo(a.x, a.y);
    ctx.lineTo(to.x, to.y);
    ctx.lineWidth = 2.6;
    ctx.strokeStyle = colors.accent;
    ctx.setLineDash([7, 5]);
    ctx.stroke();
    ctx.setLineDash([]);
    return;
  }
  if (!hovered?.device) return;
  if (mode === "link") {
    const rect = stage.rect(hovered.device);
    if (rect) ring(ctx, rect, colors);
    return;
  }
  stage.ports(hovered.device).forEach((port, i) => {
    ctx.beginPath();
    ctx.arc(port.x, port.y, i === hovered.port ? 7.5 : 4.2, 0, 2 * Math.PI);
    ctx.fillStyle = colors.accent;
    ctx.fill();
    ctx.strokeStyle = colors.bg;
    ctx.lineWidth = 1.5;
    ctx.stroke();
  });
}

/** @param {import("./types.js").Point[]} ports @param {import("./types.js").Point} p */
const nearestPort = (ports, p) =>
  ports.reduce((best, port) => (Math.hypot(port.x - p.x, port.y - p.y) < Math.hypot(best.x - p.x, best.y - p.y) ? port : best));

function ring(ctx, rect, colors) {
  const r = grown(rect, 4);
  ctx.beginPath();
  ctx.roundRect(r.x1, r.y1, r.x2 - r.x1, r.y2 - r.y1, 12);
  ctx.strokeStyle = colors.accent;
  ctx.lineWidth = 2.6;
  ctx.stroke();
}
