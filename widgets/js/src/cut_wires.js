/**
 * The links of a cut that run along buses: each is dashed where it has a wire for itself; one that is so short that no
 * dash would be seen of it is heavy, with a dot where others join, so that one sees what the outline of the cut crosses.
 *
 * @typedef {import("./own_wires.js").OwnWire} OwnWire
 */

import { lineId } from "./elements.js";
import { pointOn, trace } from "./geometry.js";
import { isOwn } from "./own_wires.js";

/** Pixels of a wire below which it is heavy, by how much then, and units of it that are drawn at least. */
const SHORT = 16;
const HEAVIER = 2;
const LEAST = 8;
/** Pixels of the dot where others join, and how much wider than the wire it is. */
const DOT = 3.4;
const WIDER = 1.45;
const FADED = 0.34;

/** @param {CanvasRenderingContext2D} ctx in drawing units @param {Map<string, OwnWire>} wires @param {import("./canvas.js").Canvas} canvas */
export function drawOwnWires(ctx, wires, { stage, colors }) {
  ctx.save();
  ctx.strokeStyle = colors.cut;
  ctx.fillStyle = colors.cut;
  for (const wire of wires.values()) {
    const edge = stage.cy.getElementById(lineId(wire.line.id));
    const curve = stage.shape(wire.line);
    if (!curve || edge.hasClass("unused")) continue;
    ctx.globalAlpha = edge.hasClass("faded") ? FADED : 1;
    drawOne(ctx, { ...wire, curve }, { zoom: stage.cy.zoom(), width: edge.data("width") });
  }
  // Where only links of the cut join, the dot is the cut's, too.
  const own = ({ x, y, id }) => wires.has(id) && isOwn(wires.get(id), stage.shape(wires.get(id).line), { x, y });
  stage.drawDots(ctx, own, colors.cut);
  ctx.restore();
}

/** @param {CanvasRenderingContext2D} ctx @param {OwnWire & {curve: import("./geometry.js").Curve}} wire @param {{zoom: number, width: number}} how */
function drawOne(ctx, { atB, own, drawn, curve }, { zoom, width }) {
  const short = own * zoom < SHORT && own < curve.length;
  if (!drawn && !short) return;
  const share = Math.min(1, Math.max(drawn, short ? LEAST : 0) / curve.length);
  ctx.lineWidth = short ? width + HEAVIER / zoom : width;
  ctx.setLineDash(short ? [] : [9, 5]);
  ctx.beginPath();
  trace(ctx, curve, 0, atB ? [1 - share, 1] : [0, share]);
  ctx.stroke();
  if (!short) return;
  const { x, y } = pointOn(curve, atB ? 1 - share : share);
  ctx.beginPath();
  ctx.arc(x, y, Math.max(DOT / zoom, (WIDER * ctx.lineWidth) / 2), 0, 2 * Math.PI);
  ctx.fill();
}
