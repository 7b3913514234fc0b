/**
 * The canvas: it holds the drawing, its history, the scene and the clock, and tells its parts when
 * something changed. Its host is a model as anywidget defines it.
 */

import { placeMissing } from "./arrange.js";
import { run } from "./commands.js";
import { CutView } from "./cuts.js";
import { h } from "./dom.js";
import { Finding } from "./finding.js";
import { Folding } from "./folding.js";
import { Following } from "./following.js";
import { Gestures } from "./gestures.js";
import gesturesCss from "./gestures.css";
import { follow, testHandle } from "./host.js";
import inspectCss from "./inspect/inspect.css";
import { Inspector } from "./inspect/inspector.js";
import { Keyboard } from "./keyboard.js";
import { LinkLabels } from "./link_labels.js";
import { MarkView } from "./marks.js";
import { LinkClasses } from "./link_classes.js";
import { Menu } from "./menu.js";
import { Minimap } from "./minimap.js";
import { asStepOf, History, signature, wholeDrawing } from "./model.js";
import { Notes } from "./notes.js";
import { Overlay } from "./overlay.js";
import { Panels } from "./panels.js";
import { Clock, filmOf } from "./player.js";
import { Presenter } from "./presenter.js";
import { Renaming } from "./renaming.js";
import { SketchView } from "./sketch.js";
import { Snapping } from "./snapping.js";
import { Stage } from "./stage.js";
import css from "./style.css";
import { THEMES, pageTheme } from "./style.js";
import { Timeline } from "./timeline.js";
import { listenForPinches } from "./touch.js";
import { Frames, Incumbents, Transport } from "./transport.js";

const same = (a, b) => a === b || JSON.stringify(a) === JSON.stringify(b);

