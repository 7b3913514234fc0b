/**
 * Two schedules side by side on one cluster and one time: the faster one ends and waits. Its host
 * is a model as anywidget defines it; frames ask it for nothing.
 *
 * @typedef {import("./types.js").Scene} Scene
 * @typedef {import("./types.js").Drawing} Drawing
 * @typedef {{key: string, label: string, group: string, fact: string}} Choice
 * @typedef {{key: string, scene: Scene | null}} Film
 */

import { Canvas } from "./canvas.js";
import { h } from "./dom.js";
import { PlainModel } from "./host.js";
import css from "./pair.css";
import { Hand, Lead, PairTime } from "./pair_time.js";
import base from "./style.css";
import { THEMES, pageTheme } from "./style.js";

/** Whether a host wants two films. @param {any} model */
export const wantsPair = (model) => Boolean(model.get("films"));

/** A canvas on which a device that is moved moves in both. */
class Screen extends Canvas {
  /** @type {((drawing: Drawing) => void) | null} */
  onMoved = null;
  /** @type {((theme: "light" | "dark") => void) | null} */
  onTheme = null;

  commit(next) {
    const changed = super.commit(next);
    if (changed) this.onMoved?.(next);
    return changed;
  }

  applyTheme() {
    super.applyTheme();
    this.onTheme?.(this.theme);
  }
}

/** One of the two: what is chosen, and the screen it plays on. */
class Side {
  /** @param {Pair} pair @param {number} at 0 or 1 */
  constructor(pair, at) {
    this.pair = pair;
    this.at = at;
    this.letter = "AB"[at];
    /** @type {Film | null} */
    this.film = null;
    /** @type {Screen | null} */
    this.screen = null;
    this.select = h("select", {
      "aria-label": `Schedule ${this.letter}`, onchange: () => pair.choose(at, this.select.value),
    });
    this.fact = h("span", { class: "tlp-fact" });
    this.done = h("span", { class: "tlp-done", role: "status" });
    this.stage = h("div", { class: "tlp-film" });
    this.nothing = h("p", { class: "tlp-nothing" });
    const letter = h("i", { "aria-hidden": "true" }, this.letter);
    this.element = h(
      "section", { class: `tlp-side tlp-${this.letter.toLowerCase()}`, "aria-label": `Schedule ${this.letter}` },
      h("header", {}, letter, this.select, this.fact, this.done), this.stage, this.nothing,
    );
  }

  get playback() {
    return this.screen?.playback ?? null;
  }

  get color() {
    return this.pair.colors[this.at === 0 ? "accent" : "memory"];
  }

  /** The choices changed, or which of them is chosen. */
  relabel() {
    const choices = this.pair.model.get("choices") ?? [];
    const chosen = (this.pair.model.get("chosen") ?? [])[this.at];
    const groups = new Map();
    for (const { key, label, group } of choices) {
      if (!groups.has(group)) groups.set(group, h("optgroup", { label: group }));
      groups.get(group).append(h("option", { value: key, selected: key === chosen }, label));
    }
    this.select.replaceChildren(...groups.values());
    this.fact.textContent = choices.find(({ key }) => key === chosen)?.fact ?? "";
  }

  /** @param {Film | null} film */
  show(film) {
    if (film === this.film || (film && this.film && film.scene === this.film.scene)) return;
    this.film = film;
    const scene = film?.scene ?? null;
    if (this.screen) this.screen.model.receive("scene", scene);
    else if (scene) this.#open(scene);
    this.nothing.textContent = film && !scene?.transfers ? "This schedule has too many transfers to be played." : "";
  }

  #open(scene) {
    const { pair } = this;
    const state = {
      drawing: pair.model.get("drawing"), scene, cuts: [], toolbar: false, timeline: false, locked: true,
      theme: pair.model.get("theme") ?? "auto", height: "100%", time: 0,
    };
    this.screen = new Screen(this.stage, new PlainModel(state));
    this.screen.onMoved = (drawing) => pair.moved(this, drawing);
    this.screen.onTheme = (theme) => pair.themed(theme);
    this.screen.dom.root.setAttribute("aria-label", `Schedule ${this.letter}`);
    this.screen.stage.cy.on("viewport", () => pair.looked(this));
    pair.themed(this.screen.theme);
  }

  /** Say when it is over. */
  tell() {
    const { playback, pair } = this;
    const over = playback && pair.lead.time >= playback.makespan * (1 - 1e-9);
    const words = over ? "done" : "";
    if (this.done.textContent !== words) this.done.textContent = words;
  }
}

