/** Bottleneck cuts: a glowing region around the devices inside, with a label at its border. */

import { h } from "./dom.js";
import { grown, hullRect } from "./geometry.js";
import { endsKey } from "./model.js";
import { outline } from "./region.js";

const LABEL = { height: 26, gap: 6 };

export class CutView {
  /** @param {import("./canvas.js").Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    /** @type {HTMLElement[]} */
    this.labels = [];
  }

  /** The cuts that are true of what is drawn. @returns {import("./types.js").Cut[]} */
  shown() {
    const { canvas } = this;
    if (canvas.stale) return [];
    const names = canvas.deviceIndex;
    return (canvas.model.get("cuts") ?? []).filter((cut) => cut.inside.some((name) => names.has(name)));
  }

  /** Dash the links that leave the cuts, and make a label for each. */
  refresh() {
    const cuts = this.shown();
    const ends = cuts.flatMap((cut) => cut.links.map(([src, dst]) => endsKey(src, dst)));
    this.canvas.stage.markCut(new Set(ends));
    for (const label of this.labels) label.remove();
    this.labels = cuts.map((cut) => h("div", { class: "tl-note" }, cut.label));
    this.canvas.dom.stage.append(...this.labels);
  }

  /** @param {CanvasRenderingContext2D} ctx in drawing units */
  draw(ctx) {
    const { colors, stage } = this.canvas;
    const zoom = Math.max(0.6, stage.cy.zoom());
    const placed = [];
    this.shown().forEach((cut, i) => {
      const loops = this.#outlines(cut);
      const path = new Path2D();
      for (const loop of loops) {
        loop.forEach(({ x, y }, k) => (k ? path.lineTo(x, y) : path.moveTo(x, y)));
        path.closePath();
      }
      ctx.fillStyle = colors.cutFill;
      if (i === 0) ctx.fill(path);
      ctx.strokeStyle = colors.cut;
      ctx.lineWidth = (i === 0 ? 1.8 : 1.2) / zoom;
      ctx.shadowColor = colors.cut;
      ctx.shadowBlur = i === 0 ? 16 : 0;
      ctx.setLineDash([7, 6]);
      ctx.stroke(path);
      ctx.setLineDash([]);
      ctx.shadowBlur = 0;
      this.#placeLabel(this.labels[i], loops, placed);
    });
  }

  /** A whole host counts as its box with the name above it. */
  #outlines(cut) {
    const { stage, drawing } = this.canvas;
    const inside = new Set(cut.inside);
    const outsideHosts = new Set(
      drawing.topology.devices.filter((d) => !inside.has(d.name)).map((d) => d.host),
    );
    const rects = { in: [], out: [] };
    const hosts = new Set();
    for (const d of drawing.topology.devices) {
      if (!inside.has(d.name)) rects.out.push(stage.rect(d.name));
      else if (d.host === null || outsideHosts.has(d.host)) rects.in.push(stage.rect(d.name));
      else hosts.add(d.host);
    }
    for (const host of hosts) {
      const box = stage.hostRect(host);
      if (box) rects.in.push({ ...grown(box, -4), y1: box.y1 - 14 });
    }
    return outline(rects.in.filter(Boolean), rects.out.filter(Boolean));
  }

  /** Below the region, inside the view, and clear of other labels. */
  #placeLabel(label, loops, placed) {
    const { stage } = this.canvas;
    const box = hullRect(loops.flat().map(({ x, y }) => ({ x1: x, y1: y, x2: x, y2: y })));
    label.hidden = !box;
    if (!box) return;
    const at = stage.toScreen({ x: (box.x1 + box.x2) / 2, y: box.y2 });
    const half = label.offsetWidth / 2;
    const [width, height] = [stage.cy.width(), stage.cy.height()];
    const x = Math.max(half + 8, Math.min(width - half - 8, at.x));
    let y = Math.max(LABEL.height, Math.min(height - LABEL.height, at.y));
    const hits = (other) =>
      Math.abs(other.x - x) < other.half + half + 8 && Math.abs(other.y - y) < LABEL.height + LABEL.gap;
    while (placed.some(hits)) y -= LABEL.height + LABEL.gap;
    placed.push({ x, y, half });
    label.style.left = `${x}px`;
    label.style.top = `${y}px`;
  }
}
