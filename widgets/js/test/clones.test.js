import assert from "node:assert/strict";
import { test } from "node:test";
import { align, freeSpot, placeMissing, rectsOf } from "../src/arrange.js";
import { clip, paste, repeatHost } from "../src/clones.js";
import { overlap } from "../src/geometry.js";
import * as edit from "../src/model.js";

/** Two GPUs and a switch in host0, with a limit. */
const host = () => {
  let d = edit.EMPTY;
  for (const [kind, x, y] of [["gpu", 0, 100], ["gpu", 120, 100], ["switch", 60, 0]]) {
    d = edit.addDevice(d, { kind, position: [x, y], host: "host0" });
  }
  d = edit.addLink(d, "gpu0", "switch0", { bandwidth: 450 });
  d = edit.addLink(d, "gpu1", "switch0", { bandwidth: 450 });
  return edit.editLimits(d, [{ name: "bus0", links: [["gpu0", "switch0"], ["gpu1", "switch0"]], bandwidth: 600 }]);
};
const names = ({ topology }) => topology.devices.map((d) => d.name);
const noneOverlap = (drawing) => {
  const rects = [...rectsOf(drawing).values()];
  return rects.every((r, i) => rects.slice(i + 1).every((other) => !overlap(r, other)));
};

test("a pasted host is a host of its own with links and limits of its own", () => {
  const { drawing, hosts } = paste(host(), clip(host(), { devices: [], hosts: ["host0"] }), [400, 0]);
  assert.deepEqual(names(drawing).slice(3), ["gpu2", "gpu3", "switch1"]);
  assert.equal(hosts.get("host0"), "host1");
  assert.deepEqual(new Set(drawing.topology.devices.slice(3).map((d) => d.host)), new Set(["host1"]));
  assert.equal(drawing.topology.links.length, 8);
  assert.deepEqual(drawing.topology.limits[1], {
    name: "bus1", links: [["gpu2", "switch1"], ["gpu3", "switch1"]], bandwidth: 600,
  });
  assert.deepEqual(drawing.positions.gpu2, [400, 100]);
});

test("a device copied out of its host stays in it, without the links to others", () => {
  const { drawing } = paste(host(), clip(host(), { devices: ["gpu0"], hosts: [] }), [40, 40]);
  assert.equal(drawing.topology.devices.at(-1).host, "host0");
  assert.equal(drawing.topology.links.length, 4);
});

test("a limit is copied only with all of its links", () => {
  const { drawing } = paste(host(), clip(host(), { devices: ["gpu0", "switch0"], hosts: [] }), [40, 40]);
  assert.equal(drawing.topology.links.length, 6);
  assert.deepEqual(drawing.topology.limits.map((limit) => limit.name), ["bus0"]);
});

test("names that begin with the host's follow it", () => {
  let d = edit.addDevice(edit.EMPTY, { kind: "gpu", position: [0, 0], name: "a0/gpu3", host: "a0" });
  d = paste(d, clip(d, { devices: [], hosts: ["a0"] }), [0, 200]).drawing;
  assert.deepEqual(names(d), ["a0/gpu3", "a1/gpu3"]);
});

test("nothing selected is nothing copied", () => {
  assert.equal(clip(host(), { devices: [], hosts: [] }), null);
});

test("hosts joined by a switch: every GPU of every host to the one", () => {
  const { drawing, hosts } = repeatHost(host(), "host0", { times: 3, join: "switch", bandwidth: 50, alpha: 1 });
  assert.deepEqual(hosts, ["host0", "host1", "host2", "host3"]);
  const out = drawing.topology.links.filter((l) => l.src === names(drawing).at(-1));
  assert.deepEqual(out.map((l) => l.dst).sort(), ["gpu0", "gpu1", "gpu2", "gpu3", "gpu4", "gpu5", "gpu6", "gpu7"]);
  assert.deepEqual([out[0].bandwidth, out[0].alpha], [50, 1]);
  assert.ok(noneOverlap(drawing));
});

test("hosts joined by rails: GPU i of every host to rail i", () => {
  const { drawing } = repeatHost(host(), "host0", { times: 5, join: "rails", bandwidth: 50 });
  const to = (rail) => drawing.topology.links.filter((l) => l.dst === rail).map((l) => l.src);
  assert.deepEqual(to("rail0"), ["gpu0", "gpu2", "gpu4", "gpu6", "gpu8", "gpu10"]);
  assert.deepEqual(to("rail1"), ["gpu1", "gpu3", "gpu5", "gpu7", "gpu9", "gpu11"]);
  assert.ok(noneOverlap(drawing));
});

test("hosts with NICs are joined at these", () => {
  const withNic = edit.addDevice(host(), { kind: "nic", position: [60, 200], host: "host0" });
  const { drawing } = repeatHost(withNic, "host0", { times: 1, join: "switch", bandwidth: 50 });
  const out = drawing.topology.links.filter((l) => l.src === names(drawing).at(-1)).map((l) => l.dst);
  assert.deepEqual(out, ["nic0", "nic1"]);
});

test("copies keep clear of what is drawn beside the host", () => {
  const beside = edit.addDevice(host(), { kind: "gpu", position: [330, 100], name: "x" });
  assert.ok(noneOverlap(repeatHost(beside, "host0", { times: 2 }).drawing));
});

test("refuses to repeat nothing, nobody, or by no known way", () => {
  for (const attempt of [
    () => repeatHost(host(), "host0", { times: 0 }),
    () => repeatHost(host(), "host9", { times: 1 }),
    () => repeatHost(host(), "host0", { times: 1, join: "mesh" }),
  ]) assert.throws(attempt, edit.EditError);
});

test("devices without a place get one that nobody has", () => {
  const { topology } = repeatHost(host(), "host0", { times: 3, join: "switch", bandwidth: 50 }).drawing;
  assert.ok(noneOverlap(placeMissing({ topology, positions: {} })));
  const some = placeMissing({ topology, positions: { gpu0: [0, 0], gpu1: [200, 0] } });
  assert.ok(noneOverlap(some));
  assert.deepEqual(some.positions.gpu1, [200, 0]);
});

test("a free spot is near and free", () => {
  const taken = [...rectsOf(host()).values()];
  const [x, y] = freeSpot([0, 100], "gpu", taken);
  assert.ok(Math.hypot(x, y - 100) < 250);
  assert.ok(!taken.some((r) => overlap(r, { x1: x - 39, x2: x + 39, y1: y - 30, y2: y + 30 })));
});

test("alignment moves edges, middles and gaps, and hosts as one", () => {
  const selection = { devices: ["gpu0", "gpu1", "switch0"], hosts: [] };
  const xs = (how) => selection.devices.map((name) => align(host(), selection, how).positions[name]);
  assert.deepEqual(xs("left").map(([x]) => x), [0, 0, 23]);
  assert.deepEqual(xs("middle").map(([, y]) => y), [57, 57, 57]);
  const spaced = edit.move(host(), { switch0: [10, 0] });
  assert.deepEqual(align(spaced, selection, "distribute_x").positions.switch0, [60, 0]);
  const two = repeatHost(host(), "host0", { times: 1 }).drawing;
  const moved = edit.move(two, { gpu2: [700, 400], gpu3: [820, 400], switch1: [760, 300] });
  const { positions } = align(moved, { devices: [], hosts: ["host0", "host1"] }, "top");
  assert.equal(positions.switch1[1], positions.switch0[1]);
  assert.equal(positions.gpu2[1], positions.gpu0[1]);
  assert.throws(() => align(host(), { devices: ["gpu0"], hosts: [] }, "left"), edit.EditError);
});
