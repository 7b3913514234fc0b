/**
 * Context menu: opened by the right button, a long press or the Menu key, walked with the arrows. It
 * first selects what is under the pointer, and stays within the canvas.
 *
 * @typedef {import("./canvas.js").Canvas} Canvas
 * @typedef {import("./types.js").Point} Point
 * @typedef {import("./menu_items.js").Item} Item
 */

import { canBuild, run } from "./commands.js";
import { h } from "./dom.js";
import { centre, hullRect } from "./geometry.js";
import { itemsFor } from "./menu_items.js";
import { isSelected, partAt } from "./pointing.js";

/** Milliseconds and pixels of a long press. */
const LONG = 500;
const STILL = 10;
/** Pixels that a submenu is wide at most. */
const SUBMENU = 300;
/** Pixels between a menu and the edge of the canvas. */
const EDGE = 6;

export class Menu {
  /** @param {Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.element = h("div", { class: "tl-menu tl-float", role: "menu", tabindex: -1, hidden: true });
    this.sub = h("div", { class: "tl-menu tl-float", role: "menu", hidden: true });
    /** The item whose submenu is open. @type {HTMLElement | null} */
    this.opener = null;
    for (const menu of [this.element, this.sub]) menu.addEventListener("keydown", (event) => this.#onKey(event));
    this.outside = (event) => !this.#has(event.target) && this.close();
  }

  get elements() {
    return [this.element, this.sub];
  }

  get isOpen() {
    return !this.element.hidden;
  }

