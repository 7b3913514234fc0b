/**
 * Notes and frames: texts on the drawing, and boxes with a title such as racks. They are saved with the
 * drawing and no solver knows them. They are dragged, typed into in place, and a frame is made larger by
 * its corner.
 *
 * @typedef {import("./types.js").Annotation} Annotation
 * @typedef {import("./types.js").Drawing} Drawing
 * @typedef {import("./types.js").Rect} Rect
 * @typedef {import("./types.js").Point} Point
 */

import { h } from "./dom.js";
import { grown, hullRect, overlap, within } from "./geometry.js";
import { EditError } from "./model.js";
import { FONT } from "./style.js";

/** Letters of a note and of the title of a frame, their lines and the room around them, in drawing units. */
const SIZE = 14;
const LINE = 19;
const PAD = { x: 9, y: 6 };
/** Width of a letter where there is nothing to measure it with. */
const LETTER = 0.56 * SIZE;
/** Pixels around the border of a frame and around its corner within which they are grabbed. */
const BORDER = 7;
const CORNER = 12;
/** The least side of a frame, its size where nothing is selected, and its room around what is. */
const LEAST = 40;
const USUAL = { width: 320, height: 220 };
const AROUND = { side: 12, top: 26 };
/** Pixels and milliseconds as of other clicks. */
const STILL = 4;
const DOUBLE = 350;

/** @param {Drawing} drawing @returns {Annotation[]} */
export const notesOf = (drawing) => drawing.annotations ?? [];

/** @param {Drawing} drawing @param {Annotation[]} annotations @returns {Drawing} */
function withNotes({ annotations: _, ...drawing }, annotations) {
  return annotations.length ? { ...drawing, annotations } : drawing;
}

/** @param {Drawing} drawing @param {Partial<Annotation> & {kind: "note" | "frame"}} note @returns {Drawing} */
export function addNote(drawing, { kind, text = "", x = 0, y = 0, width = 0, height = 0 }) {
  if (kind !== "note" && kind !== "frame") throw new EditError(`cannot add a ${kind}; there are note and frame`);
  const place = { x: Math.round(x), y: Math.round(y), width: Math.round(width), height: Math.round(height) };
  return withNotes(drawing, [...notesOf(drawing), { kind, text, ...place }]);
}

/** @param {Drawing} drawing @param {number} number @param {Partial<Annotation>} values @returns {Drawing} the same where nothing changes */
export function editNote(drawing, number, values) {
  const note = notesOf(drawing)[number];
  if (!note) throw new EditError(`there is no note ${number}; there are ${notesOf(drawing).length}`);
  if (Object.entries(values).every(([key, value]) => note[key] === value)) return drawing;
  return withNotes(drawing, notesOf(drawing).with(number, { ...note, ...values }));
}

/** @param {Drawing} drawing @param {number} number @returns {Drawing} */
export const removeNote = (drawing, number) => withNotes(drawing, notesOf(drawing).filter((_, i) => i !== number));

/** @param {Annotation} note @param {(text: string) => number} [wide] width of a line @returns {Rect} */
export function noteRect({ kind, text, x, y, width, height }, wide = (line) => line.length * LETTER) {
  const lines = text.split("\n");
  const w = kind === "frame" ? width : Math.max(24, ...lines.map(wide)) + 2 * PAD.x;
  const high = kind === "frame" ? height : lines.length * LINE + 2 * PAD.y;
  return { x1: x - w / 2, y1: y - high / 2, x2: x + w / 2, y2: y + high / 2 };
}

/**
 * The same at another place: folding brings devices nearer, and what stands beside them stays there.
 * @template {Partial<Annotation>} T
 * @param {T} note @param {(p: Point) => Point} to @returns {T}
 */
export function mapped(note, to) {
  const { kind, x = 0, y = 0, width = 0, height = 0 } = note;
  if (kind !== "frame") return { ...note, ...to({ x, y }) };
  const [p, q] = [to({ x: x - width / 2, y: y - height / 2 }), to({ x: x + width / 2, y: y + height / 2 })];
  return { ...note, x: (p.x + q.x) / 2, y: (p.y + q.y) / 2, width: Math.abs(q.x - p.x), height: Math.abs(q.y - p.y) };
}

