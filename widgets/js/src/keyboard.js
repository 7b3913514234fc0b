/**
 * The keyboard, while the canvas has the focus. Everything that a mouse does can be done here:
 * Tab walks through the devices once one is selected, L then Tab or arrows then Enter links them.
 * Arrows step the player while a schedule is shown and move the selection else, or with Shift.
 *
 * @typedef {import("./canvas.js").Canvas} Canvas
 */

import { NUDGE, run } from "./commands.js";
import { endsOf, hostKey, isGroup } from "./folding.js";
import { centre } from "./geometry.js";
import { lookAtSelected } from "./inspect/navigation.js";

/** The sheet that "?" opens: what keys are for, and the keys with what they do. @type {{title: string, rows: [string, string][]}[]} */
export const SHEET = [
  {
    title: "Drawing",
    rows: [
      ["G  S  M  N", "add a GPU, switch, memory, NIC; with Shift, linked to all that is selected"],
      ["L", "link: Tab or arrows choose the other end, Enter draws"],
      ["*  J  K", "link the selected: all to the one reached last by Tab or to the only switch; in pairs; each to each"],
      ["2  4  8", "stamp the selection, so that there are two, four or eight of it"],
      ["D", "build hosts, NICs, leaves and spines by numbers"],
      ["E  X", "write a note, frame the selection such as a rack"],
      ["A", "go through notes and frames; then F2, Del and Shift+Arrows are theirs"],
      ["Ctrl+Arrows", "resize the selected frame"],
      ["Q", "lay the drawing out anew"],
      ["#", "a grid that devices snap to"],
      ["Alt", "while dragging: snap to nothing"],
      ["Ctrl+Z  Ctrl+Shift+Z", "undo, redo"],
    ],
  },
  {
    title: "Selection",
    rows: [
      ["Enter", "select the first device, then Tab and Shift+Tab walk on; open a folded host"],
      ["Shift+Enter", "keep what is selected while Tab and U select more"],
      ["U  Shift+U", "a link of what is selected, then the next one; all of them"],
      ["Shift  Alt", "drag a box: Shift takes its devices, Alt its links"],
      ["Ctrl+A", "select everything"],
      ["V  Esc", "back to selecting; Esc again selects nothing"],
      ["Shift+Arrows", "move the selection; arrows alone do without a schedule"],
      ["F2", "rename; so does a double click"],
      ["Del", "delete"],
      ["Ctrl+C  Ctrl+V  Ctrl+D", "copy, paste, duplicate"],
      ["Ctrl+G  Ctrl+Shift+G", "put into a host, take out"],
      ["Menu  Shift+F10", "menu; so do the right button and a long press"],
    ],
  },
  {
    title: "View",
    rows: [
      ["F  Z  0  +  -", "fit, zoom to the selection, to 100 %, in, out"],
      ["Ctrl+F", "find: Enter zooms to one, Ctrl+Enter selects all"],
      ["Y", "overview in a corner"],
      ["O", "fold or open selected hosts, or all"],
      ["R", "fold racks, then pods; open them"],
      ["B", "bandwidths on the links"],
      ["C", "colour links by medium, tier"],
      ["?", "this sheet"],
    ],
  },
  {
    title: "Playing",
    rows: [
      ["Space  Home  End", "play or pause, go to the start, to the end"],
      ["Arrows", "by step, up and down by phase"],
      [",  .", "previous and next step of the plan"],
      ["H  T", "link load: now, whole run, off; text of what happens"],
      ["I", "inspector: arrows walk among sends, Enter looks at one, Esc clears"],
      ["W", "follow the chunk that is looked at"],
    ],
  },
  {
    title: "Presenting",
    rows: [
      ["P  Esc", "fill the screen, leave"],
      ["Arrows", "by step, up and down by phase"],
      ["B", "hide or show the answer"],
      ["X", "laser pointer"],
      ["U", "links that the plan never uses"],
    ],
  },
];

