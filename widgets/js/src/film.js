/**
 * A film for a lecture: 1920 x 1080 pixels at 60 frames a second, with title, captions of the steps, and
 * the phases as chapters. Every frame is drawn at its own time and encoded when it is ready, so that the
 * film is the same however slow the machine is.
 */

import { h } from "./dom.js";
import { PlainModel } from "./host.js";
import { EditError } from "./model.js";
import { Composer, fileName, needScene, save } from "./record.js";
import { captionAt } from "./steps.js";
import { FONT } from "./style.js";
import { moment } from "./units.js";
import { webm } from "./webm.js";

/** Pixels above and below the drawing, of 1080, and at its sides. */
const ABOVE = 92;
const BELOW = 132;
const ASIDE = 48;
/** Milliseconds for which the film stands at its start and its end. */
const STANDS = 800;
/** Frames from one that can be sought to the next, and bits for each pixel of a frame. */
const KEY_EVERY = 120;
const BITS = 0.09;
/** Zoom at most: a film is seen from afar. */
const MOST_ZOOM = 2.6;
/** Frames that wait for the encoder at most. */
const QUEUE = 4;

const CODECS = [["vp09.00.41.08", "V_VP9"], ["vp8", "V_VP8"]];

/**
 * µs that each frame shows, and the chapters in ms.
 * @param {import("./player.js").Playback} playback @param {number} seconds that the plan takes @param {number} fps
 */
export function plan({ makespan, phases }, seconds, fps) {
  const whole = Math.round((seconds + (2 * STANDS) / 1000) * fps);
  const times = Array.from({ length: whole }, (_, i) => {
    const share = ((i * 1000) / fps - STANDS) / (seconds * 1000);
    return makespan * Math.min(1, Math.max(0, share));
  });
  const at = (time) => Math.round(time > 0 ? STANDS + (time / makespan) * seconds * 1000 : 0);
  return { times, chapters: phases.map(({ start, label }) => ({ start: at(start), label })) };
}

/** One frame of the film around the drawing. */
class Frame {
  /** @param {import("./canvas.js").Canvas} canvas as large as the drawing in it @param {number} width @param {number} height */
  constructor(canvas, width, height) {
    this.canvas = canvas;
    this.scale = height / 1080;
    this.composer = new Composer(canvas, width);
    this.bitmap = h("canvas", { width, height });
    this.ctx = this.bitmap.getContext("2d");
  }

  draw() {
    const { ctx, bitmap, canvas, scale } = this;
    const { colors, playback, clock } = canvas;
    const [wide, high] = [bitmap.width / scale, bitmap.height / scale];
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.fillStyle = colors.bg;
    ctx.fillRect(0, 0, bitmap.width, bitmap.height);
    this.composer.layers();
    ctx.drawImage(this.composer.bitmap, 0, ABOVE * scale);
    ctx.setTransform(scale, 0, 0, scale, 0, 0);
    this.#words(playback.scene.title, ASIDE, 58, { size: 34, weight: 680 });
    this.#words(captionAt(playback, clock.time) || "", ASIDE, high - 72, { size: 27, room: wide - 2 * ASIDE - 330 });
    this.#words(moment(clock.time, playback.makespan), wide - ASIDE, high - 72, { size: 27, weight: 680, align: "right" });
    this.#bar({ left: ASIDE, right: wide - ASIDE, top: high - 46 });
  }

  #words(words, x, y, { size, weight = 500, align = "left", color = this.canvas.colors.text, room = Infinity }) {
    const { ctx } = this;
    Object.assign(ctx, { font: `${weight} ${size}px ${FONT}`, textAlign: align, textBaseline: "alphabetic", fillStyle: color });
    let shown = words;
    while (shown.length > 1 && ctx.measureText(shown).width > room) shown = `${shown.slice(0, -2)}…`;
    ctx.fillText(shown, x, y);
  }

  /** How far the plan is, with a name where each phase begins. */
  #bar({ left, right, top }) {
    const { ctx, canvas } = this;
    const { colors, playback, clock } = canvas;
    const x = (time) => left + ((right - left) * time) / (playback.makespan || 1);
    ctx.fillStyle = colors.empty;
    ctx.fillRect(left, top, right - left, 8);
    ctx.fillStyle = colors.accent;
    ctx.fillRect(left, top, x(clock.time) - left, 8);
    for (const { start, label } of playback.phases) {
      ctx.fillStyle = colors.text;
      ctx.fillRect(x(start), top - 4, 3, 16);
      this.#words(label, x(start) + 8, top + 32, { size: 20, color: colors.dim });
    }
  }
}

/** The encoder that this browser has. @returns {Promise<{config: any, codec: "V_VP8" | "V_VP9"}>} */
async function encoderFor({ width, height, fps }) {
  const { VideoEncoder } = /** @type {any} */ (window);
  for (const [codec, name] of VideoEncoder ? CODECS : []) {
    const config = { codec, width, height, framerate: fps, bitrate: Math.round(width * height * fps * BITS), latencyMode: "quality" };
    if ((await VideoEncoder.isConfigSupported(config)).supported) return { config, codec: /** @type {any} */ (name) };
  }
  throw new EditError("this browser cannot encode a film here: it needs WebCodecs, over https or from this machine; a GIF can be saved everywhere");
}

