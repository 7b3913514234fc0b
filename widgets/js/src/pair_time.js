/** The strip below two films: one transport, a row of bars for each, and one place in time. */

import { drawBars, wiped } from "./bars.js";
import { h, iconButton, icons } from "./dom.js";
import { FONT } from "./style.js";
import { SPEEDS } from "./timeline.js";
import { short } from "./units.js";

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
    const button = (icon, title, act) => iconButton(icon, title, act);
    this.strip = h("canvas", {
      class: "tl-strip", tabindex: 0, role: "slider", "aria-label": "Time of both", "aria-valuemin": 0,
    });
    this.readout = h("div", { class: "tl-read" });
    this.playButton = iconButton("play", "Play both (Space)", () => lead.toggle(), { class: "tl-play" });
    this.speed = h(
      "select",
      { "aria-label": "Speed", title: "Speed", onchange: (event) => (lead.speed = +event.target.value) },
      ...SPEEDS.map((value) => h("option", { value, selected: value === 1 }, `${value}×`)),
    );
    this.element = h(
      "div", { class: "tl-time tlp-time" },
      h(
        "div", { class: "tl-transport" },
        button("first", "To the start (Home)", () => lead.seek(0)),
        button("back", "Step back (←)", () => lead.step(-1)),
        this.playButton,
        button("next", "Step forward (→)", () => lead.step(1)),
        this.speed,
      ),
      this.strip, this.readout,
    );
    this.#listen();
  }

  #listen() {
    const { strip, pair } = this;
    const seek = (event) => {
      const box = strip.getBoundingClientRect();
      pair.lead.playing = false;
      pair.lead.seek(((event.clientX - box.left - LETTERS) / (box.width - LETTERS)) * pair.lead.end);
    };
    strip.addEventListener("pointerdown", (event) => {
      strip.setPointerCapture(event.pointerId);
      seek(event);
      strip.onpointermove = seek;
    });
    strip.addEventListener("pointerup", () => {
      strip.onpointermove = null;
    });
    strip.addEventListener("keydown", (event) => {
      if (!KEYS[event.key]) return;
      event.preventDefault();
      event.stopPropagation();
      KEYS[event.key](pair.lead);
    });
  }

  draw() {
    const { pair, strip } = this;
    const { lead, colors } = pair;
    const icon = lead.playing ? "pause" : "play";
    if (this.shownIcon !== icon) {
      this.playButton.innerHTML = icons[icon];
      this.shownIcon = icon;
    }
    this.speed.value = String(lead.speed);
    if (!strip.clientWidth || !lead.end) return;
    const ctx = wiped(strip);
    const wide = strip.clientWidth - LETTERS;
    const tall = (strip.clientHeight - FEET) / 2;
    const frames = pair.sides.map((_, i) => ({ wide, top: i * tall, base: (i + 1) * tall - 4 }));
    pair.sides.forEach((side, i) => this.#row(ctx, side, frames[i]));
    this.#feet(ctx, wide);
    ctx.fillStyle = colors.text;
    const x = Math.min(LETTERS + wide - 1, LETTERS + (lead.time / lead.end) * wide);
    ctx.fillRect(x - 1, 0, 2, strip.clientHeight - FEET);
    pair.sides.forEach((side, i) => this.#label(ctx, side, frames[i]));
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
    const label = timeIn(playback.makespan, lead.end);
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
    const { unit, name } = unitOf(lead.end);
    const step = roundStep(lead.end / Math.max(1, Math.floor(wide / 90)));
    ctx.fillStyle = colors.dim;
    ctx.font = `10px ${FONT}`;
    for (let time = 0; time <= lead.end; time += step) {
      const x = (time / lead.end) * wide;
      ctx.textAlign = time === 0 ? "left" : wide - x < 20 ? "right" : "center";
      ctx.fillText(`${short(time / unit)} ${name}`, LETTERS + x, this.strip.clientHeight - 3);
    }
  }

  #read() {
    const { lead } = this.pair;
    const [first, second] = [timeIn(lead.time, lead.end), `of ${timeIn(lead.end, lead.end)}`];
    if (this.shownText === first + second) return;
    this.shownText = first + second;
    this.readout.replaceChildren(h("b", {}, first), h("span", {}, second));
    this.strip.setAttribute("aria-valuemax", String(lead.end));
    this.strip.setAttribute("aria-valuenow", String(Math.round(lead.time * 1000) / 1000));
    this.strip.setAttribute("aria-valuetext", `${first} ${second}`);
  }
}

/** The unit for times up to an end. @param {number} end µs */
function unitOf(end) {
  if (end >= 1e6) return { unit: 1e6, name: "s" };
  return end >= 1e3 ? { unit: 1e3, name: "ms" } : { unit: 1, name: "µs" };
}

/** A time in the unit of an end and with as many places, so that it stands still. */
function timeIn(time, end) {
  const { unit, name } = unitOf(end);
  return `${(time / unit).toFixed(end / unit >= 100 ? 1 : 2)} ${name}`;
}

/** The next larger of 1, 2 and 5 times a power of ten. @param {number} least */
function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5].find((each) => each * power >= least) ?? 10);
}