const PLAIN = {
  v: ["select"], l: ["link"], b: ["labels"], "#": ["grid"], f: ["fit"], z: ["zoom_selection"], 0: ["zoom"], ContextMenu: ["menu"], h: ["heat"], o: ["fold"], t: ["log"], i: ["inspect"], q: ["layout"], r: ["fold", { level: "next" }], c: ["color_links"], p: ["present"], w: ["follow"], "?": ["shortcuts"],
  g: ["add", { kind: "gpu" }], s: ["add", { kind: "switch" }], m: ["add", { kind: "memory" }],
  ",": ["step", { by: -1, of: "step" }], ".": ["step", { by: 1, of: "step" }],
  n: ["add", { kind: "nic" }], d: ["build"], e: ["note"], x: ["frame"], a: ["select_note"], y: ["map"], F2: ["rename"], 2: ["stamp", { times: 2 }], 4: ["stamp", { times: 4 }], 8: ["stamp", { times: 8 }],
  "*": ["link_by", { how: "star" }], j: ["link_by", { how: "pairs" }], k: ["link_by", { how: "mesh" }], Delete: ["delete"], Backspace: ["delete"],
};

const WITH_CTRL = {
  z: ["undo"], y: ["redo"], g: ["host"], a: ["select_all"], c: ["copy"], v: ["paste"],
  d: ["duplicate"], f: ["find"],
};

const WITH_CTRL_SHIFT = { z: ["redo"], g: ["ungroup"] };

