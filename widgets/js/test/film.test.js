import assert from "node:assert/strict";
import { test } from "node:test";

import { plan } from "../src/film.js";
import { webm } from "../src/webm.js";

const PLAYBACK = /** @type {any} */ ({ makespan: 40, phases: [{ start: 0, label: "reduce-scatter" }, { start: 20, label: "all-gather" }] });

test("every frame has its own time: it stands 0.8 s at the start and at the end, and plays between", () => {
  const { times, chapters } = plan(PLAYBACK, 2, 10);
  assert.equal(times.length, 36);
  assert.deepEqual([times[0], times[8], times[18], times[28], times[35]].map((each) => Math.round(each)), [0, 0, 20, 40, 40]);
  assert.deepEqual(chapters, [{ start: 0, label: "reduce-scatter" }, { start: 1800, label: "all-gather" }]);
});

/** The elements of a level: id in hex, and payload. */
function elements(bytes) {
  const found = [];
  for (let at = 0; at < bytes.length; ) {
    let length = 1;
    while (!(bytes[at] & (0x80 >> (length - 1)))) length++;
    const id = [...bytes.slice(at, at + length)].map((each) => each.toString(16).padStart(2, "0")).join("");
    let size = 0;
    for (const each of bytes.slice(at + length + 1, at + length + 8)) size = size * 256 + each;
    const begin = at + length + 8;
    found.push({ id, at, payload: bytes.slice(begin, begin + size) });
    at = begin + size;
  }
  return found;
}

test("a file has its chapters, and its cues point at the clusters, which begin with key frames", () => {
  const frames = Array.from({ length: 5 }, (_, i) => ({ data: new Uint8Array([i, i]), time: i * 100, key: i % 2 === 0 }));
  const about = { width: 1920, height: 1080, codec: /** @type {"V_VP9"} */ ("V_VP9"), title: "Ring", duration: 500 };
  const file = webm(frames, { ...about, chapters: [{ start: 0, label: "one" }, { start: 200, label: "two" }] });
  const [header, segment] = elements(file);
  assert.deepEqual([header.id, segment.id], ["1a45dfa3", "18538067"]);
  const inside = elements(segment.payload);
  assert.deepEqual(inside.map(({ id }) => id), ["1549a966", "1654ae6b", "1043a770", "1c53bb6b", ...Array(3).fill("1f43b675")]);
  const labels = new TextDecoder().decode(inside[2].payload);
  assert.ok(labels.includes("one") && labels.includes("two"));
  const number = (bytes) => bytes.reduce((sum, each) => sum * 256 + each, 0);
  const cues = elements(inside[3].payload).map(({ payload }) => number(elements(elements(payload)[1].payload)[1].payload));
  assert.deepEqual(cues, inside.slice(4).map(({ at }) => at));
  const blocks = inside.slice(4).map(({ payload }) => elements(payload).slice(1).map((each) => each.payload));
  assert.deepEqual(blocks.map((each) => each.map((payload) => payload[3])), [[0x80, 0], [0x80, 0], [0x80]]);
});
