import assert from "node:assert/strict";
import { test } from "node:test";
import { guidesOf, shiftToLines } from "../src/snapping.js";

const box = (x, y, w = 80, h = 60) => ({ x1: x - w / 2, y1: y - h / 2, x2: x + w / 2, y2: y + h / 2 });

test("the nearest line within reach is snapped to, each axis for itself", () => {
  const others = [box(200, 0), box(3, 300)];
  const { x, y, on } = shiftToLines(box(0, -4), others, 6);
  assert.deepEqual([x, y], [3, 4]);
  assert.deepEqual(on, { x: true, y: true });
  assert.deepEqual(shiftToLines(box(60, 100), others, 6).on, { x: false, y: false });
});

test("edges of boxes of different widths are lines, too", () => {
  assert.equal(shiftToLines(box(24, 0), [box(0, 200, 124, 34)], 6).x, -2); // right edges at 62
});

test("a guide reaches over all that it joins", () => {
  const [guide, ...rest] = guidesOf(box(0, 0), [box(200, 0), box(-300, 0), box(50, 200)]);
  assert.deepEqual(guide, { axis: "y", at: 0, from: -340, to: 240 });
  assert.deepEqual(rest, []);
});
