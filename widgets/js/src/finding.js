/**
 * Finding devices and hosts: a field over the canvas whose matches are listed and ringed on the drawing.
 * Enter selects one and zooms to it, with Ctrl all of them.
 *
 * @typedef {{name: string, host: boolean, note: string}} Match
 */

import { run } from "./commands.js";
import { h } from "./dom.js";
import { grown } from "./geometry.js";
import { hostNames } from "./model.js";

/** Matches that are listed; all of them are ringed and counted. */
const MOST_LISTED = 40;
const LIST = "tl-find-list";

/**
 * Hosts and devices that have every word in their name, kind or host; names that begin with what is looked
 * for come first.
 * @param {import("./types.js").Topology} topology @param {string} text
 * @returns {Match[]}
 */
export function matchesOf(topology, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const fits = (...parts) => words.every((word) => parts.some((part) => part.toLowerCase().includes(word)));
  const hosts = [...hostNames(topology)].filter((name) => fits(name)).map((name) => ({ name, host: true, note: "host" }));
  const devices = topology.devices
    .filter((d) => fits(d.name, d.kind, d.host ?? ""))
    .map(({ name, kind, host }) => ({ name, host: false, note: host === null ? kind : `${kind} in ${host}` }));
  return [...hosts, ...devices].sort((p, q) => nearness(p.name, words[0]) - nearness(q.name, words[0]));
}

/** @param {string} name @param {string} word in small letters */
function nearness(name, word) {
  const small = name.toLowerCase();
  if (small === word) return 0;
  return small.startsWith(word) ? 1 : 2;
}

export class Finding {
  /** @param {import("./canvas.js").Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    /** @type {Match[]} */
    this.matches = [];
    this.at = 0;
    this.field = h("input", {
      type: "search", placeholder: "Find a device or a host", "aria-label": "Find a device or a host",
      role: "combobox", "aria-expanded": "false", "aria-controls": LIST, "aria-autocomplete": "list",
      spellcheck: "false", autocomplete: "off",
      oninput: () => this.refresh(), onkeydown: (event) => this.#onKey(event),
    });
    this.count = h("span", { role: "status" });
    this.all = h("button", { type: "button", onclick: () => this.#chooseAll() }, "Select all");
    this.list = h("ul", { id: LIST, role: "listbox", "aria-label": "Matches", hidden: true });
    this.element = h(
      "div", { class: "tl-find tl-float", role: "search", hidden: true },
      h("div", {}, this.field, this.count, this.all), this.list,
    );
  }

  get isOpen() {
    return !this.element.hidden;
  }

  /** @param {boolean} [on] */
  show(on = true) {
    const was = this.isOpen;
    this.element.hidden = !on;
    this.refresh();
    if (on) {
      this.field.focus({ preventScroll: true });
      this.field.select();
    } else if (was) this.canvas.dom.root.focus({ preventScroll: true });
  }

  /** What is looked for or the drawing changed. */
  refresh() {
    const { canvas, field } = this;
    const before = this.matches;
    this.matches = this.isOpen ? matchesOf(canvas.drawing.topology, field.value) : [];
    if (!before.length && !this.matches.length && !this.isOpen) return;
    this.at = 0;
    this.count.textContent = field.value.trim() ? String(this.matches.length || "none") : "";
    this.all.hidden = this.matches.length < 2;
    this.list.hidden = !this.matches.length;
    field.setAttribute("aria-expanded", String(!this.list.hidden));
    this.list.replaceChildren(...this.matches.slice(0, MOST_LISTED).map((match, i) => this.#row(match, i)));
    this.#mark();
  }

  /** @param {Match} match @param {number} i */
  #row({ name, note }, i) {
    return h(
      "li", { role: "option", id: `${LIST}-${i}`, onclick: () => this.#choose(i), onpointerdown: (event) => event.preventDefault() },
      h("b", {}, name), h("span", {}, note),
    );
  }

  /** Show which match Enter takes. */
  #mark() {
    [...this.list.children].forEach((row, i) => row.setAttribute("aria-selected", String(i === this.at)));
    const row = this.list.children[this.at];
    row?.scrollIntoView({ block: "nearest" });
    if (row) this.field.setAttribute("aria-activedescendant", row.id);
    else this.field.removeAttribute("aria-activedescendant");
    this.canvas.redrawAll();
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    event.stopPropagation();
    const { key } = event;
    const last = Math.min(this.matches.length, MOST_LISTED);
    if (key === "Escape") this.show(false);
    else if (key === "Enter" && (event.ctrlKey || event.metaKey)) this.#chooseAll();
    else if (key === "Enter") this.#choose(this.at);
    else if (key === "ArrowDown" || key === "ArrowUp") {
      this.at = last ? (this.at + (key === "ArrowDown" ? 1 : -1) + last) % last : 0;
      this.#mark();
    } else if ((event.ctrlKey || event.metaKey) && key.toLowerCase() === "f") this.field.select();
    else return;
    event.preventDefault();
  }

  /** @param {number} i */
  #choose(i) {
    const match = this.matches[i];
    if (!match) return;
    this.at = i;
    this.#select([match]);
    this.#mark();
  }

  /** Select all matches and go back to the drawing. */
  #chooseAll() {
    if (!this.matches.length) return;
    const { matches } = this;
    this.show(false);
    this.#select(matches);
  }

  /** @param {Match[]} matches */
  #select(matches) {
    const names = (host) => matches.filter((each) => each.host === host).map(({ name }) => name);
    this.canvas.select({ hosts: names(true), devices: names(false) });
    run(this.canvas, "zoom_selection");
    this.canvas.say(matches.length === 1 ? `${matches[0].name}, ${matches[0].note}` : `${matches.length} selected`);
  }

  /** Rings around what matches, the one that Enter takes bolder. @param {CanvasRenderingContext2D} ctx in drawing units */
  draw(ctx) {
    const { stage, shown, colors } = this.canvas;
    const scale = 1 / Math.min(1, stage.cy.zoom());
    ctx.strokeStyle = colors.accent;
    this.matches.forEach(({ name, host }, i) => {
      const rect = host ? stage.hostRect(name) : stage.rect(shown.home.get(name) ?? name);
      if (!rect) return;
      const r = grown(rect, 5 * scale);
      ctx.lineWidth = (i === this.at ? 4 : 2) * scale;
      ctx.globalAlpha = i === this.at ? 1 : 0.7;
      ctx.beginPath();
      ctx.roundRect(r.x1, r.y1, r.x2 - r.x1, r.y2 - r.y1, host ? 22 : 14);
      ctx.stroke();
    });
    ctx.globalAlpha = 1;
  }
}
