/**
 * The graph on the screen: cytoscape draws devices, hosts and links and says what was touched.
 * It never holds anything that is not in the drawing.
 *
 * @typedef {import("./types.js").Point} Point
 * @typedef {import("./types.js").Rect} Rect
 * @typedef {import("./types.js").Selection} Selection
 * @typedef {import("./types.js").Shown} Shown
 */

import cytoscape from "cytoscape";
import { Animation } from "./animation.js";
import {
  MANY_LINKS, MOST_COVERED, boxesOf, deviceElement, endId, groupElement, hostElement, hostId, lineElement, lineId, waysOf,
} from "./elements.js";
import { countsOfAll, endsOf, hostKey, shownOf } from "./folding.js";
import {
  borderPoint, centre, cornersOf, coveredParts, curveBetween, grown, hullRect, overlap, pointOn, rectOf, within,
} from "./geometry.js";
import { EMPTY, endsKey } from "./model.js";
import { FAR, roomsOf } from "./names.js";
import { FONT, HOST_PADDING, styleSheet } from "./style.js";

/** Share of the view from which on what is shifted while the ground is dragged is drawn anew. */
const MOST_SHIFT = 0.25;

/** Room that the floating tools and the legend need, in pixels. */
export const FRAME = { top: 68, side: 34, bottom: 50 };
/** And without the tools. */
export const BARE = { top: 22, side: 22, bottom: 40 };

/** Pixels that a region may reach beyond the view before that is moved. */
const SLACK = 24;

/** Zoom at most of what is shown as large as it may be. */
const MOST_ZOOM = 1.5;

/** Pixels below which the name of a device is left out, and the change of the zoom from which on that is asked again. */
const LEAST_NAME = 8;
const MOST_STRETCH = 0.02;

/** Room for the name above a host's box, in drawing units. */
const HOST_NAME = 22;

/** How far the frame of a pod reaches beyond what is in it: less than the first track of a bus. */
const POD_PADDING = 9;

