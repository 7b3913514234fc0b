import assert from "node:assert/strict";
import { test } from "node:test";
import { boxesOf } from "../src/elements.js";
import { groupsOf, shownOf } from "../src/folding.js";
import { centre, overlap } from "../src/geometry.js";
import { wholeDrawing } from "../src/model.js";
import { racksOf } from "../src/pods.js";
import { columnsFor } from "../src/rack_grid.js";

/** Hosts of eight GPUs, twelve in a row, and two switches at a height. */
function hostsIn(count, height) {
  const devices = [];
  const positions = {};
  for (let h = 0; h < count; h++) {
    for (let g = 0; g < 8; g++) {
      devices.push({ name: `g${8 * h + g}`, kind: "gpu", host: `h${h}` });
      positions[`g${8 * h + g}`] = [500 * (h % 12) + 100 * (g % 4), 400 * Math.floor(h / 12) + 100 * Math.floor(g / 4)];
    }
  }
  for (const [i, name] of ["leaf", "spine"].entries()) {
    devices.push({ name, kind: "switch", host: null });
    positions[name] = [2900 + 200 * i, height];
  }
  return wholeDrawing({ topology: { devices, links: [] }, positions });
}
const keysOf = (groups) => groups.map(({ key }) => key);
/** Everything folded: racks but for those that are open, and their hosts. */
function racked(drawing, open = []) {
  const racks = racksOf(drawing);
  const closed = racks.filter((_, i) => !open.includes(i));
  const within = new Set(closed.flatMap(({ members }) => members.map((d) => d.name)));
  const hosts = groupsOf(drawing.topology).filter(({ members }) => !members.some((d) => within.has(d.name)));
  return { racks, folded: new Set(keysOf([...closed, ...hosts])) };
}
/** Boxes in lines from left to right. */
function linesOf(places) {
  const rows = new Map();
  for (const [x, y] of places) rows.set(y, [...(rows.get(y) ?? []), x]);
  return [...rows.entries()];
}

test("a grid has as large boxes as a wide canvas lets it have, and full rows", () => {
  assert.deepEqual([[32], [16], [24], [4], [1]].map(columnsFor), [8, 4, 6, 2, 1]);
  assert.equal(columnsFor([16, 16]), 8);
});

test("racks are read row by row, below the switches", () => {
  const drawing = hostsIn(128, -300);
  const { racks, folded } = racked(drawing);
  const shown = shownOf(drawing, folded);
  const rows = linesOf(racks.map(({ key }) => shown.positions[key]));
  assert.deepEqual(rows.map(([, xs]) => xs.length), [8, 8, 8, 8]);
  for (const [, xs] of rows) assert.deepEqual(xs, rows[0][1]);
  assert.deepEqual(rows[0][1], rows[0][1].toSorted((p, q) => p - q));
  assert.deepEqual(rows.map(([y]) => y), rows.map(([y]) => y).toSorted((p, q) => p - q));
  assert.ok(shown.positions.leaf[1] < rows[0][0] && shown.positions.leaf[0] > rows[0][1][2] && shown.positions.spine[0] < rows[0][1][5]);
});

test("switches between racks stay between them", () => {
  const drawing = hostsIn(128, 2300);
  for (const name of Object.keys(drawing.positions)) if (drawing.positions[name][1] > 2100 && name[0] === "g") drawing.positions[name][1] += 400;
  const { racks, folded } = racked(drawing);
  const { positions } = shownOf(drawing, folded);
  const rows = linesOf(racks.map(({ key }) => positions[key]));
  assert.ok(rows.length < 7, "rows are longer than three");
  const above = rows.filter(([y]) => y < positions.leaf[1]).flatMap(([, xs]) => xs).length;
  assert.equal(above, racks.filter(({ members }) => drawing.positions[members[0].name][1] < 2300).length);
});

test("switches among racks leave them as they are", () => {
  const drawing = hostsIn(128, 450);
  const { racks, folded } = racked(drawing);
  assert.equal(linesOf(racks.map(({ key }) => shownOf(drawing, folded).positions[key]))[0][1].length, 3);
});

test("a rack that is opened has its hosts in its place, and nothing covers another", () => {
  const drawing = hostsIn(128, -300);
  const { racks, folded } = racked(drawing, [9]);
  const shown = shownOf(drawing, folded);
  const boxes = [...boxesOf(shown).values()];
  boxes.forEach((a, i) => assert.ok(boxes.slice(0, i).every((b) => !overlap(a, b))));
  const inside = shown.groups.filter(({ host }) => host !== null).map(({ key }) => shown.positions[key]);
  assert.equal(inside.length, 4);
  assert.equal(linesOf(inside).length, 1);
  const [left, right] = [8, 10].map((i) => shown.positions[racks[i].key]);
  assert.ok(inside.every(([x, y]) => y === left[1] && left[0] < x && x < right[0]));
});

test("a point of the screen leads to the drawing and back, and a rack that is dragged moves as far as it was", () => {
  const drawing = hostsIn(128, -300);
  const { racks, folded } = racked(drawing);
  const shown = shownOf(drawing, folded);
  for (const rack of [racks[0], racks[17], racks[31]]) {
    const there = shown.toDrawing({ x: shown.positions[rack.key][0], y: shown.positions[rack.key][1] });
    const [first, last] = [rack.members[0], rack.members.at(-1)].map(({ name }) => drawing.positions[name]);
    assert.ok(there.x > first[0] && there.x < last[0] && there.y >= first[1] && there.y <= last[1]);
    const again = shown.fromDrawing(there);
    assert.ok(Math.hypot(again.x - shown.positions[rack.key][0], again.y - shown.positions[rack.key][1]) < 1e-6);
  }
  const stood = new Map(racks.map(({ key }) => [key, { x: 0, y: 0 }]));
  for (const { key, members } of racks) stood.set(key, middleOf(members, drawing.positions));
  const [x, y] = shown.positions[racks[12].key];
  const way = shown.wayOf({ x, y }, { x: x + 30, y: y + 10 });
  const positions = { ...drawing.positions };
  for (const { name } of racks[12].members) positions[name] = [positions[name][0] + way[0], positions[name][1] + way[1]];
  const after = shownOf({ ...drawing, positions }, folded, stood).positions;
  const [dx, dy] = [after[racks[12].key][0] - x, after[racks[12].key][1] - y];
  assert.deepEqual([dx, dy].map(Math.round), [30, 10]);
  assert.deepEqual(racks.filter(({ key }) => after[key].join() !== shown.positions[key].join()).length, 1, "others stay");
});

/** The middle of devices. */
function middleOf(members, positions) {
  const places = members.map(({ name }) => positions[name]);
  const [xs, ys] = [0, 1].map((i) => places.map((place) => place[i]));
  return centre({ x1: Math.min(...xs), x2: Math.max(...xs), y1: Math.min(...ys), y2: Math.max(...ys) });
}
