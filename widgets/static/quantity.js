/**
 * Quantities as people type them, read in the page by the rules of `ccl/serialization/quantity.py`, so
 * that a field can say at once what it understood; `tests/golden/quantities.json` holds the two
 * together. A plain script, since the designer's own scripts and the fields need it when they load.
 */
(function () {
  "use strict";

  const DECIMAL = { B: 1, KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 };
  const BINARY = { KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };
  const NUMBER = /^[+-]?(\d[\d_]*\.?\d*|\.\d+)(e[+-]?\d{1,4})?/i;
  const LONGEST = 40;
  const MOST_COUNTED = 1e9;

  const BYTES = Object.fromEntries(
    Object.entries({ ...DECIMAL, ...BINARY }).map(([name, nbytes]) => [name.toLowerCase(), nbytes]),
  );
  const RATES = Object.fromEntries(
    Object.entries({ ...DECIMAL, ...BINARY }).flatMap(([name, nbytes]) => [
      [`${name}/s`, nbytes], [`${name.slice(0, -1)}b/s`, nbytes / 8],
    ]),
  );
  const TIMES = { ns: 1, us: 1e3, ms: 1e6, s: 1e9, min: 60e9, h: 3600e9 };

  const KINDS = {
    size: { base: "B", units: BYTES, article: "a number of bytes", like: "1MB, 64KiB or 4096" },
    bandwidth: { base: "GB/s", units: RATES, article: "a bandwidth", like: "50 GB/s or 400 Gb/s" },
    latency: { base: "µs", units: TIMES, article: "a time", like: "0.7 µs or 500 ns" },
    duration: { base: "s", units: TIMES, article: "a time", like: "30 s or 2 min" },
    percent: { base: "%", units: { "%": 1 }, article: "a percentage", like: "5 %" },
    number: { base: "", units: null, article: "a number", like: "2.5 or 1e3" },
    count: { base: "", units: null, article: "a whole number", like: "8 or 1e3", whole: true },
  };

  class Refusal extends Error {}

  const refuse = (sentence) => {
    throw new Refusal(sentence);
  };

  const characters = (text) => [...text];
  const quoted = (text) => {
    const all = characters(text);
    return `'${all.length <= LONGEST ? text : `${all.slice(0, LONGEST - 1).join("")}…`}'`;
  };
  const digits = (value, many = 12) => String(Number(value.toPrecision(many)));

  const split = (text, kind, what) => {
    if (!text) refuse(`${what} is empty; write it like ${kind.like}`);
    const found = NUMBER.exec(text);
    const rest = found ? text.slice(found[0].length).trim() : "";
    if (!found || (rest && !/^[\p{L}%]/u.test(rest))) {
      refuse(`${what} ${quoted(text)} is not ${kind.article}; write it like ${kind.like}`);
    }
    return [Number(found[0].replaceAll("_", "")), rest || null];
  };

  const bytesOf = (said, unit) => {
    const nbytes = BYTES[unit.toLowerCase()];
    if (nbytes !== undefined && !(unit.endsWith("b") && /^\p{Lu}/u.test(unit))) return nbytes;
    const prefix = unit[0].toUpperCase();
    const hint = "KMGT".includes(prefix)
      ? `${prefix}B or ${prefix}iB`
      : Object.keys({ ...DECIMAL, ...BINARY }).join(", ");
    return refuse(`${said} has the unit ${quoted(unit)}; units are bytes: write ${hint}`);
  };

  const rateOf = (said, unit) => {
    const found = /^([kKMGT]?)(i?)(B|b|bit)(?:\/s|ps)$/.exec(unit);
    const rate = found && RATES[`${found[1].toUpperCase()}${found[2]}${found[3][0]}/s`];
    if (rate) return rate;
    const first = unit[0].toUpperCase();
    const prefix = "KMGT".includes(first) ? first : "G";
    return refuse(
      `${said} has the unit ${quoted(unit)}; write ${prefix}B/s for bytes ` +
      `or ${prefix}b/s for bits per second`,
    );
  };

  const factorOf = (text, unit, kind, what) => {
    const said = `${what} ${quoted(text)}`;
    if (!kind.units) refuse(`${said} is not ${kind.article}; write it like ${kind.like}`);
    if (kind === KINDS.size) return bytesOf(said, unit);
    if (kind === KINDS.bandwidth) return rateOf(said, unit);
    const plain = unit.replaceAll("µ", "u").replaceAll("μ", "u");
    if (Object.hasOwn(kind.units, plain)) return kind.units[plain];
    const names = Object.keys(kind.units).map((each) => each.replace("us", "µs")).join(", ");
    return refuse(`${said} has the unit ${quoted(unit)}; write ${names}`);
  };

  const inBase = (number, factor, kind) => {
    const base = kind === KINDS.size ? 1 : kind.units[kind.base.replace("µ", "u")];
    return factor === base ? number : (number * factor) / base;
  };

  const check = (value, said, base, { least, above, most }) => {
    const unit = base ? ` ${base === "B" ? "bytes" : base}` : "";
    const there = (limit) => limit !== null && limit !== undefined;
    if (!Number.isFinite(value)) refuse(`${said} is not finite; give a smaller number`);
    if (there(above) && value <= above) refuse(`${said} is too small; give more than ${digits(above)}${unit}`);
    if (there(least) && value < least) refuse(`${said} is too small; give ${digits(least)}${unit} or more`);
    if (there(most) && value > most) refuse(`${said} is too large; give ${digits(most)}${unit} or less`);
  };

  const valueOf = (text, kind, what, limits) => {
    const [number, unit] = split(text, kind, what);
    const value = unit === null ? number : inBase(number, factorOf(text, unit, kind, what), kind);
    const said = `${what} ${quoted(text)}`;
    if (kind.whole && Number.isFinite(value) && !Number.isInteger(value)) {
      refuse(`${said} is not ${kind.article}; write it like ${kind.like}`);
    }
    check(value, said, kind.base, kind.whole ? { ...limits, most: limits.most ?? MOST_COUNTED } : limits);
    return value;
  };

  /**
   * Read what was typed.
   * @param {string} given
   * @param {{kind: string, what: string, least?: number, above?: number, most?: number}} field
   * @returns {{value: number} | {trouble: string}} in the unit of the kind, or why not
   */
  const parse = (given, { kind, what, ...limits }) => {
    try {
      return { value: valueOf(String(given ?? "").trim(), KINDS[kind], what, limits) };
    } catch (error) {
      if (error instanceof Refusal) return { trouble: error.message };
      throw error;
    }
  };

  /** Bytes in the largest unit where that is exact and short. @param {number} nbytes */
  const bytesWritten = (nbytes) => {
    const fitting = Object.entries(DECIMAL).filter(([, unit]) => nbytes >= unit);
    const [name, unit] = fitting.at(-1) ?? ["B", 1];
    const short = digits(nbytes / unit, 6);
    return Number(short) * unit === nbytes ? `${short} ${name}` : `${digits(nbytes, 15)} B`;
  };

  /** A value as it stands in a field: ``50 GB/s``. @param {number} value @param {string} kind */
  const written = (value, kind) => {
    const { base } = KINDS[kind];
    if (kind === "size") return bytesWritten(value);
    return base ? `${digits(value)} ${base}` : digits(value);
  };

  /** For comparison: without blanks, and with one letter for micro. @param {string} words */
  const squeezed = (words) => words.replace(/\s/g, "").replace(/[uμ](?=s$)/, "µ");

  /**
   * What a text is understood as, where it does not say so itself: ``400 Gb/s = 50 GB/s``.
   * @param {string} given @param {number} value @param {string} kind
   */
  const understood = (given, value, kind) => {
    const text = String(given).trim();
    const plain = written(value, kind);
    const same = squeezed(text).toLowerCase() === squeezed(plain).toLowerCase();
    if (!same && text !== digits(value)) return `${text} = ${plain}`;
    if (kind === "bandwidth") return `${plain} = ${digits(value * 8, 6)} Gb/s`;
    return same || kind !== "size" ? "" : `${text} = ${plain}`;
  };

  globalThis.topoloomQuantity = { KINDS, parse, understood, written };
})();
