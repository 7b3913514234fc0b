import assert from "node:assert/strict";
import { test } from "node:test";

import { pinched } from "../src/touch.js";

const at = (x, y) => ({ x, y });

test("fingers that go apart enlarge by as much, around their middle", () => {
  const { factor, from, to } = pinched([at(90, 50), at(110, 50)], [at(70, 50), at(130, 50)]);
  assert.equal(factor, 3);
  assert.deepEqual([from, to], [at(100, 50), at(100, 50)]);
});

test("fingers that stay as far from each other only move the view", () => {
  const { factor, from, to } = pinched([at(0, 0), at(30, 40)], [at(10, 5), at(40, 45)]);
  assert.equal(factor, 1);
  assert.deepEqual([to.x - from.x, to.y - from.y], [10, 5]);
});

test("fingers on the same spot change no size", () => {
  assert.equal(pinched([at(5, 5), at(5, 5)], [at(0, 0), at(9, 9)]).factor, 1);
});