  /** Open at clicks and long presses on the stage. */
  listen() {
    const { stage, root } = this.canvas.dom;
    root.addEventListener("contextmenu", (event) => this.#onContext(event));
    stage.addEventListener("pointerdown", (event) => this.#onDown(event), true);
    const end = () => clearTimeout(this.timer);
    stage.addEventListener("pointermove", (event) => {
      if (this.pressed && Math.hypot(event.clientX - this.pressed.x, event.clientY - this.pressed.y) > STILL) end();
    }, true);
    for (const type of ["pointerup", "pointercancel"]) {
      stage.addEventListener(type, () => {
        end();
        this.#afterPress();
      }, true);
    }
    stage.addEventListener("wheel", () => this.close(), { passive: true, capture: true });
    root.addEventListener("focusout", (event) => {
      if (this.isOpen && event.relatedTarget && !this.#has(event.relatedTarget)) this.close({ focus: false });
    });
  }

  #has(target) {
    return this.elements.some((menu) => menu.contains(/** @type {Node} */ (target)));
  }

  #onContext(event) {
    if (this.#has(event.target)) return event.preventDefault();
    if (!this.canvas.dom.stage.contains(event.target) && event.target !== this.canvas.dom.root) return undefined;
    if (this.canvas.panels.has(event.target)) return undefined;
    event.preventDefault();
    // JupyterLab has a menu of its own.
    event.stopPropagation();
    // A long press and the Menu key have opened it already.
    if (this.isOpen && (event.button !== 2 || this.pressed)) return undefined;
    clearTimeout(this.timer);
    return run(this.canvas, "menu", event.target === this.canvas.dom.root ? {} : { at: this.#local(event) });
  }

  #onDown(event) {
    this.pressed = null;
    clearTimeout(this.timer);
    if (event.pointerType !== "touch" || !event.isPrimary || this.canvas.panels.has(event.target)) return;
    this.pressed = { x: event.clientX, y: event.clientY };
    const at = this.#local(event);
    this.timer = setTimeout(() => run(this.canvas, "menu", { at }), LONG);
  }

  /** The finger that opened the menu leaves: to cytoscape that was a click on one thing. */
  #afterPress() {
    const { held } = this;
    this.held = null;
    this.pressed = null;
    if (held) setTimeout(() => this.canvas.alive && this.canvas.select(held));
  }

  /** @param {MouseEvent} event @returns {Point} in the stage */
  #local(event) {
    const box = this.canvas.dom.stage.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  // ---- opening and closing -----------------------------------------------------------------------

  /** @param {Point} [at] in the stage; by default where the selection is */
  open(at) {
    const { canvas } = this;
    this.close({ focus: false });
    canvas.pull = null;
    const part = at && partAt(canvas, canvas.stage.toModel(at));
    if (part && !isSelected(canvas.selection, part)) canvas.select(part);
    else if (at && !part) canvas.select({});
    canvas.hovered = null;
    canvas.panels.showTip();
    this.held = this.pressed ? canvas.selection : null;
    const place = at ?? this.#spot();
    const items = itemsFor(this.#situation(place));
    if (!items.length) return;
    this.#fill(this.element, items);
    this.element.setAttribute("aria-label", `Commands for ${this.#subject()}`);
    this.element.hidden = false;
    this.#place(this.element, [place.x + 2, place.y + 2], [place.x - 2, place.y - 2]);
    document.addEventListener("pointerdown", this.outside, true);
    if (at) this.element.focus({ preventScroll: true });
    else this.#focus(this.element, 0);
  }

  /** @param {{focus?: boolean}} [how] focus: give it back to the canvas */
  close({ focus = true } = {}) {
    if (!this.isOpen) return;
    this.#closeSub();
    const inside = this.element.contains(document.activeElement);
    this.element.hidden = true;
    document.removeEventListener("pointerdown", this.outside, true);
    if (focus || inside) this.canvas.dom.root.focus({ preventScroll: true });
  }

  /** Where the Menu key opens it: at the selection, else in the middle. @returns {Point} */
  #spot() {
    const { stage, dom } = this.canvas;
    const [width, height] = [dom.stage.clientWidth, dom.stage.clientHeight];
    const box = hullRect(stage.rectsOf(this.canvas.selection));
    const { x, y } = box ? stage.toScreen(centre(box)) : { x: width / 2, y: height / 2 };
    return { x: Math.min(width - EDGE, Math.max(EDGE, x)), y: Math.min(height - EDGE, Math.max(EDGE, y)) };
  }

  /** @param {Point} at @returns {import("./menu_items.js").Situation} */
  #situation(at) {
    const { canvas } = this;
    const { selection, shown, history } = canvas;
    const p = canvas.stage.toModel(at);
    const host = canvas.stage.hostAt(p);
    const { x, y } = shown.toDrawing(p);
    return {
      drawing: canvas.drawing, selection,
      place: { position: canvas.folding.middle(host) ?? [x, y], host },
      device: canvas.stage.deviceAt(p),
      ground: ![...selection.devices, ...selection.hosts, ...selection.links].length,
      folded: shown.groups.map((group) => group.host).filter((name) => name !== null),
      shown: { labels: canvas.linkLabels.on, grid: canvas.snapping.grid, map: canvas.minimap.on, ...(canvas.playback ? { following: canvas.following.on } : {}) },
      copied: canvas.clipboard.what !== null,
      builds: canBuild(canvas),
      note: canvas.notes.selected !== null,
      viewing: canvas.locked || canvas.mode === "sketch",
      history: { past: history.past.length > 0, future: history.future.length > 0 },
      preset: canvas.model.get("link_preset") ?? { bandwidth: 50, alpha: 0, medium: "" },
    };
  }

  #subject() {
    const { devices, hosts, links } = this.canvas.selection;
    const all = [...devices, ...hosts, ...links.map((ends) => ends.join(" and "))];
    if (!all.length) return "the drawing";
    return all.length === 1 ? all[0] : `${all.length} selected`;
  }

  // ---- items ---------------------------------------------------------------------------------------

