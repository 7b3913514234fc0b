import assert from "node:assert/strict";
import { test } from "node:test";

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
