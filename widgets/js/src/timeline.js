/**
 * Timeline below the stage: transport, one bar per epoch as high as the links are busy with an orange
 * foot as wide as the bottleneck cut is used, and where the player is.
 */

import { run } from "./commands.js";
import { h, iconButton, icons, wiped } from "./dom.js";
import { Caption, bandHeight, drawSteps, marksHeight, startOfPhase } from "./steps.js";
import { FONT } from "./style.js";
import { duration, moment } from "./units.js";

/** Speeds that a film may have; 1 is normal. */
const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];

/** The buttons that play, step and go to the start, and the speed. */
export class TransportBar {
  /**
   * @param {{seek: (time: number) => void, step: (by: number) => void, toggle: () => void,
   *   speed: (value: number) => void}} does
   * @param {string} [play] title of the button that plays
   */
  constructor({ seek, step, toggle, speed }, play = "Play (Space)") {
    this.play = iconButton("play", play, toggle, { class: "tl-play" });
    this.speed = h(
      "select",
      { "aria-label": "Speed", title: "Speed", onchange: (event) => speed(+event.target.value) },
      ...SPEEDS.map((value) => h("option", { value, selected: value === 1 }, `${value}×`)),
    );
    this.element = h(
      "div", { class: "tl-transport" },
      iconButton("first", "To the start (Home)", () => seek(0)),
      iconButton("back", "Step back (←)", () => step(-1)),
      this.play,
      iconButton("next", "Step forward (→)", () => step(1)),
      this.speed,
    );
  }

  /** @param {{playing: boolean, speed: number}} clock */
  show({ playing, speed }) {
    const icon = playing ? "pause" : "play";
    if (this.icon !== icon) this.play.innerHTML = icons[icon];
    this.icon = icon;
    this.speed.value = String(speed);
  }
}

/**
 * A bitmap on which the pointer moves the time.
 * @param {string} label @param {(event: PointerEvent, box: DOMRect) => void} seek
 */
export function timeStrip(label, seek) {
  const strip = h("canvas", { class: "tl-strip", tabindex: 0, role: "slider", "aria-label": label, "aria-valuemin": 0 });
  const move = (event) => seek(event, strip.getBoundingClientRect());
  strip.addEventListener("pointerdown", (event) => {
    strip.setPointerCapture(event.pointerId);
    move(event);
    strip.onpointermove = move;
  });
  strip.addEventListener("pointerup", () => (strip.onpointermove = null));
  return strip;
}