  /** @param {HTMLElement} menu @param {(Item | null)[]} items */
  #fill(menu, items) {
    menu.scrollTop = 0;
    menu.replaceChildren(...items.map((item) => (item ? this.#item(item) : h("hr", { role: "separator" }))));
  }

  /** @param {Item} item */
  #item(item) {
    const { label, keys, items, checked } = item;
    const button = h(
      "button",
      {
        type: "button", tabindex: -1, role: checked === undefined ? "menuitem" : "menuitemcheckbox",
        "aria-checked": checked === undefined ? null : String(checked),
        "aria-haspopup": items ? "menu" : null, "aria-expanded": items ? "false" : null,
        "aria-keyshortcuts": keys?.replace("Ctrl", "Control").replace("Del", "Delete"),
        onclick: () => (items ? this.#openSub(button, items) : this.#choose(item)),
        onpointerenter: (event) => event.pointerType === "mouse" && this.#over(button, items),
      },
      h("span", {}, label), h("kbd", {}, items ? "" : keys ?? ""),
    );
    button.openSub = items && (() => this.#openSub(button, items));
    return button;
  }

  /** @param {Item} item */
  #choose({ command, args }) {
    this.close();
    run(this.canvas, /** @type {string} */ (command), args);
    this.canvas.wake();
  }

  /** The mouse is over an item. @param {any} button @param {(Item | null)[]} [items] */
  #over(button, items) {
    if (this.element.contains(button)) {
      // One that has to cover its opener waits for a click: the pointer would be over an item of it.
      if (items && this.#roomBeside) this.#openSub(button, items, { focus: false });
      else this.#closeSub();
    }
    button.focus({ preventScroll: true });
  }

  /** Whether a submenu finds room on one side of the menu. */
  get #roomBeside() {
    const { offsetLeft, offsetWidth } = this.element;
    const right = this.canvas.dom.root.clientWidth - offsetLeft - offsetWidth;
    return Math.max(offsetLeft, right) > SUBMENU;
  }

  /** @param {HTMLElement} opener @param {(Item | null)[]} items */
  #openSub(opener, items, { focus = true } = {}) {
    if (this.opener !== opener) {
      this.#closeSub();
      this.opener = opener;
      opener.setAttribute("aria-expanded", "true");
      this.#fill(this.sub, items);
      this.sub.setAttribute("aria-label", /** @type {string} */ (opener.firstElementChild?.textContent));
      this.sub.hidden = false;
      const [box, whole] = [opener.getBoundingClientRect(), this.canvas.dom.root.getBoundingClientRect()];
      const top = box.top - whole.top - 6;
      this.#place(this.sub, [box.right - whole.left + 2, top], [box.left - whole.left - 2, top + this.sub.offsetHeight]);
    }
    if (focus) this.#focus(this.sub, 0);
  }

  #closeSub() {
    this.opener?.setAttribute("aria-expanded", "false");
    this.opener = null;
    this.sub.hidden = true;
  }

  /**
   * Beside a place: to the right of and below the first point, or where there is no room to the left of
   * and above the second.
   * @param {HTMLElement} menu @param {[number, number]} from @param {[number, number]} to
   */
  #place(menu, from, to) {
    const { root } = this.canvas.dom;
    const along = (i, size, room) => {
      const after = from[i] + size <= room - EDGE ? from[i] : to[i] - size;
      return Math.max(EDGE, Math.min(after, room - size - EDGE));
    };
    menu.style.left = `${along(0, menu.offsetWidth, root.clientWidth)}px`;
    menu.style.top = `${along(1, menu.offsetHeight, root.clientHeight)}px`;
  }

  // ---- the keyboard -----------------------------------------------------------------------------------

  /** @param {HTMLElement} menu @returns {any[]} */
  #buttons(menu) {
    return [...menu.querySelectorAll("button")];
  }

  /** @param {HTMLElement} menu @param {number} at counted from the end where negative */
  #focus(menu, at) {
    this.#buttons(menu).at(at)?.focus({ preventScroll: false });
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    event.stopPropagation();
    const menu = /** @type {HTMLElement} */ (event.currentTarget);
    const buttons = this.#buttons(menu);
    const at = buttons.indexOf(document.activeElement);
    const { key } = event;
    if (key === "Enter" || key === " ") return;
    event.preventDefault();
    if (key === "ArrowDown" || key === "ArrowUp") {
      const by = key === "ArrowDown" ? 1 : -1;
      this.#focus(menu, at < 0 ? (by > 0 ? 0 : -1) : (at + by + buttons.length) % buttons.length);
    } else if (key === "Home" || key === "End") this.#focus(menu, key === "Home" ? 0 : -1);
    else if (key === "ArrowRight") buttons[at]?.openSub?.();
    else if (menu === this.sub && (key === "ArrowLeft" || key === "Escape")) {
      const { opener } = this;
      this.#closeSub();
      opener?.focus();
    } else if (key === "Escape" || key === "Tab") this.close();
    else if (key.length === 1) this.#spell(buttons, at, key.toLowerCase());
  }

  /** Go to the next item that begins with a letter. @param {any[]} buttons @param {number} at @param {string} letter */
  #spell(buttons, at, letter) {
    const order = [...buttons.slice(at + 1), ...buttons.slice(0, at + 1)];
    order.find((button) => button.textContent.toLowerCase().startsWith(letter))?.focus();
  }
}
