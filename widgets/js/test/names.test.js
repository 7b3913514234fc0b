import assert from "node:assert/strict";
import { test } from "node:test";
import { hostKey } from "../src/folding.js";
import { FAR, roomsOf, sizesOf } from "../src/names.js";

/** Letters that are six tenths as wide as they are high. */
const measure = (text) => 0.6 * text.length;
const device = (name, kind) => ({ name, kind, host: null });
const shown = (devices, groups = []) => /** @type {any} */ ({ devices, groups });
const rack = (i) => ({ key: hostKey(`r${i}`), host: null, pod: true, title: `h${4 * i} … h${4 * i + 3}`, members: [device("g", "gpu")] });

test("folded boxes have one size, that of the longest name, which fits into its box", () => {
  const racks = Array.from({ length: 32 }, (_, i) => rack(i));
  const rooms = roomsOf(shown([], racks), true, measure);
  assert.equal(new Set(rooms.values()).size, 1);
  const size = sizesOf(rooms.get(racks[0].key), "block").near0;
  assert.ok(size * measure("h124 … h127") <= 164 - 10 && size > 15);
});

test("GPUs have one size, and switches with much shorter names than others a larger one", () => {
  const switches = ["nvswitch15", "nvswitch0", "rail0", "spine"].map((name) => device(name, "switch"));
  const rooms = roomsOf(shown([...["g0", "g16", "g127"].map((name) => device(name, "gpu")), ...switches]), false, measure);
  assert.equal(new Set(["g0", "g16", "g127"].map((name) => rooms.get(name))).size, 1);
  assert.equal(rooms.get("nvswitch15"), rooms.get("nvswitch0"));
  assert.equal(rooms.get("rail0"), rooms.get("spine"));
  assert.ok(rooms.get("rail0") > rooms.get("nvswitch0"));
});

test("from afar names of GPUs grow to what their boxes have room for, and near ones stay", () => {
  const of = (name, kind) => sizesOf(roomsOf(shown([device(name, kind)]), false, measure).get(name), "device", kind);
  const short = of("g127", "gpu");
  assert.equal(short.near0, 11);
  assert.ok(short.near4 * 0.42 >= 10.5, "at 42 %");
  assert.ok(short.near4 * measure("g127") <= 78 - 8);
  const long = of("accelerator12", "gpu");
  assert.deepEqual([0, 1, 2, 3, 4].map((i) => long[`near${i}`]), [11, 11, 11, 11, 11], "its end is left out");
  assert.ok(of("rail0", "switch").near4 <= 24, "a switch is low");
  assert.equal(FAR.length, 4);
});

test("above a buffer there is less room, and to a class names are larger", () => {
  const { full4, near4, large0 } = sizesOf(30, "device", "gpu");
  assert.ok(full4 < near4);
  assert.ok(large0 >= 1.6 * 11);
});
