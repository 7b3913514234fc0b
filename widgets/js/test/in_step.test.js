import assert from "node:assert/strict";
import { test } from "node:test";
import { Hand, Lead } from "../src/in_step.js";

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
