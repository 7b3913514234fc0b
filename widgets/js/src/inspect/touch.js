/**
 * What a click on the cluster looks at while the inspector is open: a chunk on its way or in a
 * buffer, the direction of a link that lies on that side, a GPU, a host. It also selects, as ever:
 * what is selected is edited, what is looked at is explained.
 */

import { cellAt } from "../cells.js";
import { pointOn } from "../geometry.js";
import { tokenAt } from "../tokens.js";

/** Pixels around a chunk on its way within which it is touched. */
const REACH = 10;

/** @param {import("./inspector.js").Inspector} inspector */
export function listen(inspector) {
  const { canvas } = inspector;
  canvas.stage.cy.on("tap", (event) => {
    if (!listens(inspector)) return;
    // Cytoscape takes the focus from whatever has it when the pointer goes down.
    canvas.dom.root.focus({ preventScroll: true });
    inspector.look(touched(inspector, event));
  });
}

const listens = ({ open, canvas }) => open && !canvas.stale && canvas.mode === "select";

/**
 * Look at what was touched of a device.
 * @param {import("./inspector.js").Inspector} inspector @param {string} name @param {import("../types.js").Point} p
 */
export function touchDevice(inspector, name, p) {
  if (listens(inspector)) inspector.look(tokenTouched(inspector.canvas, p) ?? onDevice(inspector, name, p));
}

/** What of the plan is at a place of the drawing; null of nothing. */
function touched(inspector, { target, position }) {
  const { canvas, plan } = inspector;
  const token = tokenTouched(canvas, position);
  if (token) return token;
  if (target === canvas.stage.cy) return null;
  if (target.isEdge()) return linkAt(canvas, plan, { target, position });
  const name = target.data("name");
  if (target.hasClass("host")) return { host: name };
  if (target.hasClass("group")) return { host: canvas.shown.byKey.get(name)?.host ?? null };
  return onDevice(inspector, name, position);
}

function tokenTouched(canvas, p) {
  const token = tokenAt(canvas, p, REACH / canvas.stage.cy.zoom());
  return token && { chunk: token.chunk, transfer: canvas.playback.flights.indexOf(token) };
}

/** The chunk of a cell, or the rank. */
function onDevice({ canvas, plan }, name, p) {
  const chunk = cellAt(canvas, name, p);
  if (chunk !== null) return { chunk };
  return plan.rankOf.has(name) ? { rank: plan.rankOf.get(name) } : null;
}

/** The link whose lane is on the side of a line that was touched. */
function linkAt(canvas, plan, { target, position }) {
  const line = canvas.stage.lineOf(target.data("a"), target.data("b"));
  if (!line || line.parts) return null;
  if (!line.back) return { link: [line.a, line.b] };
  const curve = canvas.stage.curve(line);
  const far = (side) => {
    const each = Array.from({ length: 25 }, (_, i) => pointOn(curve, i / 24, side * curve.lane));
    return Math.min(...each.map(({ x, y }) => Math.hypot(x - position.x, y - position.y)));
  };
  const forth = far(1) <= far(-1);
  return { link: forth ? [line.a, line.b] : [line.b, line.a] };
}

/** Look at what is selected, for the keyboard. @param {import("./inspector.js").Inspector} inspector @returns {boolean} whether there is anything */
export function lookAtSelected(inspector) {
  const { selection } = inspector.canvas;
  const { plan } = inspector;
  const rank = selection.devices.map((name) => plan.rankOf.get(name)).find((each) => each !== undefined);
  const [link, host] = [selection.links[0], selection.hosts[0]];
  if (rank !== undefined) inspector.look({ rank });
  else if (link) inspector.look({ link });
  else if (host !== undefined) inspector.look({ host });
  else return false;
  return true;
}
