/**
 * The schedules of one solve, each better than the one before: the next one takes over where the
 * film is, or is offered to whoever has stopped the film to look at something.
 *
 * @typedef {import("./types.js").Scene} Scene
 */

import { h } from "./dom.js";
import { duration, short } from "./units.js";

/** Whether `next` is a later schedule of the same solve. @param {Scene | null | undefined} now */
export function follows(now, next) {
  return Boolean(now?.take && next?.take && now.take.series === next.take.series);
}

/**
 * What becomes of the film when a better schedule comes: "offer" while someone looks at a moment
 * between the ends, "replay" when the last one has run through by itself, else "swap".
 * @param {{playing: boolean, time: number, end: number}} clock
 * @param {boolean} ranThrough
 */
export function fate({ playing, time, end }, ranThrough) {
  if (playing || time <= 0) return "swap";
  if (time < end) return "offer";
  return ranThrough ? "replay" : "swap";
}

/** The words of an offer. @param {Scene} now @param {Scene} next */
export function words(now, next) {
  const faster = 1 - next.makespan / now.makespan;
  const gain = faster > 0.0005 ? `, ${short(faster * 100, 3)} % faster` : "";
  return `Schedule ${next.take.number} is here: ${duration(next.makespan)}${gain}`;
}

export class Takes {
  /**
   * @param {import("./canvas.js").Canvas} canvas
   * @param {{load: (how: {autoplay: boolean}) => void, report: () => void}} film what loads the
   *   host's scene, and what tells the host the time
   */
  constructor(canvas, film) {
    this.canvas = canvas;
    this.film = film;
    /** Whether the film stopped at its end by itself. */
    this.ranThrough = false;
    this.text = h("span", { role: "status" });
    const button = h("button", { type: "button", onclick: () => this.showNewest() }, "Show it");
    this.element = h("div", { class: "tl-offer", hidden: true }, this.text, button);
  }

  /** A scene was loaded: nothing is offered any more. */
  reset() {
    this.ranThrough = false;
    this.element.hidden = true;
  }

  /** The host has another scene. */
  arrived() {
    const { canvas } = this;
    const now = canvas.playback?.scene;
    const next = canvas.model.get("scene");
    if (!follows(now, next)) return this.film.load({ autoplay: true });
    const what = canvas.stale ? "swap" : fate(canvas.clock, this.ranThrough);
    if (what === "replay") return this.film.load({ autoplay: true });
    if (what === "swap") return this.showNewest();
    this.text.textContent = words(now, next);
    this.element.hidden = false;
    return undefined;
  }

  /** Show the host's scene at the same share of its time, playing if the last one was. */
  showNewest() {
    const { canvas } = this;
    const { time, end, playing } = canvas.clock;
    this.film.load({ autoplay: false });
    canvas.clock.seek(end > 0 ? (time / end) * canvas.clock.end : 0);
    canvas.clock.playing = playing && !canvas.stale && canvas.clock.end > 0;
    this.film.report();
  }
}