export class Stage {
  #measure;

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
    const ctx = document.createElement("canvas").getContext("2d");
    /** Width of a name whose letters are one unit high. @param {string} text */
    this.#measure = (text) => {
      ctx.font = `600 100px ${FONT}`;
      return ctx.measureText(text).width / 100;
    };
    /** Whether what was shifted is to be drawn. */
    this.settling = false;
    this.#shiftWhileDragged();
    this.animation = new Animation(this.cy);
    /** Object on the screen by id: snapshots share structure, so the same one is unchanged. */
    this.painted = new Map();
    this.curves = new Map();
    /** Boxes of all that is shown, while nothing moves. @type {{name: string, box: Rect | null}[] | null} */
    this.boxes = null;
    /** How each line of `lines` runs while its ends stand at `positions`. */
    this.routed = { lines: null, positions: null, routes: /** @type {Map<string, import("./geometry.js").Route>} */ (new Map()), dots: /** @type {import("./buses.js").Dot[]} */ ([]) };
    this.shown = shownOf(EMPTY, new Set());
    this.frame = FRAME;
    /** Whether a selection or a position that changes now is our own doing. */
    this.applying = false;
    this.cy.on("position bounds", () => this.#forget());
    this.cy.on("zoom", () => this.#magnify());
    this.distance = 0;
    /** Whether names are written larger at every zoom. */
    this.large = false;
    /** Zoom by which names that are too small were last left out. */
    this.namedAt = 1;
  }

  /** Write names larger at every zoom, or not. @param {boolean} large */
  magnify(large) {
    this.large = large;
    this.#magnify(true);
  }

  /** @param {Record<string, string>} colors */
  setColors(colors) {
    this.colors = colors;
    this.cy.style(styleSheet(colors));
    this.painted.clear();
  }

  /** Bring the screen in line with what is to be shown. @param {Shown} shown */
  paint(shown) {
    this.shown = shown;
    this.applying = true;
    this.animation.finish();
    this.cy.batch(() => this.#diff(shown));
    this.applying = false;
    this.#forget();
    this.#magnify(true);
  }

  /** While the ground is dragged, what cytoscape has drawn is shifted. */
  #shiftWhileDragged() {
    const renderer = /** @type {any} */ (this.cy).renderer();
    const render = renderer.render.bind(renderer);
    const { style } = renderer.data.canvasContainer;
    let drawn = { x: 0, y: 0, zoom: 0 };
    renderer.render = (options) => {
      const [{ x, y }, zoom] = [this.cy.pan(), this.cy.zoom()];
      const [dx, dy] = [x - drawn.x, y - drawn.y];
      const near = Math.abs(dx) < MOST_SHIFT * this.cy.width() && Math.abs(dy) < MOST_SHIFT * this.cy.height();
      const dragged = (dx || dy) && (renderer.hoverData.dragging || renderer.swipePanning);
      if (dragged && near && zoom === drawn.zoom && !this.settling) style.translate = `${dx}px ${dy}px`;
      else {
        drawn = { x, y, zoom };
        this.settling = false;
        style.translate = "";
        render(options);
      }
    };
  }

  /** Draw what has been shifted where it is. */
  settle() {
    this.settling = true;
    /** @type {any} */ (this.cy).renderer()?.redraw();
  }

  /** Write names larger the farther away they are. @param {boolean} [fresh] new devices came */
  #magnify(fresh = false) {
    const distance = FAR.filter((zoom) => this.cy.zoom() < zoom).length;
    if (distance !== this.distance || fresh) {
      this.distance = distance;
      this.cy.batch(() => {
        FAR.forEach((_, i) => this.cy.nodes().toggleClass(`far${i + 1}`, distance === i + 1));
        this.cy.nodes().toggleClass("large", this.large);
      });
    }
    this.#hideSmall(fresh);
  }

  /** Leave out names of devices that are too small to be read; those of hosts stay. @param {boolean} fresh */
  #hideSmall(fresh) {
    const zoom = this.cy.zoom();
    const least = LEAST_NAME / zoom;
    if (!fresh && Math.abs(zoom / this.namedAt - 1) < MOST_STRETCH) return;
    this.namedAt = zoom;
    const size = `${this.large ? "large" : "near"}${this.distance}`;
    this.cy.batch(() => this.cy.nodes(".device").forEach((node) => void node.toggleClass("small", node.data(size) < least)));
  }

  /** @param {Shown} shown */
  #diff(shown) {
    const wanted = this.#elements(shown);
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
    const moves = others.map(({ have, element }) => ({ node: have, from: element.position && { ...have.position() }, to: element.position }));
    for (const { have, element } of others) update(have, element);
    this.animation.start(moves.filter(({ from, to }) => from && (from.x !== to.x || from.y !== to.y)));
    this.cy.elements().filter((e) => !names.has(e.id())).remove();
    this.painted = new Map(wanted.map(({ id, identity }) => [id, identity]));
  }

  /** What has to be on the screen, with what it depends on. @param {Shown} shown */
  #elements({ devices, groups, lines, positions }) {
    this.rooms = new Map();
    for (const { name, host } of devices) {
      if (host !== null) this.rooms.set(host, [...(this.rooms.get(host) ?? []), name]);
    }
    const routes = this.#routes();
    const boxes = boxesOf(this.shown);
    const thin = lines.length > MANY_LINKS;
    const at = (name) => positions[name];
    const alike = countsOfAll(groups) !== "";
    const rooms = roomsOf(this.shown, alike, this.#measure);
    return [
      ...[...this.rooms.keys()].map((host) => ({
        id: hostId(host), identity: [host], make: () => hostElement(host),
      })),
      ...devices.map((d) => ({
        id: endId(d.name), identity: [d, rooms.get(d.name), ...at(d.name)],
        make: () => deviceElement(d, { position: at(d.name), room: rooms.get(d.name), colors: this.colors }),
      })),
      ...groups.map((group) => ({
        id: endId(group.key),
        identity: [group, alike, rooms.get(group.key), ...at(group.key)],
        make: () => groupElement(group, { position: at(group.key), room: rooms.get(group.key), alike, colors: this.colors }),
      })),
      ...lines.map((line) => ({
        id: lineId(line.id),
        identity: [line.forth, line.back, thin, ...lookOf(routes.get(line.id), line, at)],
        make: () => lineElement(line, { way: routes.get(line.id), thin, boxes: { from: boxes.get(line.a), to: boxes.get(line.b) } }),
      })),
    ];
  }

  /** How each line runs; found anew when lines or places changed. */
  #routes() {
    const { lines, positions } = this.shown;
    if (this.routed.lines !== lines || this.routed.positions !== positions) {
      this.routed = { lines, positions, ...waysOf(this.shown) };
    }
    return this.routed.routes;
  }

  /** Rectangle of a device or group as it is on the screen now, mid-drag included. @returns {Rect | null} */
  rect(name) {
    const node = this.cy.getElementById(endId(name));
    if (node.empty()) return null;
    const { x, y } = node.position();
    const [w, h] = [node.data("width") / 2, node.data("height") / 2];
    return { x1: x - w, y1: y - h, x2: x + w, y2: y + h };
  }

  /**
   * Rectangle of a host's box, or of its group where it is folded. Cytoscape is not asked: its boxes are those from before a change
   * of style until it has drawn again, and asking keeps them wrong.
   * @param {string} name @returns {Rect | null}
   */
  hostRect(name) {
    const inside = this.rooms.get(name);
    if (!inside) return this.rect(hostKey(name));
    return grown(/** @type {Rect} */ (hullRect(inside.map((each) => this.rect(each)))), HOST_PADDING);
  }

  /**
   * Frames of racks and pods, none where they would overlap. @returns {{title: string, rect: Rect, below: boolean}[]} below: that the name
   * stands there, which is on the side away from the middle
   */
  podFrames() {
    const frames = this.shown.pods.map(({ title, ends }) => {
      const hosts = [...this.rooms.keys()].filter((host) => this.rooms.get(host).some((name) => ends.includes(name)));
      const rects = ends.map((end) => this.rect(end)).filter(Boolean);
      const inner = hosts.map((host) => this.hostRect(host)).map((r) => ({ ...r, y1: r.y1 - HOST_NAME }));
      return { title, rect: hullRect([...rects, ...inner].map((r) => grown(r, POD_PADDING))) };
    });
    const clash = frames.some(({ rect }, i) => frames.slice(i + 1).some((other) => overlap(rect, other.rect)));
    if (clash || !frames.length) return [];
    const middle = centre(hullRect(frames.map(({ rect }) => rect))).y;
    return frames.map((frame) => ({ ...frame, below: frame.rect.y1 > middle }));
  }

  /** Rectangle around all that is drawn, names of hosts included. */
  #contentRect() {
    const { devices, groups, lines } = this.shown;
    const hosts = [...this.rooms.keys()].map((name) => this.hostRect(name));
    const bent = lines
      .filter((line) => this.routeOf(line))
      .flatMap((line) => aroundOf(this.curve(line)));
    return hullRect([
      ...devices.map((d) => this.rect(d.name)),
      ...groups.map(({ key }) => this.rect(key)),
      ...hosts.map((r) => ({ ...r, y1: r.y1 - HOST_NAME })),
      ...this.podFrames().map(({ rect }) => ({ ...rect, y1: rect.y1 - HOST_NAME, y2: rect.y2 + HOST_NAME })),
      ...bent.map(rectOf),
    ]);
  }

  /**
   * The visible curve of a line, and the side on which each direction travels.
   * @param {import("./types.js").Line} line
   */
  curve(line) {
    const known = this.curves.get(line.id);
    if (known) return known;
    const curve = this.shape(line);
    if (!curve) return null;
    const width = this.cy.getElementById(lineId(line.id)).data("width") ?? 2;
    const made = { ...curve, lane: width / 2 + 3.2, width, covered: this.#covered(line, curve) };
    this.curves.set(line.id, made);
    return made;
  }

  /** How a line runs. @param {import("./types.js").Line} line */
  routeOf({ id }) {
    return this.routed.routes.get(id) ?? 0;
  }

  /** The visible curve of a line alone, which is quickly found. @param {import("./types.js").Line} line */
  shape(line) {
    const [from, to] = [this.rect(line.a), this.rect(line.b)];
    return from && to ? curveBetween(from, to, this.routeOf(line)) : null;
  }

  /**
   * Where wires of buses join, in the colour of their lines or one for all.
   * @param {CanvasRenderingContext2D} ctx in drawing units @param {(dot: import("./buses.js").Dot) => boolean} [which] @param {string} [color]
   */
  drawDots(ctx, which = () => true, color = undefined) {
    for (const { x, y, id } of this.routed.dots.filter(which)) {
      const edge = this.cy.getElementById(lineId(id));
      if (edge.hasClass("faded") || edge.hasClass("unused")) continue;
      ctx.fillStyle = color ?? edge.data("tint") ?? this.colors.link;
      ctx.beginPath();
      ctx.arc(x, y, Math.max(4.2, edge.data("width") / 2 + 1.5), 0, 2 * Math.PI);
      ctx.fill();
    }
  }

  /** Which parts of a line are beneath devices that it crosses; null where none is. */
  #covered(line, curve) {
    if (this.painted.size > MOST_COVERED) return null;
    const { devices, groups } = this.shown;
    this.boxes ??= [...devices.map((d) => d.name), ...groups.map(({ key }) => key)].map((name) => ({ name, box: this.rect(name) }));
    const others = this.boxes.filter(({ name, box }) => box && name !== line.a && name !== line.b);
    return coveredParts(curve, others.map(({ box }) => /** @type {Rect} */ (box)));
  }

  /** Something moved: curves are found anew when they are asked for. */
  #forget() {
    this.curves.clear();
    this.boxes = null;
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

  /** Key of the group under a point of the screen's drawing. @param {Point} p */
  groupAt(p) {
    return this.shown.groups.find(({ key }) => within(/** @type {Rect} */ (this.rect(key)), p))?.key ?? null;
  }

  /** Innermost host box under a point of the drawing, a folded one too. @param {Point} p */
  hostAt(p) {
    const hit = [...this.rooms.keys()].find((name) => within(this.hostRect(name), p));
    return hit ?? this.shown.byKey.get(this.groupAt(p))?.host ?? null;
  }

  /** Ports of a device: the middles of its four sides. @param {string} name @returns {Point[]} */
  ports(name) {
    const r = this.rect(name);
    if (!r) return [];
    const m = centre(r);
    const far = [[1e6, m.y], [m.x, 1e6], [-1e6, m.y], [m.x, -1e6]];
    return far.map(([x, y]) => borderPoint(r, { x, y }));
  }

  /** Show everything. @param {Rect[]} extra regions that have to be seen too @param {number} [most] zoom */
  fit(extra = [], most = MOST_ZOOM) {
    this.cy.resize();
    if (this.cy.elements().empty() || !this.cy.width()) return;
    this.show([this.#contentRect(), ...extra], most);
    this.fitted = this.#view();
  }

  /** Show rectangles as large as they may be. @param {Rect[]} rects @param {number} [most] zoom */
  show(rects, most = MOST_ZOOM) {
    const { x1, y1, x2, y2 } = hullRect(rects);
    const box = { x1, y1, x2, y2, w: x2 - x1, h: y2 - y1 };
    const [width, height] = [this.cy.width(), this.cy.height()];
    const zoom = Math.min(
      most,
      (width - 2 * this.frame.side) / box.w,
      (height - this.frame.top - this.frame.bottom) / box.h,
    );
    this.cy.viewport({
      zoom: Math.max(zoom, 0.05),
      pan: {
        x: width / 2 - (zoom * (box.x1 + box.x2)) / 2,
        y: (height + this.frame.top - this.frame.bottom) / 2 - (zoom * (box.y1 + box.y2)) / 2,
      },
    });
  }

  /** Rectangles of what is selected, as it is on the screen. @param {Selection} selection @returns {Rect[]} */
  rectsOf({ devices, hosts, links }) {
    const { home, lanes } = this.shown;
    const lines = links.map(([a, b]) => lanes.get(endsKey(a, b))?.line).filter(Boolean);
    return [
      ...devices.map((name) => this.rect(home.get(name) ?? name)),
      ...hosts.map((name) => this.hostRect(name)),
      ...lines.map((line) => this.curve(line)).filter(Boolean).map((curve) => hullRect(cornersOf(curve).map(rectOf))),
    ].filter(Boolean);
  }

  #view() {
    const { x, y } = this.cy.pan();
    return `${this.cy.zoom()} ${x} ${y}`;
  }

  /** Whether nobody has moved the view since it was fitted. */
  get isFitted() {
    return this.fitted === this.#view();
  }

  /** Whether rectangles are in view, give or take what a border has beyond it. @param {Rect[]} rects */
  inView(rects) {
    const view = grown(this.cy.extent(), SLACK / this.cy.zoom());
    return rects.every((r) => r.x1 >= view.x1 && r.x2 <= view.x2 && r.y1 >= view.y1 && r.y2 <= view.y2);
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
    const groups = names("node.group:selected").map((key) => this.shown.byKey.get(key));
    const alone = groups.filter((group) => group.host === null).flatMap((group) => group.members);
    return {
      devices: [...names("node.device:selected"), ...alone.map((d) => d.name)],
      links: this.cy.$("edge:selected").map((e) => this.lineOf(e.data("a"), e.data("b"))).flatMap(endsOf),
      hosts: [...names("node.host:selected"), ...groups.map((group) => group.host).filter((host) => host !== null)],
    };
  }

  /** @param {Partial<Selection>} selection */
  select({ devices = [], links = [], hosts = [] }) {
    const { home, lanes, byKey } = this.shown;
    const ids = new Set([
      ...devices.map((name) => endId(home.get(name) ?? name)),
      ...hosts.map((host) => (byKey.has(hostKey(host)) ? endId(hostKey(host)) : hostId(host))),
      ...links.map(([a, b]) => lanes.get(endsKey(a, b)) ?? lanes.get(endsKey(b, a)))
        .filter(Boolean).map(({ line }) => lineId(line.id)),
    ]);
    this.applying = true;
    this.cy.batch(() => {
      this.cy.elements(":selected").filter((e) => !ids.has(e.id())).unselect();
      for (const id of ids) this.cy.getElementById(id).select();
    });
    this.applying = false;
  }

  /**
   * Dash the lines that carry one of these links, and frame the groups that the cut goes through.
   * Of a line that shares its wire the graph has only what lies beyond the part of its own.
   * @param {Iterable<string>} ends keys of links
   * @param {{split: Set<string>, wires: Map<string, import("./own_wires.js").OwnWire>}} how keys of groups, and parts of lines by id
   */
  markCut(ends, { split, wires }) {
    const { lanes } = this.shown;
    const cut = new Set([...ends].map((key) => lanes.get(key)).filter(Boolean).map(({ line }) => lineId(line.id)));
    this.cy.batch(() => {
      this.cy.edges().forEach((e) => void e.toggleClass("cut", cut.has(e.id())).removeClass("wired"));
      for (const [id, wire] of wires) this.cy.getElementById(lineId(id)).data("gap", gapOf(wire)).addClass("wired");
      this.cy.nodes(".group").forEach((n) => void n.toggleClass("split", split.has(n.data("name"))));
    });
  }

  /** Let some lines step back. @param {((id: string) => boolean) | null} which by id; none of null */
  fade(which) {
    if (!which && !this.fading) return;
    this.fading = Boolean(which);
    this.cy.batch(() => this.cy.edges().forEach((e) => void e.toggleClass("faded", Boolean(which?.(e.id())))));
  }

  /** Give lines colours of their own. @param {(id: string) => string | undefined} color by id */
  tint(color) {
    this.cy.batch(() => this.cy.edges().forEach((e) => {
      const tint = color(e.id());
      if (e.data("tint") === tint) return;
      if (tint) e.data("tint", tint);
      else e.removeData("tint");
    }));
  }

  /** Leave out some lines; they keep their places. @param {Set<string> | null} ids none of null */
  leaveOut(ids) {
    if (!ids && !this.leaving) return;
    this.leaving = Boolean(ids);
    this.cy.batch(() => this.cy.edges().forEach((e) => void e.toggleClass("unused", Boolean(ids?.has(e.id())))));
  }

  /** The line that was painted between two ends. @param {string} a @param {string} b */
  lineOf(a, b) {
    if (this.lineIndex?.lines !== this.shown.lines) {
      this.lineIndex = { lines: this.shown.lines, at: new Map(this.shown.lines.map((line) => [line.id, line])) };
    }
    return this.lineIndex.at.get(endsKey(a, b));
  }

  /** Places of all devices and groups as they are on the screen, by name and key. */
  positions() {
    return Object.fromEntries(
      this.cy.nodes(".device, .group").map((n) => [n.data("name"), [n.position().x, n.position().y]]),
    );
  }

  destroy() {
    this.cy.destroy();
  }
}