export class Canvas {
  /** @param {HTMLElement} el @param {any} model */
  constructor(el, model) {
    this.model = model;
    this.alive = true;
    /** @type {"select" | "link" | "sketch"} */
    this.mode = "select";
    /** The link being drawn: where from, where to, the device aimed at. @type {any} */
    this.pull = null;
    /** Whether a film is being made. */
    this.filming = false;
    /** Whether something is to be drawn anew, or the view alone moved. */
    this.dirty = true;
    this.panned = false;
    /** What the pointer is over. @type {any} */
    this.hovered = null;
    /** Whether links show their load, and of when: the epoch that is shown, or the whole run. */
    this.heat = false;
    /** @type {"now" | "run"} */
    this.heatOf = "now";
    this.stale = false;
    /** Of two plans: by how much links are busier in one of them, and the colours of that. @type {any} */
    this.contrast = null;
    /** @type {import("./player.js").Playback | null} */
    this.playback = null;
    /** @type {string | null} */
    this.sceneSignature = null;
    /** @type {import("./buffers.js").Buffers | null} */
    this.buffers = null;
    /** Names of the ranks of the scene, and the colours of its origins and its chunks. @type {string[]} */
    this.sceneRanks = [];
    /** @type {string[]} */
    this.originColors = [];
    /** @type {string[]} */
    this.chunkColors = [];
    /** @type {Clock | import("./pair_time.js").Hand} */
    this.clock = new Clock(0, 1);
    this.clipboard = { what: null, pasted: 0 };
    this.sceneNumber = 0;
    this.history = new History(placeMissing(wholeDrawing(model.get("drawing"))));
    this.#build(el);
    this.unfollow = follow(this, this.#listeners());
    this.applyTheme();
    this.#loadScene({ autoplay: !model.get("time") });
    this.select(model.get("selection") ?? {});
    this.frames = new Frames(this);
  }

  /** @type {import("./types.js").Drawing} */
  get drawing() {
    return this.history.now;
  }

  /** Whether the cluster is only looked at. */
  get locked() {
    return Boolean(this.model.get("locked")) || this.presenter.on;
  }

  // ---- construction ------------------------------------------------------------------------

  #build(el) {
    const root = h("div", {
      class: "tl", tabindex: 0, role: "application", "aria-label": "Cluster drawing",
      // JupyterLab would take letters as commands of the notebook.
      "data-lm-suppress-shortcuts": "true",
    });
    const graph = h("div", { class: "tl-graph" });
    const live = h("div", { class: "tl-sr", "aria-live": "polite" });
    this.dom = { root, graph, live, stage: h("div", { class: "tl-stage" }) };
    this.panels = new Panels(this);
    this.folding = new Folding(this);
    this.renaming = new Renaming(this);
    this.finding = new Finding(this);
    this.linkLabels = new LinkLabels(this);
    this.linkClasses = new LinkClasses(this);
    this.snapping = new Snapping(this);
    this.minimap = new Minimap(this);
    this.notes = new Notes(this);
    this.transport = new Transport(this);
    this.markView = new MarkView(this);
    this.sketchView = new SketchView(this);
    this.inspector = new Inspector(this);
    this.presenter = new Presenter(this);
    this.following = new Following(this);
    this.overlay = new Overlay(this);
    this.timeline = new Timeline(this);
    this.incumbents = new Incumbents(this, { load: (how) => this.#loadScene(how), report: () => this.transport.report() });
    const { regions, borders, cells, tokens } = this.overlay.layers;
    this.dom.stage.append(regions, graph, borders, cells, tokens, ...this.panels.elements, this.markView.element, this.folding.element, this.incumbents.element, this.renaming.element, this.finding.element, this.minimap.element, this.notes.element);
    this.menu = new Menu(this);
    root.append(h("style", {}, css + gesturesCss + inspectCss), this.dom.stage, this.inspector.element, this.timeline.element, ...this.presenter.elements, live, ...this.menu.elements);
    root.style.height = this.model.get("height") || "100%";
    el.append(root);
    this.stage = new Stage(graph);
    this.cutView = new CutView(this);
    this.notes.listen();
    this.gestures = new Gestures(this);
    listenForPinches(this);
    this.sketchView.listen();
    this.inspector.listen();
    this.menu.listen();
    this.renaming.listen();
    this.snapping.listen();
    this.following.listen();
    this.keyboard = new Keyboard(this);
    root.__canvas = testHandle(this);
  }

  /** What to do when the host changes a value. */
  #listeners() {
    return {
      drawing: () => this.#onDrawing(),
      scene: () => this.incumbents.arrived(),
      cuts: () => this.#cutsChanged(),
      marks: () => this.#marksChanged(),
      sketch: () => this.#sketchChanged(),
      theme: () => this.applyTheme(),
      selection: () => this.#onSelection(),
      time: () => this.transport.given(),
      command: () => this.#onCommand(),
      focus: () => this.inspector.given(),
      inspect: () => this.inspector.refreshOpen(),
      toolbar: () => this.panels.refresh(),
      timeline: () => this.timeline.refresh(),
      height: () => this.inspector.drawer.fitHeight(),
    };
  }

  destroy() {
    this.alive = false;
    this.unfollow();
    this.menu.close();
    this.presenter.destroy();
    this.inspector.destroy();
    this.stage.destroy();
    this.dom.root.remove();
  }

  // ---- the drawing ---------------------------------------------------------------------------

  /**
   * Make `next` the drawing, as one step of the history; on a locked canvas only a move is one.
   * @param {import("./types.js").Drawing} next @returns {boolean} whether anything changed
   */
  commit(next) {
    if (this.locked && signature(next.topology) !== signature(this.drawing.topology)) {
      this.refuse("this view only shows; change the cluster on the canvas");
      return false;
    }
    if (!this.history.push(asStepOf(this.drawing.document, next))) return false;
    this.#publish();
    this.repaint();
    return true;
  }

  /** @param {"undo" | "redo"} where */
  travel(where) {
    if (this.locked || !this.history[where]()) return;
    this.#publish();
    this.repaint();
    this.say(where === "undo" ? "Undone" : "Done again");
  }

  /**
   * Make the steps of an earlier visit those that can be undone and done again.
   * @param {import("./types.js").Drawing[]} past @param {import("./types.js").Drawing[]} future
   */
  recall(past, future) {
    Object.assign(this.history, { past, future });
    this.panels.refresh();
  }

  #publish() {
    this.tell({ drawing: this.drawing });
  }

