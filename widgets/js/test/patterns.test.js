import assert from "node:assert/strict";
import { test } from "node:test";
import { rectsOf } from "../src/arrange.js";
import { overlap } from "../src/geometry.js";
import * as edit from "../src/model.js";
import { endsOfSelection, hubOf, linkAll, mesh, pairs, stamp, star } from "../src/patterns.js";

const add = (drawing, name, position, { kind = "gpu", host = null } = {}) =>
  edit.addDevice(drawing, { kind, name, position, host });
const drawn = (list) => list.reduce((drawing, args) => add(drawing, ...args), edit.EMPTY);
const grid = drawn([["a", [0, 0]], ["b", [100, 0]], ["c", [100, 90]], ["d", [0, 90]]]);
const boxes = drawn([
  ["g0", [0, 0], { host: "h0" }], ["n0", [0, 90], { kind: "nic", host: "h0" }],
  ["g1", [300, 0], { host: "h1" }], ["n1", [300, 90], { kind: "nic", host: "h1" }],
  ["leaf", [150, -90], { kind: "switch" }],
]);

test("links that are there stay and are counted", () => {
  const one = edit.addLink(grid, "b", "a", { bandwidth: 7, both: false });
  const { drawing, made, there } = linkAll(one, mesh(["a", "b", "c"]), { bandwidth: 25, alpha: 1, medium: "X" });
  assert.deepEqual([made, there], [2, 1]);
  assert.deepEqual(drawing.topology.links.map((l) => `${l.src}${l.dst} ${l.bandwidth}`), ["ba 7", "ac 25", "ca 25", "bc 25", "cb 25"]);
  assert.equal(linkAll(drawing, mesh(["a", "b", "c"]), {}).drawing, drawing);
});

test("a host stands for its NICs, and for its GPUs in a mesh", () => {
  const chosen = { devices: ["leaf"], hosts: ["h0", "h1"] };
  assert.deepEqual(endsOfSelection(boxes, chosen), ["n0", "n1", "leaf"]);
  assert.deepEqual(endsOfSelection(boxes, chosen, { gpus: true }), ["g0", "g1", "leaf"]);
  assert.deepEqual(star(["n0", "n1", "leaf"], "leaf"), [["n0", "leaf"], ["n1", "leaf"]]);
});

test("the middle of a star is pointed at or the only switch", () => {
  assert.equal(hubOf(boxes, ["n0", "leaf"], "n0"), "n0");
  assert.equal(hubOf(boxes, ["n0", "leaf"], "n1"), "leaf");
  assert.throws(() => hubOf(boxes, ["n0", "n1"], undefined), edit.EditError);
});

test("pairs are of two hosts, two kinds or two rows", () => {
  assert.deepEqual(pairs(boxes, ["g0", "n0", "g1", "n1"]), [["g0", "g1"], ["n0", "n1"]]);
  assert.deepEqual(pairs(boxes, ["g0", "n0"]), [["g0", "n0"]]);
  assert.deepEqual(pairs(grid, ["a", "b", "c", "d"]), [["a", "b"], ["d", "c"]]);
  assert.throws(() => pairs(grid, ["a", "b", "c"]), /two groups/);
});

test("stamps stand in a row or a grid and cover nothing", () => {
  const chosen = { devices: ["a"], hosts: [] };
  const made = stamp(grid, chosen, 8);
  assert.equal(made.devices.length, 8);
  assert.equal(made.drawing.topology.devices.length, 11);
  const rects = [...rectsOf(made.drawing).values()];
  assert.ok(rects.every((r, i) => rects.slice(i + 1).every((other) => !overlap(r, other))));
  assert.throws(() => stamp(grid, { devices: [], hosts: [] }, 4), edit.EditError);
  assert.throws(() => stamp(grid, chosen, 1), edit.EditError);
});

test("stamped hosts are hosts of their own", () => {
  const made = stamp(boxes, { devices: [], hosts: ["h0", "h1"] }, 2);
  assert.deepEqual(made.hosts, ["h0", "h1", "h2", "h3"]);
  assert.deepEqual(made.devices, []);
});
