/** The drawer: what the charts show and are narrowed to, the charts, the list, and a sentence. */

import { run } from "../commands.js";
import { h, iconButton } from "../dom.js";
import { named, proposals, typed } from "./plan.js";
import { KINDS_OF_ROWS } from "./rows.js";

/** Names that the field proposes, of each kind. */
const MOST_PROPOSED = 300;
/** Pixels: the drawer's height at first, and the least for it and for the cluster. */
const HEIGHT = { first: 290, least: 150, stage: 150 };
const HINT = "Click a bar to follow its chunk, beside it to go to that time. Arrows walk, Enter looks, + and - zoom, Esc clears.";

export class Drawer {
  /** @param {import("./inspector.js").Inspector} inspector */
  constructor(inspector) {
    this.inspector = inspector;
    this.height = HEIGHT.first;
    this.tip = h("div", { class: "tl-tip tl-in-tip", role: "tooltip", hidden: true });
    this.foot = h("div", { class: "tl-in-foot", id: inspector.hintId, role: "status" }, HINT);
    this.grip = this.#makeGrip();
    this.element = h(
      "section", { class: "tl-in", "aria-label": "Inspector", hidden: true },
      this.grip, this.#makeHead(),
      h("div", { class: "tl-in-body" }, inspector.chart.element, inspector.list.element),
      this.foot, this.tip,
    );
    this.#listen();
  }

  // ---- construction ---------------------------------------------------------------------------