  /** Give values to the host. @param {Record<string, unknown>} values */
  tell(values) {
    for (const [name, value] of Object.entries(values)) this.model.set(name, value);
    this.model.save_changes();
  }

  #onDrawing() {
    const given = this.model.get("drawing");
    if (!given || given === this.drawing) return;
    const next = wholeDrawing(given.document ? given : asStepOf(this.drawing.document, given));
    if (same(next, this.drawing)) return;
    const before = this.drawing.topology.devices;
    this.history.push(placeMissing(next));
    if (!same(this.drawing, given)) this.#publish();
    this.repaint();
    const known = new Set(before.map((d) => d.name));
    if (!this.drawing.topology.devices.some((d) => known.has(d.name))) this.fit();
  }

  /** Bring everything in line with the drawing and with what is folded. */
  repaint() {
    const { topology } = this.drawing;
    this.deviceIndex = new Map(topology.devices.map((d, i) => [d.name, i]));
    this.shown = this.folding.show(this.drawing);
    this.stage.paint(this.shown);
    this.linkClasses.refresh();
    this.#markStale();
    this.#markFilled();
    this.cutView.refresh();
    this.markView.refresh();
    this.sketchView.refresh();
    this.inspector.repainted();
    this.finding.refresh();
    this.notes.refresh();
    this.presenter.refresh();
    this.panels.refresh();
    this.selectionChanged();
    this.redrawAll();
  }

  // ---- selection and modes -----------------------------------------------------------------------

  get selection() {
    return this.stage.selection();
  }

  /** @param {Partial<import("./types.js").Selection>} selection */
  select(selection) {
    this.stage.select(selection);
    this.selectionChanged();
  }

  selectionChanged() {
    if (this.selectionPending) return;
    this.selectionPending = true;
    // A box selects many one by one; the host hears of it once.
    queueMicrotask(() => {
      this.selectionPending = false;
      if (!this.alive) return;
      const now = this.selection;
      if (now.devices.length || now.hosts.length || now.links.length) this.notes.select(null);
      if (!same(now, this.model.get("selection"))) this.tell({ selection: now });
    });
    this.wake();
  }

  #onSelection() {
    const given = this.model.get("selection");
    if (given && !same(given, this.selection)) this.stage.select(given);
    this.wake();
  }

  /** @param {"select" | "link" | "sketch"} mode */
  setMode(mode) {
    const sketched = this.mode === "sketch" || mode === "sketch";
    if (mode === "sketch") this.select({});
    this.mode = mode;
    this.pull = null;
    if (sketched) this.sketchView.turned();
    this.stage.cy.autoungrabify(mode !== "select");
    this.stage.cy.autounselectify(mode === "sketch");
    this.dom.root.toggleAttribute("data-sketching", mode === "sketch");
    this.panels.refresh();
    this.wake();
  }

  /** Host of a device. @param {string} name */
  hostOf(name) {
    return this.drawing.topology.devices[this.deviceIndex.get(name)]?.host ?? null;
  }

  /** A device in one sentence, for those who listen. @param {string} name */
  describe(name) {
    const { devices, links } = this.drawing.topology;
    const device = devices[this.deviceIndex.get(name)];
    const out = links.filter((l) => l.src === name).length;
    return `${name}, ${device.kind}${device.host === null ? "" : ` in ${device.host}`}, ${out} links out`;
  }

  fit() {
    this.stage.fit([...this.cutView.bounds(), ...this.notes.rects()]);
  }

  /** @param {number} factor @param {import("./types.js").Point} [at] in the stage */
  zoom(factor, at = { x: this.stage.cy.width() / 2, y: this.stage.cy.height() / 2 }) {
    this.stage.cy.zoom({ level: this.stage.cy.zoom() * factor, renderedPosition: at });
  }

  // ---- the scene and the clock ----------------------------------------------------------------------

  #loadScene({ autoplay }) {
    const { speed } = this.clock;
    this.sceneNumber += 1;
    this.incumbents.reset();
    Object.assign(this, filmOf(this.model.get("scene")));
    this.clock.seek(this.model.get("time") ?? 0);
    this.clock.speed = speed;
    this.#markStale();
    this.#markFilled();
    this.#cutsChanged();
    this.inspector.loaded();
    this.presenter.refresh();
    this.panels.refresh();
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (autoplay && this.playback && !this.stale && !still) {
      this.clock.seek(0);
      this.transport.play(true);
    }
  }

  /** Whether the schedule belongs to another cluster than the one drawn. */
  #markStale() {
    const { topology } = this.drawing;
    if (this.signedTopology !== topology) {
      this.signedTopology = topology;
      this.drawingSignature = signature(topology);
    }
    this.stale = this.sceneSignature !== null && this.drawingSignature !== this.sceneSignature;
    if (this.stale) this.clock.playing = false;
    this.dom.root.toggleAttribute("data-stale", this.stale);
    if (Boolean(this.model.get("stale")) !== this.stale) this.tell({ stale: this.stale });
  }

  /** Labels move up where the box shows a buffer. */
  #markFilled() {
    const on = this.playback !== null && !this.stale && this.buffers.devices.length > 0;
    this.stage.cy.batch(() => this.stage.cy.nodes(".gpu, .memory").toggleClass("filled", on));
  }

  #cutsChanged() {
    this.cutsSignature = this.drawingSignature;
    this.cutView.refresh();
    this.timeline.refresh();
    // Another region may reach beyond what is in view; the view never moves under a gesture.
    const regions = JSON.stringify((this.model.get("cuts") ?? []).map(({ inside }) => inside));
    const beyond = regions !== this.regions && !this.stage.inView(this.cutView.bounds());
    if (this.stage.isFitted && beyond && !this.pull) this.fit();
    this.regions = regions;
    this.redrawAll();
  }

  #marksChanged() {
    this.markView.refresh();
    this.redrawAll();
  }

  #sketchChanged() {
    this.sketchView.refresh();
    this.redrawAll();
  }

  /** Say what is under the pointer; of a large drawing the rest steps back. @param {any} what */
  point(what) {
    this.hovered = what;
    this.panels.showTip();
    this.refade();
  }

  /** Lines that are not looked at, or not marked, step back. */
  refade() {
    this.stage?.fade(this.inspector.path.faded ?? this.markView.faded ?? this.linkClasses.faded);
    if (this.cutView?.wires.size) this.overlay.refade();
  }

  /** Show how busy links are, or not. @param {boolean} on @param {"now" | "run"} [of] the epoch or the whole run */
  setHeat(on, of = this.heatOf) {
    this.heat = on;
    this.heatOf = of;
    this.panels.refresh();
    this.redrawAll();
  }

  // ---- the host and the user --------------------------------------------------------------------------

  #onCommand() {
    const command = this.model.get("command");
    if (!command?.name || command.n === this.lastCommand) return;
    this.lastCommand = command.n;
    run(this, command.name, command.args ?? {});
  }

  /** @param {string} text for the screen reader */
  say(text) {
    this.dom.live.textContent = text;
  }

  /** @param {string} text why something was not done */
  refuse(text) {
    this.panels.showToast(text);
    this.messages = (this.messages ?? 0) + 1;
    this.tell({ message: { text, n: this.messages } });
  }

  applyTheme() {
    const wanted = this.model.get("theme");
    const theme = wanted === "light" || wanted === "dark" ? wanted : pageTheme();
    if (theme === this.theme) return;
    this.theme = theme;
    this.colors = THEMES[theme];
    this.dom.root.dataset.theme = theme;
    for (const [name, value] of Object.entries(this.colors)) this.dom.root.style.setProperty(`--tl-${name}`, value);
    this.stage.setColors(this.colors);
    this.repaint();
  }

  // ---- frames ------------------------------------------------------------------------------------------

  /** Something small changed: draw in the next frame. */
  wake() {
    this.dirty = true;
  }

  /** The view, the graph or the theme changed: draw all layers in the next frame. */
  redrawAll() {
    this.overlay.invalidate();
    this.wake();
  }

  redraw(now = performance.now()) {
    this.dirty = false;
    this.overlay.draw(now);
    this.timeline.draw();
    this.inspector.draw();
  }
}
