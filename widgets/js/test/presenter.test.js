import assert from "node:assert/strict";
import { test } from "node:test";
import { trailOf } from "../src/laser.js";
import { unusedLines } from "../src/presenter.js";

test("lines that no send crosses are unused, whichever way it would go", () => {
  const [ab, bc, ca] = ["ab", "bc", "ca"].map((id) => ({ id }));
  const lanes = new Map([["a>b", { line: ab }], ["b>a", { line: ab }], ["b>c", { line: bc }], ["c>a", { line: ca }]]);
  const shown = /** @type {any} */ ({ lines: [ab, bc, ca], lanes });
  assert.deepEqual(unusedLines(shown, [{ key: "b>a" }, { key: "gone" }]), ["bc", "ca"]);
  assert.deepEqual(unusedLines(shown, []), ["ab", "bc", "ca"]);
});

test("the trail of the laser is what it passed in the last moments, fading", () => {
  const places = [{ x: 0, y: 0, at: 0 }, { x: 1, y: 0, at: 870 }, { x: 2, y: 0, at: 1000 }];
  const trail = trailOf(places, 1000);
  assert.deepEqual(trail.map(({ x }) => x), [1, 2]);
  assert.deepEqual(trail.map(({ left }) => left), [0.5, 1]);
});
