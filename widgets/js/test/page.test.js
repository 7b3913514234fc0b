import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import "../../static/quantity.js";
import { PlainModel } from "../src/host.js";
import * as units from "../src/units.js";

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

test("numbers are written as Python writes them", () => {
  const golden = JSON.parse(readFileSync(new URL("./text.json", import.meta.url), "utf8"));
  for (const [name, cases] of Object.entries(golden))
    for (const [given, words] of cases) assert.equal(units[name](...[given].flat()), words);
});

globalThis.window = { addEventListener() {} };
await import("../../../designer/assets/documents.js");
await import("../../../designer/assets/storage.js");
const { packed, unpacked } = globalThis.window.topoloomStorage;

const device = (name) => ({ name, kind: "gpu", host: null });
const drawing = (devices, positions = {}) => ({
  topology: { name: "mine", devices, links: [], limits: [] }, positions,
});

test("a history comes back as it was, and parts that steps share are one again", () => {
  const [a, b] = [device("a"), device("b")];
  const one = [a];
  const all = [drawing(one), drawing(one, { a: { x: 1, y: 2 } }), drawing([a, b])];
  const back = unpacked(JSON.parse(JSON.stringify(packed(all))));
  assert.deepEqual(back, all);
  assert.equal(back[0].topology.devices, back[1].topology.devices);
  assert.equal(back[0].topology.devices[0], back[2].topology.devices[0]);
});

test("a hundred steps of a large cluster take little more than one", () => {
  const many = Array.from({ length: 500 }, (_, i) => device(`g${i}`));
  const steps = Array.from({ length: 100 }, (_, i) => drawing(many, { g0: { x: i, y: 0 } }));
  const length = (drawings) => JSON.stringify(packed(drawings)).length;
  assert.ok(length(steps) < 1.5 * length(steps.slice(0, 1)));
});

test("a plain model tells its listeners, and its host only what the view changed", () => {
  const saved = [];
  const heard = [];
  const model = new PlainModel({ a: 1, b: 2 }, (changed) => saved.push(changed));
  model.on("change:a", (_, value) => heard.push(value));
  model.receive("a", 5);
  model.set("a", 6);
  model.set("a", 6);
  model.save_changes();
  model.save_changes();
  assert.deepEqual([heard, saved, model.get("a")], [[5, 6], [{ a: 6 }], 6]);
});
