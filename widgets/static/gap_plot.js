/**
 * How close a solve is: the best makespan and the bound in µs against seconds, the gap between
 * them shaded. One ES module without imports, drawn as SVG, for anywidget and for Dash alike; it
 * changes what is there instead of drawing anew, so a running solve does not flicker. Its axes
 * and its words are those of `widgets.view_model.gap`, which print draws as well.
 *
 * @typedef {[number, number | null, number | null]} Row seconds, best makespan µs, bound µs
 * @typedef {{best: string, bound: string, gap: string, proved: boolean}} Readout
 * @typedef {[number, string]} Tick
 * @typedef {{left: number, right: number, bottom: number, top: number, columns: Tick[], rows: Tick[]}} Axes
 *
 * @typedef {object} Course
 * @property {Row[]} points in order of time
 * @property {Readout[]} readouts of each row
 * @property {Readout} [before] the first row
 * @property {number} seconds how far the solve is
 * @property {boolean} running
 * @property {Axes} [even]
 * @property {Axes} [log]
 */

const HEIGHT = 168;
const MARGIN = { left: 50, right: 10, top: 8, bottom: 20 };
const LOG_KEPT = "topoloom.gap-plot.log";
const NOTHING = { points: [], readouts: [], seconds: 0, running: false };
const NO_AXES = { left: 0, right: 1, bottom: 0, top: 1, columns: [], rows: [] };
const UNKNOWN = { best: "–", bound: "–", gap: "–", proved: false };

const CSS = `
.gp { --gp-best: #1474d4; --gp-bound: #c2500a; --gp-line: #dfe6ee; --gp-soft: #55657a; --gp-text: #1b2733; --gp-good: #0a7d5c;
  position: relative; font: 11.5px/1.4 "Inter Variable", Inter, system-ui, -apple-system, "Segoe UI", sans-serif; color: var(--gp-soft); font-variant-numeric: tabular-nums; }
[data-mantine-color-scheme="dark"] .gp, [data-jp-theme-light="false"] .gp { --gp-best: #4aa3ff; --gp-bound: #ff7a4d; --gp-line: #2b3746; --gp-soft: #93a2b3; --gp-text: #dfe7ef; --gp-good: #3fd0a4; }
.gp-legend { display: flex; align-items: center; gap: 0 11px; overflow: hidden; min-height: 22px; padding: 0 4px 2px; }
.gp-legend span { display: inline-flex; align-items: center; gap: 5px; white-space: nowrap; }
.gp-legend i { width: 14px; height: 0; border-top: 2px solid var(--gp-best); }
.gp-legend .gp-of-bound i { border-top: 2px dashed var(--gp-bound); }
.gp-legend b { color: var(--gp-text); font-weight: 620; }
.gp-legend .gp-proved b { color: var(--gp-good); }
.gp-log { all: unset; box-sizing: border-box; position: absolute; right: 8px; top: 30px; padding: 1px 7px; border-radius: 6px; border: 1px solid var(--gp-line); font-size: 10.5px; cursor: pointer; }
.gp-log:hover { color: var(--gp-text); }
.gp-log:focus-visible { outline: 2px solid var(--gp-best); outline-offset: 1px; }
.gp-log[aria-pressed="true"] { color: var(--gp-best); border-color: var(--gp-best); }
.gp svg { display: block; width: 100%; overflow: hidden; }
.gp text { fill: var(--gp-soft); font-size: 10.5px; }
.gp-grid { stroke: var(--gp-line); stroke-width: 1; fill: none; shape-rendering: crispEdges; }
.gp-area { fill: var(--gp-best); opacity: 0.13; }
.gp-best, .gp-bound { fill: none; stroke-width: 2; stroke-linejoin: round; }
.gp-best { stroke: var(--gp-best); }
.gp-bound { stroke: var(--gp-bound); stroke-dasharray: 6 4; }
.gp-dots { fill: var(--gp-best); }
.gp-rule { stroke: var(--gp-soft); stroke-width: 1; stroke-dasharray: 2 2; }
`;

/** @param {number} value at most three significant digits */
const short = (value) => String(Number(value.toPrecision(3)));

/** The place of the row that was known at a time, the last one that is not later; -1 before all. @param {Row[]} rows @param {number} time */
export const rowAt = (rows, time) => rows.findLastIndex((row) => row[0] <= time);

/** A staircase through (x, y) up to `end`; nothing before the first value. */
export function stairs(places, end) {
  if (!places.length) return "";
  const parts = [`M${r(places[0][0])} ${r(places[0][1])}`];
  for (const [x, y] of places.slice(1)) parts.push(`H${r(x)}V${r(y)}`);
  return `${parts.join("")}H${r(end)}`;
}

