/**
 * The graph on the screen: cytoscape draws devices, hosts and links and says what was touched.
 * It never holds anything that is not in the drawing.
 *
 * @typedef {import("./types.js").Drawing} Drawing
 * @typedef {import("./types.js").Point} Point
 * @typedef {import("./types.js").Rect} Rect
 * @typedef {import("./types.js").Selection} Selection
 */

import cytoscape from "cytoscape";
import { deviceElement, deviceId, hostElement, hostId, lineElement, lineId } from "./elements.js";
import {
  bendAround, borderPoint, centre, curveBetween, grown, hullRect, overlap, pointOn, within,
} from "./geometry.js";
import { EMPTY, KINDS, endsKey, hostNames, linesOf } from "./model.js";
import { HOST_PADDING, styleSheet } from "./style.js";

/** Links above which they are drawn thinner and fainter. */
const MANY_LINKS = 800;
/** Links above which a still picture is panned. */
const STILL_WHILE_PANNING = 1500;
/** Links above which they are not led around devices: nobody can follow that many anyway. */
const MOST_BENT = 900;
/** Elements above which chunks are shown even where their line is beneath a device. */
const MOST_COVERED = 1200;

/** Room that the floating tools and the legend need, in pixels. */
const FRAME = { top: 68, side: 34, bottom: 50 };

/** Room for the name above a host's box, in drawing units. */
const HOST_NAME = 22;

/** Zooms below which names are written larger, so that they can be read from afar. */
const FAR = [0.72, 0.5];

export class Stage {
  /** @param {HTMLElement} container */
  constructor(container) {
    this.cy = cytoscape({
      container,
      // A grid layout, which is the default, fails while the host has not attached the element.
      layout: { name: "preset" },
      minZoom: 0.05,
      maxZoom: 4,
      boxSelectionEnabled: true,
      selectionType: "single",
      userZoomingEnabled: false,
    });
    /** Object on the screen by id: snapshots share structure, so the same one is unchanged. */
    this.painted = new Map();
    this.curves = new Map();
    this.bends = new Map();
    this.drawing = EMPTY;
    /** Whether a selection or a position that changes now is our own doing. */
    this.applying = false;
    this.cy.on("position bounds", () => this.curves.clear());
    this.cy.on("zoom", () => this.#magnify());
    this.distance = 0;
  }

  /** @param {Record<string, string>} colors */
  setColors(colors) {
    this.colors = colors;
    this.cy.style(styleSheet(colors));
    this.painted.clear();
  }

  /** Bring the screen in line with a drawing. @param {Drawing} drawing */
  paint(drawing) {
    this.drawing = drawing;
    this.applying = true;
    this.cy.batch(() => this.#diff(drawing));
    this.applying = false;
    this.curves.clear();
    this.#magnify(true);
    // Cytoscape reads this option once, but honours it whenever it is set.
    const renderer = /** @type {any} */ (this.cy).renderer();
    if (renderer) renderer.textureOnViewport = linesOf(drawing.topology).length > STILL_WHILE_PANNING;
  }

  /** Write names larger the farther away they are. @param {boolean} [fresh] new devices came */
  #magnify(fresh = false) {
    const distance = FAR.filter((zoom) => this.cy.zoom() < zoom).length;
    if (distance === this.distance && !fresh) return;
    this.distance = distance;
    this.cy.batch(() => {
      FAR.forEach((_, i) => this.cy.nodes().toggleClass(`far${i + 1}`, distance === i + 1));
    });
  }

  /** @param {Drawing} drawing */
  #diff(drawing) {
    const wanted = this.#elements(drawing);
    const names = new Set(wanted.map((each) => each.id));
    const changed = wanted.filter(({ id, identity }) => {
      const same = this.painted.get(id);
      return !same || same.some((part, i) => part !== identity[i]);
    });
    const [fresh, others] = [[], []];
    for (const { id, make } of changed) {
      const have = this.cy.getElementById(id);
      if (have.empty()) fresh.push(make());
      else others.push({ have, element: make() });
    }
    // A device can only move into a host that is there, and leaves with a host that goes.
    if (fresh.length) this.cy.add(fresh);
    for (const { have, element } of others) update(have, element);
    this.cy.elements().filter((e) => !names.has(e.id())).remove();
    this.painted = new Map(wanted.map(({ id, identity }) => [id, identity]));
  }

