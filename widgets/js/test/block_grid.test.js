import assert from "node:assert/strict";
import { test } from "node:test";
import { columnsFor, middleOf } from "../src/block_grid.js";
import { boxesOf, waysOf } from "../src/elements.js";
import { groupsOf, hostKey, shownOf } from "../src/folding.js";
import { centre, coveredParts, curveBetween, overlap } from "../src/geometry.js";
import { wholeDrawing } from "../src/model.js";
import { racksOf } from "../src/pods.js";

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
  for (const { key, members } of racks) stood.set(key, middleAt(members, drawing.positions));
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
function middleAt(members, positions) {
  const places = members.map(({ name }) => positions[name]);
  const [xs, ys] = [0, 1].map((i) => places.map((place) => place[i]));
  return centre({ x1: Math.min(...xs), x2: Math.max(...xs), y1: Math.min(...ys), y2: Math.max(...ys) });
}

/** Hosts of eight GPUs in one row, each a column, with eight rails in the middle and a spine above. */
function railed(count) {
  const devices = [];
  const links = [];
  const positions = { spine: [95 * count, 0] };
  const duplex = (src, dst) => links.push({ src, dst, bandwidth: 25 }, { src: dst, dst: src, bandwidth: 25 });
  for (let h = 0; h < count; h++) {
    for (let g = 0; g < 8; g++) {
      devices.push({ name: `g${8 * h + g}`, kind: "gpu", host: `h${h}` });
      positions[`g${8 * h + g}`] = [190 * h + (h < count / 2 ? 0 : 190), 334 + 150 * g];
      if (g) duplex(`g${8 * h + g - 1}`, `g${8 * h + g}`);
    }
  }
  for (let r = 0; r < 8; r++) {
    devices.push({ name: `rail${r}`, kind: "switch", host: null });
    positions[`rail${r}`] = [95 * count, 334 + 150 * r];
    for (let h = 0; h < count; h++) duplex(`g${8 * h + r}`, `rail${r}`);
    duplex(`rail${r}`, "spine");
  }
  devices.push({ name: "spine", kind: "switch", host: null });
  return wholeDrawing({ topology: { name: "rails", devices, links }, positions });
}

/** A torus of planes of two by two hosts, each of two GPUs, that stand beside one another. */
function planes(count) {
  const devices = [];
  const links = [];
  const positions = {};
  const duplex = (src, dst) => links.push({ src, dst, bandwidth: 45 }, { src: dst, dst: src, bandwidth: 45 });
  for (let h = 0; h < 4 * count; h++) {
    const [plane, column, row] = [h >> 2, h & 1, (h >> 1) & 1];
    for (const g of [0, 1]) {
      devices.push({ name: `g${2 * h + g}`, kind: "gpu", host: `h${h}` });
      positions[`g${2 * h + g}`] = [600 * plane + 260 * column + 100 * g, 450 * row - 110 * column];
      duplex(`g${2 * h + g}`, `g${(2 * h + g + 8) % (8 * count)}`);
    }
    duplex(`g${2 * h}`, `g${2 * h + 1}`);
    if (!column) duplex(`g${2 * h + 1}`, `g${2 * h + 2}`);
    if (!row) duplex(`g${2 * h}`, `g${2 * h + 4}`);
  }
  return wholeDrawing({ topology: { name: "torus", devices, links }, positions });
}
const allFolded = (drawing) => new Set(keysOf(groupsOf(drawing.topology)));
const hostsOf = (shown) => shown.groups.filter(({ host }) => host !== null);
/** Width over height of all that is shown. */
function shapeOf(shown) {
  const boxes = [...boxesOf(shown).values()];
  const [x1, y1] = ["x1", "y1"].map((side) => Math.min(...boxes.map((box) => box[side])));
  const [x2, y2] = ["x2", "y2"].map((side) => Math.max(...boxes.map((box) => box[side])));
  return (x2 - x1) / (y2 - y1);
}
function assertApart(shown) {
  const boxes = [...boxesOf(shown).values()];
  boxes.forEach((a, i) => assert.ok(boxes.slice(0, i).every((b) => !overlap(a, b))));
}

test("a row of hosts that would be a strip fills the canvas, read row by row, below its switches", () => {
  for (const [count, rows] of [[8, 2], [12, 3], [16, 4]]) {
    const drawing = railed(count);
    const shown = shownOf(drawing, allFolded(drawing));
    const lines = linesOf(hostsOf(shown).map(({ key }) => shown.positions[key]));
    assert.equal(lines.length, rows);
    for (const [, xs] of lines) assert.deepEqual(xs, lines[0][1]);
    assert.deepEqual(lines.map(([y]) => y), lines.map(([y]) => y).toSorted((p, q) => p - q));
    const rails = shown.positions[shown.groups.find(({ host }) => host === null).key];
    assert.ok(shown.positions.spine[1] < rails[1] && rails[1] < lines[0][0]);
    assert.ok(shapeOf(shown) > 0.7 && shapeOf(shown) < 2.1, `${count} hosts: ${shapeOf(shown)}`);
    assertApart(shown);
  }
});