export class Timeline {
  /** @param {import("./canvas.js").Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    /** Of the type. */
    this.scale = 1;
    const button = (icon, title, command) => iconButton(icon, title, () => run(canvas, command));
    this.strip = timeStrip("Time", (event, box) => {
      const time = ((event.clientX - box.left) / box.width) * this.#span();
      if (event.type === "pointerdown") this.onBand = event.clientY - box.top < bandHeight(canvas.playback, this.scale);
      canvas.transport.seek(this.onBand ? startOfPhase(canvas.playback, time) : time);
    });
    this.readout = h("div", { class: "tl-read" });
    this.bar = new TransportBar({
      seek: (time) => run(canvas, "seek", { time }),
      step: (by) => run(canvas, "step", { by }),
      toggle: () => run(canvas, "toggle"),
      speed: (value) => run(canvas, "speed", { value }),
    });
    this.heatButton = button("heat", "Link load (H)", "heat");
    this.logButton = button("log", "Event log (T)", "log");
    this.inspectButton = button("inspect", "Inspector (I)", "inspect");
    this.caption = new Caption((by) => run(canvas, "step", { by, of: "step" }));
    this.element = h(
      "div", { class: "tl-time" }, this.bar.element,
      this.strip, this.readout,
      h(
        "div", { class: "tl-transport" },
        this.heatButton, this.logButton, this.inspectButton,
        button("present", "Present (P)", "present"), button("film", "Save as GIF", "export_gif"),
        button("movie", "Save as film, 1920 × 1080 at 60 frames a second", "export_film"),
      ),
      this.caption.element,
    );
  }

  /** µs that the strip is wide: the makespan, so that the last epoch is as wide as it lasts. */
  #span() {
    return this.canvas.playback?.makespan || 1;
  }

  /** A new scene, new cuts, or the schedule went out of date. */
  refresh() {
    const { canvas } = this;
    const { playback } = canvas;
    this.element.hidden = !playback || canvas.model.get("timeline") === false;
    if (!playback) return;
    const cut = (canvas.model.get("cuts") ?? [])[0];
    this.crossing = cut && cut.links.length ? playback.crossing(cut) : null;
    this.strip.setAttribute("aria-valuemax", String(playback.makespan));
    this.strip.style.setProperty("--tl-marks", `${marksHeight(playback, this.scale)}px`);
  }

  draw() {
    const { canvas, strip } = this;
    const { playback, clock } = canvas;
    this.#buttons();
    if (!playback || this.element.hidden || !strip.clientWidth) return;
    const ctx = wiped(strip);
    const [width, height] = [strip.clientWidth, strip.clientHeight];
    const { colors } = canvas;
    const { scale } = this;
    const marks = marksHeight(playback, scale);
    const frame = { width, top: marks ? marks + 3 : 10, base: height - 15 * scale };
    const crossing = canvas.presenter.hiding ? null : this.crossing;
    const film = { playback, time: clock.time, colors, fill: colors.accent, crossing };
    drawBars(ctx, film, { ...frame, left: 0 });
    drawSteps(ctx, { playback, time: clock.time, span: this.#span(), colors }, { width, top: 1, scale });
    this.#ticks(ctx, { ...frame, height });
    const x = Math.max(4, Math.min(width - 4, (clock.time / this.#span()) * width));
    ctx.fillStyle = canvas.colors.text;
    // The names of the phases stay free.
    const head = Math.max(5, marks - 4);
    ctx.fillRect(x - 1, head - 1, 2, frame.base + 3 - head);
    ctx.beginPath();
    ctx.arc(x, head, 4.2, 0, 2 * Math.PI);
    ctx.fill();
    this.#read();
  }

  #buttons() {
    const { canvas } = this;
    this.bar.show(canvas.clock);
    this.heatButton.setAttribute("aria-pressed", String(canvas.heat));
    this.logButton.setAttribute("aria-pressed", String(canvas.panels.logShown));
    this.inspectButton.setAttribute("aria-pressed", String(canvas.inspector.open));
  }

  /** Where epochs end; the last does at the edge, before which there is room for its number. */
  #ticks(ctx, { width, height }) {
    const { epochs, step } = this.canvas.playback;
    const { colors } = this.canvas;
    const each = (step / this.#span()) * width;
    const every = Math.ceil(epochs / Math.max(1, Math.floor(width / (44 * this.scale))));
    ctx.fillStyle = colors.dim;
    ctx.font = `${10 * this.scale}px ${FONT}`;
    for (let e = 0; e <= epochs; e += every) {
      const x = Math.min(width, e * each);
      if (e < epochs && e > 0 && width - x < LEAST_TICK * this.scale) continue;
      ctx.textAlign = e === 0 ? "left" : e === epochs ? "right" : "center";
      ctx.fillText(String(e), x, height - 3);
    }
  }

  #read() {
    const { canvas, strip } = this;
    const { playback, clock } = canvas;
    const { on, hiding } = canvas.presenter;
    this.caption.show(canvas.stale ? null : playback, clock.time, on);
    const epoch = epochsAt(playback, clock.time, !hiding);
    const whole = moment(clock.time, playback.makespan);
    const time = hiding ? whole.replace(/ of \S+/, "") : whole;
    // Before a class there is one count: that of the caption's steps, where the plan has some.
    const spoken = on ? [time, playback.steps.length ? "" : epoch] : [epoch, time];
    const [first, second] = canvas.stale ? ["Out of date", "solve again"] : spoken;
    const text = `${first}\n${second}`;
    if (this.shownText === text) return;
    this.shownText = text;
    this.readout.replaceChildren(h("b", {}, first), h("span", {}, second));
    strip.setAttribute("aria-valuenow", String(Math.round(clock.time * 1000) / 1000));
    strip.setAttribute("aria-valuetext", `${epoch}, ${duration(clock.time)}`);
  }
}

/**
 * The epoch that runs; between two of them how many are over: the step of the caption is another count.
 * @param {import("./player.js").Playback} playback @param {number} time µs @param {boolean} all whether to say how many there are
 */
export function epochsAt(playback, time, all) {
  const { epochs, step } = playback;
  const done = playback.epochsDone(time);
  const of = all ? ` of ${epochs}` : "";
  if (done < epochs && time - done * step > step * 1e-6) return `Epoch ${done + 1}${of}`;
  return `${done}${of} ${(all ? epochs : done) === 1 ? "epoch" : "epochs"}`;
}

// ---- bars -----------------------------------------------------------------------------------------

/** Pixels that the number of an epoch needs before the edge. */
const LEAST_TICK = 20;
/** Pixels that a bar needs at least; below it epochs share one. */
const LEAST_BAR = 3;
/** Pixels of the foot that shows how far a cut is used. */
const FOOT = 5;

/**
 * Draw a bar per epoch, as wide as it lasts and as high as the links are busy; the part to come is fainter.
 * @param {CanvasRenderingContext2D} ctx
 * @param {{playback: import("./player.js").Playback, time: number, colors: Record<string, string>,
 *   fill: string, crossing?: Float64Array | null}} film what, when in µs, and in which colours
 * @param {{left: number, width: number, top: number, base: number}} frame where, in pixels
 */
export function drawBars(ctx, { playback, time, colors, fill, crossing = null }, { left, width, top, base }) {
  const merge = Math.max(1, Math.ceil((playback.epochs * LEAST_BAR) / width));
  const bars = Math.ceil(playback.epochs / merge);
  const each = playback.makespan > 0 ? width * (playback.step / playback.makespan) * merge : width;
  const gap = each > 8 ? 2 : each > 4 ? 1 : 0;
  const peak = Math.max(1e-9, ...playback.busy);
  const now = time / playback.step / merge;
  const radius = Math.min(3, each / 4);
  const box = (x, y, w, h) => {
    ctx.beginPath();
    ctx.roundRect(left + x, y, Math.max(1, w), h, radius);
    ctx.fill();
  };
  for (let i = 0; i < bars; i++) {
    const [from, to] = [i * merge, Math.min(playback.epochs, (i + 1) * merge)];
    const wide = Math.min(each, width - i * each) - gap;
    ctx.globalAlpha = 1;
    ctx.fillStyle = colors.empty;
    box(i * each, top, wide, base - top);
    ctx.globalAlpha = i <= now ? 1 : 0.42;
    const tall = Math.max(2, (mean(playback.busy, from, to) / peak) * (base - top));
    ctx.fillStyle = fill;
    box(i * each, base - tall, wide, tall);
    const used = crossing ? mean(crossing, from, to) : 0;
    if (used > 0.005) {
      ctx.fillStyle = colors.cut;
      box(i * each, base - FOOT, wide * used, FOOT);
    }
  }
  ctx.globalAlpha = 1;
}

function mean(values, from, to) {
  let sum = 0;
  for (let i = from; i < to; i++) sum += values[i];
  return sum / Math.max(1, to - from);
}
