/**
 * Marks over the drawing: devices and links that belong together in one colour with a letter, a
 * tree along its routes, links by what they are worth. What a colour means stands in the legend.
 *
 * @typedef {import("./types.js").Marks} Marks
 * @typedef {import("./types.js").Rect} Rect
 */

import { h } from "./dom.js";
import { lineId } from "./elements.js";
import { grown, pointOn, trace } from "./geometry.js";
import { endsKey } from "./model.js";
import { FONT, between, classColor, inkOn, originColor, vivid } from "./style.js";

/** Rows of the legend; nobody reads more. */
const MOST_ROWS = 8;

export class MarkView {
  /** @param {import("./canvas.js").Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.element = h("div", { class: "tl-marks", role: "note", hidden: true });
  }

  /** @returns {Marks | null} */
  get #marks() {
    return this.canvas.model.get("marks") ?? null;
  }

  /** The marks, the drawing, the folding or the theme changed. */
  refresh() {
    const marks = this.#marks;
    this.sides = marks ? [...this.#sidesOf(marks).values()] : [];
    this.owners = new Map(
      (marks?.groups ?? []).flatMap((group) => (group.devices ?? []).map((name) => [name, group])),
    );
    const used = new Set(this.sides.map(({ line }) => lineId(line.id)));
    /** Which lines step back, by id; null where none does. */
    this.faded = marks?.fade ? (id) => !used.has(id) : null;
    this.canvas.refade();
    this.#legend(marks);
  }

  /** @param {Marks["groups"][number]} group */
  #color({ tone }) {
    const { theme, colors } = this.canvas;
    if (tone.heat !== undefined) return between(colors.cold, colors.hot, tone.heat);
    if (tone.origin) return vivid(originColor(tone.origin[0], tone.origin[1]), theme);
    return tone.class === undefined ? colors.link : classColor(tone.class, theme);
  }

  /** For each side of each line the group that is drawn there: of a bundle the hottest. */
  #sidesOf(marks) {
    const { lanes } = this.canvas.shown;
    const sides = new Map();
    for (const group of marks.groups) {
      for (const [src, dst] of group.links ?? []) {
        const lane = lanes.get(endsKey(src, dst));
        if (!lane) continue;
        // An in-tree and its out-tree may run along the same side.
        const key = `${lane.line.id}${lane.forth}${group.dash ?? false}`;
        const have = sides.get(key);
        if (have && (have.group.tone.heat ?? 0) >= (group.tone.heat ?? 0)) continue;
        sides.set(key, { ...lane, group });
      }
    }
    for (const [key, side] of sides) {
      const other = sides.get(`${side.line.id}${!side.forth}${side.group.dash ?? false}`);
      // Alike both ways is one wide line; marks with arrows keep to their side.
      side.whole = !marks.arrows && other?.group === side.group;
      if (side.whole && !side.forth) sides.delete(key);
    }
    return sides;
  }

  /** @param {CanvasRenderingContext2D} ctx in drawing units */
  draw(ctx) {
    const marks = this.#marks;
    if (!marks) return;
    for (const side of this.sides) this.#line(ctx, side, Boolean(marks.arrows));
    this.#devices(ctx, marks);
  }

  #line(ctx, { line, forth, group, whole }, arrows) {
    const curve = this.canvas.stage.curve(line);
    if (!curve) return;
    const off = whole ? 0 : (forth ? 1 : -1) * Math.max(2, curve.width / 4 + 1) * (group.dash ? 3 : 1);
    const at = (share) => pointOn(curve, forth ? share : 1 - share, off);
    const heat = group.tone.heat ?? 0.5;
    ctx.strokeStyle = this.#color(group);
    ctx.fillStyle = ctx.strokeStyle;
    ctx.lineWidth = (whole ? Math.max(3, curve.width) : Math.max(2.4, curve.width / 2)) * (0.75 + heat / 2);
    ctx.lineCap = "round";
    ctx.setLineDash(group.dash ? [8, 7] : []);
    ctx.beginPath();
    trace(ctx, curve, off);
    ctx.stroke();
    ctx.setLineDash([]);
    if (!arrows) return;
    ctx.strokeStyle = this.canvas.colors.bg;
    ctx.lineWidth = 1.6;
    arrow(ctx, at(0.5), at(0.62), Math.max(10, curve.width * 1.7));
  }

  #devices(ctx, marks) {
    const { stage, shown } = this.canvas;
    for (const d of shown.devices) {
      const group = this.owners.get(d.name);
      const badge = marks.badges?.[d.name] ?? group?.badge;
      const rect = group || badge !== undefined ? stage.rect(d.name) : null;
      if (!rect) continue;
      const color = group ? this.#color(group) : this.canvas.colors.dim;
      if (group) ring(ctx, rect, { color, radius: d.kind === "switch" ? 17 : 9 });
      if (badge !== undefined) this.#badge(ctx, rect, { color, text: badge });
    }
    for (const { key, members } of shown.groups) this.#group(ctx, stage.rect(key), members);
  }

  /** A folded group has a ring where all in it are alike, else a strip of what is in it. */
  #group(ctx, rect, members) {
    const parts = new Map();
    for (const d of members) {
      const group = this.owners.get(d.name);
      if (group) parts.set(group, (parts.get(group) ?? 0) + 1);
    }
    const all = [...parts.values()].reduce((sum, count) => sum + count, 0);
    if (!all || !rect) return;
    if (parts.size === 1) {
      const [group] = parts.keys();
      const color = this.#color(group);
      ring(ctx, rect, { color, radius: 13 });
      if (group.badge) this.#badge(ctx, rect, { color, text: group.badge });
      return;
    }
    let x = rect.x1 + 12;
    const width = rect.x2 - rect.x1 - 24;
    for (const [group, count] of parts) {
      ctx.fillStyle = this.#color(group);
      ctx.fillRect(x, rect.y2 - 7, (width * count) / all, 5);
      x += (width * count) / all;
    }
  }

  /** @param {CanvasRenderingContext2D} ctx @param {Rect} rect @param {{color: string, text: string}} what */
  #badge(ctx, rect, { color, text }) {
    const scale = Math.min(1.7, Math.max(1, 0.62 / this.canvas.stage.cy.zoom()));
    ctx.font = `700 ${10.5 * scale}px ${FONT}`;
    const width = Math.max(17 * scale, ctx.measureText(text).width + 9 * scale);
    const [x, y] = [rect.x2 - width * 0.62, rect.y1 - 8.5 * scale];
    ctx.beginPath();
    ctx.roundRect(x, y, width, 17 * scale, 8.5 * scale);
    ctx.fillStyle = color;
    ctx.fill();
    ctx.strokeStyle = this.canvas.colors.bg;
    ctx.lineWidth = 1.6;
    ctx.stroke();
    ctx.fillStyle = inkOn(color);
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    ctx.fillText(text, x + width / 2, y + 9 * scale);
  }

  /** @param {Marks | null} marks */
  #legend(marks) {
    const named = (marks?.groups ?? []).filter((group) => group.label);
    this.element.hidden = !marks || (!marks.title && !named.length);
    if (this.element.hidden) return;
    const row = (group) => {
      const color = this.#color(group);
      const mark = h("i", { style: `background:${color};color:${inkOn(color)}` }, group.badge ?? "");
      return h("li", {}, mark, group.label);
    };
    const more = named.length - MOST_ROWS;
    this.element.replaceChildren(
      h("b", {}, marks.title ?? ""),
      h("ul", {}, ...named.slice(0, MOST_ROWS).map(row), ...(more > 0 ? [h("li", {}, `and ${more} more`)] : [])),
    );
  }
}

/** @param {CanvasRenderingContext2D} ctx @param {Rect} rect */
function ring(ctx, rect, { color, radius }) {
  const r = grown(rect, 1.5);
  ctx.beginPath();
  ctx.roundRect(r.x1, r.y1, r.x2 - r.x1, r.y2 - r.y1, radius);
  ctx.globalAlpha = 0.14;
  ctx.fillStyle = color;
  ctx.fill();
  ctx.globalAlpha = 1;
  ctx.strokeStyle = color;
  ctx.lineWidth = 3.4;
  ctx.stroke();
}

/** A triangle whose tip is a little beyond `at`, pointing to `to`. */
function arrow(ctx, at, to, size) {
  const angle = Math.atan2(to.y - at.y, to.x - at.x);
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const put = (along, aside) => [at.x + along * cos - aside * sin, at.y + along * sin + aside * cos];
  ctx.beginPath();
  ctx.moveTo(...put(size * 0.7, 0));
  ctx.lineTo(...put(-size * 0.5, size * 0.55));
  ctx.lineTo(...put(-size * 0.5, -size * 0.55));
  ctx.closePath();
  ctx.stroke();
  ctx.fill();
}
