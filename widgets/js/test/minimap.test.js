import assert from "node:assert/strict";
import { test } from "node:test";
import { mapOf } from "../src/minimap.js";

test("a map is as large as fits, whatever the shape of the drawing", () => {
  const wide = mapOf({ x1: -100, y1: 0, x2: 900, y2: 100 }, { width: 216, height: 116 });
  assert.deepEqual(wide, { width: 216, height: 36, scale: 0.2, x: -140, y: -40 });
  const high = mapOf({ x1: 0, y1: 0, x2: 10, y2: 1000 }, { width: 216, height: 116 });
  assert.equal(high.height, 116);
  assert.equal(high.width, 17);
});
