/**
 * The pointer: pulling links from a port or in link mode, dropping from a palette, moving, hover
 * and zoom. A box that is dragged with Shift takes the devices in it, or the links where there are none or
 * with Alt; the view moves by dragging the ground.
 *
 * @typedef {import("./canvas.js").Canvas} Canvas
 * @typedef {import("./types.js").Point} Point
 */

import { run } from "./commands.js";
import { grown, within } from "./geometry.js";
import { touchDevice } from "./inspect/navigation.js";
import { KINDS, move } from "./model.js";
import { partAt } from "./pointing.js";

const DRAG_TYPE = "application/x-topology";
/**
 * Pixels around a port within which it is grabbed, and outside the edge of a device within which the port of
 * that side is; with the link tool devices are hit from farther away.
 */
const PORT_REACH = 11;
const EDGE_REACH = 12;
const LINK_REACH = 18;
/** Milliseconds and pixels between the clicks of a double click. */
const DOUBLE = 350;
const NEAR = 14;
/** Pixels that the pointer may move in a click. */
const STILL = 4;

export class Gestures {
  /** @param {Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    const { stage, root } = canvas.dom;
    stage.addEventListener("pointermove", (event) => this.#onMove(event));
    stage.addEventListener("pointerdown", (event) => this.#onDown(event), true);
    stage.addEventListener("pointerup", (event) => this.#onUp(event), true);
    stage.addEventListener("pointerleave", () => this.#leave());
    stage.addEventListener("pointercancel", () => this.#drop(), true);
    for (const type of ["mousedown", "touchstart"]) {
      stage.addEventListener(type, (event) => this.#shield(event), { capture: true, passive: false });
    }
    // Where it is pressed cytoscape takes the focus from whatever has it, and keys would reach the page.
    stage.addEventListener("mousedown", (event) => {
      if (!canvas.panels.has(event.target)) root.focus({ preventScroll: true });
    });
    stage.addEventListener("wheel", (event) => this.#onWheel(event, root), { passive: false, capture: true });
    stage.addEventListener("dragover", (event) => this.#onDragOver(event));
    stage.addEventListener("drop", (event) => this.#onDrop(event));
    this.#listen();
  }

  /** What cytoscape reports. */
  #listen() {
    const { canvas } = this;
    const { cy } = canvas.stage;
    let moved = false;
    // A group that is dragged reports every device; it is one edit.
    cy.on("dragfree", "node", () => {
      if (moved) return;
      moved = true;
      queueMicrotask(() => {
        moved = false;
        if (canvas.alive) canvas.commit(move(canvas.drawing, canvas.folding.dragged(canvas.stage.positions())));
      });
    });
    let boxed = [];
    cy.on("boxselect", ({ target }) => {
      boxed.push(target);
      if (boxed.length > 1) return;
      queueMicrotask(() => {
        const all = cy.collection(boxed);
        boxed = [];
        const [nodes, lines] = [all.nodes(), all.edges()];
        if (this.alt) nodes.unselect();
        else if (nodes.nonempty()) lines.unselect();
      });
    });
    cy.on("position bounds zoom resize", () => canvas.redrawAll());
    cy.on("pan", () => {
      canvas.overlay.pan();
      canvas.panned = true;
    });
    cy.on("zoom", () => canvas.panels.showZoom(cy.zoom()));
    cy.on("select unselect", () => !canvas.stage.applying && canvas.selectionChanged());
    cy.on("tap", (event) => this.#isSecond(event.renderedPosition) && this.#onDouble(event));
    cy.on("mouseover", "node.group", (event) => this.#overGroup(event.target.data("name")));
    cy.on("mouseout", "node.group", () => this.#overGroup(null));
    cy.on("mouseover", "edge", (event) => this.#overLine(event.target, true));
    cy.on("mouseout", "edge", (event) => this.#overLine(event.target, false));
  }

  /** A double click opens what is folded and renames a device or a host; its name stands above its box. */
  #onDouble({ target, position }) {
    const { canvas } = this;
    if (target !== canvas.stage.cy && target.isNode() && target.hasClass("group")) {
      run(canvas, "fold", { keys: [target.data("name")] });
      return;
    }
    const { devices, hosts } = partAt(canvas, position) ?? {};
    if (canvas.mode === "select" && (devices || hosts)) run(canvas, "rename", { device: devices?.[0], host: hosts?.[0] });
  }

  /** @param {string | null} key */
  #overGroup(key) {
    this.canvas.point(key === null ? null : { group: key });
  }

  #overLine(edge, on) {
    edge.toggleClass("hovered", on);
    this.canvas.point(on ? { line: [edge.data("a"), edge.data("b")] } : null);
  }

  /** @param {PointerEvent | DragEvent | WheelEvent} event @returns {Point} in the stage */
  #local(event) {
    const box = this.canvas.dom.stage.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  /** Port of a device near a point of the stage, by its place among the ports. */
  #portNear(name, p) {
    const { stage } = this.canvas;
    const r = /** @type {import("./types.js").Rect} */ (stage.rect(name));
    const far = stage.ports(name).map((port) => {
      const at = stage.toScreen(port);
      return Math.hypot(at.x - p.x, at.y - p.y);
    });
    const least = Math.min(...far);
    const outside = !within(r, stage.toModel(p));
    // A small device has to have a middle by which it is moved.
    const small = (Math.min(r.x2 - r.x1, r.y2 - r.y1) * stage.cy.zoom()) / 3;
    const near = outside ? within(grown(r, EDGE_REACH / stage.cy.zoom()), stage.toModel(p)) : least < Math.min(PORT_REACH, small);
    return near || least < Math.min(PORT_REACH, small) ? far.indexOf(least) : -1;
  }

