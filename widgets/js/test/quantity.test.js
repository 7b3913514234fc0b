import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import "../../static/quantity.js";

const { parse, understood, written } = globalThis.topoloomQuantity;
const golden = JSON.parse(readFileSync(new URL("../../../tests/golden/quantities.json", import.meta.url), "utf8"));

test("the page reads quantities as Python does, and refuses them in the same words", () => {
  for (const { text, value, trouble, ...field } of golden) {
    const found = parse(text, { what: field.kind, ...field });
    assert.deepEqual(found, trouble === undefined ? { value } : { trouble }, text);
  }
});

test("what was understood is said where the text does not say it", () => {
  const said = (text, kind) => understood(text, parse(text, { kind, what: kind }).value, kind);
  assert.equal(said("400 Gb/s", "bandwidth"), "400 Gb/s = 50 GB/s");
  assert.equal(said("50", "bandwidth"), "50 GB/s = 400 Gb/s");
  assert.equal(said("1e3", "count"), "1e3 = 1000");
  assert.equal(said("8", "count"), "");
  assert.equal(said("0.7 us", "latency"), "");
  assert.equal(said("1 ms", "latency"), "1 ms = 1000 µs");
  assert.equal(said("1MB", "size"), "");
  assert.equal(said("64KiB", "size"), "64KiB = 65.536 KB");
  assert.equal(said("1GiB", "size"), "1GiB = 1073741824 B");
});

test("what a field shows reads back as the same value", () => {
  const values = { bandwidth: [50, 0.1, 12.345], latency: [0.7, 1e-9], size: [1e6, 65536, 2 ** 30], count: [7, 1e9], percent: [2.5] };
  for (const [kind, all] of Object.entries(values)) {
    for (const value of all) assert.equal(parse(written(value, kind), { kind, what: kind }).value, value);
  }
});
