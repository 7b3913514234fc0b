/** The canvas and what is around it: the model of its host, the page, and the tests. */

import { run } from "./commands.js";
import { showTrouble } from "./trouble.js";

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
  const trouble = showTrouble(canvas);
  const onTheme = () => {
    canvas.applyTheme();
    trouble.refresh();
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
    trouble.end();
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
