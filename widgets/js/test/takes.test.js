import assert from "node:assert/strict";
import { test } from "node:test";
import { fate, follows, words } from "../src/takes.js";

const scene = (series, number, makespan) => ({ take: { series, number }, makespan });

test("a schedule follows another of the same solve only", () => {
  assert.equal(follows(scene("a", 1, 20), scene("a", 2, 15)), true);
  assert.equal(follows(scene("a", 1, 20), scene("b", 1, 15)), false);
  assert.equal(follows({ makespan: 20 }, { makespan: 15 }), false);
  assert.equal(follows(null, scene("a", 1, 20)), false);
});

test("a better schedule takes over, unless someone looks at a moment of the last", () => {
  const clock = (playing, time) => ({ playing, time, end: 20 });
  assert.equal(fate(clock(true, 7), false), "swap");
  assert.equal(fate(clock(false, 0), false), "swap");
  assert.equal(fate(clock(false, 7), false), "offer");
  assert.equal(fate(clock(false, 20), true), "replay");
  assert.equal(fate(clock(false, 20), false), "swap");
});

test("an offer says how much faster it is", () => {
  // 15 µs instead of 20 µs: a quarter less.
  assert.equal(words(scene("a", 1, 20), scene("a", 2, 15)), "Schedule 2 is here: 15 µs, 25 % faster");
  assert.equal(words(scene("a", 1, 20), scene("a", 2, 20)), "Schedule 2 is here: 20 µs");
});
