/** A laser pointer: the mouse as a red dot with a short trail, above everything that is presented. */

import { h, wiped } from "./dom.js";

/** Milliseconds that the trail lasts. */
const TRAIL = 260;
const RADIUS = 9;
const RED = "255, 32, 48";

/**
 * The places of the last moments, each with the share of its life that is left.
 * @param {{x: number, y: number, at: number}[]} places the oldest first @param {number} now milliseconds
 */
export const trailOf = (places, now) =>
  places.map(({ x, y, at }) => ({ x, y, left: 1 - (now - at) / TRAIL })).filter(({ left }) => left > 0);

export class Laser {
  /** @param {HTMLElement} root what it points at */
  constructor(root) {
    this.root = root;
    this.on = false;
    /** @type {{x: number, y: number, at: number}[]} */
    this.places = [];
    this.drawing = false;
    this.element = h("canvas", { class: "tl-laser", "aria-hidden": "true", hidden: true });
    root.addEventListener("pointermove", (event) => this.#moved(event));
    root.addEventListener("pointerleave", () => this.#gone());
  }

  /** @param {boolean} on */
  turn(on) {
    this.on = on;
    this.element.hidden = !on;
    this.root.toggleAttribute("data-laser", on);
    this.#gone();
  }

  #gone() {
    this.places = [];
    this.#wake();
  }

  /** @param {PointerEvent} event */
  #moved(event) {
    if (!this.on) return;
    const box = this.root.getBoundingClientRect();
    this.places.push({ x: event.clientX - box.left, y: event.clientY - box.top, at: performance.now() });
    this.#wake();
  }

  #wake() {
    if (this.drawing) return;
    this.drawing = true;
    requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    this.drawing = false;
    if (!this.on || !this.element.clientWidth) return;
    const ctx = wiped(this.element);
    const last = this.places.at(-1);
    if (!last) return;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const trail = still ? [] : trailOf(this.places, performance.now());
    ctx.lineCap = "round";
    trail.slice(1).forEach(({ x, y, left }, i) => {
      ctx.beginPath();
      ctx.moveTo(trail[i].x, trail[i].y);
      ctx.lineTo(x, y);
      ctx.strokeStyle = `rgba(${RED}, ${0.55 * left})`;
      ctx.lineWidth = 2 * RADIUS * left;
      ctx.stroke();
    });
    const glow = ctx.createRadialGradient(last.x, last.y, 1, last.x, last.y, 2.2 * RADIUS);
    glow.addColorStop(0, `rgba(${RED}, 1)`);
    glow.addColorStop(0.4, `rgba(${RED}, 0.95)`);
    glow.addColorStop(0.5, `rgba(${RED}, 0.4)`);
    glow.addColorStop(1, `rgba(${RED}, 0)`);
    ctx.fillStyle = glow;
    ctx.beginPath();
    ctx.arc(last.x, last.y, 2.2 * RADIUS, 0, 2 * Math.PI);
    ctx.fill();
    if (trail.length) this.#wake();
    this.places = this.places.slice(-Math.max(1, trail.length));
  }
}
