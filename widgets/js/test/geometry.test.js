import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { hostRects } from "../src/arrange.js";
import {
  MANY_LINKS, MOST_COVERED, boxesOf, lineWidth, waysOf, withoutEnds,
} from "../src/elements.js";
import { MOST_DEVICES, counts, groupsOf, hostKey, shownOf } from "../src/folding.js";
import {
  bendAround, borderPoint, columns, coveredParts, curveBetween, pointOn, rectAt, within,
} from "../src/geometry.js";
import { wholeDrawing } from "../src/model.js";
import { shortName } from "../src/names.js";
import { outline, regionOf } from "../src/region.js";
import { OKABE_ITO, between, originColor } from "../src/style.js";

const box = (x, y) => rectAt([x, y], "gpu");

test("players stand in the columns in which their drawings are largest", () => {
  const room = { width: 1400, height: 560 };
  const [square, wide, tall] = [{ w: 300, h: 300 }, { w: 900, h: 200 }, { w: 200, h: 600 }];
  assert.deepEqual([2, 3, 4].map((count) => columns(count, room, square)), [2, 3, 4]);
  assert.deepEqual([2, 3, 4].map((count) => columns(count, room, wide)), [1, 3, 2]);
  assert.deepEqual([2, 3, 4].map((count) => columns(count, room, tall)), [2, 3, 4]);
  assert.equal(columns(3, { width: 380, height: 900 }, square), 1, "on a small screen one below the other");
});

test("a link begins at the border of its device", () => {
  assert.deepEqual(borderPoint(box(0, 0), { x: 500, y: 0 }), { x: 39, y: 0 });
  const curve = curveBetween(box(0, 0), box(300, 0));
  assert.deepEqual([curve.a.x, curve.b.x, curve.length], [39, 261, 222]);
});

test("each direction travels on its right", () => {
  const curve = curveBetween(box(0, 0), box(300, 0));
  assert.deepEqual(pointOn(curve, 0.5, 5), { x: 150, y: 5 });
  assert.deepEqual(pointOn(curve, 0.5, -5), { x: 150, y: -5 });
});

test("a link bends around a device in its way and stays straight else", () => {
  const [p, q] = [{ x: 0, y: 0 }, { x: 400, y: 0 }];
  assert.equal(bendAround(p, q, [box(200, 200)]), 0);
  const bend = bendAround(p, q, [box(200, 0)]);
  assert.notEqual(bend, 0);
  const curve = curveBetween(box(0, 0), box(400, 0), bend);
  for (let t = 0; t <= 1; t += 0.02) assert.ok(!within(box(200, 0), pointOn(curve, t)));
});

test("it bends away from neighbours when it can", () => {
  const [p, q] = [{ x: 0, y: 0 }, { x: 400, y: 0 }];
  assert.ok(bendAround(p, q, [box(200, 0), box(200, 70)]) < 0);
  assert.ok(bendAround(p, q, [box(200, 0), box(200, -70)]) > 0);
});

/** Whether a point lies in a region, by counting borders to its left. */
const inside = (loops, { x, y }) =>
  loops.reduce((sum, loop) => sum + loop.filter((p, i) => {
    const q = loop[(i + 1) % loop.length];
    return (p.y > y) !== (q.y > y) && p.x + ((y - p.y) / (q.y - p.y)) * (q.x - p.x) < x;
  }).length, 0) % 2 === 1;

test("a region holds its members and leaves the others out", () => {
  const members = [box(0, 0), box(400, 0), box(0, 300)];
  const others = [box(200, 0), box(400, 300), box(200, 150)];
  const loops = outline(members, others);
  const middle = (r) => ({ x: (r.x1 + r.x2) / 2, y: (r.y1 + r.y2) / 2 });
  assert.ok(members.every((r) => inside(loops, middle(r))));
  assert.ok(others.every((r) => !inside(loops, middle(r))));
});

test("with nobody near it is a rounded rectangle, of nobody nothing", () => {
  assert.equal(outline([box(0, 0), box(100, 0)], [box(900, 0)]).length, 1);
  assert.deepEqual(outline([], [box(0, 0)]), []);
});

test("origins have colours of their own, none of them the bottleneck's", () => {
  for (const origins of [8, 9, 64]) {
    const colors = Array.from({ length: origins }, (_, i) => originColor(i, origins));
    assert.equal(new Set(colors).size, origins);
    assert.ok(!colors.some((color) => color.toLowerCase() === "#d55e00"));
  }
  assert.equal(originColor(3, 8), OKABE_ITO[3]);
  assert.equal(between("#000000", "#ffffff", 0.5), "rgb(128,128,128)");
});

