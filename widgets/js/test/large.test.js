import assert from "node:assert/strict";
import { test } from "node:test";
import { eased } from "../src/animation.js";
import { boxesOf, waysOf } from "../src/elements.js";
import { counts, groupsOf, shownOf } from "../src/folding.js";
import { cornersOf, curveBetween, grown, meets, pointOn, rectAt, rectOf, runsOf, within } from "../src/geometry.js";
import { LARGE, classesOf, usualClasses } from "../src/link_classes.js";
import { endsKey, wholeDrawing } from "../src/model.js";
import { podsOf } from "../src/pods.js";

const gpus = (count, host = () => null) => Array.from({ length: count }, (_, i) => ({ name: `g${i}`, kind: "gpu", host: host(i) }));
const both = (src, dst, more = {}) => [{ src, dst, bandwidth: 50, ...more }, { src: dst, dst: src, bandwidth: 50, ...more }];
const drawn = (devices, links, places) => wholeDrawing({
  topology: { devices, links }, positions: Object.fromEntries(devices.map((d, i) => [d.name, places(i, d)])),
});

/** A switch below rows of sixteen GPUs each. */
const rows = (count) => drawn(
  [...gpus(count), { name: "hub", kind: "switch", host: null }], gpus(count).flatMap(({ name }) => both(name, "hub")),
  (i, { kind }) => (kind === "switch" ? [750, 900] : [100 * (i % 16), 90 * Math.floor(i / 16)]),
);

test("links of many to one switch run along tracks beside the rows, a trunk and short stubs", () => {
  const shown = shownOf(rows(64), new Set());
  const { routes, dots } = waysOf(shown);
  const boxes = boxesOf(shown);
  for (const { id, a, b } of shown.lines) {
    const curve = curveBetween(boxes.get(a), boxes.get(b), routes.get(id));
    const { legs } = curve;
    const chunk = [0, 0.2, 0.5, 0.8, 1].map((share) => pointOn(curve, share));
    assert.ok(chunk.every((at) => legs.some(([p, q]) => meets(grown(rectOf(at), 1e-6), p, q))), "a chunk stays on its wire");
    assert.ok(legs.every(([p, q]) => p.x === q.x || p.y === q.y), id);
    const others = [...boxes].filter(([name]) => name !== a && name !== b).map(([, box]) => box);
    assert.ok(!legs.some(([p, q]) => others.some((box) => meets(box, p, q))), `${id} runs beneath a box`);
  }
  const tracks = new Set([...routes.values()].map((corners) => corners[0].y));
  assert.ok(tracks.size <= 4, "GPUs of a row share a track");
  assert.ok(dots.length >= 30 && dots.every(({ x, y }) => [...boxes.values()].every((box) => !within(box, { x, y }))));
});

test("few links that nothing is in the way of run straight", () => {
  const hub = drawn([...gpus(4), { name: "hub", kind: "switch", host: null }], gpus(4).flatMap(({ name }) => both(name, "hub")), (i) => (i === 4 ? [150, 200] : [100 * i, 0]));
  assert.deepEqual([...waysOf(shownOf(hub, new Set())).routes.values()], [0, 0, 0, 0]);
});

test("switches that serve the same switches are joined by a wire for each plane", () => {
  const devices = ["agg", "core"].flatMap((kind) => Array.from({ length: kind === "agg" ? 6 : 9 }, (_, i) => ({ name: `${kind}${i}`, kind: "switch", host: null })));
  const ground = gpus(6);
  const links = [
    ...ground.flatMap(({ name }, i) => both(name, `agg${i}`)),
    ...Array.from({ length: 6 }, (_, i) => [0, 1, 2].flatMap((j) => both(`agg${i}`, `core${3 * (i % 3) + j}`))).flat(),
  ];
  const shown = shownOf(drawn([...devices, ...ground], links, (i, { name }) => [160 * Number(name.replace(/\D/g, "")), name[0] === "c" ? 0 : name[0] === "a" ? 300 : 420]), new Set());
  const { routes } = waysOf(shown);
  const plane = (i) => new Set([...routes].filter(([id]) => id.includes(`agg${i}`) && id.includes("core")).map(([, corners]) => corners.find(({ x }) => x === 160 * i).y));
  assert.deepEqual([0, 1, 2].map((i) => plane(i).size), [1, 1, 1]);
  assert.deepEqual([...plane(0)], [...plane(3)]);
  assert.equal(new Set([0, 1, 2].flatMap((i) => [...plane(i)])).size, 3, "each plane has a wire of its own");
});

