/**
 * Numbers with their units, for people, as `ccl.text` writes them: `test/text.json` holds both to the
 * same words.
 */

/** At most `digits` significant digits, without trailing zeros and exponents. @param {number} value */
export function short(value, digits = 6) {
  const rounded = Number(value.toPrecision(digits));
  if (!rounded || Math.abs(rounded) >= 1e-6) return String(rounded);
  return trimmed(value.toFixed(Math.min(100, digits - 1 - Math.floor(Math.log10(Math.abs(rounded))))));
}

/** Three digits, thousands apart, no trailing zeros. @param {number} value */
export function digits(value) {
  if (value === 0) return "0";
  if (Math.abs(value) >= 100) return Number(fixed(value, 0)).toLocaleString("en-US");
  return trimmed(fixed(value, places(value)));
}

/** @param {number} value */
const places = (value) => Math.min(6, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value)))));

/** @param {string} text */
const trimmed = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);

/** So many decimal places; of two that are equally near the even one, as Python rounds. @param {number} value @param {number} places */
function fixed(value, places) {
  const text = value.toFixed(places);
  const [, rest = ""] = value.toFixed(Math.min(100, places + 60)).split(".");
  const tie = /^50*$/.test(rest.slice(places));
  return tie && Number(text.at(-1)) % 2 ? (Number(text) - Math.sign(value) * 10 ** -places).toFixed(places) : text;
}

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
  return `${fixed(us / 1000 ** power, after)} of ${digits(value)} ${name}`;
}

/** A round time on an axis that ends at `whole` µs, in the unit of that. @param {number} us @param {number} whole */
export function tick(us, whole) {
  const { power, name } = unit(whole, TIMES);
  return `${short(us / 1000 ** power)} ${name}`;
}

/** GB/s with Gb/s beside it. @param {number} gbytes */
export const bandwidth = (gbytes) => `${scaled(gbytes, ["GB/s", "TB/s"])} (${digits(gbytes * 8)} Gb/s)`;

/** @param {number} nbytes */
export const bytes = (nbytes) => scaled(nbytes, ["B", "KB", "MB", "GB", "TB"]);

/** A share as per cent. @param {number} value */
export const share = (value) => `${Math.abs(value) < 5e-7 ? 0 : digits(value * 100)} %`;
