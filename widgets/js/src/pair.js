/**
 * Two to four schedules side by side on one time, or the difference of two: those that are faster end
 * and wait. Its host is a model as anywidget defines it; frames ask it for nothing.
 *
 * @typedef {import("./types.js").Scene} Scene
 * @typedef {import("./types.js").Drawing} Drawing
 * @typedef {{key: string, label: string, group: string, fact: string}} Choice
 * @typedef {{key: string, scene: Scene | null, drawing?: Drawing}} Film drawing: of another cluster than the host's
 */

import { Canvas } from "./canvas.js";
import { DifferenceView } from "./difference.js";
import { h, iconButton } from "./dom.js";
import { columns } from "./geometry.js";
import { PlainModel } from "./host.js";
import { signature } from "./model.js";
import css from "./pair.css";
import { Hand, Lead, PairTime } from "./pair_time.js";
import base from "./style.css";
import { THEMES, pageTheme } from "./style.js";

/** How many players there are at least and at most. */
const LEAST = 2;
const MOST = 4;

/** Names of the colours of the players. */
const TONES = ["accent", "memory", "relay", "switch"];

/** Whether a host wants players in step. @param {any} model */
export const wantsPair = (model) => Boolean(model.get("films"));

/** A canvas on which a device that is moved moves in both. */
class Screen extends Canvas {
  /** @type {((drawing: Drawing) => void) | null} */
  onMoved = null;
  /** @type {((theme: "light" | "dark") => void) | null} */
  onTheme = null;
  /** @type {(() => void) | null} */
  onHeat = null;

  commit(next) {
    const changed = super.commit(next);
    if (changed) this.onMoved?.(next);
    return changed;
  }

  setHeat(on, of) {
    super.setHeat(on, of);
    this.onHeat?.();
  }

  applyTheme() {
    super.applyTheme();
    this.onTheme?.(this.theme);
  }
}

/** One of the players: what is chosen, and the screen it plays on. */
class Side {
  /** @param {Pair} pair @param {number} at its place */
  constructor(pair, at) {
    this.pair = pair;
    this.at = at;
    this.letter = "ABCD"[at];
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
    const close = iconButton("close", `Close player ${this.letter}`, () => pair.close(this.at), { class: "tlp-close" });
    this.element = h(
      "section", { class: `tlp-side tlp-${this.letter.toLowerCase()}`, "aria-label": `Schedule ${this.letter}` },
      h("header", {}, letter, this.select, this.fact, this.done, close), this.stage, this.nothing,
    );
  }

  get playback() {
    return this.screen?.playback ?? null;
  }

  get color() {
    return this.pair.colors[TONES[this.at]];
  }

  /** What is drawn: a cluster of its own, or the host's. @returns {Drawing} */
  get drawing() {
    return this.film?.drawing ?? this.pair.model.get("drawing");
  }

  /** Those that have equal ones are moved and looked at together. */
  get cluster() {
    return this.film?.drawing ? signature(this.film.drawing.topology) : "";
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
    this.fact.textContent = this.fact.title = choices.find(({ key }) => key === chosen)?.fact ?? "";
  }

  /** @param {Film | null} film */
  show(film) {
    if (film === this.film || (film && this.film && film.scene === this.film.scene)) return;
    this.film = film;
    const scene = film?.scene ?? null;
    if (this.screen) {
      this.screen.model.receive("drawing", this.drawing);
      this.screen.model.receive("scene", scene);
    } else if (scene) this.#open(scene);
    this.nothing.textContent = film && !scene?.transfers ? "This schedule has too many transfers to be played." : "";
  }

