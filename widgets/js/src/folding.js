/** Which hosts are folded, and the line that says so with its buttons. */

import { h } from "./dom.js";
import { MOST_DEVICES, counts, groupsOf, hostKey, shownOf } from "./folded.js";

/** @typedef {import("./types.js").Drawing} Drawing */

export class Folding {
  /** @param {import("./canvas.js").Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    /** Keys of what was opened of a large drawing, and of what was folded of a small one. */
    this.opened = new Set();
    this.closed = new Set();
    const button = (label, on) => h("button", { type: "button", onclick: () => this.turn({ on }) }, label);
    this.text = h("span", {});
    this.foldAll = button("Fold all", true);
    this.openAll = button("Open all", false);
    this.element = h(
      "div", { class: "tl-folding", role: "group", "aria-label": "Folded hosts", hidden: true },
      this.text, this.foldAll, this.openAll,
    );
  }

  /** Keys of the groups that are folded. @param {import("./types.js").Topology} topology @returns {Set<string>} */
  folded(topology) {
    if (topology.devices.length <= MOST_DEVICES) return this.closed;
    return new Set(groupsOf(topology).map(({ key }) => key).filter((key) => !this.opened.has(key)));
  }

  /** What is on the screen of a drawing; lines stay the same while only devices move. @param {Drawing} drawing */
  show(drawing) {
    const folded = this.folded(drawing.topology);
    const mark = [...folded].join();
    const last = this.last;
    const shown = shownOf(drawing, folded);
    if (last?.topology === drawing.topology && last.mark === mark) {
      Object.assign(shown, { lines: last.shown.lines, lanes: last.shown.lanes });
    }
    this.last = { topology: drawing.topology, mark, shown };
    this.#tell(drawing.topology, shown);
    return shown;
  }

  #tell(topology, shown) {
    const hosts = groupsOf(topology).filter((group) => group.host !== null).length;
    const folded = shown.groups.filter((group) => group.host !== null).length;
    this.element.hidden = !hosts || (!folded && topology.devices.length <= MOST_DEVICES);
    this.text.textContent = folded
      ? `${folded} of ${hosts} hosts folded · double-click opens one`
      : `All ${hosts} hosts are open`;
    this.openAll.hidden = !shown.groups.length;
    this.foldAll.hidden = folded === hosts;
  }

  /**
   * Fold or open groups.
   * @param {{hosts?: string[], keys?: string[], on?: boolean}} how by default what is selected, or all; by
   *   default the other way than they are
   */
  turn({ hosts, keys, on } = {}) {
    const { canvas } = this;
    const { topology } = canvas.drawing;
    const there = new Set(groupsOf(topology).map(({ key }) => key));
    const wanted = keys ?? (hosts ?? canvas.selection.hosts).map(hostKey);
    const all = !wanted.length || (on !== undefined && !hosts && !keys);
    const chosen = (all ? [...there] : wanted).filter((key) => there.has(key));
    if (!chosen.length) return canvas.say("There are no hosts to fold");
    const now = this.folded(topology);
    const fold = on ?? !chosen.some((key) => now.has(key));
    const selected = canvas.selection;
    for (const key of chosen) {
      this.opened[fold ? "delete" : "add"](key);
      this.closed[fold ? "add" : "delete"](key);
    }
    const before = canvas.stage.isFitted;
    canvas.repaint();
    canvas.select(selected);
    if (before || all) canvas.fit();
    return canvas.say(`${chosen.length === 1 ? "One" : chosen.length} ${fold ? "folded" : "opened"}`);
  }

  /** A group in one sentence, for those who listen. @param {string} key */
  describe(key) {
    const group = this.canvas.shown.byKey.get(key);
    return `${group.title}, folded, ${counts(group)}; Enter opens it`;
  }

  /** Middle of a folded host among the positions of the drawing, else null. @param {string} host */
  middle(host) {
    const group = this.canvas.shown.byKey.get(hostKey(host));
    if (!group) return null;
    const places = group.members.map((d) => this.canvas.drawing.positions[d.name]);
    const mean = (i) => places.reduce((sum, place) => sum + place[i], 0) / places.length;
    return /** @type {[number, number]} */ ([mean(0), mean(1)]);
  }

  /**
   * Places in the drawing of what was dragged on the screen: a block that moved as a whole keeps
   * its shape, whatever the folding does to distances.
   * @param {Record<string, [number, number]>} now on the screen
   */
  dragged(now) {
    const { shown, drawing } = this.canvas;
    if (!shown.groups.length) return now;
    const to = {};
    const shift = (at, [dx, dy], names) => {
      const [from, end] = [{ x: at[0], y: at[1] }, { x: at[0] + dx, y: at[1] + dy }].map(shown.toDrawing);
      for (const name of names) {
        const [x, y] = drawing.positions[name];
        to[name] = [x + end.x - from.x, y + end.y - from.y];
      }
    };
    for (const [end, [x, y]] of Object.entries(now)) {
      const at = shown.positions[end];
      const by = /** @type {[number, number]} */ ([x - at[0], y - at[1]]);
      if (Math.hypot(...by) < 0.5) continue;
      const group = shown.byKey.get(end);
      if (group) shift(at, by, group.members.map((d) => d.name));
      else if (drawing.topology.devices[this.canvas.deviceIndex.get(end)].host === null) shift(at, by, [end]);
      else to[end] = drawing.positions[end].map((value, i) => value + by[i]);
    }
    return to;
  }
}
