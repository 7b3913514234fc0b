/**
 * A sketch over the drawing: links that are not to be used are dashed and faint, relays have a
 * ring. While it is drawn, a click or Enter picks a link or a GPU; the host of the canvas gets
 * it and has the sketch, so that nothing here changes the drawing.
 *
 * @typedef {import("./types.js").Sketch} Sketch
 * @typedef {import("./types.js").Line} Line
 */

import { run } from "./commands.js";
import { lineId } from "./elements.js";
import { endsOf, switchedOff } from "./folding.js";
import { centre, grown, trace } from "./geometry.js";
import { FRAME } from "./stage.js";
import { FONT, inkOn } from "./style.js";

/** Keys that do while a sketch is drawn what they do else: none of them edits the drawing. */
const OTHERS = { b: "labels", "#": "grid", f: "fit", z: "zoom_selection", h: "heat", o: "fold", t: "log", "?": "shortcuts" };
/** Picks that are sent again with the next one. */
const MOST_PICKS = 40;
/** Pixels that the card of the host takes. */
const CARD = 104;
const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

export class SketchView {
  /** @param {import("./canvas.js").Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    /** What the keyboard is at: a GPU, and a line at it. @type {{device: string | null, line: Line | null}} */
    this.at = { device: null, line: null };
    this.count = 0;
    /** @type {object[]} the last picks: one may come before the host has heard of those before */
    this.picks = [];
    /** The sketch that was being drawn when the canvas left it: the host may be late to hear. */
    this.ended = null;
    this.off = switchedOff(new Map(), []);
  }

  /** @returns {Sketch | null} */
  get #sketch() {
    return this.canvas.model.get("sketch") ?? null;
  }

  get on() {
    return this.canvas.mode === "sketch";
  }

  /** What a click on the graph means, and which ends of it the canvas hears of. */
  listen() {
    this.canvas.stage.cy.on("tap", "node.device, node.group, edge", ({ target }) => {
      if (!this.on) return;
      this.at = { device: null, line: null };
      // Cytoscape takes the focus from whatever has it when the pointer goes down.
      this.canvas.dom.root.focus({ preventScroll: true });
      if (target.isEdge()) this.#pickLine(this.canvas.stage.lineOf(target.data("a"), target.data("b")));
      else if (target.hasClass("group")) this.canvas.refuse("Double-click opens it, so that one of its GPUs can be chosen");
      else this.#pickDevice(target.data("name"));
    });
  }

  /** The sketch, the drawing, the folding or the mode changed. */
  refresh() {
    const { canvas } = this;
    const sketch = this.#sketch;
    const wanted = Boolean(sketch?.drawing) && sketch !== this.ended;
    if (wanted !== this.on) canvas.setMode(wanted ? "sketch" : "select");
    this.off = switchedOff(canvas.shown.lanes, sketch?.off ?? []);
    const [whole, part] = [this.off.whole, this.off.part].map((ids) => new Set([...ids].map(lineId)));
    const { cy } = canvas.stage;
    cy.batch(() => cy.edges().forEach((e) => {
      e.toggleClass("off", whole.has(e.id()));
      e.toggleClass("partly", part.has(e.id()));
    }));
    const { device, line } = this.at;
    if (device !== null && !canvas.deviceIndex.has(device)) this.at = { device: null, line: null };
    else if (line) this.at.line = canvas.shown.lines.find(({ id }) => id === line.id) ?? null;
  }

  /** Drawing began or ended: the card of the host needs room above the cluster. */
  turned() {
    const { stage } = this.canvas;
    const fitted = stage.isFitted;
    stage.frame = { ...FRAME, top: FRAME.top + (this.on ? CARD : 0) };
    if (fitted) this.canvas.fit();
    this.at = { device: null, line: null };
    // Where it was ended here, by a key or a tool, the host hears of it.
    if (this.on || !this.#sketch?.drawing) return;
    this.ended = this.#sketch;
    this.#pick({ done: true });
  }

  /** @param {object} what */
  #pick(what) {
    this.count += 1;
    this.picks = [...this.picks, { ...what, n: this.count }].slice(-MOST_PICKS);
    this.canvas.tell({ picked: { picks: this.picks, n: this.count } });
  }

  /** @param {string} name */
  #pickDevice(name) {
    const { canvas } = this;
    const { kind } = canvas.drawing.topology.devices[canvas.deviceIndex.get(name)];
    if (kind !== "gpu") canvas.refuse(`${name} is no GPU; GPUs are relays of their hosts`);
    else this.#pick({ device: name });
  }

  /** @param {Line} line */
  #pickLine(line) {
    if (line) this.#pick({ links: endsOf(line) });
  }

  // ---- the keyboard ------------------------------------------------------------------------------

  /**
   * Tab walks through the GPUs, arrows through the lines at the one that is chosen.
   * @param {KeyboardEvent} event @param {string} key @returns {boolean} whether it was ours
   */
  key(event, key) {
    const { canvas, at } = this;
    if (key === "Tab") return event.target === canvas.dom.root && this.#walk(event.shiftKey ? -1 : 1);
    if (STEPS[key]) this.#along(STEPS[key]);
    else if (key === "Escape") this.#back();
    else if (key === "Enter" || key === " ") {
      if (at.line) this.#pickLine(at.line);
      else if (at.device !== null) this.#pickDevice(at.device);
      else this.#walk(1);
    } else if (OTHERS[key]) run(canvas, OTHERS[key]);
    else if ("+=-".includes(key)) canvas.zoom(key === "-" ? 1 / 1.2 : 1.2);
    else return false;
    return true;
  }

  #back() {
    if (this.canvas.panels.closeAll()) return;
    if (this.at.line) this.#go({ device: this.at.device, line: null });
    else this.canvas.setMode("select");
  }

  /** @param {number} by @returns {boolean} whether there is a further GPU */
  #walk(by) {
    const gpus = this.canvas.shown.devices.filter((d) => d.kind === "gpu").map((d) => d.name);
    const next = gpus[this.at.device === null ? 0 : gpus.indexOf(this.at.device) + by];
    if (next === undefined) return false;
    this.#go({ device: next, line: null });
    this.canvas.stage.reveal(next);
    return true;
  }

  /** @param {number} by */
  #along(by) {
    const { device, line } = this.at;
    const lines = this.canvas.shown.lines.filter(({ a, b }) => device === null || a === device || b === device);
    if (!lines.length) return;
    const here = lines.findIndex(({ id }) => id === line?.id);
    const next = here < 0 ? (by > 0 ? 0 : lines.length - 1) : (here + by + lines.length) % lines.length;
    this.#go({ device, line: lines[next] });
  }

  /** @param {{device: string | null, line: Line | null}} at */
  #go(at) {
    this.at = at;
    this.canvas.say(this.#described(at));
    this.canvas.wake();
    this.canvas.redrawAll();
  }

  #described({ device, line }) {
    if (line) {
      const off = this.off.whole.has(line.id);
      return `Link ${line.a} to ${line.b}, ${off ? "off" : "in use"}: Enter switches it ${off ? "on" : "off"}`;
    }
    if (device === null) return "";
    const relay = this.#sketch?.relays[device] !== undefined;
    return `${device}${relay ? ", a relay" : ""}: Enter makes it ${relay ? "no relay" : "a relay of its host"}`;
  }

  // ---- drawing -----------------------------------------------------------------------------------

  /** @param {CanvasRenderingContext2D} ctx in drawing units */
  draw(ctx) {
    const { stage, colors } = this.canvas;
    for (const [name, count] of Object.entries(this.#sketch?.relays ?? {})) {
      const rect = stage.rect(name);
      if (!rect) continue;
      this.#ring(ctx, rect, { color: colors.relay, width: 3 });
      this.#badge(ctx, rect, `relay of ${count}`);
    }
    if (this.on) this.#focus(ctx);
  }

  #focus(ctx) {
    const { stage, colors } = this.canvas;
    const { device, line } = this.at;
    const curve = line && stage.curve(line);
    if (curve) {
      ctx.strokeStyle = colors.select;
      ctx.lineWidth = curve.width + 5;
      ctx.globalAlpha = 0.35;
      ctx.beginPath();
      trace(ctx, curve, 0);
      ctx.stroke();
      ctx.globalAlpha = 1;
    }
    const rect = device === null ? null : stage.rect(device);
    if (rect) this.#ring(ctx, grown(rect, 4), { color: colors.select, width: 2 });
  }

  #ring(ctx, rect, { color, width }) {
    const r = grown(rect, 3);
    ctx.beginPath();
    ctx.roundRect(r.x1, r.y1, r.x2 - r.x1, r.y2 - r.y1, 12);
    ctx.strokeStyle = color;
    ctx.lineWidth = width;
    ctx.stroke();
  }

  /** At the lower edge; what the marks say stands at the upper one. */
  #badge(ctx, rect, text) {
    const { colors } = this.canvas;
    const scale = Math.min(2, Math.max(1, 0.85 / this.canvas.stage.cy.zoom()));
    ctx.font = `700 ${10 * scale}px ${FONT}`;
    const [width, height] = [ctx.measureText(text).width + 12 * scale, 16 * scale];
    const { x } = centre(rect);
    ctx.beginPath();
    ctx.roundRect(x - width / 2, rect.y2 - height / 2 + 3, width, height, height / 2);
    ctx.fillStyle = colors.relay;
    ctx.fill();
    ctx.strokeStyle = colors.bg;
    ctx.lineWidth = 1.6;
    ctx.stroke();
    ctx.fillStyle = inkOn(colors.relay);
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    ctx.fillText(text, x, rect.y2 + 3.5);
  }
}
