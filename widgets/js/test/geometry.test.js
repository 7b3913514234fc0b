import assert from "node:assert/strict";
import { test } from "node:test";
import { bendAround, borderPoint, curveBetween, pointOn, rectAt, within } from "../src/geometry.js";
import { outline } from "../src/region.js";
import { OKABE_ITO, between, originColor } from "../src/style.js";

const box = (x, y) => rectAt([x, y], "gpu");

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