test("switches that nothing stands above or below come between two halves of the hosts", () => {
  const whole = railed(16);
  const drawing = wholeDrawing({
    ...whole,
    topology: {
      ...whole.topology, devices: whole.topology.devices.filter(({ name }) => name !== "spine"),
      links: whole.topology.links.filter(({ src, dst }) => src !== "spine" && dst !== "spine"),
    },
  });
  const shown = shownOf(drawing, allFolded(drawing));
  const { y } = { y: shown.positions[shown.groups.find(({ host }) => host === null).key][1] };
  const heights = hostsOf(shown).map(({ key }) => shown.positions[key][1]);
  assert.equal(heights.filter((each) => each < y).length, 8);
  assertApart(shown);
});

test("planes of a torus stand in two tiers, read to and fro, and links from one to the other pass no host", () => {
  const drawing = planes(4);
  const shown = shownOf(drawing, allFolded(drawing));
  const at = (h) => shown.positions[`\u0002h${h}`];
  assert.ok(shapeOf(shown) < 2.6, String(shapeOf(shown)));
  assertApart(shown);
  for (const [above, below] of [[0, 12], [1, 13], [2, 14], [4, 8], [7, 11]]) {
    assert.ok(Math.abs(at(above)[0] - at(below)[0]) < 1e-6 && at(above)[1] < at(below)[1]);
  }
  const { routes } = waysOf(shown);
  const boxes = boxesOf(shown);
  for (const line of shown.lines) {
    const curve = curveBetween(boxes.get(line.a), boxes.get(line.b), routes.get(line.id));
    const others = [...boxes].filter(([end]) => end !== line.a && end !== line.b).map(([, box]) => box);
    assert.equal(coveredParts(curve, others), null, `${line.a} to ${line.b}`);
  }
});

test("few hosts, and such as fill a canvas as they stand, stay where they are", () => {
  const rowsOf = (drawing) => {
    const shown = shownOf(drawing, allFolded(drawing));
    return linesOf(hostsOf(shown).map(({ key }) => shown.positions[key])).map(([, xs]) => xs.length);
  };
  assert.deepEqual(rowsOf(railed(4)), [4]);
  const square = railed(20);
  for (const { name, host } of square.topology.devices.filter((d) => d.host !== null)) {
    const h = Number(host.slice(1));
    square.positions[name] = [300 * (h % 5), 2000 + 1500 * Math.floor(h / 5) + 150 * (Number(name.slice(1)) % 8)];
  }
  assert.deepEqual(rowsOf(square), [5, 5, 5, 5]);
});

test("a drawing whose hosts are mostly open stands as it was drawn", () => {
  const drawing = railed(16);
  const most = [...allFolded(drawing)].slice(0, 7);
  const shown = shownOf(drawing, new Set(most));
  assert.equal(linesOf(hostsOf(shown).map(({ key }) => shown.positions[key])).length, 1);
});

test("a host that is opened stays in its cell, and one that is dragged leaves the others where they are", () => {
  const drawing = railed(16);
  const folded = allFolded(drawing);
  const shown = shownOf(drawing, new Set([...folded].filter((key) => key !== hostKey("h5"))));
  assertApart(shown);
  assert.equal(linesOf(hostsOf(shown).map(({ key }) => shown.positions[key])).length, 4);
  const before = shownOf(drawing, folded);
  const items = [...groupsOf(drawing.topology).filter(({ host }) => host), ...drawing.topology.devices.filter(({ host }) => host === null).map((d) => ({ key: d.name, members: [d] }))];
  const stood = new Map(items.map((item) => [item.key, middleOf(item, drawing)]));
  const [x, y] = before.positions[hostKey("h5")];
  const way = before.wayOf({ x, y }, { x: x + 40, y: y + 70 });
  const positions = { ...drawing.positions };
  for (const { name } of drawing.topology.devices.filter(({ host }) => host === "h5")) positions[name] = [positions[name][0] + way[0], positions[name][1] + way[1]];
  const after = shownOf({ ...drawing, positions }, folded, stood).positions;
  assert.deepEqual(Object.keys(after).filter((key) => after[key].join() !== before.positions[key].join()), [hostKey("h5")]);
  assert.ok(after[hostKey("h5")][0] > x && after[hostKey("h5")][1] > y);
});
