/** Bottleneck cuts: a glowing region around the devices inside, with a label at its border. */

import { drawOwnWires } from "./cut_wires.js";
import { h } from "./dom.js";
import { centre, grown, hullRect, meets, overlap, pointOn, rectOf, runsOf, within } from "./geometry.js";
import { FAR, leaderTo, startsAlong } from "./leaders.js";
import { endsKey } from "./model.js";
import { ownWires } from "./own_wires.js";
import { hostNameRect } from "./pointing.js";
import { outlinedSide, regionOf } from "./region.js";

const LABEL_HEIGHT = 28;
/** Pixels around a cut within which its label looks for free ground, from place to place, and around it. */
const REACH = 200;
const PACE = { x: 20, y: 8 };
const ROOM = 4;
/** What it costs to cover a device, and a name or a panel, when nothing is free; a link costs one. */
const HEAVIEST = 30;
const HEAVY = 6;
/** What it costs that the line to it crosses a device or a name, and the pixels of that line, or farther away, that cost as much as a link. */
const ACROSS = 0.6;
const FARTHER = 400;
/** Links above which the label does not keep clear of them. */
const MOST_LINES = 1500;

export class CutView {
  /** @param {import("./canvas.js").Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    /** @type {HTMLElement[]} */
    this.labels = [];
    /** @type {Path2D[]} in drawing units */
    this.paths = [];
    /** Lines from cuts to labels that are not beside them. @type {[import("./types.js").Point, import("./types.js").Point][]} */
    this.leaders = [];
    /** Parts of wires that cut links have for themselves, by the ids of their lines. @type {Map<string, import("./own_wires.js").OwnWire>} */
    this.wires = new Map();
  }

  /** The cuts that are true of what is drawn. @returns {import("./types.js").Cut[]} */
  shown() {
    const { canvas } = this;
    // Of a drawing that has changed since, unless they came after the change.
    if (canvas.presenter.hiding) return [];
    if (canvas.stale && canvas.cutsSignature !== canvas.drawingSignature) return [];
    const names = canvas.deviceIndex;
    return (canvas.model.get("cuts") ?? []).filter((cut) => cut.inside.some((name) => names.has(name)));
  }

  /** Dash the links that leave the cuts, and make a label for each. */
  refresh() {
    const cuts = this.shown();
    const ends = cuts.flatMap((cut) => cut.links.map(([src, dst]) => endsKey(src, dst)));
    this.wires = this.#ownWires(cuts);
    this.canvas.stage.markCut(ends, { split: this.#split(cuts[0]), wires: this.wires });
    for (const label of this.labels) label.remove();
    const lines = (cut) => [...linesOf(cut.label), ...(this.#split(cut).size ? ["inside the dotted box"] : [])];
    this.labels = cuts.map((cut) => h("div", { class: "tl-note" }, ...lines(cut).map((line) => h("span", {}, line))));
    this.canvas.dom.stage.append(...this.labels);
  }

  /** What the links of cuts that run along buses have for themselves, from their ends inside. @param {import("./types.js").Cut[]} cuts */
  #ownWires(cuts) {
    const { stage, shown, drawing } = this.canvas;
    const marked = new Map();
    for (const { inside, links } of cuts) {
      const within = outlinedSide(inside, drawing.topology);
      const share = (end) => {
        const members = shown.byKey.get(end)?.members ?? [{ name: end }];
        return members.filter(({ name }) => within.has(name)).length / members.length;
      };
      const lines = links.map(([src, dst]) => shown.lanes.get(endsKey(src, dst))?.line).filter(Boolean);
      for (const { id, a, b } of lines) if (!marked.has(id)) marked.set(id, share(b) > share(a));
    }
    return ownWires(shown.lines.filter((line) => Array.isArray(stage.routeOf(line))), marked, (line) => stage.shape(line));
  }

  /** Keys of the folded groups that a cut goes through. @returns {Set<string>} */
  #split(cut) {
    if (!cut) return new Set();
    const inside = new Set(cut.inside);
    const through = ({ members }) => new Set(members.map((d) => inside.has(d.name))).size > 1;
    return new Set(this.canvas.shown.groups.filter(through).map(({ key }) => key));
  }

  /** Rectangles around the regions. */
  bounds() {
    return this.shown().map((cut) => boundsOf(this.#outlines(cut))).filter(Boolean);
  }

  /** Find the regions anew: the devices or the view moved. */
  place() {
    const placed = [];
    this.leaders = [];
    this.paths = this.shown().map((cut, i) => {
      const loops = this.#outlines(cut);
      const path = new Path2D();
      for (const loop of loops) {
        loop.forEach(({ x, y }, k) => (k ? path.lineTo(x, y) : path.moveTo(x, y)));
        path.closePath();
      }
      this.#placeLabel(this.labels[i], { cut, loops, placed });
      return path;
    });
  }

  /** The tint and the glow of the first cut, beneath the graph. @param {CanvasRenderingContext2D} ctx */
  drawGround(ctx) {
    const { colors } = this.canvas;
    for (const path of this.paths.slice(0, 1)) {
      ctx.fillStyle = colors.cutFill;
      ctx.fill(path, "evenodd");
      this.#stroke(ctx, path, { width: 1.8, glow: 16 });
    }
  }

  /** The borders, above the graph, where boxes of hosts cannot hide them. */
  drawBorders(ctx) {
    this.paths.forEach((path, i) => this.#stroke(ctx, path, { width: i ? 1.2 : 1.8, glow: 0 }));
    for (const [p, q] of this.leaders) {
      const path = new Path2D();
      path.moveTo(p.x, p.y);
      path.lineTo(q.x, q.y);
      this.#stroke(ctx, path, { width: 1.2, glow: 0, dash: [] });
    }
  }

  /** What links of the cut have of buses for themselves. @param {CanvasRenderingContext2D} ctx */
  drawWires(ctx) {
    drawOwnWires(ctx, this.wires, this.canvas);
  }

  #stroke(ctx, path, { width, glow, dash = [7, 6] }) {
    const { colors, stage } = this.canvas;
    ctx.strokeStyle = colors.cut;
    ctx.lineWidth = width / Math.max(0.6, stage.cy.zoom());
    ctx.shadowColor = colors.cut;
    ctx.shadowBlur = glow;
    ctx.setLineDash(dash);
    ctx.stroke(path);
    ctx.setLineDash([]);
    ctx.shadowBlur = 0;
  }

  #outlines(cut) {
    const { stage, drawing, shown } = this.canvas;
    return regionOf(cut.inside, {
      topology: drawing.topology, shown,
      rect: (end) => stage.rect(end), hostRect: (host) => stage.hostRect(host),
    });
  }

  /**
   * On the nearest free ground beside the part of the region that is in view, which is clear of devices, names and
   * links; where there is none, where it covers least. Nowhere while the region is out of view.
   */
  #placeLabel(label, { cut, loops, placed }) {
    const { stage } = this.canvas;
    const whole = boundsOf(loops) ?? hullRect([...this.#split(cut)].map((key) => stage.rect(key)).filter(Boolean));
    const box = whole && common(whole, stage.cy.extent());
    label.hidden = !box;
    if (!box) return;
    const [p, q] = [stage.toScreen({ x: box.x1, y: box.y1 }), stage.toScreen({ x: box.x2, y: box.y2 })];
    const region = { x1: p.x, y1: p.y, x2: q.x, y2: q.y };
    const [half, tall] = [label.offsetWidth / 2, label.offsetHeight / 2 || LABEL_HEIGHT / 2];
    const border = loops.flatMap((loop) => loop.map((spot, i) => [spot, loop.at(i - 1)].map((each) => stage.toScreen(each))));
    const best = this.#freeSpot(region, { half, tall, placed, border });
    label.hidden = !best;
    if (!best) return;
    placed.push(best.spot);
    const middle = centre(best.spot);
    label.style.left = `${middle.x}px`;
    label.style.top = `${middle.y}px`;
    const { from, to, length } = best.leader;
    if (length > FAR) this.leaders.push([stage.toModel(from), stage.toModel(to)]);
  }

  /** Where a label covers least, with the line to it, and the nearest of such places. */
  #freeSpot(region, { half, tall, placed, border }) {
    const { stage } = this.canvas;
    const reach = { x1: region.x1 - REACH - 2 * half, x2: region.x2 + REACH + 2 * half, y1: region.y1 - REACH - 2 * tall, y2: region.y2 + REACH + 2 * tall };
    const near = (rects) => rects.filter((rect) => overlap(rect, reach));
    const { devices, others } = this.#taken();
    const boxes = near(devices);
    const taken = near([...others, ...placed]);
    const lines = [...border, ...this.#frames(), ...this.#links(reach)];
    const seen = startsAlong(border).filter((p) => within(grown(region, 1), p));
    const starts = seen.length ? seen : startsAlong(sidesOf(region));
    const obstacles = [...boxes, ...taken];
    let [best, least] = [null, Infinity];
    for (const { spot, far } of spotsAround(region, { half, tall, width: stage.cy.width(), height: stage.cy.height() })) {
      let cost = far / FARTHER;
      if (cost >= least) break;
      const clear = grown(spot, ROOM);
      cost += HEAVIEST * boxes.filter((rect) => overlap(rect, clear)).length + HEAVY * taken.filter((rect) => overlap(rect, clear)).length;
      if (cost < least) cost += lines.filter(([from, to]) => meets(clear, from, to)).length;
      if (cost >= least) continue;
      const leader = leaderTo(spot, starts, obstacles);
      cost += ACROSS * leader.hits + (leader.length > FAR ? leader.length / FARTHER : 0);
      if (cost < least) [best, least] = [{ spot, leader }, cost];
    }
    return best;
  }

  /** Borders of hosts and pods, on the screen. */
  #frames() {
    const { stage } = this.canvas;
    const rects = [...[...stage.rooms.keys()].map((host) => stage.hostRect(host)), ...stage.podFrames().map(({ rect }) => rect)];
    return rects.flatMap((rect) => sidesOf(rect).map((side) => side.map((p) => stage.toScreen(p))));
  }

  /** Straight pieces of the links near a place, on the screen. @param {import("./types.js").Rect} reach */
  #links(reach) {
    const { stage, shown } = this.canvas;
    if (shown.lines.length > MOST_LINES) return [];
    return shown.lines.map((line) => stage.shape(line)).filter(Boolean).flatMap((curve) => runsOf(curve).flatMap((run) => {
      const spots = run.map((share) => stage.toScreen(pointOn(curve, share)));
      return spots.slice(1).map((spot, i) => [spots[i], spot]);
    })).filter(([p, q]) => meets(reach, p, q));
  }

  /** What a label should not cover, on the screen: devices, names of hosts, tools, legend. */
  #taken() {
    const { stage, shown, dom, panels, presenter } = this.canvas;
    const screen = (r) => {
      const [p, q] = [stage.toScreen({ x: r.x1, y: r.y1 }), stage.toScreen({ x: r.x2, y: r.y2 })];
      return { x1: p.x, y1: p.y, x2: q.x, y2: q.y };
    };
    const devices = [...shown.devices.map((d) => d.name), ...shown.groups.map(({ key }) => key)].map((end) => stage.rect(end));
    const names = [...stage.rooms.keys()].map((host) => hostNameRect(stage, host));
    const pods = stage.podFrames().map(({ rect: r, below }) => ({ x1: r.x1, x2: r.x1 + 110, y1: below ? r.y2 : r.y1 - 24, y2: below ? r.y2 + 24 : r.y1 }));
    const origin = dom.stage.getBoundingClientRect();
    const floating = [panels.tools, panels.legend, presenter.tools].map((panel) => {
      const r = panel.getBoundingClientRect();
      return { x1: r.left - origin.left, y1: r.top - origin.top, x2: r.right - origin.left, y2: r.bottom - origin.top };
    });
    return { devices: devices.filter(Boolean).map(screen), others: [...[...names, ...pods].filter(Boolean).map(screen), ...floating] };
  }
}

