/**
 * Presenter mode: the drawing, the clock and the caption on the whole screen, in large type. Arrows go
 * from step to step, the bound and the answer can be hidden until they are asked for, and links that the
 * plan never uses are left out. The drawing cannot be edited meanwhile; leaving it, all is as it was.
 *
 * @typedef {import("./canvas.js").Canvas} Canvas
 */

import { run } from "./commands.js";
import { h, iconButton } from "./dom.js";
import { lineId } from "./elements.js";
import { Laser } from "./laser.js";

/** How much larger the type is. */
export const TYPE = 1.6;
/** Room around the drawing for what floats over it, in pixels. */
const AROUND = { top: 92, side: 48, bottom: 58 };
/** Set on the page's element, so that a host can put away what is its own. */
export const PAGE_MARK = "data-topoloom-presenting";

const QUESTION = "What is the least time? Where is the cut?";

/** Icon, title and command of each button. */
const TOOLS = [
  ["answer", "Hide the bound and the answer (B)", "hide_answer"],
  ["laser", "Laser pointer (X)", "laser"],
  ["follow", "Follow the chunk that is looked at (W)", "follow"],
  ["unused", "Leave out links that the plan never uses (U)", "only_used"],
  ["close", "Leave presenter mode (Esc)", "present"],
];

/** What single keys do; all others do nothing, as the drawing is not edited. @type {Record<string, string>} */
const KEYS = {
  p: "present", Escape: "present", b: "hide_answer", x: "laser", u: "only_used", w: "follow",
  " ": "toggle", f: "fit", h: "heat", "?": "shortcuts",
};

/** By how many steps of the plan, or phases, a key goes; those who hold a remote control send pages. */
const STEPS = {
  ArrowRight: [1, "step"], ArrowLeft: [-1, "step"], PageDown: [1, "step"], PageUp: [-1, "step"],
  ".": [1, "step"], ",": [-1, "step"], ArrowDown: [1, "phase"], ArrowUp: [-1, "phase"],
};

/** Lines that none of the sends crosses, by id. @param {import("./types.js").Shown} shown @param {{key: string}[]} flights */
export function unusedLines({ lines, lanes }, flights) {
  const used = new Set(flights.map(({ key }) => lanes.get(key)?.line.id));
  return lines.map(({ id }) => id).filter((id) => !used.has(id));
}

/** Fill the screen with an element, or the window where a page may not take the screen. @param {HTMLElement} root */
async function fillScreen(root) {
  try {
    await root.requestFullscreen();
  } catch {
    // Above all of the page, whatever the element lies in.
    root.setAttribute("popover", "manual");
    root.showPopover?.();
  }
}

/** @param {HTMLElement} root */
async function leaveScreen(root) {
  root.removeAttribute("popover");
  if (document.fullscreenElement === root) await document.exitFullscreen();
}

