import assert from "node:assert/strict";
import { test } from "node:test";
import { Buffers } from "../src/buffers.js";
import { wholeTopology } from "../src/model.js";
import { Hand, Lead } from "../src/pair_time.js";
import { Clock, Playback } from "../src/player.js";
import { epochsAt } from "../src/timeline.js";
import { follows, offer, transition } from "../src/transport.js";

/** Chunk 0 goes a -> b -> c; a link takes 8 µs and 2 µs of latency. */
const chain = (changes = {}) => ({
  topology: wholeTopology({
    devices: ["a", "b", "c"].map((name) => ({ name, kind: "gpu" })),
    links: [["a", "b"], ["b", "c"]].map(([src, dst]) => ({ src, dst, bandwidth: 10, alpha: 2 })),
  }),
  chunks: [{ origin: 0, label: "0", size: 80_000 }],
  holds: { a: [0] },
  transfers: [[0, "a", "b", 0, 10, 1], [0, "b", "c", 10, 20, 1]],
  makespan: 20,
  epoch_duration: 8,
  epochs: 3,
  sentences: ["", "", ""],
  title: "chain",
  ...changes,
});

test("a chunk is on a link from its first byte until its last has arrived", () => {
  const playback = new Playback(chain());
  const ends = (time) => playback.inFlight(time).map(({ src, dst }) => src + dst);
  assert.deepEqual([0, 9.9, 10, 19.9, 20].map(ends), [["ab"], ["ab"], ["bc"], ["bc"], []]);
});

test("a chunk is on its way through epochs in which only its latency passes", () => {
  const scene = chain({ transfers: [[0, "a", "b", 0, 24, 1]], makespan: 24 });
  scene.topology.links[0].alpha = 21;
  const playback = new Playback(scene);
  assert.deepEqual([...playback.busy], [3 / 8, 0, 0]);
  assert.deepEqual([2, 9, 23.9].map((time) => playback.inFlight(time).length), [1, 1, 1]);
});

test("latency does not keep a link busy, and the last epoch is as long as it lasts", () => {
  const playback = new Playback(chain());
  assert.deepEqual([...playback.busy], [1, 0.75, 0.5]);
  assert.equal(playback.load(0).get("a\u0001b"), 1);
  assert.equal(playback.load(1).has("a\u0001b") && playback.load(1).get("a\u0001b"), 0);
});

test("the load of the whole run is the share of it during which a link sends", () => {
  const { loadOfRun } = new Playback(chain());
  assert.deepEqual([...loadOfRun], [["a\u0001b", 0.4], ["b\u0001c", 0.4]]);
});

test("the use of a cut is the bytes that leave it over what could", () => {
  const cut = { inside: ["a"], links: [["a", "b"]], bandwidth: 20, makespan: 0, label: "" };
  assert.deepEqual([...new Playback(chain()).crossing(cut)], [0.5, 0, 0]);
});

test("the end of the film belongs to the last epoch and ends it", () => {
  const playback = new Playback(chain());
  assert.equal(playback.epochAt(20), 2);
  assert.deepEqual([0, 8, 19.9, 20].map((time) => playback.epochsDone(time)), [0, 1, 2, 3]);
});

test("while an epoch runs it is named, between two those that are over are counted", () => {
  const playback = new Playback(chain());
  assert.deepEqual([0, 3, 8, 19.9, 20].map((time) => epochsAt(playback, time, true)), ["0 of 3 epochs", "Epoch 1 of 3", "1 of 3 epochs", "Epoch 3 of 3", "3 of 3 epochs"]);
  assert.deepEqual([3, 8].map((time) => epochsAt(playback, time, false)), ["Epoch 1", "1 epoch"]);
});

test("a buffer fills when the chunk has arrived, and empties when time runs back", () => {
  const buffers = new Buffers(chain());
  const held = (time) => ["a", "b", "c"].map((name) => buffers.seek(time).get(name)[0]);
  assert.deepEqual([0, 9.9, 10, 20, 5].map(held), [[1, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 0, 0]]);
});

test("what arrives with the end is there at the end, though its time is written with eight digits", () => {
  const end = 3500 / 3;
  const buffers = new Buffers(chain({ transfers: [[0, "a", "b", 0, 10, 1], [0, "b", "c", 10, 1166.6667, 1]], makespan: end }));
  assert.equal(buffers.seek(end).get("c")[0], 1);
  assert.equal(buffers.seek(end - 0.01).get("c")[0], 0);
});

test("fractions of a chunk add up to it", () => {
  const parts = [0.5, 0.25, 0.25].map((part, i) => [0, "a", "b", i, i + 1, part]);
  const buffers = new Buffers(chain({ transfers: parts }));
  assert.deepEqual([1, 2, 3].map((time) => buffers.seek(time).get("b")[0]), [0.5, 0.75, 1]);
});

test("of a sum it shows the share of contributions, and who contributed travels along", () => {
  const buffers = new Buffers(chain({
    chunks: [{ origin: 2, label: "sum", size: 80_000, reduced: true }],
    holds: { a: [0], b: [0], c: [0] },
  }));
  const level = (time, name) => Math.round(buffers.seek(time).get(name)[0] * 3);
  assert.deepEqual([level(0, "a"), level(0, "b"), level(0, "c")], [1, 1, 1]);
  assert.deepEqual([level(10, "b"), level(20, "b"), level(20, "c"), level(20, "a")], [2, 2, 3, 1]);
});

