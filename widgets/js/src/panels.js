/** What floats over the stage: tools, tip, legend, text of what happens, shortcuts, messages. */

import { run } from "./commands.js";
import { h, iconButton } from "./dom.js";
import { counts } from "./folding.js";
import { SHEET } from "./keyboard.js";
import { BARE, FRAME } from "./stage.js";
import { HEATS } from "./tokens.js";
import { bandwidth, bytes, digits, duration } from "./units.js";

/** Rows that the text panel shows of an epoch. */
const MOST_ROWS = 60;
/** Origins of chunks up to which the legend names each. */
const NAMED = 8;

/** Icon, title, the command if it is not called as the icon, its arguments; null parts groups. @type {any[]} */
const TOOLS = [
  ["select", "Select (V)"], ["link", "Draw links (L)"], null,
  ["gpu", "Add a GPU (G)", "add", { kind: "gpu" }],
  ["switch", "Add a switch (S)", "add", { kind: "switch" }],
  ["memory", "Add a memory (M)", "add", { kind: "memory" }],
  ["nic", "Add a NIC (N)", "add", { kind: "nic" }],
  ["host", "Put into a host (Ctrl+G)"], null,
  ["undo", "Undo (Ctrl+Z)"], ["redo", "Redo (Ctrl+Shift+Z)"], ["delete", "Delete (Del)"], null,
  ["fit", "Fit (F)"], ["zoom", "Zoom to 100 % (0)"], ["find", "Find (Ctrl+F)"], null,
  ["labels", "Bandwidths on the links (B)"], ["grid", "Snap to a grid (#)"], ["help", "Keyboard (?)", "shortcuts"],
];

/** A cluster that is not there yet, for the empty canvas. */
const GHOST = `<svg viewBox="0 0 260 120" aria-hidden="true">
  <g class="tl-ghost-links"><path d="M70 38L106 56M70 92L106 70M190 38L154 56M190 92L154 70"/></g>
  <g class="tl-ghost-gpus"><rect x="12" y="14" width="58" height="40" rx="8"/><rect x="12" y="74" width="58" height="40" rx="8"/><rect x="190" y="14" width="58" height="40" rx="8"/><rect x="190" y="74" width="58" height="40" rx="8"/></g>
  <rect class="tl-ghost-switch" x="94" y="50" width="72" height="26" rx="13"/>
</svg>`;

export class Panels {
  /** @param {import("./canvas.js").Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.logShown = false;
    this.#makeTools();
    this.tip = h("div", { class: "tl-tip", role: "tooltip", hidden: true });
    this.legend = h("div", { class: "tl-legend", hidden: true });
    this.log = h("div", { class: "tl-log", role: "region", "aria-label": "What happens", hidden: true });
    this.toast = h("div", { class: "tl-toast", role: "alert", hidden: true });
    this.empty = h("div", { class: "tl-empty" });
    this.empty.innerHTML = `${GHOST}<b>Draw your first cluster</b><span>Press <kbd>G</kbd> for a GPU and <kbd>S</kbd> for a switch,<br>then drag from a device’s edge to link it.</span>`;
    this.sheet = this.#makeSheet();
  }

  get elements() {
    return [this.tools, this.legend, this.log, this.empty, this.tip, this.toast, this.sheet];
  }

  /** Whether an event belongs to a panel rather than to the drawing. @param {EventTarget} target */
  has(target) {
    if (/** @type {Element} */ (target).closest?.(".tl-float")) return true;
    return [this.tools, this.legend, this.log, this.sheet, this.canvas.incumbents.element, this.canvas.folding.element].some((panel) => panel.contains(/** @type {Node} */ (target)));
  }