export class Presenter {
  /** @param {Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.on = false;
    /** Whether the bound and the answer are hidden. */
    this.hiding = false;
    this.onlyUsed = true;
    this.laser = new Laser(canvas.dom.root);
    this.question = h("div", { class: "tl-question", hidden: true }, QUESTION);
    this.buttons = Object.fromEntries(TOOLS.map(([icon, title, command]) => [
      icon, iconButton(icon, title, () => {
        run(canvas, command);
        canvas.dom.root.focus({ preventScroll: true });
      }),
    ]));
    this.tools = h("div", { class: "tl-presenter", role: "toolbar", "aria-label": "Presenter", hidden: true }, ...Object.values(this.buttons));
    this.onScreen = () => {
      if (this.full && !document.fullscreenElement && this.on) this.turn(false);
    };
    document.addEventListener("fullscreenchange", this.onScreen);
  }

  get elements() {
    return [this.question, this.tools, this.laser.element];
  }

  destroy() {
    document.removeEventListener("fullscreenchange", this.onScreen);
    if (this.on) document.documentElement.removeAttribute(PAGE_MARK);
  }

  /** @param {boolean} on */
  turn(on) {
    const { canvas } = this;
    if (on === this.on) return;
    if (on && canvas.dom.root.closest(".tlp")) {
      canvas.refuse("two schedules in step are not presented; open one of them on the canvas");
      return;
    }
    this.on = on;
    if (on) this.#enter();
    else this.#leave();
    canvas.say(on ? "Presenter mode: arrows step, B hides the answer, Esc leaves" : "Presenter mode has ended");
  }

  #enter() {
    const { canvas } = this;
    const { cy } = canvas.stage;
    this.before = {
      zoom: cy.zoom(), pan: { ...cy.pan() }, fitted: canvas.stage.isFitted, mode: canvas.mode,
      focus: canvas.inspector.focus, heat: canvas.heat, heatOf: canvas.heatOf,
    };
    if (canvas.mode !== "select") canvas.setMode("select");
    canvas.hovered = null;
    canvas.panels.showTip();
    this.#dress(true);
    // Its keys work from wherever it was begun.
    canvas.dom.root.focus({ preventScroll: true });
    fillScreen(canvas.dom.root).then(() => {
      this.full = document.fullscreenElement === canvas.dom.root;
      if (this.on) canvas.fit();
      else leaveScreen(canvas.dom.root);
    });
  }

  #leave() {
    const { canvas, before } = this;
    const { stage } = canvas;
    this.laser.turn(false);
    Object.assign(this, { hiding: false, onlyUsed: true, full: false });
    this.#dress(false);
    leaveScreen(canvas.dom.root);
    if (canvas.inspector.focus !== before.focus) canvas.inspector.look(before.focus);
    canvas.setHeat(before.heat, before.heatOf);
    if (before.mode !== canvas.mode) canvas.setMode(before.mode);
    stage.cy.resize();
    if (before.fitted) canvas.fit();
    else stage.cy.viewport({ zoom: before.zoom, pan: before.pan });
    canvas.dom.root.focus({ preventScroll: true });
  }

  /** Put panels away or back. @param {boolean} on */
  #dress(on) {
    const { canvas } = this;
    const { stage, dom, timeline } = canvas;
    document.documentElement.toggleAttribute(PAGE_MARK, on);
    dom.root.toggleAttribute("data-presenting", on);
    stage.cy.autoungrabify(on);
    stage.cy.autounselectify(on);
    stage.frame = on ? AROUND : canvas.panels.frame;
    stage.magnify(on);
    timeline.scale = on ? TYPE : 1;
    timeline.refresh();
    this.tools.hidden = !on;
    this.#show();
  }

  /** @param {boolean} on */
  hide(on) {
    if (!this.on) return;
    this.hiding = on;
    this.#show();
    this.canvas.say(on ? QUESTION : "The bound and the answer are shown");
  }

  /** @param {boolean} on */
  useOnly(on) {
    if (!this.on) return;
    this.onlyUsed = on;
    this.#show();
    this.canvas.say(on ? "Links that the plan never uses are left out" : "All links are shown");
  }

  /** @param {boolean} on */
  point(on) {
    if (!this.on) return;
    this.laser.turn(on);
    this.#show();
  }

  #show() {
    const { canvas, buttons } = this;
    this.question.hidden = !this.hiding;
    const pressed = { answer: this.hiding, laser: this.laser.on, unused: this.onlyUsed };
    for (const [name, on] of Object.entries(pressed)) buttons[name].setAttribute("aria-pressed", String(on));
    canvas.cutView.refresh();
    this.refresh();
    canvas.redrawAll();
  }

  /** Another plan or another drawing, or a chunk is followed: leave out the links that the plan never uses. */
  refresh() {
    const { canvas } = this;
    const { playback, stage, shown } = canvas;
    this.buttons.follow.setAttribute("aria-pressed", String(canvas.following?.on ?? false));
    const some = this.on && this.onlyUsed && playback && !canvas.stale;
    stage.leaveOut(some ? new Set(unusedLines(shown, playback.flights).map(lineId)) : null);
  }

  /** @param {string} key @returns {boolean} whether it was ours */
  key(key) {
    const { canvas } = this;
    const zoom = { "+": 1.2, "=": 1.2, "-": 1 / 1.2 }[key];
    if (key === "Escape" && canvas.panels.closeAll()) return true;
    if (zoom) canvas.zoom(zoom);
    else if (STEPS[key]) this.#step(STEPS[key]);
    else if (KEYS[key]) run(canvas, KEYS[key]);
    else if (key === "Home") canvas.transport.seek(0);
    else if (key === "End") canvas.transport.seek(canvas.clock.end);
    else return false;
    return true;
  }

  /** @param {[number, string]} how */
  #step([by, of]) {
    const { playback } = this.canvas;
    run(this.canvas, "step", { by, of: of === "phase" && playback?.phases.length ? "phase" : "step" });
  }
}
