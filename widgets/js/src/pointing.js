/**
 * Pointing: what lies under a point of the drawing, the topmost first: a device or folded group, a link,
 * the name or the box of a host.
 *
 * @typedef {import("./canvas.js").Canvas} Canvas
 * @typedef {import("./types.js").Point} Point
 * @typedef {import("./types.js").Rect} Rect
 * @typedef {Partial<import("./types.js").Selection>} Part
 */

import { lineWidth } from "./elements.js";
import { endsOf } from "./folding.js";
import { cornersOf, grown, hullRect, pointOn, rectOf, runsOf, within } from "./geometry.js";

/** Pixels around a link within which it is hit. */
const LINK_REACH = 6;
/** Pixels above a host's box within which its name is hit, and half the width of a letter of it. */
const NAME_HEIGHT = 22;
const HALF_LETTER = 3.6;

/**
 * @param {Canvas} canvas @param {Point} p in the drawing's units
 * @returns {Part | null} as a selection; null of the empty ground
 */
export function partAt(canvas, p) {
  const { stage, shown } = canvas;
  const device = stage.deviceAt(p);
  if (device !== null) return { devices: [device] };
  const group = shown.byKey.get(stage.groupAt(p));
  if (group) return group.host === null ? { devices: group.members.map((d) => d.name) } : { hosts: [group.host] };
  const line = lineAt(canvas, p);
  if (line) return { links: endsOf(line) };
  const host = hostNameAt(canvas, p) ?? stage.hostAt(p);
  return host === null ? null : { hosts: [host] };
}

/** Whether a part lies in a selection. @param {import("./types.js").Selection} selection @param {Part} part */
export function isSelected(selection, { devices = [], hosts = [], links = [] }) {
  const chosen = new Set(selection.links.map(String));
  return (
    devices.every((name) => selection.devices.includes(name)) &&
    hosts.every((name) => selection.hosts.includes(name)) &&
    links.every((ends) => chosen.has(String(ends)))
  );
}

/** The line nearest to a point, within reach. @param {Canvas} canvas @param {Point} p */
export function lineAt({ stage, shown }, p) {
  const reach = LINK_REACH / stage.cy.zoom();
  let best = null;
  let least = Infinity;
  for (const line of shown.lines) {
    const curve = stage.shape(line);
    if (!curve) continue;
    const far = distanceTo(curve, p, reach + lineWidth(line) / 2);
    if (far < least) [best, least] = [line, far];
  }
  return best;
}

/** Distance of a point from a curve; infinite beyond reach. @param {import("./geometry.js").Curve} curve @param {Point} p @param {number} reach */
export function distanceTo(curve, p, reach) {
  if (!within(grown(/** @type {Rect} */ (hullRect(cornersOf(curve).map(rectOf))), reach), p)) return Infinity;
  let least = Infinity;
  for (const run of runsOf(curve)) {
    for (let i = 0; i + 1 < run.length; i++) {
      least = Math.min(least, fromSegment(pointOn(curve, run[i]), pointOn(curve, run[i + 1]), p));
    }
  }
  return least <= reach ? least : Infinity;
}

/** @param {Point} a @param {Point} b @param {Point} p */
function fromSegment(a, b, p) {
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const along = ((p.x - a.x) * dx + (p.y - a.y) * dy) / (dx * dx + dy * dy || 1);
  const t = Math.min(1, Math.max(0, along));
  return Math.hypot(a.x + t * dx - p.x, a.y + t * dy - p.y);
}

/** Host whose name above its box is under a point. @param {Canvas} canvas @param {Point} p @returns {string | null} */
export function hostNameAt({ stage }, p) {
  return [...stage.rooms.keys()].find((host) => within(hostNameRect(stage, host), p)) ?? null;
}

/** Where the name of an open host stands. @param {import("./stage.js").Stage} stage @param {string} host @returns {Rect} */
export function hostNameRect(stage, host) {
  const scale = 1 / Math.min(1, Math.max(0.5, stage.cy.zoom()));
  const { x1, x2, y1 } = /** @type {Rect} */ (stage.hostRect(host));
  const half = host.length * HALF_LETTER * scale + 6;
  const middle = (x1 + x2) / 2;
  return { x1: middle - half, x2: middle + half, y1: y1 - NAME_HEIGHT * scale, y2: y1 };
}
