/**
 * Renaming in place: a field over the name of a device or a host. Enter keeps what was typed, Escape
 * drops it, and a name that cannot be taken says why and stays.
 *
 * @typedef {{device?: string, host?: string}} Named one of the two
 */

import { run } from "./commands.js";
import { h } from "./dom.js";
import { shortName } from "./names.js";
import { hostKey } from "./folding.js";
import { centre } from "./geometry.js";
import { EditError, renameDevice, renameHost } from "./model.js";

/** Pixels above the box of a host where its name stands. */
const ABOVE = 11;

export class Renaming {
  /** @param {import("./canvas.js").Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    /** @type {Named | null} */
    this.what = null;
    this.field = h("input", {
      type: "text", spellcheck: "false", autocomplete: "off", "aria-describedby": "tl-rename-why",
      onkeydown: (event) => this.#onKey(event), oninput: () => this.#complain(""), onblur: () => this.#left(),
    });
    this.why = h("div", { id: "tl-rename-why", role: "alert", hidden: true });
    this.element = h("div", { class: "tl-rename tl-float", hidden: true }, this.field, this.why);
  }

  listen() {
    const { cy } = this.canvas.stage;
    cy.on("pan zoom resize", () => this.what && this.#place());
  }

  /** @param {Named} [what] by default what is selected */
  open(what = this.#selected()) {
    const { canvas } = this;
    if (canvas.locked || canvas.mode === "sketch") throw new EditError("this view only shows; change the cluster on the canvas");
    const name = what.device ?? what.host;
    const device = canvas.drawing.topology.devices.find((d) => d.name === what.device);
    const shown = device ? shortName(device) : /** @type {string} */ (name);
    this.what = what;
    /** What the box of the host says already. */
    this.prefix = device ? device.name.slice(0, device.name.length - shown.length) : "";
    canvas.select(device ? { devices: [device.name] } : { hosts: [name] });
    canvas.hovered = null;
    canvas.panels.showTip();
    this.#complain("");
    this.field.value = shown;
    this.field.setAttribute("aria-label", `New name of ${name}`);
    this.element.hidden = false;
    this.#place();
    this.field.focus({ preventScroll: true });
    this.field.select();
  }

  /** @returns {Named} */
  #selected() {
    const { devices, hosts } = this.canvas.selection;
    if (devices.length + hosts.length === 1) return devices.length ? { device: devices[0] } : { host: hosts[0] };
    throw new EditError("renaming needs one device or one host; select it");
  }

  /** The middle of the field is that of the name. */
  #place() {
    const { stage } = this.canvas;
    const { device, host } = /** @type {Named} */ (this.what);
    const folded = this.canvas.shown.byKey.has(hostKey(host ?? ""));
    const rect = device !== undefined ? stage.rect(device) : stage.hostRect(/** @type {string} */ (host));
    if (!rect) return this.close();
    const onBox = device !== undefined || folded;
    const { x, y } = stage.toScreen(onBox ? centre(rect) : { x: centre(rect).x, y: rect.y1 });
    this.element.style.left = `${x}px`;
    this.element.style.top = `${onBox ? y : y - ABOVE}px`;
    return undefined;
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    event.stopPropagation();
    if (event.key === "Enter") this.#keep();
    else if (event.key === "Escape") this.close();
    else return;
    event.preventDefault();
  }

  /** Somebody clicked elsewhere: what can be taken is. */
  #left() {
    if (this.what && !this.#keep()) this.close();
  }

  /** @returns {boolean} whether the name could be taken */
  #keep() {
    const { drawing } = this.canvas;
    const { device, host } = /** @type {Named} */ (this.what);
    const typed = this.field.value.trim();
    const name = typed && this.prefix + typed;
    try {
      if (device !== undefined) renameDevice(drawing, device, name);
      else renameHost(drawing, /** @type {string} */ (host), name);
    } catch (error) {
      if (!(error instanceof EditError)) throw error;
      this.#complain(error.message);
      return false;
    }
    this.close();
    if (device !== undefined) run(this.canvas, "rename_device", { device, name });
    else run(this.canvas, "rename_host", { host, name });
    this.canvas.say(`Renamed to ${name}`);
    return true;
  }

  /** @param {string} why empty where nothing is wrong */
  #complain(why) {
    this.why.textContent = why;
    this.why.hidden = !why;
    this.field.toggleAttribute("aria-invalid", Boolean(why));
    this.field.size = Math.min(28, Math.max(7, this.field.value.length + 1));
  }

  close() {
    if (!this.what) return;
    this.what = null;
    const focused = document.activeElement === this.field;
    this.element.hidden = true;
    if (focused) this.canvas.dom.root.focus({ preventScroll: true });
  }
}