/** A ring in a straight row of `side`, `count` times. */
const rings = (side, count) => drawn(
  gpus(side * count),
  Array.from({ length: count }, (_, r) => Array.from({ length: side }, (_, i) => both(`g${r * side + i}`, `g${r * side + ((i + 1) % side)}`)).flat()).flat(),
  (i) => [150 * (i % side), 100 * Math.floor(i / side)],
);

test("links that close rows are cut short where there are many", () => {
  const { routes } = waysOf(shownOf(rings(5, 12), new Set()));
  assert.equal([...routes.values()].filter((route) => route === "stubs").length, 12);
  assert.equal(routes.get(endsKey("g4", "g0")), "stubs");
  assert.ok(![...waysOf(shownOf(rings(5, 11), new Set())).routes.values()].includes("stubs"));
});

test("what is left of them leads outwards, and chunks go along both pieces", () => {
  const curve = curveBetween(rectAt([0, 0], "gpu"), rectAt([600, 0], "gpu"), "stubs");
  assert.deepEqual(cornersOf(curve).map(({ x }) => x), [-39, -69, 669, 639]);
  assert.equal(runsOf(curve).length, 2);
  assert.equal(pointOn(curve, 0.25).x, -54);
  assert.equal(pointOn(curve, 0.75).x, 654);
});

test("links have classes by medium, else by tier, of large drawings", () => {
  const devices = [...gpus(LARGE, (i) => `h${i % 2}`), { name: "leaf", kind: "switch", host: null }, { name: "spine", kind: "switch", host: null }];
  const links = [...both("g0", "g2"), ...both("g0", "leaf"), ...both("leaf", "spine")];
  const { topology } = drawn(devices, links, (i) => [i, 0]);
  assert.deepEqual(classesOf(topology, "medium").titles, []);
  assert.deepEqual(classesOf(topology, "tier").titles, ["Inside hosts", "Tier 1", "Tier 2"]);
  assert.equal(classesOf(topology, "tier").of.get(endsKey("spine", "leaf")), "Tier 2");
  assert.equal(usualClasses(topology), "tier");
  const named = drawn(devices, [...both("g0", "g2", { medium: "NVLink" }), ...both("g0", "leaf")], (i) => [i, 0]).topology;
  assert.deepEqual(classesOf(named, "medium").titles, ["NVLink", "Other links"]);
  assert.equal(usualClasses(named), "medium");
  assert.equal(usualClasses(drawn(devices.slice(2), [], (i) => [i, 0]).topology), null);
});

test("racks are told by the names of hosts, pods by what is in one piece below the top", () => {
  const racks = drawn(gpus(16, (i) => `rack${i >> 3}/host${i >> 2}`), [], (i) => [100 * i, 0]).topology;
  assert.deepEqual(podsOf(racks).map((pod) => [pod.title, counts(pod)]), [["rack0", "8 GPUs"], ["rack1", "8 GPUs"]]);
  const edges = [0, 1].map((i) => ({ name: `edge${i}`, kind: "switch", host: null }));
  const tree = drawn(
    [...gpus(8), ...edges, { name: "core", kind: "switch", host: null }],
    [...gpus(8).flatMap(({ name }, i) => both(name, `edge${i >> 2}`)), ...edges.flatMap(({ name }) => both(name, "core"))], (i) => [100 * i, 0],
  ).topology;
  assert.deepEqual(podsOf(tree).map(counts), ["4 GPUs · 1 switch", "4 GPUs · 1 switch"]);
  assert.deepEqual(groupsOf(tree), []);
  assert.deepEqual(podsOf(drawn(gpus(8), [], (i) => [100 * i, 0]).topology), []);
});

test("a glide begins and ends slowly", () => {
  assert.deepEqual([0, 0.5, 1].map(eased), [0, 0.5, 1]);
  assert.ok(eased(0.1) < 0.1 && eased(0.9) > 0.9);
});
