import assert from "node:assert/strict";
import { test } from "node:test";
import { between, rowAt, stairs } from "../../static/gap_plot.js";

test("a staircase keeps a value until the next one comes", () => {
  assert.equal(stairs([[0, 10], [5, 4]], 9), "M0 10H5V4H9");
  assert.equal(stairs([], 9), "");
});

test("the gap is shaded from where both are known", () => {
  // The bound is there from 0, the first plan from 2; both end at 9.
  assert.equal(between([[2, 1], [5, 3]], [[0, 8], [6, 7]], 9), "M2 1H5V3H9V7H6V8H2Z");
  assert.equal(between([], [[0, 8]], 9), "");
});

test("what was known at a time is the last row before it", () => {
  const rows = [[1, null, 5], [2, 9, 5]];
  assert.deepEqual([0.5, 1.5, 99].map((time) => rowAt(rows, time)), [-1, 0, 1]);
});
