import assert from "node:assert/strict";
import { test } from "node:test";
import { FAR, leaderTo, startsAlong } from "../src/leaders.js";

/** An outline of 40 by 30 pixels with its upper left corner at the origin. */
const corners = [{ x: 0, y: 0 }, { x: 40, y: 0 }, { x: 40, y: 30 }, { x: 0, y: 30 }];
const outline = corners.map((p, i) => /** @type {any} */ ([p, corners[(i + 1) % 4]]));
const starts = startsAlong(outline);

test("places along an outline are even and on it", () => {
  assert.equal(starts.length, 140 / 5);
  assert.ok(starts.every(({ x, y }) => x === 0 || x === 40 || y === 0 || y === 30));
  assert.ok(startsAlong([[{ x: 0, y: 0 }, { x: 7200, y: 0 }]]).length <= 72);
});

test("an outline without length, as on a canvas that is hidden, still has a place and a line", () => {
  const point = { x: 0, y: 0 };
  const only = startsAlong([[point, point], [point, point]]);
  assert.deepEqual(only, [point]);
  const { length, hits } = leaderTo({ x1: 10, x2: 20, y1: -5, y2: 5 }, only, []);
  assert.deepEqual([length, hits], [10, 0]);
});

test("the line to a label begins on the outline and is the shortest", () => {
  const { from, to, length, hits } = leaderTo({ x1: 10, x2: 120, y1: -80, y2: -50 }, starts, []);
  assert.deepEqual([from.y, to.y, length, hits], [0, -50, 50, 0]);
  assert.equal(from.x, to.x);
});

test("it leads past a device that is between, along its side if it must", () => {
  const device = { x1: 4, x2: 36, y1: -40, y2: -10 };
  const { from, hits } = leaderTo({ x1: -60, x2: 120, y1: -80, y2: -60 }, starts, [device]);
  assert.equal(hits, 0);
  assert.ok(from.x < 4 || from.x > 36);
});

test("a wall of devices is crossed once, and beside the outline there is nothing to cross", () => {
  const wall = { x1: -500, x2: 500, y1: -40, y2: -2 };
  assert.equal(leaderTo({ x1: -60, x2: 120, y1: -80, y2: -60 }, starts, [wall]).hits, 1);
  const beside = leaderTo({ x1: 50, x2: 120, y1: 0, y2: 30 }, starts, [wall]);
  assert.ok(beside.length <= FAR && beside.hits === 0);
});
