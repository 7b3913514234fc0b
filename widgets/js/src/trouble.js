/** What went wrong in Python when it heard of something on the canvas: a sentence below the view. */

import { h } from "./dom.js";

const LOOK = "margin:6px 0 0;padding:6px 10px;border-radius:6px;font:13px/1.45 system-ui,sans-serif;white-space:pre-wrap;overflow-wrap:anywhere";

/**
 * Show `trouble` of the model while it has words.
 * @param {import("./canvas.js").Canvas} canvas whose element is on the page
 * @returns {{refresh: () => void, end: () => void}} `refresh` after the theme has changed
 */
export function showTrouble(canvas) {
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
