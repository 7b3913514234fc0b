/**
 * Kinds of links by their medium or their tier: a colour each, and rows of the legend that let the links
 * of a class step back. Large drawings begin with them; hovering lets the rest step back, too.
 *
 * @typedef {import("./types.js").Line} Line
 * @typedef {import("./types.js").Topology} Topology
 * @typedef {"medium" | "tier"} By what tells the classes apart
 */

import { h } from "./dom.js";
import { lineId } from "./elements.js";
import { endsKey } from "./model.js";
import { linkColor } from "./style.js";

/** Devices from which on links have colours, and what is pointed at stands out, without being asked. */
export const LARGE = 64;
/** Links above which pointing lets none step back: it would take longer than the pointer stays. */
const MOST_LIT = 1500;
/** Classes that can be told apart. */
const MOST_CLASSES = 6;

const TITLES = { medium: "By medium", tier: "By tier" };

/**
 * Links from each device to the nearest GPU. @param {Topology} topology @returns {Map<string, number>}
 */
function levelsOf({ devices, links }) {
  const near = new Map(devices.map((d) => [d.name, []]));
  for (const { src, dst } of links) {
    near.get(src).push(dst);
    near.get(dst).push(src);
  }
  const levels = new Map(devices.filter((d) => d.kind === "gpu").map((d) => [d.name, 0]));
  for (const [name, level] of levels) {
    for (const other of near.get(name)) if (!levels.has(other)) levels.set(other, level + 1);
  }
  return levels;
}

/** Names of the tiers in their order: inside hosts, between GPUs, and upwards. @param {number} tier @param {boolean} hosted whether some are inside hosts */
const tierName = (tier, hosted) => (tier < 0 ? "Inside hosts" : tier > 0 ? `Tier ${tier}` : hosted ? "Between hosts" : "GPU to GPU");

/** Names of the tiers by links. @param {Topology} topology */
function tiersOf(topology) {
  const hosts = new Map(topology.devices.map((d) => [d.name, d.host]));
  const levels = levelsOf(topology);
  const inside = ({ src, dst }) => hosts.get(src) !== null && hosts.get(src) === hosts.get(dst);
  const tiers = topology.links.map((link) => (inside(link) ? -1 : Math.max(levels.get(link.src) ?? 1, levels.get(link.dst) ?? 1)));
  const hosted = tiers.includes(-1);
  const named = (each) => each.map((tier) => tierName(tier, hosted));
  return { names: named(tiers), order: named([...new Set(tiers)].sort((a, b) => a - b)) };
}

/**
 * Kinds of links, and for each link its class by the key of its ends; no classes where one has all.
 * @param {Topology} topology @param {By} by
 */
export function classesOf(topology, by) {
  const media = topology.links.map(({ medium }) => medium || "Other links");
  const { names, order } = by === "tier" ? tiersOf(topology) : { names: media, order: [...new Set(media)] };
  const titles = order.length > 1 && order.length <= MOST_CLASSES ? order : [];
  const of = new Map(titles.length ? topology.links.map(({ src, dst }, i) => [endsKey(src, dst), names[i]]) : []);
  return { titles, of };
}

/** What a drawing begins with: its media, else its tiers, none of a small one. @param {Topology} topology @returns {By | null} */
export function usualClasses(topology) {
  if (topology.devices.length < LARGE) return null;
  return /** @type {By[]} */ (["medium", "tier"]).find((by) => classesOf(topology, by).titles.length) ?? null;
}

