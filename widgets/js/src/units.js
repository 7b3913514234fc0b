/** Numbers with their units, for people. */

/** @param {number} value at most `digits` significant digits, without trailing zeros */
export const short = (value, digits = 4) => String(Number(value.toPrecision(digits)));

/** @param {number} us */
export function duration(us) {
  if (us >= 1e6) return `${short(us / 1e6)} s`;
  if (us >= 1e4) return `${short(us / 1e3)} ms`;
  return us >= 100 || us === 0 ? `${us.toFixed(us ? 1 : 0)} µs` : `${us.toPrecision(3)} µs`;
}

/** GB/s with Gb/s beside it. @param {number} gbytes */
export const bandwidth = (gbytes) => `${short(gbytes)} GB/s (${short(gbytes * 8)} Gb/s)`;

/** @param {number} nbytes */
export function bytes(nbytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, nbytes)) / 3)));
  return `${short(nbytes / 1000 ** power)} ${units[power]}`;
}
