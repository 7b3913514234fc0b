/**
 * Numbers with their units, for people, as `ccl.text` writes them: `test/text.json` holds both to the
 * same words.
 */

/** @param {number} value at most `digits` significant digits, without trailing zeros */
export const short = (value, digits = 4) => String(Number(value.toPrecision(digits)));

/** Three digits, thousands apart, no trailing zeros. @param {number} value */
export function digits(value) {
  if (value === 0) return "0";
  if (Math.abs(value) >= 100) return value.toLocaleString("en-US", { maximumFractionDigits: 0 });
  return String(Number(value.toFixed(places(value))));
}

/** @param {number} value */
const places = (value) => Math.min(6, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value)))));

/** The unit that leaves a number below 1000, as far as there are units. @param {number} value @param {string[]} units */
function unit(value, units) {
  let power = 0;
  while (Math.abs(value) >= 999.5 && power < units.length - 1) {
    value /= 1000;
    power += 1;
  }
  return { value, power, name: units[power] };
}

/** @param {number} value @param {string[]} units */
function scaled(value, units) {
  const found = unit(value, units);
  return `${digits(found.value)} ${found.name}`;
}

const TIMES = ["µs", "ms", "s"];

/** @param {number} us */
export const duration = (us) => scaled(us, TIMES);

/** A moment of something that takes `whole` µs, in its unit and with as many places, so that a clock does not jump. @param {number} us @param {number} whole */
export function moment(us, whole) {
  const { value, power, name } = unit(whole, TIMES);
  const after = value && Math.abs(value) < 100 ? places(value) : 0;
  return `${(us / 1000 ** power).toFixed(after)} of ${digits(value)} ${name}`;
}

/** GB/s with Gb/s beside it. @param {number} gbytes */
export const bandwidth = (gbytes) => `${scaled(gbytes, ["GB/s", "TB/s"])} (${digits(gbytes * 8)} Gb/s)`;

/** @param {number} nbytes */
export const bytes = (nbytes) => scaled(nbytes, ["B", "KB", "MB", "GB", "TB"]);