/** The region between two staircases from where both have begun. */
export function between(above, below, end) {
  if (!above.length || !below.length) return "";
  const from = Math.max(above[0][0], below[0][0]);
  const later = (steps) => {
    const before = steps.filter(([x]) => x <= from).at(-1);
    return [[from, before[1]], ...steps.filter(([x]) => x > from)];
  };
  const under = later(below);
  const back = [`V${r(under.at(-1)[1])}`];
  for (let i = under.length - 1; i > 0; i--) back.push(`H${r(under[i][0])}V${r(under[i - 1][1])}`);
  return `${stairs(later(above), end)}${back.join("")}H${r(from)}Z`;
}

const r = (value) => Math.round(value * 10) / 10;

/** The rows at which a column changes, as [seconds, value]. @param {Row[]} rows */
function changes(rows, column) {
  const found = [];
  for (const row of rows) {
    if (row[column] === null || row[column] === found.at(-1)?.[1]) continue;
    found.push([row[0], row[column]]);
  }
  return found;
}

const NAMESPACE = "http://www.w3.org/2000/svg";

/** @param {string} tag @param {Record<string, any>} attributes */
function shape(tag, attributes, ...children) {
  const element = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function node(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** The plot in an element; `show` may be called as often as there is news. */
export class Plot {
  /** @param {HTMLElement} el */
  constructor(el) {
    /** @type {Course} */
    this.course = NOTHING;
    this.hover = null;
    this.log = remembered();
    this.best = node("span", { class: "gp-of-best" });
    this.bound = node("span", { class: "gp-of-bound" });
    this.gap = node("span");
    this.logButton = node("button", { class: "gp-log", type: "button", title: "Time by powers of ten" }, "log t");
    this.logButton.addEventListener("click", () => this.#toggleLog());
    this.clip = `gp-clip-${Math.random().toString(36).slice(2)}`;
    this.window = shape("rect", {});
    this.layers = {
      grid: shape("path", { class: "gp-grid" }),
      labels: shape("g", {}),
      area: shape("path", { class: "gp-area" }),
      bound: shape("path", { class: "gp-bound" }),
      best: shape("path", { class: "gp-best" }),
      dots: shape("g", { class: "gp-dots" }),
      rule: shape("line", { class: "gp-rule", visibility: "hidden" }),
      when: shape("text", {}),
    };
    const { grid, labels, ...inside } = this.layers;
    this.svg = shape(
      "svg", { role: "img", height: HEIGHT },
      shape("clipPath", { id: this.clip }, this.window), grid, labels,
      shape("g", { "clip-path": `url(#${this.clip})` }, ...Object.values(inside)),
    );
    this.root = node(
      "div", { class: "gp" }, node("style", {}, CSS),
      node("div", { class: "gp-legend" }, this.best, this.bound, this.gap), this.svg, this.logButton,
    );
    el.append(this.root);
    this.svg.addEventListener("pointermove", (event) => this.#point(event));
    this.svg.addEventListener("pointerleave", () => this.#point(null));
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(this.root);
    this.draw();
  }

  /** @param {Partial<Course> | null | undefined} course */
  show(course) {
    this.course = { ...NOTHING, ...course };
    this.draw();
  }

  destroy() {
    this.resized.disconnect();
    this.root.remove();
  }

  #toggleLog() {
    this.log = !this.log;
    try {
      window.localStorage.setItem(LOG_KEPT, String(this.log));
    } catch {
      // A page without storage forgets it.
    }
    this.draw();
  }

  #point(event) {
    const width = this.svg.clientWidth;
    const inside = event && event.offsetX >= MARGIN.left && event.offsetX <= width - MARGIN.right;
    this.hover = inside ? event.offsetX : null;
    this.draw();
  }

  draw() {
    const width = this.svg.clientWidth || this.root.clientWidth;
    if (!width) return;
    const box = { left: MARGIN.left, right: width - MARGIN.right, top: MARGIN.top, bottom: HEIGHT - MARGIN.bottom };
    const view = (this.log ? this.course.log : this.course.even) ?? NO_AXES;
    const scale = scales(box, view, this.log);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    set(this.window, { x: box.left, y: 0, width: Math.max(0, box.right - box.left + 4), height: HEIGHT });
    this.#axes(box, view, scale);
    this.#lines(scale);
    this.#readout(box, scale);
  }

  #axes(box, view, { x, y }) {
    const lines = view.rows.map(([value]) => `M${box.left} ${r(y(value))}H${box.right}`);
    this.layers.grid.setAttribute("d", `${lines.join("")}M${box.left} ${box.bottom}H${box.right}`);
    const words = [
      ...view.rows.map(([value, text]) => [box.left - 6, y(value) + 3.5, "end", text]),
      ...view.columns.map(([value, text]) => [x(value), box.bottom + 14, anchorOf(x(value), box), text]),
    ];
    const { labels } = this.layers;
    while (labels.childElementCount > words.length) labels.lastElementChild.remove();
    words.forEach(([at, down, anchor, text], i) => {
      const label = labels.children[i] ?? labels.appendChild(shape("text", {}));
      set(label, { x: r(at), y: r(down), "text-anchor": anchor });
      if (label.textContent !== text) label.textContent = text;
    });
  }

  #lines({ x, y }) {
    const { points, seconds } = this.course;
    const end = x(Math.max(seconds, points.at(-1)?.[0] ?? 0));
    const place = ([time, value]) => [x(time), y(value)];
    const best = changes(points, 1).map(place);
    const bound = changes(points, 2).map(place);
    const { layers } = this;
    layers.best.setAttribute("d", stairs(best, end));
    layers.bound.setAttribute("d", stairs(bound, end));
    layers.area.setAttribute("d", between(best, bound, end));
    while (layers.dots.childElementCount > best.length) layers.dots.lastElementChild.remove();
    best.forEach(([cx, cy], i) => {
      const dot = layers.dots.children[i] ?? layers.dots.appendChild(shape("circle", { r: 2.8 }));
      set(dot, { cx: r(cx), cy: r(cy) });
    });
  }

  /** Say what is known now, or at the time that is pointed at. */
  #readout(box, { time }) {
    const { points, readouts, before = UNKNOWN, seconds, running } = this.course;
    const { rule, when } = this.layers;
    rule.setAttribute("visibility", this.hover === null ? "hidden" : "visible");
    const there = this.hover ?? 0;
    set(rule, { x1: there, x2: there, y1: box.top, y2: box.bottom });
    const left = there > (box.left + box.right) / 2;
    set(when, { x: there + (left ? -5 : 5), y: box.top + 10, "text-anchor": left ? "end" : "start" });
    const at = this.hover === null ? Infinity : time(this.hover);
    when.textContent = this.hover === null ? "" : `${short(Math.min(at, seconds))} s`;
    const { best, bound, gap, proved } = readouts[rowAt(points, at)] ?? before;
    fill(this.best, node("i"), "best ", node("b", {}, best));
    fill(this.bound, node("i"), "bound ", node("b", {}, bound));
    fill(this.gap, "gap ", node("b", {}, gap));
    this.gap.className = proved ? "gp-proved" : "";
    this.logButton.setAttribute("aria-pressed", String(this.log));
    const state = running ? "so far" : "at the end";
    this.svg.setAttribute("aria-label", `Best makespan ${best}, bound ${bound}, gap ${gap} ${state}`);
  }
}

