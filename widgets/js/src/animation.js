/**
 * Animation of a layout: devices glide from where they stood to where they now stand. Whoever asks in
 * the same breath finds them at the end already, and so does who wants less motion or takes one of them.
 *
 * @typedef {{node: any, from: {x: number, y: number}, to: {x: number, y: number}}} Move
 */

/** Milliseconds that it takes, moves that are worth it, and how many are too many to be smooth. */
const TAKES = 420;
const SHORTEST = 24;
const MOST = 400;

/** How far along at a share of the time: slow, fast, slow. @param {number} share */
export const eased = (share) => (share < 0.5 ? 4 * share ** 3 : 1 - (2 - 2 * share) ** 3 / 2);

export class Animation {
  /** @param {any} cy */
  constructor(cy) {
    this.cy = cy;
    /** @type {Move[]} */
    this.moves = [];
    cy.on("grab", () => this.finish());
  }

  /** @param {Move[]} moves of nodes that are at their ends */
  start(moves) {
    const far = moves.some(({ from, to }) => Math.hypot(to.x - from.x, to.y - from.y) > SHORTEST);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (!far || moves.length > MOST || still) return;
    this.moves = moves;
    // What is done now, such as fitting the view, goes by the end.
    queueMicrotask(() => {
      if (this.moves !== moves) return;
      const begun = performance.now();
      const step = (now) => {
        if (this.moves !== moves || this.cy.destroyed()) return;
        const share = Math.min(1, Math.max(0, (now - begun) / TAKES));
        this.#place(eased(share));
        if (share < 1) requestAnimationFrame(step);
        else this.moves = [];
      };
      step(begun);
    });
  }

  /** Put everything to its end. */
  finish() {
    if (this.moves.length) this.#place(1);
    this.moves = [];
  }

  #place(share) {
    this.cy.batch(() => {
      for (const { node, from, to } of this.moves) {
        node.position({ x: from.x + share * (to.x - from.x), y: from.y + share * (to.y - from.y) });
      }
    });
  }
}
