/** Bottleneck cuts: a glowing region around the devices inside, with a label at its border. */

import { h } from "./dom.js";
import { grown, hullRect, overlap, pointOn, rectOf } from "./geometry.js";
import { endsKey } from "./model.js";
import { regionOf } from "./region.js";

const LABEL_HEIGHT = 28;
/** Links of a cut that its label keeps clear of, and where on them. */
const MOST_CROSSING = 60;
const ALONG = [0.1, 0.3, 0.5, 0.7, 0.9];

export class CutView {
  /** @param {import("./canvas.js").Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    /** @type {HTMLElement[]} */
    this.labels = [];
    /** @type {Path2D[]} in drawing units */
    this.paths = [];
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
    this.canvas.stage.markCut(ends, this.#split(cuts[0]));
    for (const label of this.labels) label.remove();
    this.labels = cuts.map((cut) => h("div", { class: "tl-note" }, cut.label));
    this.canvas.dom.stage.append(...this.labels);
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
  }

  #stroke(ctx, path, { width, glow }) {
    const { colors, stage } = this.canvas;
    ctx.strokeStyle = colors.cut;
    ctx.lineWidth = width / Math.max(0.6, stage.cy.zoom());
    ctx.shadowColor = colors.cut;
    ctx.shadowBlur = glow;
    ctx.setLineDash([7, 6]);
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
   * Beside the part of the region that is in view, where it covers least: devices, names, and what crosses the
   * cut; below if it can be. Nowhere while the region is out of view.
   */
  #placeLabel(label, { cut, loops, placed }) {
    const { stage } = this.canvas;
    const whole = boundsOf(loops);
    const box = whole && common(whole, stage.cy.extent());
    label.hidden = !box;
    if (!box) return;
    const size = { half: label.offsetWidth / 2, tall: label.offsetHeight / 2 || LABEL_HEIGHT / 2, width: stage.cy.width(), height: stage.cy.height() };
    const [p, q] = [stage.toScreen({ x: box.x1, y: box.y1 }), stage.toScreen({ x: box.x2, y: box.y2 })];
    const border = loops.flat().map((spot) => rectOf(stage.toScreen(spot)));
    const taken = [...this.#taken(), ...this.#crossing(cut), ...border, ...placed];
    let best = null;
    let least = Infinity;
    for (const spot of spotsAround({ x1: p.x, y1: p.y, x2: q.x, y2: q.y }, size)) {
      const hits = taken.filter((rect) => overlap(rect, spot)).length;
      if (hits < least) [best, least] = [spot, hits];
      if (!hits) break;
    }
    placed.push(best);
    label.style.left = `${(best.x1 + best.x2) / 2}px`;
    label.style.top = `${(best.y1 + best.y2) / 2}px`;
  }

  /** Places on the links that leave a cut, on the screen. @returns {import("./types.js").Rect[]} */
  #crossing(cut) {
    const { stage, shown } = this.canvas;
    const lines = new Set(cut.links.map(([src, dst]) => shown.lanes.get(endsKey(src, dst))?.line).filter(Boolean));
    const curves = [...lines].slice(0, MOST_CROSSING).map((line) => stage.shape(line)).filter(Boolean);
    const spots = curves.flatMap((curve) => ALONG.map((share) => stage.toScreen(pointOn(curve, share))));
    return spots.map((spot) => grown(rectOf(spot), 2));
  }

  /** What a label should not cover, on the screen: devices, names of hosts, tools, legend. */
  #taken() {
    const { stage, shown, dom, panels, presenter } = this.canvas;
    const screen = (r) => {
      const [p, q] = [stage.toScreen({ x: r.x1, y: r.y1 }), stage.toScreen({ x: r.x2, y: r.y2 })];
      return { x1: p.x, y1: p.y, x2: q.x, y2: q.y };
    };
    const devices = [...shown.devices.map((d) => d.name), ...shown.groups.map(({ key }) => key)].map((end) => stage.rect(end));
    const names = [...stage.rooms.keys()].map((host) => {
      const r = stage.hostRect(host);
      return r && { x1: (r.x1 + r.x2) / 2 - 34, x2: (r.x1 + r.x2) / 2 + 34, y1: r.y1 - 20, y2: r.y1 };
    });
    const origin = dom.stage.getBoundingClientRect();
    const floating = [panels.tools, panels.legend, presenter.tools].map((panel) => {
      const r = panel.getBoundingClientRect();
      return { x1: r.left - origin.left, y1: r.top - origin.top, x2: r.right - origin.left, y2: r.bottom - origin.top };
    });
    return [...[...devices, ...names].filter(Boolean).map(screen), ...floating];
  }
}

/** Places for a label of some width around a region, the preferred first, all inside the view. */
function* spotsAround(r, { half, tall, width, height }) {
  const middle = { x: (r.x1 + r.x2) / 2, y: (r.y1 + r.y2) / 2 };
  const beyond = tall + 5;
  const centres = [
    [middle.x, r.y2 + beyond], [middle.x, r.y1 - beyond], [r.x2 + half + 6, middle.y], [r.x1 - half - 6, middle.y],
    [r.x1 + half, r.y2 + beyond], [r.x2 - half, r.y2 + beyond], [r.x1 + half, r.y1 - beyond], [r.x2 - half, r.y1 - beyond],
  ];
  for (let far = 1; far <= 4; far++) {
    const step = far * 2 * tall;
    centres.push(
      [middle.x, r.y2 + step], [middle.x, r.y1 - step],
      [r.x2 + half + 6, r.y1 - step + tall], [r.x1 - half - 6, r.y1 - step + tall],
      [r.x2 + half + 6, r.y2 + step - tall], [r.x1 - half - 6, r.y2 + step - tall],
    );
  }
  for (const [x, y] of centres) {
    const cx = Math.max(half + 8, Math.min(width - half - 8, x));
    const cy = Math.max(tall + 4, Math.min(height - tall - 4, y));
    yield { x1: cx - half, x2: cx + half, y1: cy - tall, y2: cy + tall };
  }
}

/** What two rectangles have in common, null of none. @param {import("./types.js").Rect} a @param {import("./types.js").Rect} b */
const common = (a, b) => (overlap(a, b)
  ? { x1: Math.max(a.x1, b.x1), y1: Math.max(a.y1, b.y1), x2: Math.min(a.x2, b.x2), y2: Math.min(a.y2, b.y2) } : null);

const boundsOf = (loops) => hullRect(loops.flat().map(rectOf));