/** Keep the words of the first and the last tick within the plot. */
const anchorOf = (at, box) =>
  at < box.left + 12 ? "start" : at > box.right - 12 ? "end" : "middle";

/** Places on the screen, and back to seconds. */
function scales(box, view, log) {
  const wide = box.right - box.left;
  const at = log ? (s) => Math.log(Math.max(s, view.left)) : (s) => s;
  const [from, to] = [at(view.left), at(view.right)];
  const share = (s) => (at(s) - from) / (to - from || 1);
  return {
    x: (s) => box.left + share(s) * wide,
    y: (us) => box.bottom - ((us - view.bottom) / (view.top - view.bottom || 1)) * (box.bottom - box.top),
    time: (px) => {
      const value = from + ((px - box.left) / (wide || 1)) * (to - from);
      return log ? Math.exp(value) : value;
    },
  };
}

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
}

/** Change the content only where its words differ. */
function fill(element, ...parts) {
  const text = parts.map((part) => part.textContent ?? part).join("");
  if (element.textContent !== text) element.replaceChildren(...parts);
}

function remembered() {
  try {
    return window.localStorage.getItem(LOG_KEPT) === "true";
  } catch {
    return false;
  }
}

export default {
  /** anywidget's contract. @param {{model: any, el: HTMLElement}} host */
  render({ model, el }) {
    const plot = new Plot(el);
    const show = () => plot.show(model.get("course"));
    model.on("change:course", show);
    show();
    return () => {
      model.off("change:course", show);
      plot.destroy();
    };
  },
};
