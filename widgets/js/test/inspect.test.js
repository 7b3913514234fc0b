import assert from "node:assert/strict";
import { test } from "node:test";
import { Span, barAt } from "../src/inspect/gantt.js";
import { cellAt, columnsIn } from "../src/inspect/grid.js";
import { Plan, fitting, matcher, missing, named, typed, whole } from "../src/inspect/plan.js";
import { reportOn, sentence } from "../src/inspect/report.js";
import { heightOf, packedIn, rowAt, rowsOf, seen, ticks } from "../src/inspect/rows.js";
import { wholeTopology } from "../src/model.js";
import { Playback } from "../src/player.js";

/**
 * Two chunks of a go to b one after the other, 8 µs each and 2 µs of latency, and the first one on to
 * c: chunk 1 is at a from the start and waits 8 µs for the link.
 */
const chain = (changes = {}) => ({
  topology: wholeTopology({
    devices: [["a", "h0"], ["b", "h0"], ["c", "h1"]].map(([name, host]) => ({ name, kind: "gpu", host })),
    links: [["a", "b"], ["b", "c"], ["c", "b"]].map(([src, dst]) => ({ src, dst, bandwidth: 10, alpha: 2 })),
  }),
  chunks: [0, 1].map((i) => ({ origin: 0, label: `chunk ${i} of a`, size: 80_000 })),
  holds: { a: [0, 1] },
  transfers: [[0, "a", "b", 0, 10, 1], [1, "a", "b", 8, 18, 1], [0, "b", "c", 10, 20, 0.5]],
  makespan: 20,
  epoch_duration: 12,
  epochs: 2,
  sentences: ["", ""],
  title: "chain",
  details: {
    rows: [[0, -1, 0, 0, 8], [1, 0, 0, 1, 16], [2, 0, 10, 3, 18]],
    reasons: ["at once", "busy", "came"],
    phrases: {
      "at once": "{chunk} leaves {src} at once.",
      busy: "{chunk} waits {wait} µs from {ready} to {start} behind {before} ({over}).",
      came: "{chunk} goes on to {dst} when it comes from {from}.",
      part: "{share} % of {chunk}",
      earlier: " Planned for epoch {epoch}, {planned} µs.",
    },
    critical: [0, 2],
  },
  ...changes,
});

const planOf = (changes) => new Plan(new Playback(chain(changes)));

test("a send knows its planned epoch and for how long what it carries had waited", () => {
  const { sends, planned, columns } = planOf();
  assert.deepEqual(sends.map(({ wait }) => wait), [0, 8, 0]);
  assert.deepEqual([planned, columns, sends.map(({ column }) => column)], [true, 4, [0, 1, 3]]);
});

test("a send of a sum is told with the ranks whose contributions it carries", () => {
  const plan = planOf({ terms: [{ ranks: [0, 1], label: "ranks 0 and 1" }], carried: [-1, 0, -1] });
  assert.match(sentence(plan, plan.sends[1]), /^chunk 1 of a of ranks 0 and 1 waits/);
  assert.match(sentence(plan, plan.sends[0]), /^chunk 0 of a leaves/);
});

test("a column has begun when a send of it or of a later one has", () => {
  const plan = planOf();
  assert.deepEqual([...plan.columnStarts], [0, 8, 10, 10]);
  assert.deepEqual([0, 7.9, 8, 9.9, 10, 20].map((time) => plan.columnAt(time)), [0, 0, 1, 1, 3, 3]);
});

test("without planned epochs the columns are the player's steps", () => {
  const plan = planOf({ details: null });
  assert.deepEqual([plan.planned, plan.columns, [...plan.columnStarts]], [false, 2, [0, 12]]);
  assert.deepEqual(plan.sends.map(({ column, wait }) => [column, wait]), [[0, 0], [0, 0], [0, 0]]);
});

test("the way of a chunk and the arrivals at a rank are in order of time", () => {
  const plan = planOf();
  assert.deepEqual(plan.pathOf(0).map(({ i }) => i), [0, 2]);
  assert.deepEqual(plan.arrivalsAt("b").map(({ end }) => end), [10, 18]);
  assert.deepEqual(plan.holders(1), ["a"]);
});

test("rows are the links that carry something, the ranks that receive, the chunks that move", () => {
  const plan = planOf();
  const titles = (by, only) => rowsOf(plan, { by, only }).map(({ title }) => title);
  assert.deepEqual(titles("links"), ["a → b", "b → c"]);
  assert.deepEqual(titles("ranks"), ["b", "c"]);
  assert.deepEqual(titles("chunks"), ["chunk 0 of a", "chunk 1 of a"]);
  assert.deepEqual(titles("links", ({ chunk }) => chunk === 1), ["a → b"]);
});

test("a link takes the next send when the last byte has entered it, a rank's row only when it has come", () => {
  const plan = planOf();
  assert.deepEqual(rowsOf(plan, { by: "links" }).map(({ lanes }) => lanes), [1, 1]);
  assert.deepEqual([...rowsOf(plan, { by: "ranks" })[0].lane], [0, 1]);
});

test("lanes are as many as sends go on at once, and one is used again when it is free", () => {
  const sends = [[0, 4], [1, 3], [3, 6], [4, 5]].map(([start, end]) => ({ start, end }));
  const { lane, lanes } = packedIn(sends, ({ end }) => end);
  assert.deepEqual([[...lane], lanes], [[0, 1, 1, 0], 2]);
});

test("only rows between two heights are seen", () => {
  const rows = Array.from({ length: 1000 }, (_, k) => ({ top: k * 20, height: 20 }));
  assert.equal(heightOf(rows), 20_000);
  assert.deepEqual([rowAt(rows, 0), rowAt(rows, 19.9), rowAt(rows, 20), rowAt(rows, 1e9)], [0, 0, 1, 999]);
  assert.deepEqual(seen(rows, 400, 500), [20, 26]);
  assert.deepEqual(seen([], 0, 100), [0, 0]);
});