  #makeHead() {
    const { inspector } = this;
    this.kinds = KINDS_OF_ROWS.map((by) =>
      h("button", { type: "button", onclick: () => inspector.arrange({ by }) }, by[0].toUpperCase() + by.slice(1)));
    this.names = h("datalist", { id: `${inspector.hintId}-names` });
    this.field = h("input", {
      type: "text", class: "tl-in-field", placeholder: "Filter: chunk 3, g0 …", title: "A chunk, a rank, a host, or a link such as g0 > g1; Enter filters", "aria-label": "Filter by chunk, rank, host or link",
      list: this.names.id, spellcheck: "false", autocomplete: "off",
    });
    this.chips = h("div", { class: "tl-in-chips", role: "group", "aria-label": "Looked at" });
    this.onlyButton = h("button", {
      type: "button", title: "Leave out all other sends", onclick: () => (inspector.narrowed ? inspector.widen() : inspector.narrow()),
    }, "Only these");
    this.pathButton = h(
      "button", { type: "button", class: "tl-in-path", onclick: () => inspector.arrange({ marked: !inspector.marked }) },
      h("i", { "aria-hidden": "true" }), "Critical path",
    );
    return h(
      "header", { class: "tl-in-head" },
      h("div", { class: "tl-in-kinds", role: "group", "aria-label": "Rows" }, ...this.kinds),
      this.field, this.names, this.chips, this.onlyButton, h("i", { class: "tl-in-space" }), this.pathButton,
      iconButton("close", "Close the inspector (I)", () => run(inspector.canvas, "inspect", { on: false }), { class: "tl-in-close" }),
    );
  }

  #makeGrip() {
    const grip = h("div", {
      class: "tl-in-grip", role: "separator", tabindex: 0, "aria-orientation": "horizontal", "aria-label": "Height of the inspector",
      "aria-valuemin": HEIGHT.least, "aria-valuenow": this.height,
    });
    grip.addEventListener("pointerdown", (event) => {
      grip.setPointerCapture(event.pointerId);
      const [y, height] = [event.clientY, this.height];
      grip.onpointermove = (move) => this.#resize(height + y - move.clientY);
    });
    grip.addEventListener("pointerup", () => (grip.onpointermove = null));
    grip.addEventListener("keydown", (event) => {
      const by = { ArrowUp: 20, ArrowDown: -20 }[event.key];
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      this.#resize(this.height + by);
    });
    return grip;
  }

  #listen() {
    const { inspector, field } = this;
    const { element } = inspector.chart;
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.#take(field.value);
      else if (event.key === "Escape" && !field.value) inspector.clear();
      else if (event.key === "Escape") field.value = "";
      else return;
      event.stopPropagation();
    });
    // A proposal that is chosen is taken at once.
    field.addEventListener("input", (event) => {
      field.removeAttribute("aria-invalid");
      if (event.inputType === "insertReplacementText" || !(event instanceof InputEvent)) this.#take(field.value);
    });
    inspector.chart.heads.addEventListener("click", (event) => {
      const title = event.target.closest("[data-row]");
      if (title) inspector.lookWithin(inspector.chart.rows[Number(title.dataset.row)].subject);
    });
    let scrubbing = false;
    element.addEventListener("pointerdown", (event) => (scrubbing = this.#press(event)));
    element.addEventListener("pointerup", () => (scrubbing = false));
    element.addEventListener("pointermove", (event) => this.#move(event, scrubbing));
    element.addEventListener("pointerleave", () => this.#leave());
    element.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
  }

  // ---- the field --------------------------------------------------------------------------------

  /** @param {string} text */
  #take(text) {
    const { inspector, field } = this;
    if (!text.trim()) return;
    const found = typed(text, inspector.plan);
    field.toggleAttribute("aria-invalid", false);
    if (!found) {
      field.setAttribute("aria-invalid", "true");
      this.say(`No chunk, rank, host or link is called “${text.trim()}”`);
      return;
    }
    field.value = "";
    inspector.narrow(found);
  }

  // ---- the pointer ------------------------------------------------------------------------------

  /** @returns {boolean} whether the time is being moved */
  #press(event) {
    const { inspector } = this;
    this.#leave();
    if (event.button !== 0) return false;
    if (event.target.closest?.("[data-row]")) return false;
    const at = inspector.chart.at(inspector.chart.local(event));
    if (at?.send) {
      inspector.lookAtSend(at.send);
      inspector.navigator.stepTo(at.send);
      this.say(inspector.sentence(at.send));
      return false;
    }
    if (!at) return false;
    inspector.canvas.transport.seek(at.time);
    inspector.chart.element.setPointerCapture(event.pointerId);
    return true;
  }

  #move(event, scrubbing) {
    const { inspector } = this;
    const p = inspector.chart.local(event);
    const at = inspector.chart.at(p);
    if (scrubbing) {
      if (at) inspector.canvas.transport.seek(at.time);
      return;
    }
    const send = at?.send ?? null;
    inspector.chart.element.style.cursor = send ? "pointer" : at ? "col-resize" : "";
    this.#hover(send, event);
  }

  #hover(send, event) {
    const { tip, inspector } = this;
    tip.hidden = !send;
    if (!send) {
      this.hovered = null;
      return;
    }
    if (this.hovered !== send) {
      this.hovered = send;
      tip.textContent = inspector.sentence(send);
    }
    const box = this.element.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const [w, h_] = [tip.offsetWidth, tip.offsetHeight];
    tip.style.left = `${Math.max(6, x + 16 + w > box.width ? x - w - 12 : x + 16)}px`;
    tip.style.top = `${y + 20 + h_ > box.height ? y - h_ - 12 : y + 20}px`;
  }

  #leave() {
    this.hovered = null;
    this.tip.hidden = true;
  }

  /** With Ctrl it zooms, sideways it moves along; else the rows scroll. @param {WheelEvent} event */
  #wheel(event) {
    const { chart } = this.inspector;
    if (event.ctrlKey || event.metaKey) chart.zoom(Math.exp(-event.deltaY * 0.003), chart.span.time(chart.local(event).x));
    else if (chart.window && (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))) {
      chart.pan((event.deltaX || event.deltaY) / chart.span.scale);
    } else return;
    event.preventDefault();
  }

  // ---- what is shown ----------------------------------------------------------------------------

  /** What is looked at, or how it is shown, changed. */
  refresh() {
    const { inspector, kinds, chips, onlyButton, pathButton } = this;
    const { plan, focus } = inspector;
    kinds.forEach((button, k) => button.setAttribute("aria-pressed", String(KINDS_OF_ROWS[k] === inspector.by)));
    chips.replaceChildren(...named(focus, plan).map(({ part, text }) => {
      const drop = h("button", { type: "button", title: `Drop ${text}`, "aria-label": `Drop ${text}`, onclick: () => inspector.drop(part) }, "×");
      return h("span", {}, text, drop);
    }));
    onlyButton.hidden = !inspector.match;
    onlyButton.setAttribute("aria-pressed", String(inspector.narrowed !== null));
    pathButton.hidden = !plan.critical.size;
    pathButton.setAttribute("aria-pressed", String(inspector.marked));
    if (inspector.chosen) this.say(inspector.sentence(inspector.chosen));
    else this.say(HINT);
    if (this.proposed === plan) return;
    this.proposed = plan;
    this.names.replaceChildren(...proposals(plan, MOST_PROPOSED).map((value) => h("option", { value })));
  }

  /** @param {string} text */
  say(text) {
    if (this.foot.textContent !== text) this.foot.textContent = text;
  }

  /** @param {number} height pixels */
  #resize(height) {
    const most = this.inspector.canvas.dom.root.clientHeight - HEIGHT.stage;
    this.height = Math.round(Math.max(HEIGHT.least, this.grows ? height : Math.min(most, height)));
    this.fitHeight();
  }

  /** A cell of a notebook grows by the drawer; what fills a page shares its room. */
  fitHeight() {
    const { canvas, open } = this.inspector;
    const given = canvas.model.get("height") || "100%";
    this.grows = /^\d+px$/.test(given);
    this.element.style.height = `${this.height}px`;
    this.grip.setAttribute("aria-valuenow", String(this.height));
    canvas.dom.root.style.height = open && this.grows ? `calc(${given} + ${this.height}px)` : given;
  }
}
