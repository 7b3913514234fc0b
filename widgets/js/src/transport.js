/**
 * Transport of the player: playing, stepping and seeking, the frames in which the clock runs on, and
 * the change to a better schedule while one is shown.
 *
 * @typedef {import("./types.js").Scene} Scene
 */

import { h } from "./dom.js";
import { begun, captionAt, momentBeside } from "./steps.js";
import { duration, share } from "./units.js";

/** Plays, pauses, steps and seeks, and tells the host the time. */
export class Transport {
  /** @param {import("./canvas.js").Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.reportedAt = 0;
    /** @type {number | null} */
    this.reportedTime = null;
  }

  get #still() {
    return !this.canvas.playback || this.canvas.stale;
  }

  /** @param {boolean} on */
  play(on) {
    if (this.#still) return;
    this.canvas.clock.toggle(on);
    this.report();
  }

  /** @param {number} by epochs, or steps or phases of the plan where it has any @param {"epoch" | "step" | "phase"} [of] */
  step(by, of = "epoch") {
    if (this.#still) return;
    const { canvas } = this;
    const rows = { step: canvas.playback.steps, phase: canvas.playback.phases }[of] ?? [];
    if (rows.length) {
      this.#stepAmong(rows, by);
      return;
    }
    canvas.clock.step(by);
    this.report();
    const epoch = canvas.playback.epochAt(canvas.clock.time);
    const lines = (canvas.playback.scene.sentences[epoch] ?? "").split("\n");
    canvas.say(canvas.clock.time >= canvas.clock.end ? "The end" : `Epoch ${epoch}: ${lines.slice(0, 6).join(". ")}`);
  }

  /** @param {{start: number}[]} rows @param {number} by */
  #stepAmong(rows, by) {
    const { canvas } = this;
    const { playback, clock } = canvas;
    this.seek(momentBeside(rows, clock.time, { by, makespan: playback.makespan }));
    const phase = playback.phases[begun(playback.phases, clock.time, playback.makespan) - 1];
    canvas.say([phase?.label, captionAt(playback, clock.time)].filter(Boolean).join(". "));
  }

  /** @param {number} time µs */
  seek(time) {
    if (this.#still) return;
    this.canvas.clock.playing = false;
    this.canvas.clock.seek(time);
    this.report();
  }

  /** @param {number} value 1 is normal */
  setSpeed(value) {
    const { canvas } = this;
    if (!(value > 0 && Number.isFinite(value))) return canvas.refuse(`the speed must be positive, got ${value}`);
    canvas.clock.speed = value;
    return canvas.wake();
  }

  /** Tell the host where the player is. */
  report() {
    const { canvas } = this;
    this.reportedAt = performance.now();
    this.reportedTime = canvas.clock.time;
    canvas.tell({ time: canvas.clock.time });
    canvas.panels.refreshLog();
    canvas.wake();
  }

  /** The host has set the time. */
  given() {
    const { canvas } = this;
    const time = canvas.model.get("time");
    if (typeof time !== "number" || time === this.reportedTime || canvas.clock.playing) return;
    canvas.clock.seek(time);
    canvas.panels.refreshLog();
    canvas.wake();
  }
}

// ---- frames ---------------------------------------------------------------------------------------

/** Milliseconds between two reports of the time to the host while playing. */
const REPORT_EVERY = 200;

/** The clock runs on with the frames of the page; what changed is drawn, else it sleeps. */
export class Frames {
  /** @param {import("./canvas.js").Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.last = performance.now();
    this.#next();
  }

  #next() {
    requestAnimationFrame((now) => {
      if (!this.canvas.alive) return;
      this.tick(now);
      this.#next();
    });
  }

  /** All that is ours in one frame; the host hears of it a few times a second. @param {number} now milliseconds */
  tick(now) {
    const { canvas } = this;
    const { clock, transport, incumbents } = canvas;
    const seconds = Math.min(0.1, (now - this.last) / 1000);
    this.last = now;
    if (clock.playing) {
      clock.advance(seconds);
      incumbents.ranThrough = !clock.playing;
      if (!clock.playing || now - transport.reportedAt > REPORT_EVERY) transport.report();
      canvas.wake();
    }
    canvas.following.frame(seconds);
    if (canvas.dirty) canvas.redraw(now);
    else if (canvas.panned) canvas.overlay.shift();
    canvas.panned = false;
  }
}

// ---- incumbents -----------------------------------------------------------------------------------

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
export function transition({ playing, time, end }, ranThrough) {
  if (playing || time <= 0) return "swap";
  if (time < end) return "offer";
  return ranThrough ? "replay" : "swap";
}

/** The text of an offer. @param {Scene} now @param {Scene} next */
export function offer(now, next) {
  const faster = 1 - next.makespan / now.makespan;
  const gain = faster > 0.0005 ? `, ${share(faster)} faster` : "";
  return `Schedule ${next.take.number} is here: ${duration(next.makespan)}${gain}`;
}

/**
 * The schedules of one solve, each better than the one before: the next one is swapped in where the
 * film is, or is offered to whoever has stopped the film to look at something.
 */
export class Incumbents {
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
    const what = canvas.stale ? "swap" : transition(canvas.clock, this.ranThrough);
    if (what === "replay") return this.film.load({ autoplay: true });
    if (what === "swap") return this.showNewest();
    this.text.textContent = offer(now, next);
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
