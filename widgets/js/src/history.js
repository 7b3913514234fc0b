/**
 * Undo and redo as a list of immutable snapshots. They share structure, so a step costs what it
 * changed, and it covers edits by mouse, keyboard, inspector and Python alike.
 *
 * @template T
 */
export class History {
  /** @param {T} now @param {number} [limit] snapshots kept */
  constructor(now, limit = 200) {
    this.now = now;
    this.limit = limit;
    /** @type {T[]} */
    this.past = [];
    /** @type {T[]} */
    this.future = [];
  }

  /** @param {T} next @returns {boolean} whether anything changed */
  push(next) {
    if (next === this.now) return false;
    this.past.push(this.now);
    if (this.past.length > this.limit) this.past.shift();
    this.now = next;
    this.future = [];
    return true;
  }

  undo() {
    return this.#step(this.past, this.future);
  }

  redo() {
    return this.#step(this.future, this.past);
  }

  /** @param {T[]} from @param {T[]} to */
  #step(from, to) {
    if (!from.length) return false;
    to.push(this.now);
    this.now = /** @type {T} */ (from.pop());
    return true;
  }
}
