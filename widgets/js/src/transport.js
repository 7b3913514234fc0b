/** Playing, pausing, stepping and seeking, and telling the host the time. */

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

  /** @param {number} by steps */
  step(by) {
    if (this.#still) return;
    const { canvas } = this;
    canvas.clock.step(by);
    this.report();
    const epoch = canvas.playback.epochAt(canvas.clock.time);
    const rows = (canvas.playback.scene.sentences[epoch] ?? "").split("\n");
    canvas.say(canvas.clock.time >= canvas.clock.end ? "The end" : `Epoch ${epoch}: ${rows.slice(0, 6).join(". ")}`);
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
