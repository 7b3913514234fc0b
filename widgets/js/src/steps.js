/**
 * Steps and phases of a plan, as `widgets/view_model/steps.py` finds them: where the player is among
 * them, their marks above the bars of the time line, and the caption. No timers.
 *
 * @typedef {import("./player.js").Playback} Playback
 */

import { h, iconButton } from "./dom.js";
import { FONT } from "./style.js";

/** Share of the makespan within which two times are the same. */
const SAME = 1e-6;
/** Pixels that marks of steps stand apart at least; closer ones are left out. */
const APART = 4;
/** Pixels of the band of phases and of the marks of steps. */
const BAND = 15;
const MARK = 7;

/**
 * How many steps or phases have begun at a time; 0 before the first one.
 * @param {{start: number}[]} rows @param {number} time µs @param {number} makespan µs
 */
export function begun(rows, time, makespan) {
  let count = 0;
  while (count < rows.length && rows[count].start <= time + SAME * makespan) count += 1;
  return count;
}

/**
 * The moment one step or phase on or back: where the next one begins or the last one ends; where this
 * one begins, or the one before it when the player is there already.
 * @param {{start: number}[]} rows @param {number} time µs @param {{by: number, makespan: number}} how
 */
export function momentBeside(rows, time, { by, makespan }) {
  const moments = [...new Set([0, ...rows.map(({ start }) => start), makespan])];
  const slack = SAME * makespan;
  const beside = by > 0 ? moments.filter((each) => each > time + slack) : moments.filter((each) => each < time - slack).reverse();
  return beside[Math.min(beside.length, Math.abs(by)) - 1] ?? time;
}

/** Share of the makespan from which on the last step is no step, but what goes on to the end. */
const STEADY = 0.5;

/**
 * Where the player is, in a sentence; empty for a plan without steps.
 * @param {Playback} playback @param {number} time µs
 */
export function captionAt({ steps, makespan }, time) {
  if (!steps.length) return "";
  const at = begun(steps, time, makespan);
  if (time >= makespan * (1 - SAME)) return `All ${steps.length} steps are done`;
  if (!at) return "Nothing has set out yet";
  const { start, caption } = steps[at - 1];
  const goesOn = steps.length > 2 && at === steps.length && makespan - start > STEADY * makespan;
  return goesOn ? `From step ${at} on to the end: ${caption}` : `Step ${at} of ${steps.length}: ${caption}`;
}

/**
 * What happens in the epoch shown, for a plan without steps.
 * @param {Playback} playback @param {number} time µs
 */
export function epochCaption(playback, time) {
  if (time >= playback.makespan * (1 - SAME)) return "Everything is where it is needed";
  const [first = ""] = (playback.scene.sentences[playback.epochAt(time)] ?? "").split("\n");
  return /^\d/.test(first) ? `In this epoch: ${first}` : first;
}

/** Pixels of the band of phases. @param {Playback} playback @param {number} [scale] of the type */
export const bandHeight = ({ phases }, scale = 1) => (phases.length ? BAND * scale : 0);

/** Pixels above the bars that marks need. @param {Playback} playback @param {number} [scale] of the type */
export const marksHeight = (playback, scale = 1) => bandHeight(playback, scale) + (playback.steps.length ? MARK + 2 : 0);

/** Where the phase of a moment begins. @param {Playback} playback @param {number} time µs */
export const startOfPhase = ({ phases, makespan }, time) => phases[begun(phases, time, makespan) - 1]?.start ?? 0;

/**
 * Draw the band of phases and a mark where each step begins; those to come are fainter.
 * @param {CanvasRenderingContext2D} ctx
 * @param {{playback: Playback, time: number, span: number, colors: Record<string, string>}} film times in µs
 * @param {{width: number, top: number, scale?: number}} frame pixels; `scale` of the type
 */
export function drawSteps(ctx, { playback, time, span, colors }, { width, top, scale = 1 }) {
  const { steps, phases, makespan } = playback;
  const x = (at) => (at / span) * width;
  const band = BAND * scale;
  phases.forEach(({ start, label }, i) => {
    const [from, to] = [x(start), x(phases[i + 1]?.start ?? makespan)];
    const on = begun(phases, time, makespan) === i + 1;
    ctx.fillStyle = on ? colors.accent : colors.empty;
    ctx.globalAlpha = on ? 0.3 : 1;
    ctx.beginPath();
    ctx.roundRect(from + (i ? 1 : 0), top, Math.max(2, to - from - 1), band - 3, 4);
    ctx.fill();
    ctx.globalAlpha = 1;
    ctx.font = `600 ${10 * scale}px ${FONT}`;
    ctx.fillStyle = on ? colors.text : colors.dim;
    ctx.textAlign = "center";
    if (ctx.measureText(label).width < to - from - 8) ctx.fillText(label, (from + to) / 2, top + band - 3 - 3 * scale);
  });
  if (!steps.length || width / steps.length < APART) return;
  const row = top + (phases.length ? band : 0);
  const at = begun(steps, time, makespan);
  steps.forEach(({ start }, i) => {
    const to = x(steps[i + 1]?.start ?? makespan);
    ctx.fillStyle = i + 1 === at ? colors.accent : colors.dim;
    ctx.globalAlpha = i + 1 <= at ? 1 : 0.42;
    ctx.fillRect(x(start), row, 1.5, MARK);
    ctx.fillRect(x(start), row + MARK / 2 - 0.75, Math.max(1, to - x(start) - 1), 1.5);
  });
  ctx.globalAlpha = 1;
}

/** The caption beneath the time line, with a button to either side. */
export class Caption {
  /** @param {(by: number) => void} step */
  constructor(step) {
    this.text = h("p", {});
    this.element = h(
      "div", { class: "tl-caption", hidden: true },
      iconButton("back", "Previous step (,)", () => step(-1)), iconButton("next", "Next step (.)", () => step(1)), this.text,
    );
  }

  /**
   * @param {Playback | null} playback @param {number} time µs
   * @param {boolean} always whether there is one for a plan without steps as well
   */
  show(playback, time, always) {
    const steps = playback ? captionAt(playback, time) : "";
    const words = steps || !playback || !always ? steps : epochCaption(playback, time);
    this.element.hidden = !words;
    if (this.text.textContent !== words) this.text.textContent = words;
    this.text.title = words;
  }
}