/** A label in two lines, of which the last has what is said last. @param {string} label */
function linesOf(label) {
  const at = label.lastIndexOf(" · ");
  return at < 0 ? [label] : [label.slice(0, at), label.slice(at + 3)];
}

/** @param {import("./types.js").Rect} r @returns {[import("./types.js").Point, import("./types.js").Point][]} */
function sidesOf({ x1, y1, x2, y2 }) {
  const corners = [{ x: x1, y: y1 }, { x: x2, y: y1 }, { x: x2, y: y2 }, { x: x1, y: y2 }];
  return corners.map((p, i) => [p, corners[(i + 1) % 4]]);
}

/** Places for a label of some size around a region, the nearest first, all inside the view. */
function spotsAround(r, { half, tall, width, height }) {
  const middle = centre(r);
  const inside = (value, reach, most) => Math.max(reach + 4, Math.min(most - reach - 4, value));
  const found = [];
  const [right, down] = [(r.x2 - r.x1) / 2 + half + REACH, (r.y2 - r.y1) / 2 + tall + REACH];
  for (let dx = 0; dx <= right; dx += PACE.x) {
    for (let dy = 0; dy <= down; dy += PACE.y) {
      for (const [x, y] of [[dx, dy], [dx, -dy], [-dx, dy], [-dx, -dy]]) {
        const [cx, cy] = [inside(middle.x + x, half, width), inside(middle.y + y, tall, height)];
        const spot = { x1: cx - half, x2: cx + half, y1: cy - tall, y2: cy + tall };
        const gap = Math.hypot(Math.max(0, spot.x1 - r.x2, r.x1 - spot.x2), Math.max(0, spot.y1 - r.y2, r.y1 - spot.y2));
        if (gap <= REACH) found.push({ spot, far: gap + 0.1 * Math.hypot(cx - middle.x, cy - middle.y) });
      }
    }
  }
  return found.sort((p, q) => p.far - q.far);
}

/** What two rectangles have in common, null of none. @param {import("./types.js").Rect} a @param {import("./types.js").Rect} b */
const common = (a, b) => (overlap(a, b)
  ? { x1: Math.max(a.x1, b.x1), y1: Math.max(a.y1, b.y1), x2: Math.min(a.x2, b.x2), y2: Math.min(a.y2, b.y2) } : null);

const boundsOf = (loops) => hullRect(loops.flat().map(rectOf));
