/**
 * The camera follows one chunk: the view pans with it, smoothly, or at once for who wants no motion. It
 * is the chunk that is looked at, else one that is on its way.
 */

import { centre } from "./geometry.js";
import { EditError } from "./model.js";
import { placesOf } from "./tokens.js";

/** Share of the way to the chunk that is left after a second of panning. */
const LEFT = 0.02;
/** Least zoom while following: a chunk should be seen to move. */
const NEAR = 1.1;

/**
 * Where the view goes in some seconds on its way to a place.
 * @param {import("./types.js").Point} from @param {import("./types.js").Point} to @param {number} seconds
 */
export function eased(from, to, seconds) {
  const share = 1 - LEFT ** seconds;
  return { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share };
}

export class Following {
  /** @param {import("./canvas.js").Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.on = false;
  }

  /** The view is moved by hand: it is not taken away again. */
  listen() {
    this.canvas.stage.cy.on("tapdrag", (event) => {
      if (this.on && event.target === this.canvas.stage.cy && event.originalEvent?.buttons) this.turn(false);
    });
  }

  /** @param {boolean} on @param {number} [chunk] by its place in the scene */
  turn(on, chunk) {
    const { canvas } = this;
    if (!on) {
      this.on = false;
      canvas.presenter.refresh();
      return canvas.say("The view stays where it is");
    }
    if (!canvas.playback || canvas.stale) throw new EditError("there is no schedule whose chunks could be followed; solve first");
    const { focus } = canvas.inspector;
    const chosen = chunk ?? focus?.chunk ?? canvas.inspector.chosen?.chunk ?? this.#next();
    canvas.inspector.look({ chunk: chosen });
    this.on = true;
    canvas.presenter.refresh();
    if (canvas.stage.cy.zoom() < NEAR) canvas.zoom(NEAR / canvas.stage.cy.zoom());
    canvas.wake();
    return canvas.panels.showToast(`Following ${canvas.playback.scene.chunks[chosen].label}; W lets it go`);
  }

  /** A chunk that is on its way, or the first one that will be. */
  #next() {
    const { playback, clock } = this.canvas;
    return (playback.inFlight(clock.time)[0] ?? playback.flights.find(({ start }) => start >= clock.time) ?? playback.flights[0])?.chunk ?? 0;
  }

  /** The middle of where the chunk is on its way, else of where it has just arrived. */
  #target() {
    const { canvas } = this;
    const { chunk } = canvas.inspector.focus;
    const moving = placesOf(canvas, chunk);
    if (moving.length) return middle(moving);
    const last = canvas.playback.flights.filter((f) => f.chunk === chunk && f.end <= canvas.clock.time);
    const end = Math.max(...last.map((f) => f.end));
    const names = last.filter((f) => f.end === end).map((f) => f.dst);
    const first = canvas.playback.flights.find((f) => f.chunk === chunk);
    const rects = (names.length ? names : first ? [first.src] : [])
      .map((name) => canvas.stage.rect(canvas.shown.home.get(name) ?? name)).filter(Boolean);
    return rects.length ? middle(rects.map(centre)) : null;
  }

  /** @param {number} seconds since the last frame */
  frame(seconds) {
    const { canvas } = this;
    if (!this.on) return;
    if (canvas.stale || !canvas.playback || (canvas.inspector.focus?.chunk ?? null) === null) {
      this.turn(false);
      return;
    }
    const target = this.#target();
    if (!target) return;
    const { cy } = canvas.stage;
    const at = canvas.stage.toScreen(target);
    const to = { x: cy.width() / 2 - at.x, y: cy.height() / 2 - at.y };
    if (Math.hypot(to.x, to.y) < 1) return;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    cy.panBy(still ? to : eased({ x: 0, y: 0 }, to, seconds));
  }
}

/** @param {import("./types.js").Point[]} points */
const middle = (points) => ({
  x: points.reduce((sum, { x }) => sum + x, 0) / points.length,
  y: points.reduce((sum, { y }) => sum + y, 0) / points.length,
});
