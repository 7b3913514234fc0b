/** The film: the stage's layers put together into GIF or WebM, in the page, without a server. */

import * as gifenc from "gifenc";
import { EditError } from "./model.js";
import { FONT } from "./style.js";
import { moment } from "./units.js";

/** @typedef {import("./canvas.js").Canvas} Canvas */

/** Pixels of a line of a cut's label. */
const LINE = 16;

/** Puts what is on the stage into one bitmap. */
export class Composer {
  /** @param {Canvas} canvas @param {number} width pixels */
  constructor(canvas, width) {
    this.canvas = canvas;
    const { clientWidth, clientHeight } = canvas.dom.stage;
    this.scale = width / clientWidth;
    this.bitmap = document.createElement("canvas");
    this.bitmap.width = width & ~1;
    this.bitmap.height = Math.round(clientHeight * this.scale) & ~1;
    this.ctx = this.bitmap.getContext("2d", { willReadFrequently: true });
    /** @type {ImageBitmap | null} */
    this.graph = null;
  }

  /** Draw the graph once and for all: on the screen its renderer refines it bit by bit. */
  async fix() {
    const { cy } = this.canvas.stage;
    const blob = await cy.png({ output: "blob-promise", full: false, scale: this.bitmap.width / cy.width() });
    this.graph = await createImageBitmap(blob);
  }

  /** The layers and what the cuts are called. */
  layers() {
    const { ctx, bitmap, canvas, graph } = this;
    const { stage } = canvas.dom;
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.fillStyle = canvas.colors.bg;
    ctx.fillRect(0, 0, bitmap.width, bitmap.height);
    const drawn = [...canvas.dom.graph.querySelectorAll("canvas")];
    for (const layer of stage.querySelectorAll("canvas")) {
      if (graph && drawn.includes(layer)) {
        if (layer === drawn[0]) ctx.drawImage(graph, 0, 0, bitmap.width, bitmap.height);
      } else if (layer.width && getComputedStyle(layer).visibility !== "hidden") {
        ctx.drawImage(layer, 0, 0, bitmap.width, bitmap.height);
      }
    }
    ctx.scale(this.scale, this.scale);
    for (const label of canvas.cutView.labels) if (!label.hidden) this.#pill(label);
  }

  draw() {
    const { ctx, canvas } = this;
    this.layers();
    ctx.fillStyle = canvas.colors.dim;
    ctx.font = `600 13px ${FONT}`;
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    const { title } = canvas.playback.scene;
    const epoch = `epoch ${canvas.playback.epochsDone(canvas.clock.time)} of ${canvas.playback.epochs}`;
    ctx.fillText(`${title}  ·  ${epoch}  ·  ${moment(canvas.clock.time, canvas.playback.makespan)}`, 16, 26);
  }

  #pill(label) {
    const { ctx, canvas } = this;
    ctx.font = `600 12px ${FONT}`;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    const [x, y] = [parseFloat(label.style.left), parseFloat(label.style.top)];
    const lines = [...label.children].map((line) => line.textContent);
    const wide = Math.max(...lines.map((line) => ctx.measureText(line).width)) + 22;
    const tall = 8 + LINE * lines.length;
    ctx.fillStyle = canvas.colors.cut;
    ctx.beginPath();
    ctx.roundRect(x - wide / 2, y - tall / 2, wide, tall, 12);
    ctx.fill();
    ctx.fillStyle = canvas.colors.onCut;
    lines.forEach((line, i) => ctx.fillText(line, x, y + LINE * (i - (lines.length - 1) / 2)));
  }
}

/** @param {Canvas} canvas */
export function needScene(canvas) {
  if (!canvas.playback || canvas.stale) throw new EditError("there is no schedule to film; solve first");
}

/**
 * @param {Canvas} canvas
 * @param {{width?: number, fps?: number}} [options]
 * @returns {Promise<Blob>}
 */
export async function toGif(canvas, { width = 900, fps = 12 } = {}) {
  const { clock } = canvas;
  const composer = new Composer(canvas, width);
  const { bitmap, ctx } = composer;
  const { GIFEncoder, applyPalette, quantize } = gifenc;
  const gif = GIFEncoder();
  const seconds = clock.end / clock.stepSize / clock.pace;
  const frames = Math.max(2, Math.round(seconds * fps));
  const before = clock.time;
  clock.playing = false;
  let palette;
  for (let i = 0; i <= frames; i++) {
    clock.seek((clock.end * i) / frames);
    canvas.redraw();
    composer.draw();
    const { data } = ctx.getImageData(0, 0, bitmap.width, bitmap.height);
    // Colours appear as chunks do, so one palette does not serve the whole film.
    if (i % 12 === 0) palette = quantize(data, 160);
    gif.writeFrame(applyPalette(data, palette), bitmap.width, bitmap.height, {
      palette, delay: i === frames ? 1500 : 1000 / fps,
    });
    if (i % 6 === 0) await new Promise((resolve) => setTimeout(resolve));
  }
  gif.finish();
  clock.seek(before);
  canvas.wake();
  return new Blob([gif.bytes()], { type: "image/gif" });
}

/**
 * Real time, since a browser records what it shows.
 * @param {Canvas} canvas
 * @param {{width?: number, fps?: number}} [options]
 * @returns {Promise<Blob>}
 */
export async function toWebm(canvas, { width = 1200, fps = 30 } = {}) {
  const composer = new Composer(canvas, width);
  const types = ["video/webm;codecs=vp9", "video/webm;codecs=vp8", "video/webm"];
  const mimeType = types.find((type) => MediaRecorder.isTypeSupported(type));
  const recorder = new MediaRecorder(composer.bitmap.captureStream(fps), { mimeType, videoBitsPerSecond: 4e6 });
  const parts = [];
  recorder.ondataavailable = (event) => parts.push(event.data);
  const ended = new Promise((resolve) => (recorder.onstop = resolve));
  canvas.transport.seek(0);
  canvas.transport.play(true);
  recorder.start();
  while (canvas.clock.playing && canvas.alive) {
    composer.draw();
    await new Promise(requestAnimationFrame);
  }
  composer.draw();
  recorder.stop();
  await ended;
  return new Blob(parts, { type: mimeType });
}

/** Offer a file for saving. @param {Blob} blob @param {string} name */
export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export const fileName = (canvas, ending) =>
  `${canvas.drawing.topology.name.replace(/[^\w.-]+/g, "-") || "cluster"}.${ending}`;

/** @param {Canvas} canvas @param {object} [options] */
export async function saveGif(canvas, options) {
  needScene(canvas);
  canvas.say("Making the GIF");
  save(await toGif(canvas, options), fileName(canvas, "gif"));
}

/** @param {Canvas} canvas @param {object} [options] */
export async function saveWebm(canvas, options) {
  needScene(canvas);
  canvas.say("Filming, in real time");
  save(await toWebm(canvas, options), fileName(canvas, "webm"));
}
