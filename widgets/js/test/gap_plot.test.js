import assert from "node:assert/strict";
import { test } from "node:test";
import {
  between, gapOf, logTicks, percent, rowAt, stairs, ticks, windowOf,
} from "../../static/gap_plot.js";

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
