import assert from "node:assert/strict";
import { test } from "node:test";

import { comparedBy, contrast, whyNot } from "../src/difference.js";
import { endsKey } from "../src/model.js";

const device = (name) => ({ name, kind: "gpu", host: null, stores: true, copies: true, reduces: true, buffer_bytes: null });
const link = (src, dst) => ({ src, dst, bandwidth: 50, alpha: 0, medium: "NVLink", count: 1 });
const topology = (name = "row") => ({
  name, devices: ["a", "b", "c"].map(device), links: [link("a", "b"), link("b", "c"), link("a", "c")], limits: [],
});
const scene = (transfers, { size = 8, chunks = 2, name = "row" } = {}) => ({
  topology: topology(name), chunks: Array.from({ length: chunks }, (_, i) => ({ origin: Math.floor((2 * i) / chunks), label: `${i}`, size })),
  holds: {}, transfers, makespan: Math.max(...transfers.map((each) => each[4])), epoch_duration: 10, epochs: 2, sentences: [], title: "",
});

/** Chunk 0 goes over b to c in A and straight to b and c in B; chunk 1 goes from a to b in both. */
const A = scene([[0, "a", "b", 0, 10, 1], [0, "b", "c", 10, 20, 1], [1, "a", "b", 10, 20, 1]]);
const B = scene([[0, "a", "b", 0, 10, 1], [0, "a", "c", 0, 10, 1], [1, "a", "b", 10, 20, 1]]);

test("a send is in both, or only in the plan that has it, and the links differ by its time", () => {
  const { scene: shown, sums, busy } = contrast(A, B);
  assert.deepEqual(sums, [8, 8, 16]);
  assert.deepEqual(shown.transfers.map(([kind, src, dst]) => [kind, src, dst]), [
    [2, "a", "b"], [1, "a", "c"], [0, "b", "c"], [2, "a", "b"],
  ]);
  assert.deepEqual(busy.get(endsKey("b", "c")), [10, 0]);
  assert.deepEqual(busy.get(endsKey("a", "c")), [0, 10]);
  assert.deepEqual(busy.get(endsKey("a", "b")), [20, 20]);
});

test("plans that cut the data otherwise are compared by the bytes of each origin", () => {
  const fine = scene([[0, "a", "b", 0, 5, 1], [1, "a", "b", 5, 10, 1], [2, "a", "b", 10, 20, 1]], { size: 4, chunks: 4 });
  const { scene: shown, sums, unit } = contrast(scene([[0, "a", "b", 0, 10, 1], [1, "a", "b", 10, 20, 1]]), fine);
  assert.deepEqual(sums, [4, 0, 12]);
  assert.equal(unit, "data of the same origin");
  // Of the second send of A half is in B.
  assert.deepEqual(shown.transfers.map(([kind, , , start, , share]) => [kind, start, share]), [[2, 0, 1], [2, 10, 0.5], [0, 10, 0.5]]);
});

test("what is only in one plan and what is in both add up to all that it sends", () => {
  const coarse = scene([[0, "a", "b", 0, 10, 1], [0, "b", "c", 10, 20, 0.5], [1, "a", "c", 0, 10, 1]]);
  const fine = scene([[0, "a", "b", 0, 4, 1], [1, "a", "b", 4, 8, 1], [2, "a", "b", 8, 12, 1], [5, "a", "c", 0, 4, 1]], { size: 8 / 3, chunks: 6 });
  const sent = ({ chunks, transfers }) => transfers.reduce((sum, [chunk, , , , , part]) => sum + chunks[chunk].size * part, 0);
  for (const [one, two] of [[coarse, fine], [fine, coarse], [A, B], [A, A]]) {
    const [onlyA, onlyB, both] = contrast(one, two).sums;
    assert.ok(Math.abs(onlyA + both - sent(one)) < 1e-9 && Math.abs(onlyB + both - sent(two)) < 1e-9);
  }
  assert.deepEqual(contrast(A, A).sums, [0, 0, 24]);
});

test("of a chunk, or of an origin where the data are cut otherwise, only its own sends are compared", () => {
  const { sums, scene: shown, busy, plans } = contrast(A, B, 0);
  assert.deepEqual(sums, [8, 8, 8]);
  assert.deepEqual(shown.transfers.map(([kind, src, dst]) => [kind, src, dst]), [[2, "a", "b"], [1, "a", "c"], [0, "b", "c"]]);
  assert.deepEqual(busy.get(endsKey("a", "b")), [10, 10]);
  assert.deepEqual(plans.map((plan) => plan.load(1).get(endsKey("b", "c")) ?? 0), [1, 0]);
  const fine = scene([[0, "a", "b", 0, 5, 1], [3, "a", "b", 10, 20, 1]], { size: 4, chunks: 4 });
  assert.equal(comparedBy(A, B)(A, 1), 1);
  assert.equal(comparedBy(A, fine)(fine, 3), 1);
  assert.deepEqual(contrast(A, fine, 1).sums, [4, 0, 4]);
});

test("two clusters have no difference, and the reason names both", () => {
  assert.equal(whyNot(A, B), "");
  assert.match(whyNot(A, null), /two schedules/);
  const other = { ...B, topology: { ...topology("column"), links: [link("a", "b")] } };
  assert.match(whyNot(A, other), /A is on row, B on column/);
});
