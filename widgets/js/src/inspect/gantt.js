/**
 * Sends as bars over continuous time: in the colour of their origin while they hold the link, lighter
 * while their last bytes are on the way.
 *
 * @typedef {import("./rows.js").Row} Row
 * @typedef {import("./plan.js").Sent} Sent
 *
 * @typedef {object} Picture what both charts are painted from
 * @property {CanvasRenderingContext2D} ctx in pixels of the chart
 * @property {Row[]} rows
 * @property {[number, number]} range rows that are seen: from the first, to before the last
 * @property {number} shift pixels from the top of the chart to that of the first row
 * @property {Record<string, string>} colors of the theme
 * @property {string[]} chunkColors
 * @property {((send: Sent) => boolean) | null} match sends that do not step back
 * @property {Map<number, number>} critical transfers that are marked, with their place on the path; none where
 *   it is not to be seen
 * @property {Sent | null} chosen
 * @property {Sent | null} picked where the keyboard is
 */

import { FONT, inkOn } from "../style.js";
import { laneBox } from "./rows.js";

/** Opacity of bars that step back, and of last bytes on their way. */
const FAINT = 0.13;
const TAIL = 0.38;
/** Pixels that a bar has at least. */
const LEAST = 1.5;

/** Where time lies on the chart. */
export class Span {
  /** @param {number} from µs @param {number} to µs @param {{x: number, width: number}} frame pixels */
  constructor(from, to, { x, width }) {
    this.from = from;
    this.to = to;
    this.x = x;
    this.width = width;
    this.scale = width / Math.max(1e-12, to - from);
  }

  /** @param {number} time µs */
  place(time) {
    return this.x + (time - this.from) * this.scale;
  }

  /** @param {number} x pixels */
  time(x) {
    return this.from + (x - this.x) / this.scale;
  }
}

/** @param {Picture} picture @param {Span} span */
export function drawGantt(picture, span) {
  const { ctx, rows, range, shift } = picture;
  // Bars that step back go beneath the others, and lighter parts beneath full ones.
  const layers = { faintTails: new Map(), faint: new Map(), tails: new Map(), bars: new Map() };
  const words = [];
  for (let r = range[0]; r < range[1]; r++) layRow(rows[r], { picture, span, layers, words, top: shift + rows[r].top });
  fill(ctx, layers.faintTails, FAINT * TAIL);
  fill(ctx, layers.faint, FAINT);
  fill(ctx, layers.tails, TAIL);
  fill(ctx, layers.bars, 1);
  ctx.font = `600 10px ${FONT}`;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  for (const { text, x, y, room, color } of words) {
    if (ctx.measureText(text).width + 6 > room) continue;
    ctx.fillStyle = inkOn(color);
    ctx.fillText(text, x, y + 0.5);
  }
  if (picture.critical.size) drawCritical(picture, span);
  if (picture.chosen) ring(picture, span, { send: picture.chosen, width: 2.4 });
  if (picture.picked) ring(picture, span, { send: picture.picked, width: 1.4 });
}

/** Put the bars of a row into the layers; of those that fall on one pixel of a lane the first. */
function layRow(row, { picture: { match, chunkColors }, span, layers, words, top }) {
  const [left, right] = [span.x, span.x + span.width];
  const place = (time) => Math.min(right, Math.max(left, span.place(time)));
  const done = { true: new Float64Array(row.lanes).fill(-1), false: new Float64Array(row.lanes).fill(-1) };
  row.sends.forEach((send, k) => {
    if (send.end < span.from || send.start > span.to) return;
    const c = place(send.end);
    const matches = !match || match(send);
    const last = done[matches];
    if (c < last[row.lane[k]]) return;
    last[row.lane[k]] = Math.floor(c) + 1;
    const [a, b] = [place(send.start), place(send.sent)];
    const box = laneBox(row, row.lane[k]);
    const y = top + box.y;
    const color = chunkColors[send.chunk];
    if (c > b) put(matches ? layers.tails : layers.faintTails, color, [b, y, c - b, box.height]);
    put(matches ? layers.bars : layers.faint, color, [a, y, Math.max(LEAST, b - a - (b - a > 6 ? 1 : 0)), box.height]);
    if (matches && box.height >= 11 && b - a > 15) words.push({ text: String(send.chunk), x: (a + b) / 2, y: y + box.height / 2, room: b - a, color });
  });
}