  #open(scene) {
    const { pair } = this;
    this.screen = pair.open(this.stage, `Schedule ${this.letter}`, { drawing: this.drawing, scene });
    this.screen.onMoved = (drawing) => pair.moved(this, drawing);
    this.screen.stage.cy.on("viewport", () => pair.looked(this));
    pair.themed(this.screen.theme);
  }

  destroy() {
    this.screen?.destroy();
    this.element.remove();
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
    /** @type {Side[]} */
    this.sides = [];
    /** The player that was used last. @type {Side | null} */
    this.used = null;
    this.difference = new DifferenceView(this);
    this.time = new PairTime(this);
    this.grid = h("div", { class: "tlp-sides" }, this.difference.element);
    /** The legend of all players, where it is the same. */
    this.key = h("div", { class: "tlp-key" });
    this.root = h(
      "div", { class: "tl tlp", role: "group", "data-lm-suppress-shortcuts": "true" },
      h("style", {}, base + css), this.grid, this.key, this.time.element,
    );
    this.root.addEventListener("keydown", (event) => this.#onKey(event));
    for (const event of ["pointerdown", "focusin"]) {
      this.root.addEventListener(event, ({ target }) => (this.used = this.sides.find(({ element }) => element.contains(/** @type {Node} */ (target))) ?? this.used), true);
    }
    this.root.style.height = model.get("height") || "100%";
    this.root.__pair = this;
    el.append(this.root);
    this.themed(this.wanted);
    this.listeners = {
      films: () => this.load(),
      view: () => this.load(),
      choices: () => this.relabel(),
      chosen: () => this.relabel(),
      drawing: () => this.redrawn(),
      theme: () => this.#each((screen) => screen.model.receive("theme", model.get("theme"))),
      height: () => (this.root.style.height = model.get("height") || "100%"),
    };
    for (const [name, listener] of Object.entries(this.listeners)) model.on(`change:${name}`, listener);
    this.resized = new ResizeObserver(() => this.#fill());
    this.resized.observe(this.root);
    this.load();
    this.last = performance.now();
    requestAnimationFrame((now) => this.#frame(now));
  }

  destroy() {
    this.alive = false;
    this.resized.disconnect();
    for (const [name, listener] of Object.entries(this.listeners)) this.model.off(`change:${name}`, listener);
    for (const side of this.sides) side.destroy();
    this.difference.destroy();
    this.root.remove();
  }

  /** The theme before there is a screen that knows it. */
  get wanted() {
    const theme = this.model.get("theme");
    return theme === "light" || theme === "dark" ? theme : pageTheme();
  }

  #each(act) {
    for (const { screen } of [...this.sides, this.difference]) if (screen) act(screen);
  }

  /**
   * A screen that plays a scene and has no controls of its own.
   * @param {HTMLElement} stage @param {string} label @param {{drawing: Drawing, scene: Scene}} what
   */
  open(stage, label, what) {
    const state = {
      ...what, cuts: [], toolbar: false, timeline: false, locked: true, theme: this.model.get("theme") ?? "auto",
      height: "100%", time: 0,
    };
    const screen = new Screen(stage, new PlainModel(state));
    screen.onTheme = (theme) => this.themed(theme);
    screen.dom.root.setAttribute("aria-label", label);
    return screen;
  }

  /** As many players as films, or as are chosen where there are no films yet. */
  #arrange() {
    const wanted = (this.model.get("films") ?? []).length || (this.model.get("chosen") ?? []).length;
    const count = Math.max(LEAST, Math.min(MOST, wanted));
    while (this.sides.length > count) this.sides.pop()?.destroy();
    while (this.sides.length < count) {
      const side = new Side(this, this.sides.length);
      this.sides.push(side);
      this.difference.element.before(side.element);
    }
    this.grid.dataset.count = String(count);
    this.root.dataset.view = this.shown;
    this.root.setAttribute("aria-label", `${["Two", "Three", "Four"][count - LEAST]} schedules in step`);
    this.relabel();
  }

  /** Stand in the columns in which drawings are largest. */
  #fill() {
    const cy = this.sides.find(({ screen }) => screen)?.screen.stage.cy;
    const { w, h: tall } = cy?.elements().boundingBox() ?? { w: 1, h: 1 };
    const room = { width: this.grid.clientWidth, height: this.grid.clientHeight };
    const across = columns(this.sides.length, room, { w: Math.max(w, 1), h: Math.max(tall, 1) });
    this.grid.style.setProperty("--tlp-across", String(across));
    this.wake();
  }

  /** One legend below all players that have the same, so that it covers no drawing; one that is clicked stays in its player. */
  #shareLegend() {
    const legends = this.sides.flatMap(({ screen }) => screen?.panels.legend ?? []);
    const [first, ...others] = legends;
    const one = legends.length === this.sides.length && !first.querySelector("button") && others.every((each) => each.textContent === first.textContent);
    this.grid.toggleAttribute("data-one-legend", one);
    if (one) this.key.replaceChildren(first);
    else if (this.key.firstChild) this.sides[0].screen.dom.stage.append(this.key.firstChild);
  }

  /** @returns {"players" | "difference"} */
  get shown() {
    return this.model.get("view") === "difference" ? "difference" : "players";
  }

  /** Those that the time is about. */
  get timed() {
    return this.shown === "difference" ? this.sides.slice(0, 2) : this.sides;
  }

  /** The host has other films, or shows them in another view. */
  load() {
    this.#arrange();
    const films = this.model.get("films") ?? [];
    const begins = !this.sides.some((side) => side.film);
    this.sides.forEach((side, i) => side.show(films[i] ?? null));
    this.lead.load(this.timed.flatMap(({ playback }) => playback ?? []));
    for (const { screen, playback } of this.sides) if (screen) screen.clock = new Hand(this.lead, playback);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.difference.show();
    this.#shareLegend();
    this.#fill();
    if (begins && this.sides.every(({ playback }) => playback) && !still) this.lead.toggle(true);
    this.root.toggleAttribute("data-busy", false);
    this.wake();
  }

  relabel() {
    for (const side of this.sides) side.relabel();
    this.time.relabel();
  }

  #choose(chosen) {
    this.root.toggleAttribute("data-busy", true);
    this.model.set("chosen", chosen);
    this.model.save_changes();
    this.relabel();
  }

  /** @param {number} at which side @param {string} key of the choice */
  choose(at, key) {
    const chosen = [...(this.model.get("chosen") ?? [])];
    chosen[at] = key;
    this.#choose(chosen);
  }

  /** One player more, of the first choice that is not shown yet. */
  add() {
    const chosen = this.model.get("chosen") ?? [];
    const choices = this.model.get("choices") ?? [];
    const next = choices.find(({ key }) => !chosen.includes(key)) ?? choices[0];
    if (next && this.sides.length < MOST) this.#choose([...chosen, next.key]);
  }

  /** @param {number} at which player is closed; there are always two */
  close(at) {
    if (this.sides.length > LEAST) this.#choose((this.model.get("chosen") ?? []).filter((_, i) => i !== at));
  }

  /** Show the players, or what differs between the first two of them. */
  compare(on = this.shown !== "difference") {
    this.model.set("view", on ? "difference" : "players");
    this.model.save_changes();
  }

  #onKey(event) {
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.target.closest("select, input");
    if (event.key.toLowerCase() !== "d" || !plain) return;
    event.preventDefault();
    this.compare();
  }

  /** The host draws another cluster. */
  redrawn() {
    for (const side of [...this.sides, this.difference]) side.screen?.model.receive("drawing", side.drawing);
  }

  /** The other players of the cluster of one. @param {Side} from */
  #alike(from) {
    return this.sides.filter((side) => side !== from && side.cluster === from.cluster);
  }

  /** Devices were moved on one side. @param {Side} from @param {Drawing} drawing */
  moved(from, drawing) {
    for (const { screen } of this.#alike(from)) screen?.model.receive("drawing", drawing);
  }

  /** One side was panned or zoomed: the others of its cluster follow. @param {Side} from */
  looked(from) {
    if (this.following) return;
    this.following = true;
    const { cy } = from.screen.stage;
    for (const { screen } of this.#alike(from)) screen?.stage.cy.viewport({ zoom: cy.zoom(), pan: { ...cy.pan() } });
    this.following = false;
  }

  /** @param {"light" | "dark"} theme */
  themed(theme) {
    this.colors = THEMES[theme];
    this.root.dataset.theme = theme;
    for (const [name, value] of Object.entries(this.colors)) this.root.style.setProperty(`--tl-${name}`, value);
    this.difference?.recolour();
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
