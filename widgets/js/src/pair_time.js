/**
 * Common time of several films in µs: those that are faster end earlier and wait. Below the films a strip shows
 * it, with one transport and a row of bars for each.
 *
 * @typedef {import("./player.js").Playback} Playback
 */

import { h, iconButton, wiped } from "./dom.js";
import { LONGEST } from "./player.js";
import { FONT } from "./style.js";
import { TransportBar, drawBars, timeStrip } from "./timeline.js";
import { duration, moment, tick } from "./units.js";

/** Share of a makespan within which two times are the same. */
const SAME = 1e-9;

/** The clock that all of them go by. `advance` says how much time passed, so it needs no timer. */
export class Lead {
  /** @param {() => void} [changed] called when it was moved by hand */
  constructor(changed = () => {}) {
    this.changed = changed;
    /** @type {Playback[]} */
    this.playbacks = [];
    this.time = 0;
    this.end = 0;
    /** µs a second at normal speed. */
    this.pace = 1;
    this.playing = false;
    this.speed = 1;
  }

  /** Go by other films; the time stays where it is. @param {Playback[]} playbacks */
  load(playbacks) {
    this.playbacks = playbacks;
    this.end = Math.max(0, ...playbacks.map((each) => each.makespan));
    const seconds = Math.max(1, ...playbacks.map((each) => Math.min(LONGEST, each.epochs)));
    this.pace = this.end / seconds;
    this.time = Math.min(this.time, this.end);
    this.playing &&= this.end > 0;
  }

  /** @param {number} seconds of real time */
  advance(seconds) {
    if (!this.playing) return;
    this.time += seconds * this.speed * this.pace;
    if (this.time < this.end) return;
    this.time = this.end;
    this.playing = false;
  }

  /** Play or pause; from the end it starts over. */
  toggle(on = !this.playing) {
    if (on && this.time >= this.end) this.time = 0;
    this.playing = on && this.end > 0;
    this.changed();
  }

  /** @param {number} time µs */
  seek(time) {
    this.time = Math.min(this.end, Math.max(0, time));
    this.changed();
  }

  /** To the next or the previous moment at which an epoch of any film begins or one ends. @param {number} by */
  step(by) {
    this.playing = false;
    for (let left = Math.abs(by); left > 0; left--) this.time = by > 0 ? this.#next() : this.#before();
    this.changed();
  }

  #next() {
    const { time } = this;
    const found = this.playbacks
      .filter(({ makespan }) => time < makespan * (1 - SAME))
      .map(({ step, makespan }) => Math.min(makespan, (Math.floor(time / step + 1e-6) + 1) * step));
    return found.length ? Math.min(...found) : this.end;
  }

  #before() {
    const { time } = this;
    return Math.max(0, ...this.playbacks.map(({ step, makespan }) =>
      time > makespan * (1 + SAME) ? makespan : (Math.ceil(time / step - 1e-6) - 1) * step));
  }
}

/** What one film sees of the lead's time: a clock that stops at its own end. */
export class Hand {
  /** @param {Lead} lead @param {Playback | null} playback */
  constructor(lead, playback) {
    this.lead = lead;
    this.end = playback?.makespan ?? 0;
    this.stepSize = playback?.step ?? 1;
  }

  /** Steps a second. */
  get pace() {
    return this.lead.pace / this.stepSize;
  }

  get time() {
    return Math.min(this.lead.time, this.end);
  }

  get playing() {
    return this.lead.playing;
  }

  set playing(on) {
    this.lead.playing = on;
  }

  get speed() {
    return this.lead.speed;
  }

  set speed(value) {
    this.lead.speed = value;
  }

  /** Only the lead advances. */
  advance() {}

  toggle(on) {
    this.lead.toggle(on);
  }

  step(by) {
    this.lead.step(by);
  }

  /** The end of one film is the end of all. @param {number} time µs */
  seek(time) {
    this.lead.seek(time >= this.end ? this.lead.end : time);
  }
}

// ---- the strip ------------------------------------------------------------------------------------

/** Pixels at the left of the rows, where their letters stand. */
const LETTERS = 20;
/** Pixels below the rows, where the times stand. */
const FEET = 15;

const KEYS = {
  " ": (lead) => lead.toggle(),
  ArrowRight: (lead) => lead.step(1),
  ArrowLeft: (lead) => lead.step(-1),
  Home: (lead) => lead.seek(0),
  End: (lead) => lead.seek(lead.end),
};

