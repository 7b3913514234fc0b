/** The module that every host loads: anywidget's contract, and what a plain page needs. */

import { Canvas } from "./canvas.js";
import { PlainModel } from "./host.js";
import { Pair, wantsPair } from "./pair.js";
import { toGif, toWebm } from "./record.js";

/** @param {HTMLElement} el @param {any} model @returns {Canvas | Pair} */
export const mount = (el, model) => (wantsPair(model) ? new Pair(el, model) : new Canvas(el, model));

export { PlainModel, toGif, toWebm };

export default {
  /** @param {{model: any, el: HTMLElement}} host @returns {() => void} what cleans up */
  render({ model, el }) {
    const view = mount(el, model);
    return () => view.destroy();
  },
};
