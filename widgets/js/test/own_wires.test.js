import assert from "node:assert/strict";
import { test } from "node:test";
import { boxesOf, waysOf } from "../src/elements.js";
import { shownOf } from "../src/folding.js";
import { curveBetween, rectAt } from "../src/geometry.js";
import { endsKey, wholeDrawing } from "../src/model.js";
import { isOwn, ownWires } from "../src/own_wires.js";

/** Lines along corners, from the middle of a GPU to that of a hub; and how they run. */
function wired(routes) {
  const lines = Object.keys(routes).map((id) => ({ id }));
  return { lines, curveOf: ({ id }) => curveBetween(...routes[id]) };
}

/** Three GPUs 150 apart on one track 50 below them, which ends in a hub on the right. */
const hub = rectAt([600, 50], "switch");
const row = wired(Object.fromEntries([0, 1, 2].map((i) => [`g${i}`, [rectAt([150 * i, 0], "gpu"), hub, [{ x: 150 * i, y: 50 }]]])));

test("a link has its wire for itself to where the first other one joins", () => {
  const wires = ownWires(row.lines, new Map([["g0", false]]), row.curveOf);
  const { own, drawn, atB } = wires.get("g0");
  // From the lower side of the first GPU, 30 below its middle, to the track, and along it to the second GPU.
  assert.deepEqual([own, drawn, atB], [20 + 150, 20 + 150, false]);
  assert.equal(ownWires(row.lines, new Map([["g1", false]]), row.curveOf).get("g1").own, 20);
  assert.equal(wires.size, 1);
});

test("links that are all marked share a wire, which is drawn once, and so are the dots on it", () => {
  const wires = ownWires(row.lines, new Map([["g0", false], ["g1", false]]), row.curveOf);
  assert.deepEqual(["g0", "g1"].map((id) => wires.get(id).own), [20 + 300, 20 + 150]);
  assert.deepEqual(["g0", "g1"].map((id) => wires.get(id).drawn), [20 + 300, 20]);
  const dot = (id, x) => isOwn(wires.get(id), row.curveOf({ id }), { x, y: 50 });
  assert.deepEqual([dot("g1", 150), dot("g0", 0), dot("g0", 300)], [true, true, false]);
  const all = ownWires(row.lines, new Map(row.lines.map(({ id }) => [id, false])), row.curveOf);
  assert.equal(all.get("g0").own, row.curveOf({ id: "g0" }).length, "nobody else is on it");
});

test("from its other end it is shared from the beginning", () => {
  assert.equal(ownWires(row.lines, new Map([["g0", true]]), row.curveOf).get("g0").own, 0);
});

test("wires that only cross do not join, and nothing is looked for where none is marked", () => {
  const across = wired({
    east: [rectAt([0, 0], "gpu"), rectAt([600, 0], "gpu"), [{ x: 300, y: 0 }]],
    south: [rectAt([200, -300], "gpu"), rectAt([200, 300], "gpu"), [{ x: 200, y: 100 }]],
  });
  assert.equal(ownWires(across.lines, new Map([["east", false]]), across.curveOf).get("east").own, 522);
  assert.equal(ownWires(across.lines, new Map(), () => assert.fail("a curve was asked for")).size, 0);
});

test("of a bus of a drawing each GPU has its stub and the track to its neighbour", () => {
  const gpus = Array.from({ length: 64 }, (_, i) => ({ name: `g${i}`, kind: "gpu", host: null }));
  const drawing = wholeDrawing({
    topology: { devices: [...gpus, { name: "hub", kind: "switch", host: null }], links: gpus.flatMap(({ name }) => [{ src: name, dst: "hub", bandwidth: 50 }, { src: "hub", dst: name, bandwidth: 50 }]) },
    positions: { hub: [750, 900], ...Object.fromEntries(gpus.map(({ name }, i) => [name, [100 * (i % 16), 90 * Math.floor(i / 16)]])) },
  });
  const shown = shownOf(drawing, new Set());
  const { routes } = waysOf(shown);
  const boxes = boxesOf(shown);
  const curveOf = (line) => curveBetween(boxes.get(line.a), boxes.get(line.b), routes.get(line.id));
  const id = endsKey("g0", "hub");
  const { own } = ownWires(shown.lines, new Map([[id, false]]), curveOf).get(id);
  // Nobody is farther out; two rows may share the track, so that the GPU below joins at once.
  const [stub] = curveOf(shown.lines.find((line) => line.id === id)).lengths;
  assert.ok(own === stub || own === stub + 100, `${own} of a stub of ${stub}`);
});
