import assert from "node:assert/strict";
import { test } from "node:test";

import { Buffers } from "../src/buffers.js";
import { eased } from "../src/following.js";
import { OKABE_ITO } from "../src/style.js";
import { recent, ringAround, slices } from "../src/sums.js";

const device = (name) => ({ name, kind: "gpu", host: null, stores: true, copies: true, reduces: true, buffer_bytes: null });

/** Three ranks in a row add up one chunk: a to b, then both to c. */
const SCENE = {
  topology: { name: "row", devices: ["a", "b", "c"].map(device), links: [], limits: [] },
  chunks: [{ origin: 2, label: "sum", size: 1, reduced: true }],
  holds: { a: [0], b: [0], c: [0] }, epoch_duration: 10, makespan: 20, epochs: 2, sentences: [], title: "",
  transfers: /** @type {any} */ ([[0, "a", "b", 0, 10, 1], [0, "b", "c", 10, 20, 1]]),
};

test("a transfer of a sum carries the ranks that are in it, and an arrival that adds says so", () => {
  const buffers = new Buffers(SCENE);
  assert.deepEqual([...buffers.parts], [[0, [0]], [1, [0, 1]]]);
  assert.deepEqual(buffers.givers, [3]);
  assert.deepEqual(buffers.arrivals.map(({ device: at, adds }) => [at, adds]), [["b", true], ["c", true]]);
});

test("terms that a send names are what it carries", () => {
  const buffers = new Buffers({ ...SCENE, terms: [{ ranks: [1], label: "" }], carried: [-1, 0] });
  assert.deepEqual(buffers.parts.get(1), [1]);
});

test("a pie has a slice for each rank, and of too many ranks only how many are in", () => {
  assert.deepEqual(slices([0, 2], 4, 4), { colors: [OKABE_ITO[0], OKABE_ITO[2]], share: 1 });
  assert.deepEqual(slices([0, 1], 32, 32), { colors: [], share: 1 / 16 });
});

test("a ring spreads from an addition for a while", () => {
  const { arrivals } = new Buffers(SCENE);
  const at = (time) => recent(arrivals, time, 4).map(({ device: name, age }) => [name, age]);
  assert.deepEqual([at(9), at(10), at(12), at(14), at(21)], [[], [["b", 0]], [["b", 0.5]], [], [["c", 0.25]]]);
});

test("of two additions to one cell only the last has a ring, which stays about its cell", () => {
  const twice = [1, 2].map((time) => ({ time, device: "c", chunk: 0, level: time / 2, adds: true }));
  assert.deepEqual(recent(twice, 3, 4).map(({ time }) => time), [2]);
  const area = { x: 0, y: 0, width: 60, height: 24 };
  for (const cell of [{ x: 0, y: 0, width: 2, height: 2 }, { x: 45, y: 12, width: 14, height: 11 }, area]) {
    for (const far of [0, 0.5, 1]) {
      const { x, y, width, height } = ringAround(cell, area, far);
      assert.ok(width <= cell.width * 1.8 && height <= cell.height * 1.8);
      assert.ok(x >= -2 && y >= -2 && x + width <= 62 && y + height <= 26);
    }
  }
});

test("the view comes nearer to a place without going beyond it, however long a frame is", () => {
  const [from, to] = [{ x: 0, y: 0 }, { x: 100, y: 50 }];
  const { x, y } = eased(from, to, 0.1);
  assert.ok(x > 0 && x < 100 && Math.abs(y - x / 2) < 1e-9);
  assert.ok(eased(from, to, 10).x <= 100);
  const twice = eased(eased(from, to, 0.05), to, 0.05);
  assert.ok(Math.abs(twice.x - x) < 1e-9);
});
