/**
 * How close a solve is: the best makespan and the bound in µs against seconds, the gap between
 * them shaded. One ES module without imports, drawn as SVG, for anywidget and for Dash alike; it
 * changes what is there instead of drawing anew, so a running solve does not flicker.
 *
 * @typedef {[number, number | null, number | null]} Row seconds, best makespan µs, bound µs
 *
 * @typedef {object} Course
 * @property {Row[]} points in order of time
 * @property {number} seconds how far the solve is
 * @property {boolean} running
 */

const HEIGHT = 168;
const MARGIN = { left: 50, right: 10, top: 8, bottom: 20 };
const LOG_KEPT = "topoloom.gap-plot.log";
/** Of the whole gap: how much of what is over is still shown above and below. */
const PAST = { above: 3, below: 2 };
/** Seconds at which the axis of a running solve ends, so that it stands still for a while. */
const ENDS = [0.5, 1, 2, 5, 10, 20, 30, 60, 90, 120, 180, 300, 600, 900, 1200, 1800, 3600];

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

/** The unit that leaves a makespan below a thousand. @param {number} us */
export function unitOf(us) {
  if (us >= 1e6) return { name: "s", size: 1e6 };
  return us >= 1e3 ? { name: "ms", size: 1e3 } : { name: "µs", size: 1 };
}

/** @param {number | null} us */
export function duration(us) {
  if (us === null) return "–";
  const unit = unitOf(us);
  return `${short(us / unit.size)} ${unit.name}`;
}

/** The gap as a share of the bound. @param {number | null} best @param {number | null} bound */
export const gapOf = (best, bound) =>
  best === null || !bound ? null : Math.max(0, best / bound - 1);

/** @param {number | null} gap */
export const percent = (gap) => (gap === null ? "–" : gap < 1e-6 ? "0 %" : `${short(gap * 100)} %`);

/** What was known at a time: the last row that is not later. @param {Row[]} rows @param {number} time */
export function rowAt(rows, time) {
  let found = null;
  for (const row of rows) {
    if (row[0] > time) break;
    found = row;
  }
  return found;
}

/** Round numbers from `low` to `high`, about `count` of them. */
export function ticks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 2.5, 5].find((each) => each * power >= rough) ?? 10);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high * (1 + 1e-12); k++) {
    found.push(Number((k * step).toPrecision(12)));
  }
  return found;
}

/** Powers of ten with two and five between them. */
export function logTicks(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power++) {
    for (const each of [1, 2, 5]) {
      const value = Number((each * 10 ** power).toPrecision(3));
      if (value >= low * 0.999 && value <= high * 1.001) found.push(value);
    }
  }
  const tens = found.filter((value) => Math.abs(Math.log10(value) % 1) < 1e-9);
  return found.length > 7 && tens.length > 1 ? tens : found;
}

/**
 * What the axes show: a bad first plan must not flatten all that came after it.
 * @param {Course} course @param {boolean} log
 */
export function windowOf({ points, seconds, running }, log) {
  const bests = points.map((row) => row[1]).filter((value) => value !== null);
  const bounds = points.map((row) => row[2]).filter((value) => value !== null);
  const end = Math.max(seconds, points.at(-1)?.[0] ?? 0, 1e-3);
  const right = running ? (ENDS.find((each) => each >= end * 1.02) ?? end * 1.1) : end;
  const first = points.find((row) => row[1] !== null)?.[0] ?? right / 100;
  const left = log ? Math.max(1e-3, Math.min(first * 0.8, right / 10)) : 0;
  const best = bests.at(-1) ?? null;
  const bound = bounds.at(-1) ?? null;
  if (best === null && bound === null) return { left, right, bottom: 0, top: 1, known: false };
  if (best === null) return { left, right, bottom: bound * 0.9, top: bound * 1.4, known: true };
  const low = bound ?? best * 0.8;
  const span = Math.max(best - low, best * 0.04);
  const top = Math.min(Math.max(...bests), best + PAST.above * span);
  const bottom = Math.max(Math.min(low, ...bounds), low - PAST.below * span, 0);
  const air = Math.max((top - bottom) * 0.12, (span - (top - bottom)) / 2);
  return { left, right, bottom: Math.max(0, bottom - air), top: top + air, known: true };
}

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
    this.course = { points: [], seconds: 0, running: false };
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
    this.course = { points: [], seconds: 0, running: false, ...course };
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
    const view = windowOf(this.course, this.log);
    const scale = scales(box, view, this.log);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    set(this.window, { x: box.left, y: 0, width: Math.max(0, box.right - box.left + 4), height: HEIGHT });
    this.#axes(box, view, scale);
    this.#lines(scale);
    this.#readout(box, scale);
  }

  #axes(box, view, { x, y }) {
    const unit = unitOf(view.top);
    const rows = view.known ? ticks(view.bottom / unit.size, view.top / unit.size, 5) : [];
    const columns = this.log ? logTicks(view.left, view.right) : ticks(0, view.right, 5);
    const lines = rows.map((value) => `M${box.left} ${r(y(value * unit.size))}H${box.right}`);
    this.layers.grid.setAttribute("d", `${lines.join("")}M${box.left} ${box.bottom}H${box.right}`);
    const words = [
      ...rows.map((value) => [box.left - 6, y(value * unit.size) + 3.5, "end", `${Number(value.toPrecision(6))} ${unit.name}`]),
      ...columns.map((value) => [x(value), box.bottom + 14, anchorOf(x(value), box), `${short(value)} s`]),
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
    const { points, seconds, running } = this.course;
    const { rule, when } = this.layers;
    rule.setAttribute("visibility", this.hover === null ? "hidden" : "visible");
    const there = this.hover ?? 0;
    set(rule, { x1: there, x2: there, y1: box.top, y2: box.bottom });
    const left = there > (box.left + box.right) / 2;
    set(when, { x: there + (left ? -5 : 5), y: box.top + 10, "text-anchor": left ? "end" : "start" });
    const at = this.hover === null ? Infinity : time(this.hover);
    when.textContent = this.hover === null ? "" : `${short(Math.min(at, seconds))} s`;
    const [, best, bound] = rowAt(points, at) ?? [0, null, null];
    const gap = gapOf(best, bound);
    fill(this.best, node("i"), "best ", node("b", {}, duration(best)));
    fill(this.bound, node("i"), "bound ", node("b", {}, duration(bound)));
    fill(this.gap, "gap ", node("b", {}, percent(gap)));
    this.gap.className = gap !== null && gap < 1e-6 ? "gp-proved" : "";
    this.logButton.setAttribute("aria-pressed", String(this.log));
    const state = running ? "so far" : "at the end";
    this.svg.setAttribute(
      "aria-label",
      `Best makespan ${duration(best)}, bound ${duration(bound)}, gap ${percent(gap)} ${state}`,
    );
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