/** A frame whose lower right corner moves. @param {Annotation} frame @param {Point} by @returns {Annotation} */
function resized({ x, y, ...frame }, by) {
  const [width, height] = [Math.max(LEAST, frame.width + by.x), Math.max(LEAST, frame.height + by.y)];
  return { ...frame, width, height, x: x + (width - frame.width) / 2, y: y + (height - frame.height) / 2 };
}

export class Notes {
  /** @param {import("./canvas.js").Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    /** Number of the one that is selected. @type {number | null} */
    this.selected = null;
    /** What is dragged: how, from where, and what the note was. @type {any} */
    this.drag = null;
    this.pen = /** @type {CanvasRenderingContext2D} */ (h("canvas").getContext("2d"));
    this.pen.font = `500 ${SIZE}px ${FONT}`;
    this.field = h("textarea", {
      rows: 1, spellcheck: "false", onkeydown: (event) => this.#onKey(event), onblur: () => this.#keep(), oninput: () => this.#grow(),
    });
    this.element = h("div", { class: "tl-note-field tl-float", hidden: true }, this.field);
  }

  /** @param {number} number @returns {Rect} as it is on the screen, mid-drag included */
  rect(number) {
    const note = this.drag?.number === number ? this.drag.now : this.#shown(number);
    return noteRect(note, (line) => this.pen.measureText(line).width);
  }

  /** One as it stands on the screen. @param {number} number @returns {Annotation} */
  #shown(number) {
    return mapped(notesOf(this.canvas.drawing)[number], this.canvas.shown.fromDrawing);
  }

  /** Rectangles of all, which have to be seen. @returns {Rect[]} */
  rects() {
    return notesOf(this.canvas.drawing).map((_, i) => this.rect(i));
  }

  /** @param {number | null} number */
  select(number) {
    if (number === this.selected) return;
    this.selected = number;
    if (number !== null) this.canvas.select({});
    this.canvas.redrawAll();
    const note = number === null ? null : notesOf(this.canvas.drawing)[number];
    if (note) this.canvas.say(`${note.kind === "note" ? "Note" : "Frame"} ${note.text || "without a title"}, selected`);
  }

  /** The next one, for the keyboard. */
  walk() {
    const count = notesOf(this.canvas.drawing).length;
    if (!count) throw new EditError("there is no note and no frame yet; E and X add one");
    this.select(((this.selected ?? -1) + 1) % count);
  }

  /** The drawing changed. */
  refresh() {
    if (this.selected !== null && !notesOf(this.canvas.drawing)[this.selected]) this.selected = null;
    if (this.open !== undefined && !notesOf(this.canvas.drawing)[this.open ?? 0]) this.#close();
  }

  // ---- commands ------------------------------------------------------------------------------------

  #check() {
    if (this.canvas.locked || this.canvas.mode === "sketch") throw new EditError("this view only shows; write on the drawing of the canvas");
  }

  /**
   * Add a note in the middle of the view, or a frame around what is selected; without a text it is typed.
   * @param {Partial<Annotation> & {kind: "note" | "frame", at?: [number, number]}} what
   */
  add({ at, ...what }) {
    this.#check();
    const { canvas } = this;
    const view = canvas.stage.cy.extent();
    const chosen = what.kind === "frame" && !at ? hullRect(canvas.stage.rectsOf(canvas.selection)) : null;
    const { side, top } = AROUND;
    const r = chosen && { ...grown(chosen, side), y1: chosen.y1 - top };
    const [x, y] = r ? [(r.x1 + r.x2) / 2, (r.y1 + r.y2) / 2] : at ?? [(view.x1 + view.x2) / 2, (view.y1 + view.y2) / 2];
    const size = what.kind === "note" ? {} : r ? { width: r.x2 - r.x1, height: r.y2 - r.y1 } : USUAL;
    canvas.commit(addNote(canvas.drawing, mapped({ x, y, ...size, ...what }, canvas.shown.toDrawing)));
    const number = notesOf(canvas.drawing).length - 1;
    this.select(number);
    if (what.text === undefined) this.type(number);
  }

  /** @param {number | null} number @param {Partial<Annotation>} values */
  edit(number, values) {
    this.#check();
    if (number === null) throw new EditError("no note is selected; A selects the next");
    this.canvas.commit(editNote(this.canvas.drawing, number, values));
  }

  /** @param {number} [number] */
  remove(number = this.selected ?? -1) {
    this.#check();
    this.canvas.commit(removeNote(this.canvas.drawing, number));
    this.selected = null;
    this.canvas.say("Deleted");
  }

  /** @param {number} dx @param {number} dy */
  nudge(dx, dy) {
    const { x, y } = notesOf(this.canvas.drawing)[/** @type {number} */ (this.selected)];
    this.edit(this.selected, { x: x + dx, y: y + dy });
  }

  /** Make a frame larger, or smaller. @param {number} dx @param {number} dy */
  resize(dx, dy) {
    const note = notesOf(this.canvas.drawing)[this.selected ?? -1];
    if (note?.kind !== "frame") throw new EditError("a note is as large as its text; select a frame to make it larger");
    this.edit(this.selected, resized(note, { x: dx, y: dy }));
  }

  // ---- typing --------------------------------------------------------------------------------------

  /** Type into one in place. @param {number | null} [number] */
  type(number = this.selected) {
    this.#check();
    if (number === null) throw new EditError("no note is selected; A selects the next");
    const note = notesOf(this.canvas.drawing)[number];
    this.open = number;
    this.field.value = note.text;
    this.field.setAttribute("aria-label", note.kind === "note" ? "Text of the note" : "Title of the frame");
    const { x1, y1 } = this.rect(number);
    const p = this.canvas.stage.toScreen({ x: x1, y: y1 });
    Object.assign(this.element.style, { left: `${Math.max(4, p.x)}px`, top: `${Math.max(4, p.y)}px` });
    this.element.hidden = false;
    this.#grow();
    this.field.focus({ preventScroll: true });
    this.field.select();
  }

  #grow() {
    const lines = this.field.value.split("\n");
    this.field.rows = lines.length;
    this.field.cols = Math.max(12, ...lines.map((line) => line.length + 2));
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    event.stopPropagation();
    if (event.key === "Escape") this.field.value = notesOf(this.canvas.drawing)[/** @type {number} */ (this.open)]?.text ?? "";
    else if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    this.#keep();
    this.canvas.dom.root.focus({ preventScroll: true });
  }

  /** What was typed is kept; a note without a text is none. */
  #keep() {
    const { open } = this;
    if (open === undefined) return;
    this.#close();
    const { drawing } = this.canvas;
    const text = this.field.value.trim();
    if (!text && notesOf(drawing)[open]?.kind === "note") this.remove(open);
    else this.canvas.commit(editNote(drawing, open, { text }));
  }

  #close() {
    this.open = undefined;
    this.element.hidden = true;
  }

  // ---- the pointer -----------------------------------------------------------------------------------

  listen() {
    const { stage } = this.canvas.dom;
    stage.addEventListener("pointerdown", (event) => this.#onDown(event), true);
    stage.addEventListener("pointermove", (event) => this.#onMove(event), true);
    for (const type of ["pointerup", "pointercancel"]) stage.addEventListener(type, () => this.#onUp(), true);
    for (const type of ["mousedown", "touchstart"]) {
      stage.addEventListener(type, (event) => this.drag && event.stopPropagation(), { capture: true, passive: true });
    }
    this.canvas.stage.cy.on("pan zoom resize", () => this.open !== undefined && this.#keep());
  }

  /** @param {PointerEvent} event @returns {Point} in the drawing */
  #point(event) {
    const box = this.canvas.dom.stage.getBoundingClientRect();
    return this.canvas.stage.toModel({ x: event.clientX - box.left, y: event.clientY - box.top });
  }

  /** The topmost at a point, and whether its corner is. @param {Point} p */
  hit(p) {
    const { stage, drawing } = this.canvas;
    const pixel = 1 / stage.cy.zoom();
    for (let i = notesOf(drawing).length - 1; i >= 0; i--) {
      const r = this.rect(i);
      const { kind } = notesOf(drawing)[i];
      const corner = kind === "frame" && Math.hypot(p.x - r.x2, p.y - r.y2) < CORNER * pixel;
      if (corner) return { number: i, corner };
      if (!within(grown(r, BORDER * pixel), p)) continue;
      const title = { ...r, y2: r.y1 + LINE + PAD.y };
      const inner = grown(r, -BORDER * pixel);
      const on = kind === "note" || within(title, p) || !within(inner, p);
      if (on && (kind === "note" || stage.deviceAt(p) === null)) return { number: i, corner: false };
    }
    return null;
  }

  /** @param {PointerEvent} event */
  #onDown(event) {
    const { canvas } = this;
    if (canvas.panels.has(event.target) || canvas.mode !== "select" || canvas.presenter.on) return;
    const p = this.#point(event);
    const hit = this.hit(p);
    this.select(hit ? hit.number : null);
    if (!hit || event.button !== 0 || canvas.locked) return;
    event.stopImmediatePropagation();
    canvas.dom.root.focus({ preventScroll: true });
    const now = this.#shown(hit.number);
    this.drag = { ...hit, at: p, from: now, now, screen: { x: event.clientX, y: event.clientY } };
    canvas.dom.stage.setPointerCapture?.(event.pointerId);
  }

  /** @param {PointerEvent} event */
  #onMove(event) {
    const { drag, canvas } = this;
    if (!drag) return;
    event.stopImmediatePropagation();
    const p = this.#point(event);
    const by = { x: p.x - drag.at.x, y: p.y - drag.at.y };
    const { from } = drag;
    drag.far ||= Math.hypot(event.clientX - drag.screen.x, event.clientY - drag.screen.y) > STILL;
    if (!drag.far) return;
    if (drag.corner) drag.now = resized(from, by);
    else {
      const [x, y] = canvas.snapping.placed([from.x + by.x, from.y + by.y]);
      drag.now = { ...from, x, y };
    }
    canvas.redrawAll();
  }

  #onUp() {
    const { drag, canvas } = this;
    if (!drag) return;
    this.drag = null;
    const now = performance.now();
    if (drag.far) {
      const to = mapped(drag.now, canvas.shown.toDrawing);
      const values = Object.fromEntries(["x", "y", "width", "height"].map((key) => [key, Math.round(to[key])]));
      canvas.commit(editNote(canvas.drawing, drag.number, values));
    } else if (this.last?.number === drag.number && now - this.last.now < DOUBLE) {
      setTimeout(() => canvas.alive && this.type(drag.number));
    }
    this.last = { number: drag.number, now };
    canvas.redrawAll();
  }

  // ---- drawing -----------------------------------------------------------------------------------------

  /** Frames beneath the graph. @param {CanvasRenderingContext2D} ctx in drawing units */
  drawFrames(ctx) {
    const { colors } = this.canvas;
    this.#each("frame", ctx, ({ x1, y1, x2, y2 }, note, chosen) => {
      ctx.beginPath();
      ctx.roundRect(x1, y1, x2 - x1, y2 - y1, 10);
      ctx.fillStyle = `${colors.relay}12`;
      ctx.fill();
      ctx.lineWidth = chosen ? 2.5 : 1.5;
      ctx.strokeStyle = chosen ? colors.accent : colors.relay;
      ctx.stroke();
      ctx.fillStyle = colors.text;
      ctx.fillText(note.text, x1 + PAD.x + 2, y1 + PAD.y + LINE / 2, x2 - x1 - 2 * PAD.x);
      if (!chosen) return;
      ctx.fillStyle = colors.accent;
      ctx.fillRect(x2 - 5, y2 - 5, 10, 10);
    });
  }

  /** Notes above it. @param {CanvasRenderingContext2D} ctx in drawing units */
  drawNotes(ctx) {
    const { colors } = this.canvas;
    this.#each("note", ctx, ({ x1, y1, x2, y2 }, note, chosen) => {
      ctx.beginPath();
      ctx.roundRect(x1, y1, x2 - x1, y2 - y1, 6);
      ctx.fillStyle = colors.raised;
      ctx.fill();
      ctx.lineWidth = chosen ? 2.5 : 1;
      ctx.strokeStyle = chosen ? colors.accent : colors.relay;
      ctx.stroke();
      ctx.fillStyle = colors.text;
      note.text.split("\n").forEach((line, i) => ctx.fillText(line, x1 + PAD.x, y1 + PAD.y + LINE * (i + 0.5)));
    });
  }

  /** Draw those of a kind that are in view. */
  #each(kind, ctx, draw) {
    const view = this.canvas.stage.cy.extent();
    ctx.font = `500 ${SIZE}px ${FONT}`;
    ctx.textAlign = "left";
    ctx.textBaseline = "middle";
    notesOf(this.canvas.drawing).forEach((note, i) => {
      const r = this.rect(i);
      if (note.kind === kind && i !== this.open && overlap(r, view)) draw(r, note, i === this.selected);
    });
  }
}