  /** What has to be on the screen, with what it depends on. @param {Drawing} drawing */
  #elements({ topology, positions }) {
    const hosts = hostNames(topology);
    const lines = linesOf(topology);
    const bends = this.#bendsOf(lines, { topology, positions });
    const thin = lines.length > MANY_LINKS;
    return [
      ...[...hosts].map((host) => ({
        id: hostId(host), identity: [host], make: () => hostElement(host),
      })),
      ...topology.devices.map((d) => ({
        id: deviceId(d.name),
        identity: [d, positions[d.name]],
        make: () => deviceElement(d, positions[d.name], this.colors),
      })),
      ...lines.map((line) => ({
        id: lineId(line.id),
        identity: [line.forth, line.back, bends.get(line.id), thin],
        make: () => lineElement(line, { bend: bends.get(line.id), thin }),
      })),
    ];
  }

  /** How much each line bends to go around the devices in its way. */
  #bendsOf(lines, { topology, positions }) {
    const key = topology.links;
    if (this.bends.links === key && this.bends.positions === positions) return this.bends;
    const rects = new Map(topology.devices.map((d) => [d.name, rectOf(d, positions[d.name])]));
    const bends = new Map();
    for (const line of lines) {
      const others = lines.length > MOST_BENT ? [] : withoutEnds(rects, line);
      bends.set(line.id, bendAround(centre(rects.get(line.a)), centre(rects.get(line.b)), others));
    }
    this.bends = Object.assign(bends, { links: key, positions });
    return bends;
  }

  /** Rectangle of a device as it is on the screen now, mid-drag included. @returns {Rect | null} */
  rect(name) {
    const node = this.cy.getElementById(deviceId(name));
    if (node.empty()) return null;
    const { x, y } = node.position();
    const [w, h] = [node.data("width") / 2, node.data("height") / 2];
    return { x1: x - w, y1: y - h, x2: x + w, y2: y + h };
  }

  /**
   * Rectangle of a host's box. Cytoscape is not asked: its boxes are those from before a change
   * of style until it has drawn again, and asking keeps them wrong.
   * @param {string} name @returns {Rect | null}
   */
  hostRect(name) {
    const inside = this.drawing.topology.devices.filter((d) => d.host === name);
    const box = hullRect(inside.map((d) => this.rect(d.name)));
    return box && grown(box, HOST_PADDING);
  }

  /** Rectangle around all that is drawn, names of hosts included. */
  #contentRect() {
    const { topology } = this.drawing;
    const hosts = [...hostNames(topology)].map((name) => this.hostRect(name));
    const bent = linesOf(topology)
      .filter((line) => this.bends.get(line.id))
      .map((line) => pointOn(this.curve(line), 0.5));
    return hullRect([
      ...topology.devices.map((d) => this.rect(d.name)),
      ...hosts.map((r) => ({ ...r, y1: r.y1 - HOST_NAME })),
      ...bent.map(({ x, y }) => ({ x1: x, y1: y, x2: x, y2: y })),
    ]);
  }

  /**
   * The visible curve of a line, and the side on which each direction travels.
   * @param {import("./types.js").Line} line
   */
  curve(line) {
    const known = this.curves.get(line.id);
    if (known) return known;
    const [from, to] = [this.rect(line.a), this.rect(line.b)];
    if (!from || !to) return null;
    const curve = curveBetween(from, to, this.bends.get(line.id) ?? 0);
    const width = this.cy.getElementById(lineId(line.id)).data("width") ?? 2;
    const made = { ...curve, lane: width / 2 + 3.2, width, covered: this.#covered(line, curve) };
    this.curves.set(line.id, made);
    return made;
  }

  /** Which parts of a line are beneath devices that it crosses; null where none is. */
  #covered(line, curve) {
    if (this.painted.size > MOST_COVERED) return null;
    const box = hullRect([curve.a, curve.b, curve.c ?? curve.a].map(({ x, y }) => ({ x1: x, y1: y, x2: x, y2: y })));
    const crossed = this.cy
      .nodes(".device")
      .map((n) => n.data("name"))
      .filter((name) => name !== line.a && name !== line.b)
      .map((name) => this.rect(name))
      .filter((rect) => overlap(rect, grown(box, 1)));
    if (!crossed.length) return null;
    const parts = Array.from({ length: 48 }, (_, i) =>
      crossed.some((rect) => within(rect, pointOn(curve, (i + 0.5) / 48))),
    );
    return parts.some(Boolean) ? parts : null;
  }

  /** @param {Point} p on the screen @returns {Point} in the drawing */
  toModel(p) {
    const { x, y } = this.cy.pan();
    return { x: (p.x - x) / this.cy.zoom(), y: (p.y - y) / this.cy.zoom() };
  }

  /** @param {Point} p in the drawing @returns {Point} on the screen */
  toScreen(p) {
    const { x, y } = this.cy.pan();
    return { x: p.x * this.cy.zoom() + x, y: p.y * this.cy.zoom() + y };
  }

  /** Device under a point of the drawing. @param {Point} p @param {number} [slack] */
  deviceAt(p, slack = 4) {
    const hit = this.cy
      .nodes(".device")
      .filter((n) => within(grown(/** @type {Rect} */ (this.rect(n.data("name"))), slack), p));
    return hit.nonempty() ? hit.last().data("name") : null;
  }

  /** Innermost host box under a point of the drawing. @param {Point} p */
  hostAt(p) {
    const hit = this.cy.nodes(".host").filter((n) => within(this.hostRect(n.data("name")), p));
    return hit.nonempty() ? hit.first().data("name") : null;
  }

  /** Ports of a device: the middles of its four sides. @param {string} name @returns {Point[]} */
  ports(name) {
    const r = this.rect(name);
    if (!r) return [];
    const m = centre(r);
    const far = [[1e6, m.y], [m.x, 1e6], [-1e6, m.y], [m.x, -1e6]];
    return far.map(([x, y]) => borderPoint(r, { x, y }));
  }

  /** Show everything. @param {Rect[]} extra regions that have to be seen too */
  fit(extra = []) {
    this.cy.resize();
    if (this.cy.elements().empty() || !this.cy.width()) return;
    const { x1, y1, x2, y2 } = hullRect([this.#contentRect(), ...extra]);
    const box = { x1, y1, x2, y2, w: x2 - x1, h: y2 - y1 };
    const [width, height] = [this.cy.width(), this.cy.height()];
    const zoom = Math.min(
      1.5,
      (width - 2 * FRAME.side) / box.w,
      (height - FRAME.top - FRAME.bottom) / box.h,
    );
    this.cy.viewport({
      zoom: Math.max(zoom, 0.05),
      pan: {
        x: width / 2 - (zoom * (box.x1 + box.x2)) / 2,
        y: (height + FRAME.top - FRAME.bottom) / 2 - (zoom * (box.y1 + box.y2)) / 2,
      },
    });
    this.fitted = this.#view();
  }

  #view() {
    const { x, y } = this.cy.pan();
    return `${this.cy.zoom()} ${x} ${y}`;
  }

  /** Whether nobody has moved the view since it was fitted. */
  get isFitted() {
    return this.fitted === this.#view();
  }

  /** Move the view if a device lies outside it. @param {string} name */
  reveal(name) {
    const r = this.rect(name);
    const view = this.cy.extent();
    if (r && (r.x1 < view.x1 || r.x2 > view.x2 || r.y1 < view.y1 || r.y2 > view.y2)) this.fit();
  }

  /** @returns {Selection} */
  selection() {
    const names = (selector) => this.cy.$(selector).map((e) => e.data("name"));
    return {
      devices: names("node.device:selected"),
      links: this.cy.$("edge:selected").map((e) => [e.data("a"), e.data("b")]),
      hosts: names("node.host:selected"),
    };
  }

  /** @param {Partial<Selection>} selection */
  select({ devices = [], links = [], hosts = [] }) {
    const ids = new Set([
      ...devices.map(deviceId),
      ...hosts.map(hostId),
      ...links.flatMap(([a, b]) => [lineId(endsKey(a, b)), lineId(endsKey(b, a))]),
    ]);
    this.applying = true;
    this.cy.batch(() => {
      this.cy.elements(":selected").filter((e) => !ids.has(e.id())).unselect();
      for (const id of ids) this.cy.getElementById(id).select();
    });
    this.applying = false;
  }

  /** Dash the lines that carry one of these links. @param {Set<string>} ends keys of links */
  markCut(ends) {
    this.cy.edges().forEach((e) => {
      const [a, b] = [e.data("a"), e.data("b")];
      e.toggleClass("cut", ends.has(endsKey(a, b)) || ends.has(endsKey(b, a)));
    });
  }

  /** Places of all devices as they are on the screen. */
  positions() {
    return Object.fromEntries(
      this.cy.nodes(".device").map((n) => [n.data("name"), [n.position().x, n.position().y]]),
    );
  }

  destroy() {
    this.cy.destroy();
  }
}

const rectOf = ({ kind }, [x, y]) => {
  const { width, height } = KINDS[kind];
  return { x1: x - width / 2, y1: y - height / 2, x2: x + width / 2, y2: y + height / 2 };
};

const withoutEnds = (rects, { a, b }) =>
  [...rects].filter(([name]) => name !== a && name !== b).map(([, rect]) => rect);

/** Change an element on the screen into what it should be. */
function update(have, element) {
  const { id, source, target, parent, ...data } = element.data;
  if (element.group === "nodes" && (have.data("parent") ?? undefined) !== parent) {
    have.move({ parent: parent ?? null });
  }
  const now = have.cy().getElementById(id);
  now.data(data);
  const kept = ["cut", "filled", "far1", "far2"].filter((name) => now.hasClass(name));
  now.classes([element.classes, ...kept].join(" "));
  if (element.position) now.position(element.position);
}
