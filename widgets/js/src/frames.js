/** The pictures in time with the page: the clock runs on, what changed is drawn, else it sleeps. */

/** Milliseconds between two reports of the time to the host while playing. */
const REPORT_EVERY = 200;

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
    const { clock, transport, takes } = canvas;
    const seconds = Math.min(0.1, (now - this.last) / 1000);
    this.last = now;
    if (clock.playing) {
      clock.advance(seconds);
      takes.ranThrough = !clock.playing;
      if (!clock.playing || now - transport.reportedAt > REPORT_EVERY) transport.report();
      canvas.wake();
    }
    if (canvas.dirty) canvas.redraw(now);
  }
}