test("a bar is found by its time and lane, a cell by its column", () => {
  const plan = planOf();
  const [row] = rowsOf(plan, { by: "links" });
  const found = (time) => barAt(row, { time, y: 10, slack: 0.5 })?.i ?? null;
  assert.deepEqual([found(4), found(17), found(18.4), found(19)], [0, 1, 1, null]);
  const columns = columnsIn({ x: 100, width: 200 }, { columns: 4, current: 0 });
  assert.equal(columns.each, 30);
  assert.deepEqual([cellAt(row, columns, { x: 135, y: 5 }).send.i, cellAt(row, columns, { x: 165, y: 5 }).send], [1, null]);
  assert.equal(cellAt(row, columns, { x: 225, y: 5 }), null);
});

test("columns that would be too narrow are shown page by page", () => {
  const pages = [0, 19, 20, 49].map((current) => columnsIn({ x: 0, width: 180 }, { columns: 50, current }));
  assert.deepEqual(pages.map(({ first, count }) => [first, count]), [[0, 20], [0, 20], [20, 20], [30, 20]]);
});

test("time and place are each other's inverse", () => {
  const span = new Span(5, 15, { x: 100, width: 200 });
  assert.deepEqual([span.place(5), span.place(10), span.time(300)], [100, 200, 15]);
});

test("ticks are round and not more than asked for", () => {
  assert.deepEqual(ticks(0, 20, 5), [0, 5, 10, 15, 20]);
  assert.deepEqual(ticks(3, 47, 3), [20, 40]);
  assert.deepEqual(ticks(0, 0, 3), [0]);
});

test("parts of a focus that are left out are nothing, and one without parts is none", () => {
  assert.equal(whole({ chunk: null }), null);
  assert.deepEqual(whole({ chunk: 0 }), { chunk: 0, link: null, rank: null, host: null, transfer: null });
});

test("what a plan does not have is said and left out", () => {
  const plan = planOf();
  const focus = whole({ chunk: 2, rank: 1, host: "h9", link: ["a", "c"], transfer: 3 });
  assert.deepEqual(missing(focus, plan), {
    chunk: "there is no chunk 2; they go from 0 to 1", transfer: "there is no transfer 3; they go from 0 to 2",
    host: "there is no host h9", link: "there is no link a → c",
  });
  assert.deepEqual(fitting(focus, plan), whole({ rank: 1 }));
});

test("parts of a focus narrow it together; a transfer alone narrows nothing", () => {
  const plan = planOf();
  const kept = (focus) => plan.sends.filter(matcher(whole(focus), plan)).map(({ i }) => i);
  assert.deepEqual([kept({ chunk: 0 }), kept({ rank: 0 }), kept({ host: "h1" }), kept({ link: ["a", "b"], chunk: 1 })], [[0, 2], [0, 1], [2], [1]]);
  assert.equal(matcher(whole({ transfer: 1 }), plan), null);
  assert.deepEqual(named(whole({ rank: 2, chunk: 1 }), plan), [{ part: "chunk", text: "chunk 1 of a" }, { part: "rank", text: "c" }]);
});

test("names, numbers and ends can be typed", () => {
  const plan = planOf();
  const said = ["1", "chunk 1", "Rank 2", "b", "h1", "a > b", "b→c", "b -> c", "chunk 0 of a", "a > c", "7", "z"].map((text) => typed(text, plan));
  assert.deepEqual(said, [
    { chunk: 1 }, { chunk: 1 }, { rank: 2 }, { rank: 1 }, { host: "h1" }, { link: ["a", "b"] }, { link: ["b", "c"] },
    { link: ["b", "c"] }, { chunk: 0 }, null, null, null,
  ]);
});

test("a sentence is the template of its reason with what happened", () => {
  const plan = planOf();
  assert.deepEqual(plan.sends.map((send) => sentence(plan, send)), [
    "chunk 0 of a leaves a at once.",
    "chunk 1 of a waits 8 µs from 0 to 8 behind chunk 0 of a (a → b). Planned for epoch 1, 12 µs.",
    "50 % of chunk 0 of a goes on to c when it comes from a. Planned for epoch 3, 36 µs.",
  ]);
});

test("without reasons a send is told by where and when", () => {
  const plan = planOf({ details: null });
  assert.equal(sentence(plan, plan.sends[1]), "a → b: chunk 1 of a, 8 – 18 µs");
});

test("the list has a chunk's way, a link's sends, a rank's arrivals, a host's, or the critical path", () => {
  const plan = planOf();
  const told = (focus) => {
    const { title, facts, sends } = reportOn(plan, whole(focus));
    return [title, facts, sends.map(({ i }) => i)];
  };
  assert.deepEqual(told({ chunk: 0 }), ["Path of chunk 0 of a", "80 KB, at first in a; 2 sends until 20 µs", [0, 2]]);
  assert.deepEqual(told({ link: ["a", "b"] }), ["a → b", "2 sends, busy 80 % of the time", [0, 1]]);
  assert.deepEqual(told({ rank: 1 }), ["Arrivals at b", "2 chunks in 2 sends, as they arrive", [0, 1]]);
  assert.deepEqual(told({ host: "h1" }), ["Into h1", "1 chunk in 1 send from elsewhere, as they arrive", [2]]);
  assert.deepEqual(told({ transfer: 1 })[0], "Path of chunk 1 of a");
  assert.deepEqual(told(null), ["Critical path", "2 sends that make the makespan of 20 µs", [0, 2]]);
});