export class Pair {
  /** @param {HTMLElement} el @param {any} model */
  constructor(el, model) {
    this.model = model;
    this.alive = true;
    this.colors = THEMES[this.wanted];
    this.lead = new Lead(() => this.wake());
    this.sides = [new Side(this, 0), new Side(this, 1)];
    this.time = new PairTime(this);
    this.root = h(
      "div", { class: "tl tlp", role: "group", "aria-label": "Two schedules in step", "data-lm-suppress-shortcuts": "true" },
      h("style", {}, base + css), h("div", { class: "tlp-sides" }, ...this.sides.map((each) => each.element)), this.time.element,
    );
    this.root.style.height = model.get("height") || "100%";
    this.root.__pair = this;
    el.append(this.root);
    this.themed(this.wanted);
    this.listeners = {
      films: () => this.load(),
      choices: () => this.relabel(),
      chosen: () => this.relabel(),
      drawing: () => this.redrawn(),
      theme: () => this.#each((screen) => screen.model.receive("theme", model.get("theme"))),
      height: () => (this.root.style.height = model.get("height") || "100%"),
    };
    for (const [name, listener] of Object.entries(this.listeners)) model.on(`change:${name}`, listener);
    this.resized = new ResizeObserver(() => this.wake());
    this.resized.observe(this.root);
    this.relabel();
    this.load();
    this.last = performance.now();
    requestAnimationFrame((now) => this.#frame(now));
  }

  destroy() {
    this.alive = false;
    this.resized.disconnect();
    for (const [name, listener] of Object.entries(this.listeners)) this.model.off(`change:${name}`, listener);
    this.#each((screen) => screen.destroy());
    this.root.remove();
  }

  /** The theme before there is a screen that knows it. */
  get wanted() {
    const theme = this.model.get("theme");
    return theme === "light" || theme === "dark" ? theme : pageTheme();
  }

  #each(act) {
    for (const { screen } of this.sides) if (screen) act(screen);
  }

  /** The host has other films. */
  load() {
    const films = this.model.get("films") ?? [];
    const begins = !this.sides.some((side) => side.film);
    this.sides.forEach((side, i) => side.show(films[i] ?? null));
    this.lead.load(this.sides.flatMap(({ playback }) => playback ?? []));
    for (const { screen, playback } of this.sides) if (screen) screen.clock = new Hand(this.lead, playback);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (begins && this.sides.every(({ playback }) => playback) && !still) this.lead.toggle(true);
    this.root.toggleAttribute("data-busy", false);
    this.wake();
  }

  relabel() {
    for (const side of this.sides) side.relabel();
  }

  /** @param {number} at which side @param {string} key of the choice */
  choose(at, key) {
    const chosen = [...(this.model.get("chosen") ?? [])];
    chosen[at] = key;
    this.root.toggleAttribute("data-busy", true);
    this.model.set("chosen", chosen);
    this.model.save_changes();
    this.relabel();
  }

  /** The host draws another cluster. */
  redrawn() {
    this.#each((screen) => screen.model.receive("drawing", this.model.get("drawing")));
  }

  /** Devices were moved on one side. @param {Side} from @param {Drawing} drawing */
  moved(from, drawing) {
    for (const side of this.sides) if (side !== from) side.screen?.model.receive("drawing", drawing);
  }

  /** One side was panned or zoomed: the other one follows. @param {Side} from */
  looked(from) {
    if (this.following) return;
    this.following = true;
    const { cy } = from.screen.stage;
    for (const side of this.sides) {
      if (side !== from) side.screen?.stage.cy.viewport({ zoom: cy.zoom(), pan: { ...cy.pan() } });
    }
    this.following = false;
  }

  /** @param {"light" | "dark"} theme */
  themed(theme) {
    this.colors = THEMES[theme];
    this.root.dataset.theme = theme;
    for (const [name, value] of Object.entries(this.colors)) this.root.style.setProperty(`--tl-${name}`, value);
    this.wake();
  }

  /** Something changed: draw in the next frame. */
  wake() {
    this.dirty = true;
    this.#each((screen) => screen.wake());
  }

  /** Sleeps unless something changed. @param {number} now milliseconds */
  #frame(now) {
    if (!this.alive) return;
    const seconds = Math.min(0.1, (now - this.last) / 1000);
    this.last = now;
    if (this.lead.playing) {
      this.lead.advance(seconds);
      this.wake();
    }
    if (this.dirty) {
      this.dirty = false;
      this.time.draw();
      for (const side of this.sides) side.tell();
    }
    requestAnimationFrame((next) => this.#frame(next));
  }
}