function put(layer, color, rect) {
  const have = layer.get(color);
  if (have) have.push(rect);
  else layer.set(color, [rect]);
}

function fill(ctx, layer, alpha) {
  ctx.globalAlpha = alpha;
  for (const [color, rects] of layer) {
    ctx.fillStyle = color;
    ctx.beginPath();
    for (const [x, y, width, height] of rects) ctx.rect(x, y, width, height);
    ctx.fill();
  }
  ctx.globalAlpha = 1;
}

/** Where a send's bar is, wherever the rows are scrolled to; null if no row has it. */
export function barOf({ rows, shift }, span, send) {
  for (const row of rows) {
    const k = row.sends.indexOf(send);
    if (k < 0) continue;
    const box = laneBox(row, row.lane[k]);
    const [x, end] = [span.place(send.start), span.place(send.end)];
    return { x, y: shift + row.top + box.y, width: Math.max(LEAST, end - x), height: box.height };
  }
  return null;
}

/** The bars of the critical path outlined, and a line from each to the next. */
function drawCritical(picture, span) {
  const { ctx, colors } = picture;
  const bars = criticalBars(picture, span);
  ctx.strokeStyle = colors.select;
  ctx.lineWidth = 1;
  ctx.setLineDash([2, 2]);
  ctx.beginPath();
  bars.slice(1).forEach((to, k) => {
    const from = bars[k];
    const x = from.x + from.width;
    ctx.moveTo(x, from.y + from.height / 2);
    ctx.lineTo(x, to.y + to.height / 2);
    ctx.lineTo(to.x, to.y + to.height / 2);
  });
  ctx.stroke();
  ctx.setLineDash([]);
  ctx.lineWidth = 1.6;
  ctx.beginPath();
  for (const { x, y, width, height } of bars) ctx.roundRect(x - 0.5, y - 1, width + 1, height + 2, 2);
  ctx.stroke();
}

/** Bars of the critical path in its order. */
function criticalBars(picture, span) {
  const { rows, critical, shift } = picture;
  const found = [];
  for (const row of rows) {
    row.sends.forEach((send, k) => {
      if (!critical.has(send.i)) return;
      const box = laneBox(row, row.lane[k]);
      const x = span.place(send.start);
      found.push({ send, x, y: shift + row.top + box.y, width: Math.max(LEAST, span.place(send.end) - x), height: box.height });
    });
  }
  return found.sort((a, b) => critical.get(a.send.i) - critical.get(b.send.i));
}

function ring(picture, span, { send, width }) {
  const bar = barOf(picture, span, send);
  if (!bar) return;
  const { ctx, colors } = picture;
  ctx.strokeStyle = colors.accent;
  ctx.lineWidth = width;
  ctx.beginPath();
  ctx.roundRect(bar.x - 2.5, bar.y - 2.5, bar.width + 5, bar.height + 5, 4);
  ctx.stroke();
}

/**
 * The send whose bar is at a place, or within two pixels of it.
 * @param {Row} row @param {{time: number, y: number, slack: number}} at µs, pixels from the row's top, µs
 */
export function barAt(row, { time, y, slack }) {
  let best = null;
  let least = Infinity;
  row.sends.forEach((send, k) => {
    const box = laneBox(row, row.lane[k]);
    const off = Math.max(send.start - time, time - send.end, 0);
    if (off > slack || y < box.y - 2 || y > box.y + box.height + 2) return;
    const far = off * 1e3 + Math.abs(y - box.y - box.height / 2);
    if (far < least) [best, least] = [send, far];
  });
  return best;
}
