/** A film as bars: one per epoch, as high as the links are busy, the part to come fainter. */

/** Pixels that a bar needs at least; below it epochs share one. */
const LEAST_BAR = 3;
/** Pixels of the foot that shows how far a cut is used. */
const FOOT = 5;

/**
 * @param {CanvasRenderingContext2D} ctx
 * @param {{playback: import("./player.js").Playback, time: number, colors: Record<string, string>,
 *   fill: string, crossing?: Float64Array | null}} film what, when in µs, and in which colours
 * @param {{left: number, width: number, top: number, base: number}} frame where, in pixels
 */
export function drawBars(ctx, { playback, time, colors, fill, crossing = null }, { left, width, top, base }) {
  const merge = Math.max(1, Math.ceil((playback.epochs * LEAST_BAR) / width));
  const bars = Math.ceil(playback.epochs / merge);
  const each = (width / playback.epochs) * merge;
  const gap = each > 8 ? 2 : each > 4 ? 1 : 0;
  const peak = Math.max(1e-9, ...playback.busy);
  const now = time / playback.step / merge;
  const radius = Math.min(3, each / 4);
  const box = (x, y, w, h) => {
    ctx.beginPath();
    ctx.roundRect(left + x, y, Math.max(1, w), h, radius);
    ctx.fill();
  };
  for (let i = 0; i < bars; i++) {
    const [from, to] = [i * merge, Math.min(playback.epochs, (i + 1) * merge)];
    const wide = Math.min(each, width - i * each) - gap;
    ctx.globalAlpha = 1;
    ctx.fillStyle = colors.empty;
    box(i * each, top, wide, base - top);
    ctx.globalAlpha = i <= now ? 1 : 0.42;
    const tall = Math.max(2, (mean(playback.busy, from, to) / peak) * (base - top));
    ctx.fillStyle = fill;
    box(i * each, base - tall, wide, tall);
    const used = crossing ? mean(crossing, from, to) : 0;
    if (used > 0.005) {
      ctx.fillStyle = colors.cut;
      box(i * each, base - FOOT, wide * used, FOOT);
    }
  }
  ctx.globalAlpha = 1;
}

/**
 * The context of a canvas element that is as fine as the screen, wiped.
 * @param {HTMLCanvasElement} strip
 */
export function wiped(strip) {
  const ratio = Math.min(2, devicePixelRatio || 1);
  const [width, height] = [strip.clientWidth, strip.clientHeight].map((v) => Math.round(v * ratio));
  if (strip.width !== width || strip.height !== height) Object.assign(strip, { width, height });
  const ctx = strip.getContext("2d");
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.clearRect(0, 0, width, height);
  return ctx;
}

function mean(values, from, to) {
  let sum = 0;
  for (let i = from; i < to; i++) sum += values[i];
  return sum / Math.max(1, to - from);
}