/** What a line looks like besides its width: one that has corners depends on where its ends are. */
const lookOf = (way, { a, b }, at) => (typeof way === "number" ? [way] : [way === "stubs" ? way : way.map(({ x, y }) => `${x} ${y}`).join(), ...at(a), ...at(b)]);

/** Dashes and gaps of a line that is not drawn where it has a wire of its own. @param {import("./own_wires.js").OwnWire} wire */
const gapOf = ({ atB, own, length }) => (atB ? [length - own, 2 * length] : [0, own, 2 * length, 0]);

/** How far a line reaches beyond its ends. @param {import("./geometry.js").Curve} curve @returns {Point[]} */
const aroundOf = (curve) => (curve.legs ? cornersOf(curve) : [pointOn(curve, 0.5)]);

/** Change an element on the screen into what it should be. */
function update(have, element) {
  const { id, source, target, parent, ...data } = element.data;
  if (element.group === "nodes" && (have.data("parent") ?? undefined) !== parent) {
    have.move({ parent: parent ?? null });
  }
  const now = have.cy().getElementById(id);
  now.data(data);
  const classes = ["cut", "wired", "filled", ...FAR.map((_, i) => `far${i + 1}`), "large", "small", "faded", "unused", "off", "partly"].filter((name) => now.hasClass(name));
  now.classes([element.classes, ...classes].join(" "));
  if (element.position) now.position(element.position);
}