  #makeTools() {
    const { canvas } = this;
    this.buttons = {};
    const parts = TOOLS.map((tool) => {
      if (!tool) return h("i", { class: "tl-sep" });
      const [icon, title, command = icon, args] = tool;
      const button = iconButton(icon, title, () => {
        canvas.dom.root.focus({ preventScroll: true });
        run(canvas, command, args);
      });
      this.buttons[icon] = button;
      return button;
    });
    this.buttons.zoom.classList.add("tl-figure");
    // A narrow canvas has these in its menu only.
    for (const spare of ["find", "labels", "grid"]) this.buttons[spare].classList.add(`tl-spare-${spare}`);
    this.tools = h("div", { class: "tl-bar", role: "toolbar", "aria-label": "Drawing tools" }, ...parts);
  }

  #makeSheet() {
    const row = ([keys, does]) => [h("dt", {}, ...keys.split("  ").map((key) => h("kbd", {}, key))), h("dd", {}, does)];
    const parts = SHEET.map(({ title, rows }) => h("section", {}, h("h3", {}, title), h("dl", { "data-keys": title }, ...rows.flatMap(row))));
    const close = iconButton("close", "Close (Esc)", () => this.showShortcuts(false));
    // Above the page, since the canvas between two columns is too narrow for it.
    return h(
      "div", { class: "tl-sheet", role: "dialog", "aria-label": "Keyboard", popover: "manual", hidden: true },
      h("header", {}, h("b", {}, "Keyboard"), close), h("div", { class: "tl-keys" }, ...parts),
    );
  }

  /** The zoom figure. @param {number} zoom */
  showZoom(zoom) {
    const figure = `${Math.round(zoom * 100)} %`;
    const { zoom: button } = this.buttons;
    if (button.textContent === figure) return;
    button.textContent = figure;
    button.setAttribute("aria-label", `Zoom is ${figure}: back to 100 % (0)`);
  }

  /** The drawing, the mode or the scene changed. */
  refresh() {
    const { canvas, buttons } = this;
    const bare = canvas.model.get("toolbar") === false;
    if (this.tools.hidden !== bare) {
      this.tools.hidden = bare;
      if (!canvas.presenter.on) canvas.stage.frame = this.frame;
    }
    this.empty.hidden = canvas.drawing.topology.devices.length > 0;
    buttons.undo.disabled = !canvas.history.past.length;
    buttons.redo.disabled = !canvas.history.future.length;
    for (const mode of ["select", "link"]) {
      buttons[mode].setAttribute("aria-pressed", String(canvas.mode === mode));
    }
    buttons.labels.setAttribute("aria-pressed", String(canvas.linkLabels.on));
    buttons.grid.setAttribute("aria-pressed", String(canvas.snapping.grid));
    this.#refreshLegend();
    this.refreshLog();
  }

  /** Room that the tools and the legend need around what is drawn. */
  get frame() {
    return this.tools.hidden ? BARE : FRAME;
  }

  #refreshLegend() {
    const { canvas } = this;
    const { playback, colors } = canvas;
    const classes = canvas.linkClasses.rows((title) => run(canvas, "filter_links", { title }));
    const film = playback && !canvas.stale && !playback.scene.tones;
    this.legend.hidden = !film && !classes.length;
    this.legend.classList.toggle("tl-heated", canvas.heat);
    this.legend.replaceChildren(...classes);
    if (!film) return;
    const ranks = canvas.sceneRanks;
    const name = (origin) => ranks[origin] ?? `rank ${origin}`;
    const swatches = canvas.originColors;
    const ramp = (list, label) => h("i", { style: `background:linear-gradient(90deg,${list.join(",")})`, title: label });
    const { origins } = playback;
    const parts = [
      h("span", classes.length ? { class: "tl-gap" } : {}, "Chunk origin"),
      ...(origins.length <= NAMED
        ? origins.map((origin, i) => h("span", { class: "tl-origin" }, h("i", { style: `background:${swatches[i]}` }), h("em", {}, name(origin))))
        : [
          h("em", {}, name(origins[0])),
          ramp(swatches, "colour of each origin"),
          h("em", {}, name(origins.at(-1))),
        ]),
    ];
    const many = playback.scene.every;
    if (many) parts.push(h("span", { class: "tl-gap" }, `${playback.scene.chunks.length.toLocaleString("en")} of ${many.toLocaleString("en")} chunks are shown`));
    if (canvas.buffers.parts.size) parts.push(h("span", { class: "tl-gap" }, "A sum has the colours of its parts"));
    if (canvas.heat) {
      parts.push(...this.#heatLegend(ramp([colors.cold, colors.hot], canvas.heatOf === "run" ? "share of the whole run" : "share of the epoch")));
    }
    this.legend.append(...parts);
  }

  /** @param {HTMLElement} ramp */
  #heatLegend(ramp) {
    const { canvas } = this;
    const choices = Object.entries(HEATS).map(([of, words]) =>
      h("button", { type: "button", "aria-pressed": String(canvas.heatOf === of), onclick: () => run(canvas, "heat", { of }) }, words));
    return [
      h("span", { class: "tl-gap" }, "Link load"), h("span", { class: "tl-choice", role: "group", "aria-label": "Link load of" }, ...choices),
      h("em", {}, "0"), ramp, h("em", {}, "100 %"),
    ];
  }

  /** @param {boolean} [on] */
  showLog(on = !this.logShown) {
    this.logShown = on;
    this.logEpoch = null;
    this.refreshLog();
    this.canvas.wake();
  }

  refreshLog() {
    const { canvas } = this;
    const { playback } = canvas;
    this.log.hidden = !this.logShown || !playback || canvas.stale;
    if (this.log.hidden) return;
    const epoch = playback.epochAt(canvas.clock.time);
    const key = `${canvas.sceneNumber} ${epoch}`;
    if (this.logEpoch === key) return;
    this.logEpoch = key;
    const rows = (playback.scene.sentences[epoch] ?? "").split("\n").filter(Boolean);
    const more = rows.length - MOST_ROWS;
    this.log.replaceChildren(
      h("header", {}, h("b", {}, `Epoch ${epoch}`), h("span", {}, `from ${duration(epoch * playback.step)}`)),
      h("ol", {}, ...rows.slice(0, MOST_ROWS).map((row) => h("li", {}, row)), ...(more > 0 ? [h("li", {}, `and ${more} more`)] : [])),
    );
  }

  /** @param {boolean} [on] */
  showShortcuts(on = this.sheet.hidden) {
    this.sheet.hidden = !on;
    if (this.sheet.isConnected) this.sheet.togglePopover?.(on);
  }

  /** Close what Escape closes. @returns {boolean} whether anything was open */
  closeAll() {
    if (this.sheet.hidden) return false;
    this.showShortcuts(false);
    return true;
  }

  /** @param {string} text a refusal, in the user's words */
  showToast(text) {
    this.toast.textContent = text;
    this.toast.hidden = false;
    clearTimeout(this.toastTimer);
    this.toastTimer = setTimeout(() => (this.toast.hidden = true), 6000);
  }

  /** Say what is under the pointer. */
  showTip() {
    const { hovered, pull } = this.canvas;
    const rows = pull || !hovered ? [] : hovered.group ? this.#groupTip(hovered.group)
      : hovered.device ? this.#deviceTip(hovered.device) : this.#lineTip(hovered.line);
    this.tip.hidden = !rows.length;
    this.tip.replaceChildren(...rows);
  }

  /** @param {import("./types.js").Point} p in the stage */
  moveTip({ x, y }) {
    if (this.tip.hidden) return;
    const { clientWidth, clientHeight } = this.canvas.dom.stage;
    const [w, h_] = [this.tip.offsetWidth, this.tip.offsetHeight];
    this.tip.style.left = `${x + 18 + w > clientWidth ? Math.max(6, x - w - 14) : x + 18}px`;
    this.tip.style.top = `${y + 18 + h_ > clientHeight ? Math.max(6, y - h_ - 10) : y + 18}px`;
  }

  #deviceTip(name) {
    const { topology } = this.canvas.drawing;
    const device = topology.devices.find((d) => d.name === name);
    if (!device) return [];
    const sum = (end) => topology.links.reduce((all, l) => all + (l[end] === name ? l.bandwidth : 0), 0);
    const does = ["stores", "copies", "reduces"].filter((ability) => device[ability]);
    return tipRows(device.name, [
      ["kind", device.kind], ["host", device.host ?? "none"], ["does", does.join(", ") || "forwards only"],
      ["out", bandwidth(sum("src"))], ["in", bandwidth(sum("dst"))],
      ...(device.buffer_bytes === null ? [] : [["buffer", bytes(device.buffer_bytes)]]),
    ]);
  }

  #groupTip(key) {
    const group = this.canvas.shown.byKey.get(key);
    if (!group) return [];
    const inside = new Set(group.members.map((d) => d.name));
    let [out, into, within] = [0, 0, 0];
    for (const { src, dst, bandwidth: rate } of this.canvas.drawing.topology.links) {
      if (inside.has(src) && inside.has(dst)) within += 1;
      else if (inside.has(src)) out += rate;
      else if (inside.has(dst)) into += rate;
    }
    return tipRows(group.title, [
      ["has", counts(group)], ["inside", `${within} one-way links`],
      ["out", bandwidth(out)], ["in", bandwidth(into)], ["", "double-click opens it"],
    ]);
  }

  /** @param {import("./types.js").Line} line */
  #bundleTip({ a, b, forth, back, parts }) {
    const title = (end) => this.canvas.shown.byKey.get(end)?.title ?? end;
    const rows = [
      ["links", String(parts.length)], ["together", bandwidth(forth.bandwidth)],
      ...(back && back.bandwidth !== forth.bandwidth ? [["back", bandwidth(back.bandwidth)]] : back ? [["", "each way"]] : []),
      ...(forth.medium ? [["medium", forth.medium]] : []),
    ];
    return tipRows(`${title(a)} ${back ? "↔" : "→"} ${title(b)}`, rows);
  }

  #lineTip([a, b]) {
    const line = this.canvas.stage.lineOf(a, b);
    if (!line) return [];
    if (line.parts) return this.#bundleTip(line);
    const { forth, back } = line;
    const alike = back && ["bandwidth", "alpha", "count", "medium"].every((key) => forth[key] === back[key]);
    const rows = (link) => [
      ["bandwidth", bandwidth(link.bandwidth)], ["alpha", duration(link.alpha)],
      ...(link.count > 1 ? [["parallel links", `${link.count} × ${digits(link.bandwidth / link.count)} GB/s`]] : [["parallel links", "1"]]),
      ...(link.medium ? [["medium", link.medium]] : []),
    ];
    if (!back) return tipRows(`${a} → ${b}`, rows(forth));
    if (alike) return tipRows(`${a} ↔ ${b}`, [...rows(forth), ["", "each way"]]);
    return [...tipRows(`${a} → ${b}`, rows(forth)), ...tipRows(`${b} → ${a}`, rows(back))];
  }
}

const tipRows = (title, rows) => [
  h("b", {}, title),
  h("dl", {}, ...rows.flatMap(([key, value]) => [h("dt", {}, key), h("dd", {}, value)])),
];
