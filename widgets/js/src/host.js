/**
 * The host of a canvas: a model with anywidget's contract, whose changes the canvas follows, in a page
 * with a theme and a size. `PlainModel` is the smallest such model.
 */

import { run } from "./commands.js";
import { h } from "./dom.js";

/** @typedef {import("./canvas.js").Canvas} Canvas */

/**
 * Listen to the host and to the page.
 * @param {Canvas} canvas
 * @param {Record<string, () => void>} listeners by the name of the value that changes
 * @returns {() => void} what ends it
 */
export function follow(canvas, listeners) {
  const { model } = canvas;
  for (const [name, listener] of Object.entries(listeners)) model.on(`change:${name}`, listener);
  const errors = showErrors(canvas);
  const onTheme = () => {
    canvas.applyTheme();
    errors.refresh();
  };
  const watcher = new MutationObserver(onTheme);
  watcher.observe(document.documentElement, {
    attributes: true, attributeFilter: ["data-mantine-color-scheme"],
  });
  watcher.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", onTheme);
  const resized = followSize(canvas);
  return () => {
    for (const [name, listener] of Object.entries(listeners)) model.off(`change:${name}`, listener);
    system.removeEventListener("change", onTheme);
    watcher.disconnect();
    resized.disconnect();
    errors.end();
  };
}

/** @param {Canvas} canvas */
function followSize(canvas) {
  const { stage } = canvas.dom;
  let shown = false;
  const resized = new ResizeObserver(() => {
    // A host may attach the element long after it was made.
    if (stage.clientWidth && (!shown || canvas.stage.isFitted)) canvas.fit();
    else canvas.stage.cy.resize();
    shown ||= stage.clientWidth > 0;
    canvas.redrawAll();
  });
  resized.observe(stage);
  return resized;
}

/** What the page around and a browser test may look at and call. @param {Canvas} canvas */
export function testHandle(canvas) {
  return {
    canvas,
    cy: canvas.stage.cy,
    cmd: (name, args) => run(canvas, name, args),
    get drawing() {
      return canvas.drawing;
    },
    get history() {
      return canvas.history;
    },
    recall: (past, future) => canvas.recall(past, future),
    get shown() {
      return canvas.shown;
    },
    get clock() {
      return canvas.clock;
    },
    get stale() {
      return canvas.stale;
    },
    get tokens() {
      return canvas.overlay.tokens;
    },
  };
}

/**
 * A plain object with anywidget's contract, for the Dash component, the standalone page and the tests.
 */
export class PlainModel {
  /** @param {object} state @param {(changed: object) => void} [onSave] gets what was saved */
  constructor(state, onSave = () => {}) {
    this.state = { ...state };
    this.onSave = onSave;
    this.changed = {};
    /** @type {Map<string, Set<Function>>} */
    this.listeners = new Map();
  }

  get(key) {
    return this.state[key];
  }

  /** Change a value from the view's side. */
  set(key, value) {
    if (this.state[key] === value) return;
    this.changed[key] = value;
    this.receive(key, value);
  }

  save_changes() {
    const changed = this.changed;
    this.changed = {};
    if (Object.keys(changed).length) this.onSave(changed);
  }

  /** Change a value from the host's side. */
  receive(key, value) {
    if (this.state[key] === value) return;
    this.state[key] = value;
    for (const listener of this.listeners.get(`change:${key}`) ?? []) listener(this, value);
  }

  on(event, listener) {
    if (!this.listeners.has(event)) this.listeners.set(event, new Set());
    this.listeners.get(event)?.add(listener);
  }

  off(event, listener) {
    this.listeners.get(event)?.delete(listener);
  }
}

const LOOK = "margin:6px 0 0;padding:6px 10px;border-radius:6px;font:13px/1.45 system-ui,sans-serif;white-space:pre-wrap;overflow-wrap:anywhere";

/**
 * Show an error of Python, the model's `trouble`, as a sentence below the view while there is one.
 * @param {import("./canvas.js").Canvas} canvas whose element is on the page
 * @returns {{refresh: () => void, end: () => void}} `refresh` after the theme has changed
 */
function showErrors(canvas) {
  const { model } = canvas;
  const element = h("div", { class: "tl-trouble", role: "alert", style: LOOK, hidden: true });
  canvas.dom.root.after(element);
  const refresh = () => {
    const { text = "" } = model.get("trouble") ?? {};
    element.hidden = !text;
    if (element.textContent !== text) element.textContent = text;
    const { surface, text: ink, cut } = canvas.colors;
    Object.assign(element.style, { background: surface, color: ink, borderLeft: `3px solid ${cut}` });
  };
  const events = ["change:trouble", "change:theme"];
  for (const event of events) model.on(event, refresh);
  queueMicrotask(refresh); // by then the canvas has its colours
  return {
    refresh,
    end: () => {
      for (const event of events) model.off(event, refresh);
      element.remove();
    },
  };
}