/**
 * A canvas of its own, outside of the view, that plays the same scene.
 * @param {import("./canvas.js").Canvas} canvas
 */
async function stageFor(canvas, { width, height }) {
  const part = height / 1080;
  const size = `position:fixed;left:0;top:0;z-index:-1;opacity:0;pointer-events:none;width:${width}px;height:${Math.round(height - (ABOVE + BELOW) * part)}px`;
  const element = h("div", { style: size, "aria-hidden": "true", inert: true });
  document.body.append(element);
  const { drawing, model } = canvas;
  const state = {
    drawing, scene: model.get("scene"), cuts: canvas.presenter.hiding ? [] : model.get("cuts"), toolbar: false, timeline: false,
    locked: true, theme: canvas.theme, height: "100%", time: 0.001,
  };
  const Kind = /** @type {any} */ (canvas.constructor);
  const copy = new Kind(element, new PlainModel(state));
  copy.heat = canvas.heat;
  copy.heatOf = canvas.heatOf;
  await new Promise(requestAnimationFrame);
  copy.unfollow(); // from now on nothing but the film moves the view
  copy.stage.fit(copy.cutView.bounds(), MOST_ZOOM * part);
  copy.redrawAll();
  return { copy, end: () => {
    copy.destroy();
    element.remove();
  } };
}

/** What is shown while a film is made: how far it is, and a way to end it. */
class Progress {
  /** @param {import("./canvas.js").Canvas} canvas */
  constructor(canvas) {
    this.cancelled = false;
    this.bar = h("progress", { max: 1, value: 0, "aria-label": "Film" });
    this.words = h("span", {}, "Film: beginning");
    const cancel = h("button", { type: "button", onclick: () => (this.cancelled = true) }, "Cancel");
    this.element = h("div", { class: "tl-offer tl-filming", role: "status" }, this.words, this.bar, cancel);
    canvas.dom.stage.append(this.element);
    this.began = performance.now();
  }

  /** @param {number} share */
  show(share) {
    this.bar.value = share;
    const left = Math.ceil(((performance.now() - this.began) / 1000) * (1 / share - 1));
    const words = `Film: ${Math.round(share * 100)} %, ${left} s left`;
    if (this.words.textContent !== words) this.words.textContent = words;
  }
}

/**
 * @param {import("./canvas.js").Canvas} canvas
 * @param {{width?: number, height?: number, fps?: number, seconds?: number}} [options] seconds: that the plan takes
 * @returns {Promise<Blob | null>} null where it was cancelled
 */
export async function toFilm(canvas, { width = 1920, height = 1080, fps = 60, seconds } = {}) {
  const { config, codec } = await encoderFor({ width, height, fps });
  const { clock, playback } = canvas;
  const { times, chapters } = plan(playback, seconds ?? clock.end / clock.stepSize / clock.pace, fps);
  const progress = new Progress(canvas);
  const { copy, end } = await stageFor(canvas, { width, height });
  const frames = [];
  /** @type {any} */
  let wrong = null;
  const { VideoEncoder, VideoFrame } = /** @type {any} */ (window);
  const encoder = new VideoEncoder({
    output: (chunk) => {
      const data = new Uint8Array(chunk.byteLength);
      chunk.copyTo(data);
      frames.push({ data, time: Math.round(chunk.timestamp / 1000), key: chunk.type === "key" });
    },
    error: (error) => (wrong = error),
  });
  try {
    encoder.configure(config);
    const frame = new Frame(copy, width, height);
    await frame.composer.fix();
    for (let i = 0; i < times.length && !progress.cancelled && canvas.alive && !wrong; i++) {
      copy.clock.seek(times[i]);
      copy.redraw();
      frame.draw();
      const picture = new VideoFrame(frame.bitmap, { timestamp: Math.round((i * 1e6) / fps), duration: Math.round(1e6 / fps) });
      encoder.encode(picture, { keyFrame: i % KEY_EVERY === 0 });
      picture.close();
      progress.show((i + 1) / times.length);
      do await new Promise((done) => setTimeout(done)); while (encoder.encodeQueueSize > QUEUE && !wrong);
    }
    if (progress.cancelled || !canvas.alive) return null;
    if (!wrong) await encoder.flush();
    if (wrong) throw new EditError(`the film could not be encoded: ${wrong.message}`);
  } finally {
    if (encoder.state !== "closed") encoder.close();
    end();
    progress.element.remove();
  }
  const duration = (times.length * 1000) / fps;
  const file = webm(frames, { width, height, codec, title: playback.scene.title, duration, chapters });
  return new Blob([/** @type {any} */ (file)], { type: "video/webm" });
}

/** @param {import("./canvas.js").Canvas} canvas @param {object} [options] */
export async function saveFilm(canvas, options) {
  needScene(canvas);
  if (canvas.filming) throw new EditError("a film is being made; cancel it first");
  canvas.filming = true;
  try {
    canvas.say("Making the film");
    const film = await toFilm(canvas, options);
    if (film) save(film, fileName(canvas, "webm"));
    canvas.say(film ? "The film is saved" : "The film was cancelled");
  } finally {
    canvas.filming = false;
  }
}