test("a send that names its terms brings these alone, though its source has more", () => {
  const scene = chain({
    chunks: [{ origin: 0, label: "sum 0", size: 80_000, reduced: true }],
    holds: { a: [0], b: [0], c: [0] },
    transfers: [[0, "a", "b", 0, 10, 1], [0, "b", "c", 12, 22, 1], [0, "b", "c", 22, 32, 1]],
    terms: [{ ranks: [1], label: "rank 1" }, { ranks: [0], label: "rank 0" }],
    carried: [-1, 0, 1],
    makespan: 32,
  });
  const buffers = new Buffers(scene);
  const levels = [0, 22, 32].map((time) => Math.round(buffers.seek(time).get("c")[0] * 3));
  assert.deepEqual(levels, [1, 2, 3]);
});

test("the clock plays as fast as told and stops at the end", () => {
  const clock = new Clock(20, 8, 2);
  clock.toggle();
  clock.advance(0.5);
  assert.equal(clock.time, 8);
  clock.speed = 0.5;
  clock.advance(1);
  assert.equal(clock.time, 16);
  clock.advance(10);
  assert.deepEqual([clock.time, clock.playing], [20, false]);
  clock.toggle();
  assert.deepEqual([clock.time, clock.playing], [0, true]);
});

test("steps land on whole epochs, both ways, and on the end", () => {
  const clock = new Clock(20, 8);
  clock.seek(10);
  const at = (by) => (clock.step(by), clock.time);
  assert.deepEqual([at(1), at(1), at(1), at(-1), at(-1), at(-1), at(-1)], [16, 20, 20, 16, 8, 0, 0]);
});

test("a clock without a film does not run", () => {
  const clock = new Clock(0, 1);
  clock.toggle(true);
  assert.equal(clock.playing, false);
});

/** Films of 30 µs in epochs of 10 and of 45 µs in epochs of 20. */
const FAST = { makespan: 30, step: 10, epochs: 3 };
const SLOW = { makespan: 45, step: 20, epochs: 3 };

function pair() {
  let changes = 0;
  const lead = new Lead(() => (changes += 1));
  lead.load([FAST, SLOW]);
  return { lead, hands: [new Hand(lead, FAST), new Hand(lead, SLOW)], changes: () => changes };
}

const times = (hands) => hands.map((hand) => hand.time);

test("both films are at the same time until the faster one ends and waits", () => {
  const { lead, hands } = pair();
  lead.seek(12);
  assert.deepEqual(times(hands), [12, 12]);
  lead.seek(40);
  assert.deepEqual(times(hands), [30, 40]);
});

test("the longer film sets the pace: 45 µs in the 3 s of its 3 epochs", () => {
  const { lead } = pair();
  lead.toggle(true);
  lead.advance(1);
  assert.equal(lead.time, 15);
  lead.speed = 2;
  lead.advance(0.5);
  assert.equal(lead.time, 30);
  lead.advance(10);
  assert.deepEqual([lead.time, lead.playing], [45, false]);
});

test("steps stop at every epoch and at every end, both ways", () => {
  const { lead } = pair();
  const forth = [];
  for (let i = 0; i < 7; i++) {
    lead.step(1);
    forth.push(lead.time);
  }
  assert.deepEqual(forth, [10, 20, 30, 40, 45, 45, 45]);
  const back = [];
  for (let i = 0; i < 6; i++) {
    lead.step(-1);
    back.push(lead.time);
  }
  assert.deepEqual(back, [40, 30, 20, 10, 0, 0]);
});

test("either film's controls move both, and its end is the end of both", () => {
  const { lead, hands, changes } = pair();
  hands[0].toggle();
  assert.equal(hands[1].playing, true);
  hands[0].seek(hands[0].end);
  assert.equal(lead.time, 45);
  hands[1].seek(5);
  assert.deepEqual(times(hands), [5, 5]);
  assert.equal(changes(), 3);
});

test("from the end it starts over, and another film does not move the time", () => {
  const { lead } = pair();
  lead.seek(45);
  lead.toggle();
  assert.deepEqual([lead.time, lead.playing], [0, true]);
  lead.seek(20);
  lead.load([FAST, { makespan: 90, step: 30, epochs: 3 }]);
  assert.deepEqual([lead.time, lead.end], [20, 90]);
  lead.load([FAST, { makespan: 12, step: 6, epochs: 2 }]);
  lead.seek(99);
  assert.equal(lead.time, 30);
});

test("without films nothing plays", () => {
  const lead = new Lead();
  lead.toggle();
  lead.step(1);
  assert.deepEqual([lead.playing, lead.time, lead.end], [false, 0, 0]);
});

const scene = (series, number, makespan) => ({ take: { series, number }, makespan });

test("a schedule follows another of the same solve only", () => {
  assert.equal(follows(scene("a", 1, 20), scene("a", 2, 15)), true);
  assert.equal(follows(scene("a", 1, 20), scene("b", 1, 15)), false);
  assert.equal(follows({ makespan: 20 }, { makespan: 15 }), false);
  assert.equal(follows(null, scene("a", 1, 20)), false);
});

test("a better schedule takes over, unless someone looks at a moment of the last", () => {
  const clock = (playing, time) => ({ playing, time, end: 20 });
  assert.equal(transition(clock(true, 7), false), "swap");
  assert.equal(transition(clock(false, 0), false), "swap");
  assert.equal(transition(clock(false, 7), false), "offer");
  assert.equal(transition(clock(false, 20), true), "replay");
  assert.equal(transition(clock(false, 20), false), "swap");
});

test("an offer says how much faster it is", () => {
  // 15 µs instead of 20 µs: a quarter less.
  assert.equal(offer(scene("a", 1, 20), scene("a", 2, 15)), "Schedule 2 is here: 15 µs, 25 % faster");
  assert.equal(offer(scene("a", 1, 20), scene("a", 2, 20)), "Schedule 2 is here: 20 µs");
});
