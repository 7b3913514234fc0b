import assert from "node:assert/strict";
import { test } from "node:test";
import { begun, captionAt, epochCaption, marksHeight, momentBeside } from "../src/steps.js";

const ROWS = [{ start: 0, caption: "one" }, { start: 20, caption: "two" }, { start: 40, caption: "three" }];
const film = (changes = {}) => ({ steps: ROWS, phases: [], makespan: 60, ...changes });

test("a step has begun when the player is at its first send", () => {
  assert.deepEqual([0, 19.9, 20, 39.999999, 40, 60].map((time) => begun(ROWS, time, 60)), [1, 1, 2, 3, 3, 3]);
  assert.equal(begun([{ start: 5 }], 0, 60), 0);
});

test("stepping goes to where steps begin, and to the ends", () => {
  const on = (time, by) => momentBeside(ROWS, time, { by, makespan: 60 });
  assert.deepEqual([0, 5, 20, 40, 60].map((time) => on(time, 1)), [20, 20, 40, 60, 60]);
  assert.deepEqual([0, 5, 20, 25, 60].map((time) => on(time, -1)), [0, 0, 0, 20, 40]);
  assert.deepEqual([on(0, 2), on(0, 9), on(60, -2)], [40, 60, 20]);
});

test("a first step that begins late has the start before it", () => {
  const rows = [{ start: 5 }, { start: 20 }];
  assert.deepEqual([momentBeside(rows, 0, { by: 1, makespan: 60 }), momentBeside(rows, 5, { by: -1, makespan: 60 })], [5, 0]);
});

test("the caption says which step it is and what happens in it", () => {
  assert.equal(captionAt(film(), 25), "Step 2 of 3: two");
  assert.equal(captionAt(film(), 60), "All 3 steps are done");
  assert.equal(captionAt(film({ steps: [{ start: 5, caption: "late" }] }), 0), "Nothing has set out yet");
  assert.equal(captionAt(film({ steps: [] }), 25), "");
  assert.equal(captionAt(film({ makespan: 90 }), 50), "From step 3 on to the end: three");
});

test("a plan without steps has a caption of its epochs", () => {
  const scene = { sentences: ["2 chunks over 2 links\na sends 0 to b", "Nothing sets out; what is on its way arrives."] };
  const playback = film({ steps: [], scene, epochAt: (time) => Math.floor(time / 30) });
  assert.deepEqual([0, 30, 60].map((time) => epochCaption(playback, time)), [
    "In this epoch: 2 chunks over 2 links", "Nothing sets out; what is on its way arrives.", "Everything is where it is needed",
  ]);
});

test("a plan without steps and phases needs no more height", () => {
  const phases = [{ start: 0, label: "reduce-scatter" }, { start: 30, label: "all-gather" }];
  assert.equal(marksHeight(film({ steps: [] })), 0);
  assert.ok(marksHeight(film({ phases })) > marksHeight(film()));
});