export class PairTime {
  /** @param {import("./pair.js").Pair} pair */
  constructor(pair) {
    this.pair = pair;
    const { lead } = pair;
    this.strip = timeStrip("Time of both", (event, box) => {
      lead.playing = false;
      lead.seek(((event.clientX - box.left - LETTERS) / (box.width - LETTERS)) * lead.end);
    });
    this.strip.addEventListener("keydown", (event) => {
      if (!KEYS[event.key]) return;
      event.preventDefault();
      event.stopPropagation();
      KEYS[event.key](lead);
    });
    this.readout = h("div", { class: "tl-read" });
    this.bar = new TransportBar({
      seek: (time) => lead.seek(time),
      step: (by) => lead.step(by),
      toggle: () => lead.toggle(),
      speed: (value) => (lead.speed = value),
    }, "Play both (Space)");
    this.adds = iconButton("add", "One player more", () => pair.add());
    this.compares = iconButton("difference", "Difference of A and B (D)", () => pair.compare());
    const views = h("div", { class: "tl-transport" }, this.adds, this.compares);
    this.element = h("div", { class: "tl-time tlp-time" }, this.bar.element, this.strip, this.readout, views);
  }

  /** There are other players, or they are shown in another way. */
  relabel() {
    const { pair } = this;
    const all = pair.timed.length > 2 ? "all" : "both";
    this.strip.setAttribute("aria-label", `Time of ${all}`);
    const play = `Play ${all} (Space)`;
    Object.assign(this.bar.play, { title: play, ariaLabel: play });
    this.adds.disabled = pair.sides.length > 3 || pair.shown === "difference";
    this.compares.setAttribute("aria-pressed", String(pair.shown === "difference"));
  }

  draw() {
    const { pair, strip } = this;
    const { lead, colors } = pair;
    this.bar.show(lead);
    if (!strip.clientWidth || !lead.end) return;
    const ctx = wiped(strip);
    const wide = strip.clientWidth - LETTERS;
    const tall = (strip.clientHeight - FEET) / pair.timed.length;
    const frames = pair.timed.map((_, i) => ({ wide, top: i * tall, base: (i + 1) * tall - 4 }));
    pair.timed.forEach((side, i) => this.#row(ctx, side, frames[i]));
    this.#feet(ctx, wide);
    ctx.fillStyle = colors.text;
    const x = Math.min(LETTERS + wide - 1, LETTERS + (lead.time / lead.end) * wide);
    ctx.fillRect(x - 1, 0, 2, strip.clientHeight - FEET);
    pair.timed.forEach((side, i) => this.#label(ctx, side, frames[i]));
    this.#read();
  }

  #row(ctx, side, { wide, top, base }) {
    const { lead, colors } = this.pair;
    ctx.fillStyle = side.color;
    ctx.font = `650 11px ${FONT}`;
    ctx.textAlign = "left";
    ctx.textBaseline = "middle";
    ctx.fillText(side.letter, 3, (top + base) / 2);
    ctx.textBaseline = "alphabetic";
    const { playback } = side;
    if (!playback) return;
    const width = Math.max(2, (playback.makespan / lead.end) * wide);
    drawBars(ctx, { playback, time: lead.time, colors, fill: side.color }, { left: LETTERS, width, top, base });
  }

  /** How long a film is, where there is room behind it. */
  #label(ctx, { playback }, { wide, top, base }) {
    if (!playback) return;
    const { lead, colors } = this.pair;
    const label = duration(playback.makespan);
    const width = (playback.makespan / lead.end) * wide;
    ctx.font = `10px ${FONT}`;
    ctx.textAlign = "left";
    if (wide - width < ctx.measureText(label).width + 14) return;
    const at = /** @type {const} */ ([label, LETTERS + width + 6, (top + base) / 2 + 3.5]);
    ctx.lineWidth = 5;
    ctx.lineJoin = "round";
    ctx.strokeStyle = colors.surface;
    ctx.strokeText(...at);
    ctx.fillStyle = colors.dim;
    ctx.fillText(...at);
  }

  #feet(ctx, wide) {
    const { lead, colors } = this.pair;
    const step = roundStep(lead.end / Math.max(1, Math.floor(wide / 90)));
    ctx.fillStyle = colors.dim;
    ctx.font = `10px ${FONT}`;
    for (let time = 0; time <= lead.end; time += step) {
      const x = (time / lead.end) * wide;
      ctx.textAlign = time === 0 ? "left" : wide - x < 20 ? "right" : "center";
      ctx.fillText(tick(time, lead.end), LETTERS + x, this.strip.clientHeight - 3);
    }
  }

  #read() {
    const { lead } = this.pair;
    const text = moment(lead.time, lead.end);
    if (this.shownText === text) return;
    this.shownText = text;
    const [first, second] = text.split(/ (?=of )/);
    this.readout.replaceChildren(h("b", {}, first), h("span", {}, second));
    this.strip.setAttribute("aria-valuemax", String(lead.end));
    this.strip.setAttribute("aria-valuenow", String(Math.round(lead.time * 1000) / 1000));
    this.strip.setAttribute("aria-valuetext", text);
  }
}

/** The next larger of 1, 2 and 5 times a power of ten. @param {number} least */
function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5].find((each) => each * power >= least) ?? 10);
}