  /** The device at a point of the stage, or the nearest within some pixels. */
  #deviceNear(p, pixels) {
    const { stage } = this.canvas;
    const at = stage.toModel(p);
    return stage.deviceAt(at, 0) ?? stage.deviceAt(at, pixels / stage.cy.zoom());
  }

  #onMove(event) {
    const { canvas } = this;
    const p = this.#local(event);
    canvas.panels.moveTip(p);
    if (canvas.pull && !canvas.pull.keyboard) {
      const to = canvas.stage.toModel(p);
      const over = this.#deviceNear(p, LINK_REACH);
      Object.assign(canvas.pull, { to, over: over === canvas.pull.from ? null : over });
      canvas.wake();
      return;
    }
    if (canvas.presenter.on) return;
    this.#hover(p);
  }

  /** @param {Point} p */
  #hover(p) {
    const { canvas } = this;
    const before = canvas.hovered?.device;
    const grabbed = before && canvas.mode !== "sketch" && canvas.stage.rect(before) && this.#portNear(before, p) >= 0;
    const device = grabbed ? before : this.#deviceNear(p, canvas.mode === "link" ? LINK_REACH : EDGE_REACH);
    const sketching = canvas.mode === "sketch";
    const port = device && !sketching ? this.#portNear(device, p) : -1;
    if (device !== (before ?? null) || port !== (canvas.hovered?.port ?? -1)) {
      if (device || before) {
        canvas.point(device ? { device, port } : null);
      }
      canvas.wake();
    }
    const linking = device && (canvas.mode === "link" || port >= 0);
    canvas.dom.stage.style.cursor = sketching && (device || canvas.hovered?.line) ? "pointer" : linking ? "crosshair" : "";
  }

  #leave() {
    const { canvas } = this;
    if (canvas.pull && !canvas.pull.keyboard) return;
    canvas.point(null);
    canvas.wake();
  }

  #onDown(event) {
    const { canvas } = this;
    if (canvas.panels.has(event.target)) return;
    canvas.dom.root.focus({ preventScroll: true });
    const { hovered } = canvas;
    if (event.button !== 0 || !hovered?.device) return;
    if (canvas.mode === "sketch" || (canvas.mode !== "link" && hovered.port < 0)) return;
    const at = canvas.stage.toModel(this.#local(event));
    canvas.pull = { from: hovered.device, at, to: at, over: null };
    canvas.dom.stage.setPointerCapture?.(event.pointerId);
    this.#shield(event);
    canvas.panels.showTip();
  }

  /** Keep a gesture of ours from cytoscape. */
  #shield(event) {
    if (!this.canvas.pull || this.canvas.pull.keyboard) return;
    event.stopPropagation();
    event.preventDefault();
  }

  /** @param {PointerEvent} event */
  #onUp(event) {
    const { canvas } = this;
    this.alt = event.altKey;
    const { pull } = canvas;
    if (!pull || pull.keyboard) return;
    this.#drop();
    const still = canvas.mode === "select" && Math.hypot(pull.to.x - pull.at.x, pull.to.y - pull.at.y) * canvas.stage.cy.zoom() < STILL;
    if (still && this.#isSecond(canvas.stage.toScreen(pull.at))) run(canvas, "rename", { device: pull.from });
    else if (still) {
      // A click on a port is one on its device.
      canvas.select({ devices: [pull.from] });
      touchDevice(canvas.inspector, pull.from, pull.at);
    } else if (pull.over) run(this.canvas, "link", { src: pull.from, dst: pull.over });
  }

  /**
   * Whether a click is the second one at its place; cytoscape's own double tap counts clicks anywhere.
   * @param {Point} p in the stage
   */
  #isSecond(p) {
    const { last } = this;
    const now = performance.now();
    const second = last && now - last.now < DOUBLE && Math.hypot(p.x - last.p.x, p.y - last.p.y) < NEAR;
    this.last = second ? null : { p, now };
    return second;
  }

  #drop() {
    if (this.canvas.pull?.keyboard) return;
    this.canvas.pull = null;
    this.canvas.wake();
  }

  #onWheel(event, root) {
    // Without the focus the wheel scrolls the page, so that nobody is caught in a notebook.
    if (!(event.ctrlKey || event.metaKey || root.contains(document.activeElement))) return;
    if (this.canvas.panels.has(event.target)) return;
    event.preventDefault();
    this.canvas.zoom(Math.exp(-event.deltaY * 0.0016), this.#local(event));
  }

  #onDragOver(event) {
    if (!event.dataTransfer.types.includes(DRAG_TYPE)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "copy";
  }

  #onDrop(event) {
    const { canvas } = this;
    const kind = event.dataTransfer.getData(DRAG_TYPE);
    if (!KINDS[kind]) return;
    event.preventDefault();
    const at = canvas.stage.toModel(this.#local(event));
    const host = canvas.stage.hostAt(at);
    const { x, y } = canvas.shown.toDrawing(at);
    run(canvas, "add", { kind, position: canvas.folding.middle(host) ?? [x, y], host });
    canvas.dom.root.focus({ preventScroll: true });
  }
}