/** What adds a device, linked to the selection. */
const WITH_SHIFT = Object.fromEntries(["g", "s", "m", "n"].map((key) => [key, ["add", { ...PLAIN[key][1], linked: true }]]));

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Keyboard {
  /** @param {Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    /** What stays selected while more is, the device or group reached last, and the selection then. */
    this.kept = /** @type {import("./types.js").Selection | null} */ (null);
    /** @type {string | undefined} */
    this.at = undefined;
    this.chosen = "";
    /** The links that U goes through, and which it is at. @type {{links: [string, string][][], at: number}} */
    this.walked = { links: [], at: 0 };
    canvas.dom.root.addEventListener("keydown", (event) => this.#onKey(event));
  }

  /** Where Tab stands among several that are selected. @returns {string | undefined} */
  get reached() {
    return this.kept && this.chosen === JSON.stringify(this.canvas.selection) ? this.at : undefined;
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
    // A focused button keeps the keys that press it.
    if (target.tagName === "BUTTON" && (event.key === " " || event.key === "Enter" || event.key === "Tab")) return;
    if (!this.handle(event)) return;
    event.preventDefault();
    event.stopPropagation();
    this.canvas.wake();
  }

  /** @param {KeyboardEvent} event @returns {boolean} whether it was ours */
  handle(event) {
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const modified = event.ctrlKey || event.metaKey || event.altKey;
    if (this.canvas.presenter.on) return !modified && this.canvas.presenter.key(key);
    if (this.canvas.mode === "sketch") return !modified && this.canvas.sketchView.key(event, key);
    if (event.ctrlKey || event.metaKey) {
      if (ARROWS[key] && this.canvas.notes.selected !== null) return this.#run(["resize_note", this.#by(ARROWS[key])]);
      return this.#run((event.shiftKey ? WITH_CTRL_SHIFT : WITH_CTRL)[key]);
    }
    if (event.altKey) return false;
    if (key === "F10" && event.shiftKey) return this.#run(["menu"]);
    if (ARROWS[key]) return this.#arrow(ARROWS[key], event.shiftKey);
    if (key === "Tab") return event.target === this.canvas.dom.root && this.#walk(event.shiftKey ? -1 : 1);
    if (key === "u") return event.shiftKey ? this.#allLinks() : this.#nextLink();
    if (key === "Enter" && event.shiftKey) return this.#keep();
    return this.#special(key) || this.#run((event.shiftKey && WITH_SHIFT[key]) || PLAIN[key]);
  }

  /** @param {[string, object?] | undefined} command */
  #run(command) {
    if (!command) return false;
    run(this.canvas, ...command);
    if (command[0] === "link") this.#startPull();
    return true;
  }

  #special(key) {
    const { canvas } = this;
    const zoom = { "+": 1.2, "=": 1.2, "-": 1 / 1.2 }[key];
    if (zoom) canvas.zoom(zoom);
    else if (key === "Enter") this.#enter();
    else if (key === "Escape") this.#escape();
    else if (!canvas.playback) return false;
    else if (key === " ") run(canvas, "toggle");
    else if (key === "Home") canvas.transport.seek(0);
    else if (key === "End") canvas.transport.seek(canvas.clock.end);
    else return false;
    return true;
  }

  #arrow(direction, shift) {
    const { canvas } = this;
    if (canvas.pull) this.#aim(direction);
    else if (!shift && canvas.playback && !canvas.stale) {
      if (!direction[0] && !canvas.playback.phases.length) return false;
      canvas.transport.step(direction[0] || direction[1], direction[0] ? "epoch" : "phase");
    } else run(canvas, "nudge", this.#by(direction));
    return true;
  }

  #by([dx, dy]) {
    return { dx: dx * NUDGE, dy: dy * NUDGE };
  }

  #names() {
    const { devices, groups } = this.canvas.shown;
    return [...groups.map(({ key }) => key), ...devices.map((d) => d.name)];
  }

  /** Tab: the next device, or out of the canvas past the last one. @param {number} by */
  #walk(by) {
    const { canvas } = this;
    const names = this.#names();
    if (canvas.pull) {
      const others = names.filter((name) => name !== canvas.pull.from && !isGroup(name));
      if (!others.length) return false;
      const at = others.indexOf(canvas.pull.over);
      this.#over(others[(at + by + others.length) % others.length]);
      return true;
    }
    const at = names.indexOf(this.#picked());
    const next = names[at + by];
    if (at < 0 || next === undefined) return false;
    this.#pick(next);
    return true;
  }

  /** The device or the group that is selected, of several the one reached last. */
  #picked() {
    if (this.reached !== undefined) return this.reached;
    const { shown, selection } = this.canvas;
    const [host, device] = [selection.hosts[0], selection.devices[0]];
    if (host !== undefined && shown.byKey.has(hostKey(host))) return hostKey(host);
    return shown.home.get(device) ?? device;
  }

  #pick(name) {
    const { canvas } = this;
    const group = canvas.shown.byKey.get(name);
    if (!group) this.#select({ devices: [name] });
    else this.#select(group.host === null ? { devices: group.members.map((d) => d.name) } : { hosts: [group.host] });
    this.at = name;
    canvas.stage.reveal(name);
    canvas.say(group ? canvas.folding.describe(name) : canvas.describe(name));
  }

  // ---- several, and links ---------------------------------------------------------------------------

  /** What is selected stays so while more is. */
  #keep() {
    const { canvas } = this;
    this.at = this.#picked();
    this.kept = canvas.selection;
    this.chosen = JSON.stringify(canvas.selection);
    const { devices, hosts, links } = canvas.selection;
    canvas.say(`${devices.length + hosts.length + links.length} selected; Tab and U select more`);
    return true;
  }

  /** Select, beside what is kept if nobody has selected anything since. @param {Partial<import("./types.js").Selection>} part */
  #select(part) {
    const { canvas } = this;
    if (this.kept && this.chosen !== JSON.stringify(canvas.selection)) this.kept = null;
    const all = (what) => [...new Map([...(this.kept?.[what] ?? []), ...(part[what] ?? [])].map((each) => [String(each), each])).values()];
    canvas.select({ devices: all("devices"), hosts: all("hosts"), links: all("links") });
    this.chosen = JSON.stringify(canvas.selection);
  }

  /** Lines between what is selected, at the only one that is, or all; each by its links. @returns {[string, string][][]} */
  #linesOfSelection() {
    const { shown, selection, drawing } = this.canvas;
    const hosts = new Set(selection.hosts);
    const names = [...selection.devices, ...drawing.topology.devices.filter((d) => hosts.has(d.host)).map((d) => d.name)];
    const ends = new Set(names.map((name) => shown.home.get(name) ?? name));
    const fits = ends.size > 1 ? ({ a, b }) => ends.has(a) && ends.has(b) : ({ a, b }) => !ends.size || ends.has(a) || ends.has(b);
    return shown.lines.filter(fits).map(endsOf);
  }

  #allLinks() {
    const links = this.#linesOfSelection().flat();
    this.canvas.select({ links });
    this.canvas.say(`${links.length} links selected`);
    return true;
  }

  #nextLink() {
    const { canvas, walked } = this;
    const here = walked.links[walked.at];
    const going = here && canvas.selection.links.length && here.every((ends) => canvas.selection.links.some((each) => String(each) === String(ends)));
    if (going) walked.at = (walked.at + 1) % walked.links.length;
    else this.walked = { links: this.#linesOfSelection(), at: 0 };
    const next = this.walked.links[this.walked.at];
    if (!next) canvas.say("There is no link to select");
    else {
      this.#select({ links: next });
      const [[a, b]] = next;
      canvas.say(next.length > 1 ? `${next.length} links, such as ${a} to ${b}` : `Link ${a} to ${b}`);
    }
    return true;
  }

  #enter() {
    const { canvas } = this;
    const { pull } = canvas;
    if (pull?.over) {
      run(canvas, "link", { src: pull.from, dst: pull.over });
      return;
    }
    const picked = this.#picked();
    if (canvas.inspector.open && lookAtSelected(canvas.inspector)) return;
    if (picked === undefined) {
      if (this.#names().length) this.#pick(this.#names()[0]);
    } else if (canvas.shown.byKey.has(picked)) run(canvas, "fold", { keys: [picked], on: false });
  }

  #escape() {
    const { canvas } = this;
    if (canvas.panels.closeAll()) return;
    if (canvas.pull || canvas.mode === "link") canvas.setMode("select");
    else if (canvas.inspector.clear()) canvas.say("Nothing is looked at");
    else if (canvas.notes.selected !== null) canvas.notes.select(null);
    else canvas.select({});
    this.kept = null;
  }

  /** Link mode with one device selected: it is where the link starts. */
  #startPull() {
    const { canvas } = this;
    const from = canvas.selection.devices[0];
    if (from === undefined) {
      canvas.say("Link: drag from one device to another, or select one and press L");
      return;
    }
    canvas.pull = { from, to: null, over: null, keyboard: true };
    this.#walk(1);
  }

  #over(name) {
    const { canvas } = this;
    canvas.pull.over = name;
    canvas.stage.reveal(name);
    canvas.say(`Link ${canvas.pull.from} to ${name}: Enter draws it`);
  }

  /** The nearest device in the direction of an arrow, seen from the one aimed at. */
  #aim([dx, dy]) {
    const { canvas } = this;
    const from = centre(canvas.stage.rect(canvas.pull.over ?? canvas.pull.from));
    let best = null;
    let least = Infinity;
    for (const name of this.#names()) {
      if (isGroup(name) || name === canvas.pull.from || name === canvas.pull.over) continue;
      const { x, y } = centre(canvas.stage.rect(name));
      const ahead = (x - from.x) * dx + (y - from.y) * dy;
      const aside = Math.abs((x - from.x) * dy) + Math.abs((y - from.y) * dx);
      const cost = ahead + 2 * aside;
      if (ahead > 1 && cost < least) [best, least] = [name, cost];
    }
    if (best) this.#over(best);
  }
}
