import assert from "node:assert/strict";
import { test } from "node:test";
import { Taken, labelOf } from "../src/link_labels.js";

const link = (bandwidth, count = 1) => ({ bandwidth, count });

test("a label has the bandwidth, how many links it is of, and both ways where they differ", () => {
  assert.equal(labelOf({ forth: link(50), back: link(50) }, true), "50 GB/s");
  assert.equal(labelOf({ forth: link(100, 4), back: null }, false), "4 × 25");
  assert.equal(labelOf({ forth: link(50), back: link(25) }, true), "50 / 25 GB/s");
  assert.equal(labelOf({ forth: link(100, 4), back: null, parts: [] }, false), "100");
});

test("what is taken is found across cells", () => {
  const taken = new Taken();
  taken.add({ x1: 70, y1: 0, x2: 170, y2: 10 });
  assert.ok(taken.hits({ x1: 165, y1: 5, x2: 400, y2: 20 }));
  assert.ok(!taken.hits({ x1: 171, y1: 0, x2: 400, y2: 20 }));
});
