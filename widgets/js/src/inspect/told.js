/**
 * What is known of sends, in words. The sentence of a send is made from the templates that come with
 * the scene (`ccl/explain/narration.py`), so that Python and the canvas say the same.
 *
 * @typedef {import("./plan.js").Plan} Plan
 * @typedef {import("./plan.js").Sent} Sent
 */

import { duration, short } from "../units.js";

/** Shares of a chunk within this of 1 are all of it, and times within this share of the makespan one. */
const SAME = 1e-7;

/** A template with what stands for its `{holes}`. @param {string} template @param {Record<string, string | number>} holes */
export const filled = (template, holes) => template.replace(/\{(\w+)\}/g, (all, name) => String(holes[name] ?? all));

/** @param {number} us without the unit, as the axis says it */
const moment = (us) => short(us, 6);

/** When a send begins and when all of it has arrived. @param {Sent} send */
export const times = ({ start, end }) => `${short(start)} – ${short(end)} µs`;

/** A send in one sentence; only its facts where the scene has no reasons. @param {Plan} plan @param {Sent} send */
export function sentence(plan, send) {
  const { details, scene } = plan;
  const label = scene.chunks[send.chunk].label;
  if (!details) return `${send.src} → ${send.dst}: ${label}, ${times(send)}`;
  const { phrases, reasons, rows } = details;
  const [reason, by, ready, epoch] = rows[send.i];
  const before = by < 0 ? null : plan.sends[by];
  const whole = Math.abs(send.fraction - 1) <= SAME;
  const told = filled(phrases[reasons[reason]], {
    src: send.src, dst: send.dst,
    chunk: whole ? label : filled(phrases.part, { share: short(100 * send.fraction, 3), chunk: label }),
    start: moment(send.start), end: moment(send.end), ready: moment(ready),
    wait: moment(send.wait),
    before: before ? scene.chunks[before.chunk].label : "",
    from: before ? before.src : "", over: before ? `${before.src} → ${before.dst}` : "",
  });
  const planned = epoch * scene.epoch_duration;
  if (epoch < 0 || planned <= send.start + SAME * plan.makespan) return told;
  return told + filled(phrases.earlier, { epoch, planned: moment(planned) });
}

/** Why there are no reasons. @param {Plan} plan */
export const silence = (plan) =>
  `Of ${plan.sends.length.toLocaleString("en")} transfers it is only told when they go and where, not why they waited.`;

/** How long something waited. @param {number} us */
export const waited = (us) => `waited ${duration(us)}`;