export class LinkClasses {
  /** @param {import("./canvas.js").Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    /** What was asked for, undefined before. @type {By | null | undefined} */
    this.chosen = undefined;
    /** Those of the drawing, and of each link which. @type {string[]} */
    this.titles = [];
    /** @type {Map<string, string>} */
    this.of = new Map();
    /** What they were found of, and what was asked for then. @type {[Topology | null, any]} */
    this.found = [null, null];
    /** Titles of the classes whose links step back. @type {Set<string>} */
    this.off = new Set();
  }

  /** Find the classes anew where the cluster has changed, and give the lines their colours. */
  refresh() {
    const { topology } = this.canvas.drawing;
    const { theme, shown, stage } = this.canvas;
    if (this.found[0] !== topology || this.found[1] !== this.chosen) {
      this.found = [topology, this.chosen];
      this.by = this.chosen === undefined ? usualClasses(topology) : this.chosen;
      Object.assign(this, this.by ? classesOf(topology, this.by) : { titles: [], of: new Map() });
      this.off = new Set([...this.off].filter((title) => this.titles.includes(title)));
    }
    const colors = new Map(this.titles.map((title, i) => [title, linkColor(i, theme)]));
    this.colors = colors;
    this.classOfLine = new Map(shown.lines.map((line) => [lineId(line.id), this.#classOf(line)]));
    stage.tint((id) => colors.get(this.classOfLine.get(id)));
    this.canvas.refade();
  }

  /** The class of a line; of a bundle, that of all its links. @param {Line} line */
  #classOf(line) {
    if (!this.titles.length) return undefined;
    const all = new Set((line.parts ?? [line]).map(({ a, b }) => this.of.get(endsKey(a, b)) ?? this.of.get(endsKey(b, a))));
    return all.size === 1 ? [...all][0] : undefined;
  }

  /** Which lines step back, by id; null where none does. */
  get faded() {
    const { canvas, off } = this;
    const fits = canvas.drawing.topology.devices.length >= LARGE && canvas.shown.lines.length <= MOST_LIT;
    const ends = canvas.hovered && fits ? endsOfHovered(canvas.hovered) : null;
    if (!off.size && !ends) return null;
    const lit = ends && new Set(canvas.shown.lines.filter(({ a, b }) => ends(a, b)).map(({ id }) => lineId(id)));
    return (id) => (lit !== null && !lit.has(id)) || off.has(this.classOfLine.get(id));
  }

  /** Colour by medium, by tier, or not; without arguments the next of these. @param {{by?: By | null}} [how] */
  turn({ by } = {}) {
    const { topology } = this.canvas.drawing;
    const choices = [.../** @type {By[]} */ (["medium", "tier"]).filter((each) => classesOf(topology, each).titles.length), null];
    this.chosen = by === undefined ? choices[(choices.indexOf(this.by ?? null) + 1) % choices.length] : by;
    this.off = new Set();
    this.refresh();
    this.canvas.panels.refresh();
    this.canvas.redrawAll();
    const said = this.titles.length ? `Links are coloured ${TITLES[this.by].toLowerCase()}: ${this.titles.join(", ")}` : "Links have no colours";
    this.canvas.say(choices.length === 1 ? "All links are of one medium and one tier" : said);
  }

  /** Let the links of a class step back, or not. @param {{title: string, on?: boolean}} which on: whether they are seen */
  filter({ title, on = this.off.has(title) }) {
    this.off[on ? "delete" : "add"](title);
    this.canvas.refade();
    this.canvas.panels.refresh();
    this.canvas.say(on ? `${title} is shown` : `${title} steps back`);
  }

  /** Rows of the legend: the classes that have a line on the screen, and those that step back. @param {(title: string) => void} pick @returns {HTMLElement[]} */
  rows(pick) {
    const drawn = new Set(this.classOfLine?.values());
    return this.titles.filter((title) => drawn.has(title) || this.off.has(title)).map((title) => h(
      "button", { type: "button", class: "tl-class", "aria-pressed": String(!this.off.has(title)), title: "Show these links, or let them step back", onclick: () => pick(title) },
      h("i", { style: `background:${this.colors.get(title)}` }), title,
    ));
  }
}

/** Whether a line between two ends belongs to what is pointed at. */
function endsOfHovered({ device, group, line }) {
  if (line) return (a, b) => endsKey(a, b) === endsKey(line[0], line[1]);
  const end = device ?? group;
  return end ? (a, b) => a === end || b === end : null;
}
