/**
 * The keyboard in the charts: up and down among the rows, left and right among the sends of one, from
 * its title on. Enter looks at what one is at.
 */

export class Walk {
  /** @param {import("./inspector.js").Inspector} inspector */
  constructor(inspector) {
    this.inspector = inspector;
    /** Which row, and which of its sends; -1 is its title. */
    this.row = 0;
    this.send = -1;
    const { element } = inspector.chart;
    element.addEventListener("keydown", (event) => this.#key(event));
    element.addEventListener("focus", () => this.#say());
    element.addEventListener("blur", () => inspector.chart.invalidate());
  }

  /** Other rows are shown. */
  reset() {
    this.row = 0;
    this.send = -1;
  }

  /** @returns {import("./plan.js").Sent | null} */
  get at() {
    return this.inspector.chart.rows[this.row]?.sends[this.send] ?? null;
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (!this.#does(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {string} key @returns {boolean} whether it was ours */
  #does(key) {
    const { inspector } = this;
    const { chart } = inspector;
    const page = Math.max(1, Math.floor(chart.element.clientHeight / 26));
    const rows = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page }[key];
    const sends = { ArrowLeft: -1, ArrowRight: 1 }[key];
    const zoom = { "+": 1.5, "=": 1.5, "-": 1 / 1.5 }[key];
    if (rows) this.#move(this.row + rows);
    else if (sends) this.#along(sends);
    else if (zoom) chart.zoom(zoom, this.at?.start ?? inspector.canvas.clock.time);
    else if (key === "0") chart.zoom(0, 0);
    else if (key === "Enter") this.#enter();
    else return key === "Escape" && inspector.clear();
    return true;
  }

  /** To another row, to the send there that is nearest in time. @param {number} row */
  #move(row) {
    const { rows } = this.inspector.chart;
    if (!rows.length) return;
    const { at } = this;
    this.row = Math.min(rows.length - 1, Math.max(0, row));
    if (at) this.send = nearest(rows[this.row].sends, at.start);
    this.#arrive();
  }

  /** @param {number} by */
  #along(by) {
    const row = this.inspector.chart.rows[this.row];
    if (!row) return;
    this.send = Math.min(row.sends.length - 1, Math.max(-1, this.send + by));
    this.#arrive();
  }

  #enter() {
    const { inspector, at } = this;
    const row = inspector.chart.rows[this.row];
    if (at) inspector.lookAtSend(at);
    else if (row) inspector.lookWithin(row.subject);
    this.#say();
  }

  #arrive() {
    const { chart } = this.inspector;
    chart.reveal(chart.rows[this.row]);
    chart.invalidate();
    this.#say();
  }

  /** Say where one is. */
  #say() {
    const { inspector, at } = this;
    const row = inspector.chart.rows[this.row];
    if (row) inspector.drawer.say(at ? inspector.sentence(at) : `${row.title}: ${row.sends.length} ${row.sends.length === 1 ? "send" : "sends"}`);
    inspector.chart.invalidate();
  }

  /** Be at a send that was clicked. @param {import("./plan.js").Sent} send */
  stepTo(send) {
    const { rows } = this.inspector.chart;
    const row = rows.findIndex(({ sends }) => sends.includes(send));
    if (row >= 0) Object.assign(this, { row, send: rows[row].sends.indexOf(send) });
  }
}

function nearest(sends, time) {
  let best = 0;
  sends.forEach(({ start }, k) => {
    if (Math.abs(start - time) < Math.abs(sends[best].start - time)) best = k;
  });
  return best;
}
