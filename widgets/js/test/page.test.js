import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { between, gapOf, logTicks, percent, rowAt, stairs, ticks, windowOf } from "../../static/gap_plot.js";
import "../../static/quantity.js";
import { PlainModel } from "../src/host.js";
import * as units from "../src/units.js";

const course = (points, changes = {}) => ({ points, seconds: points.at(-1)[0], running: false, ...changes });

test("a staircase keeps a value until the next one comes", () => {
  assert.equal(stairs([[0, 10], [5, 4]], 9), "M0 10H5V4H9");
  assert.equal(stairs([], 9), "");
});

test("the gap is shaded from where both are known", () => {
  // The bound is there from 0, the first plan from 2; both end at 9.
  assert.equal(between([[2, 1], [5, 3]], [[0, 8], [6, 7]], 9), "M2 1H5V3H9V7H6V8H2Z");
  assert.equal(between([], [[0, 8]], 9), "");
});

test("the gap is what the makespan is above the bound, as a share of the bound", () => {
  assert.equal(gapOf(15, 10), 0.5);
  assert.equal(gapOf(null, 10), null);
  assert.equal(percent(gapOf(15, 10)), "50 %");
  assert.equal(percent(gapOf(10, 10)), "0 %");
});

test("what was known at a time is the last row before it", () => {
  const rows = [[1, null, 5], [2, 9, 5]];
  assert.deepEqual([0.5, 1.5, 99].map((time) => rowAt(rows, time)?.[1]), [undefined, null, 9]);
});

test("a bad first plan does not flatten what came after it", () => {
  // Best 20, bound 10: the gap of 10 fills the view up to 20 + 3 * 10, not up to 1000.
  const view = windowOf(course([[0.1, 1000, 10], [1, 20, 10]]), false);
  assert.ok(view.top > 50 && view.top < 60);
  assert.ok(view.bottom < 10);
  assert.deepEqual([view.left, view.right], [0, 1]);
});

test("a plan that meets its bound at once is drawn in the middle of a wide enough view", () => {
  // Four per cent of 50 µs around it, so that the axis has whole numbers.
  const view = windowOf(course([[0.1, 50, 50]]), false);
  assert.deepEqual([view.bottom, view.top], [49, 51]);
});

test("a running solve has an axis that stands still", () => {
  const ends = [3.1, 3.6, 4.4].map((seconds) => windowOf(course([[1, 20, 10]], { seconds, running: true }), false).right);
  assert.deepEqual(ends, [5, 5, 5]);
});

test("a logarithmic axis begins where something is known", () => {
  const view = windowOf(course([[0.1, 20, 10], [60, 15, 10]]), true);
  assert.ok(view.left > 0 && view.left < 0.1);
});

test("ticks are round and within the axis", () => {
  assert.deepEqual(ticks(7.2, 14.1, 4), [8, 10, 12, 14]);
  assert.deepEqual(logTicks(0.08, 60), [0.1, 1, 10]);
  assert.deepEqual(logTicks(0.9, 6), [1, 2, 5]);
});

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
await import("../../../designer/assets/drawings.js");
const { packed, unpacked } = globalThis.window.topoloomDrawings;

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