// ---- drawings that Python lays out alike: `tests/widgets/test_geometry.py` reads the same file --------

const DRAWINGS = new URL("./drawings.json", import.meta.url);
const drawings = JSON.parse(readFileSync(DRAWINGS, "utf8"));

/** A drawing of the file: devices by name, kind and host, links by the numbers of their ends. */
function drawingOf({ devices, links, positions }) {
  const named = devices.map(([name, kind, host = null]) => ({ name, kind, host }));
  return wholeDrawing({
    topology: {
      devices: named,
      links: links.map(([src, dst, bandwidth]) => ({ src: named[src].name, dst: named[dst].name, bandwidth })),
    },
    positions: Object.fromEntries(named.map(({ name }, i) => [name, positions.slice(2 * i, 2 * i + 2)])),
  });
}

/** Keys of the groups that are folded: those of the hosts that are named, of a large drawing all. */
function foldedIn({ topology }, hosts) {
  if (hosts) return new Set(hosts.map(hostKey));
  return new Set(topology.devices.length > MOST_DEVICES ? groupsOf(topology).map(({ key }) => key) : []);
}

/**
 * Everything of a drawing that is computed, as numbers. A line has its width and length, a point of its
 * right lane, its ends, the control point where it is bent, and before them which parts are covered.
 */
function geometryOf(given) {
  const drawing = drawingOf(given);
  const shown = shownOf(drawing, foldedIn(drawing, given.folded));
  const boxes = boxesOf(shown);
  const hosts = hostRects(shown, boxes);
  const { routes, dots } = waysOf(shown);
  const cover = shown.lines.length + boxes.size + hosts.size <= MOST_COVERED;
  const line = (each) => {
    const curve = curveBetween(boxes.get(each.a), boxes.get(each.b), routes.get(each.id));
    const width = lineWidth(each, shown.lines.length > MANY_LINKS);
    const covered = cover ? coveredParts(curve, withoutEnds(boxes, each)) : null;
    const points = [pointOn(curve, 0.3, width / 2 + 3.2), curve.a, curve.b, ...(curve.c ? [curve.c] : [])];
    const numbers = [width, curve.length, ...points.flatMap(({ x, y }) => [x, y])];
    return covered ? [covered.map(Number).join(""), ...numbers] : numbers;
  };
  const rect = (end) => boxes.get(end);
  const regions = given.cuts.map((cut) =>
    regionOf(cut.map((i) => given.devices[i][0]), {
      topology: drawing.topology, shown, rect, hostRect: (host) => hosts.get(host),
    }).map((loop) => loop.flatMap(({ x, y }) => [x, y])));
  return {
    labels: shown.devices.map(shortName),
    groups: shown.groups.map((group) => [group.title, counts(group)]),
    places: [...shown.groups.map(({ key }) => key), ...shown.devices.map(({ name }) => name)].flatMap((end) => shown.positions[end]),
    hosts: [...hosts].map(([name, { x1, y1, x2, y2 }]) => [name, x1, y1, x2, y2]),
    lines: shown.lines.map(line),
    regions,
    dots: dots.map(({ x, y }) => [x, y]),
  };
}

/** Whether two values are alike, numbers within a millionth. */
function alike(found, wanted) {
  if (typeof wanted === "number") return Math.abs(found - wanted) < 1e-6;
  if (typeof wanted !== "object") return found === wanted;
  const keys = Object.keys(wanted);
  return keys.length === Object.keys(found).length && keys.every((key) => alike(found[key], wanted[key]));
}

/** Numbers in six places. */
const rounded = (key, value) => (typeof value === "number" ? Number(value.toFixed(6)) : value);

// `UPDATE=1 node --test` writes what the canvas makes of the drawings into the file.
if (process.env.UPDATE) {
  const rows = drawings.map((each) => JSON.stringify({ ...each, geometry: geometryOf(each) }, rounded));
  writeFileSync(DRAWINGS, `[\n${rows.join(",\n")}\n]\n`);
}

for (const { geometry, ...given } of process.env.UPDATE ? [] : drawings) {
  test(`curves, regions and folds stand where they stood: ${given.name}`, () => {
    const found = geometryOf(given);
    for (const part of Object.keys(geometry)) assert.ok(alike(found[part], geometry[part]), part);
  });
}
