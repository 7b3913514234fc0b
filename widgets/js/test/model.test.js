import assert from "node:assert/strict";
import { test } from "node:test";
import { align, freeSpot, placeMissing, rectsOf } from "../src/arrange.js";
import { clip, paste, repeatHost } from "../src/clones.js";
import { overlap } from "../src/geometry.js";
import * as edit from "../src/model.js";
import { History } from "../src/model.js";

const gpu = (drawing, x = 0) => edit.addDevice(drawing, { kind: "gpu", position: [x, 0] });
const pair = edit.addLink(gpu(gpu(edit.EMPTY), 200), "gpu0", "gpu1", { bandwidth: 25, alpha: 0.7 });
const limited = edit.editLimits(pair, [{ name: "bus", links: [["gpu0", "gpu1"]], bandwidth: 30 }]);
const linkOf = ({ topology }, src, dst) => topology.links.find((l) => l.src === src && l.dst === dst);

test("a device gets the first free name and the abilities of its kind", () => {
  const { topology } = edit.addDevice(pair, { kind: "switch", position: [5.4, 5.6] });
  assert.deepEqual(topology.devices.map((d) => d.name), ["gpu0", "gpu1", "switch0"]);
  assert.deepEqual(topology.devices[2], {
    name: "switch0", kind: "switch", host: null, stores: false, copies: false, reduces: false,
    buffer_bytes: null,
  });
});

test("an edit stays in the document of its drawing, and a drawing without one has no such field", () => {
  const opened = edit.wholeDrawing({ ...pair, document: "mine" });
  assert.equal(opened.document, "mine");
  assert.equal(edit.asStepOf("mine", gpu(opened)).document, "mine");
  assert.equal(edit.asStepOf("mine", opened), opened);
  assert.ok(!("document" in edit.wholeDrawing(pair)));
});

test("a drawn link goes both ways", () => {
  assert.deepEqual(linkOf(pair, "gpu1", "gpu0"), {
    src: "gpu1", dst: "gpu0", bandwidth: 25, alpha: 0.7, medium: "", count: 1,
  });
  assert.equal(edit.linesOf(pair.topology).length, 1);
});

test("a link over another lays one in parallel: totals add up, the larger alpha stays", () => {
  const twice = edit.addLink(pair, "gpu1", "gpu0", { bandwidth: 20, alpha: 0.1 });
  assert.equal(twice.topology.links.length, 2);
  const { bandwidth, count, alpha } = linkOf(twice, "gpu0", "gpu1");
  assert.deepEqual({ bandwidth, count, alpha }, { bandwidth: 45, count: 2, alpha: 0.7 });
});

test("removing a device takes its links, limits and position along", () => {
  const left = edit.remove(limited, { devices: ["gpu1"] });
  assert.deepEqual(left.topology.links, []);
  assert.deepEqual(left.topology.limits, []);
  assert.deepEqual(Object.keys(left.positions), ["gpu0"]);
});

test("removing a host removes what is in it", () => {
  const hosted = edit.setHost(pair, ["gpu0"], "host0");
  assert.deepEqual(edit.remove(hosted, { hosts: ["host0"] }).topology.devices.map((d) => d.name), ["gpu1"]);
});

test("a new name reaches links, limits and positions", () => {
  const { topology, positions } = edit.renameDevice(limited, "gpu1", "b");
  assert.deepEqual(topology.links.map((l) => [l.src, l.dst]), [["gpu0", "b"], ["b", "gpu0"]]);
  assert.deepEqual(topology.limits[0].links, [["gpu0", "b"]]);
  assert.deepEqual(positions.b, [200, 0]);
});

test("a link is edited both ways unless told otherwise", () => {
  const both = edit.editLinks(pair, [["gpu0", "gpu1"]], { bandwidth: 100 });
  const one = edit.editLinks(pair, [["gpu0", "gpu1"]], { bandwidth: 100 }, { both: false });
  assert.equal(linkOf(both, "gpu1", "gpu0").bandwidth, 100);
  assert.equal(linkOf(one, "gpu1", "gpu0").bandwidth, 25);
});

test("a pair becomes one-way and a pair again", () => {
  const oneway = edit.setDuplex(limited, [["gpu0", "gpu1"]], false);
  assert.equal(oneway.topology.links.length, 1);
  assert.deepEqual(oneway.topology.limits, limited.topology.limits);
  assert.deepEqual(edit.setDuplex(oneway, [["gpu0", "gpu1"]], true).topology.links, pair.topology.links);
});

const refused = [
  ["a negative bandwidth", () => edit.editLinks(pair, [["gpu0", "gpu1"]], { bandwidth: -1 }), /gpu0->gpu1.*-1 GB\/s/],
  ["a bandwidth that is no number", () => edit.addLink(pair, "gpu0", "gpu1", { bandwidth: NaN }), /positive bandwidth/],
  ["a count of zero", () => edit.editLinks(pair, [["gpu0", "gpu1"]], { count: 0 }), /stands for 0 links/],
  ["a negative alpha", () => edit.editLinks(pair, [["gpu0", "gpu1"]], { alpha: -2 }), /-2 µs/],
  ["an unknown property", () => edit.editLinks(pair, [["gpu0", "gpu1"]], { colour: 1 }), /has no colour/],
  ["a name that is taken", () => edit.renameDevice(pair, "gpu0", "gpu1"), /called gpu1 already/],
  ["an empty name", () => edit.renameDevice(pair, "gpu0", " "), /not empty/],
  ["a link to oneself", () => edit.addLink(pair, "gpu0", "gpu0"), /to itself/],
  ["a link to nobody", () => edit.addLink(pair, "gpu0", "x"), /cannot link x/],
  ["a kind that is none", () => edit.addDevice(pair, { kind: "cpu", position: [0, 0] }), /cannot add a cpu/],
  ["a limit on a link that is none", () => edit.editLimits(pair, [{ name: "a", links: [["gpu0", "x"]], bandwidth: 1 }]), /does not exist/],
  ["two limits of one name", () => edit.editLimits(pair, [limited.topology.limits[0], limited.topology.limits[0]]), /two limits are called bus/],
  ["a buffer of no bytes", () => edit.editDevices(pair, ["gpu0"], { buffer_bytes: 0 }), /0 bytes/],
];
for (const [what, attempt, says] of refused) {
  test(`refuses ${what} in words`, () => {
    assert.throws(attempt, (error) => error instanceof edit.EditError && says.test(error.message));
  });
}

test("an edit that changes nothing returns the very same drawing", () => {
  assert.equal(edit.move(pair, { gpu0: [0.2, -0.4] }), pair);
  assert.equal(edit.editDevices(pair, ["gpu0"], { copies: true }), pair);
  assert.equal(edit.editLinks(pair, [["gpu0", "gpu1"]], { bandwidth: 25 }), pair);
  assert.equal(edit.remove(pair, { devices: ["nobody"] }), pair);
});

test("a move or a new name of the cluster leaves the signature, any other edit does not", () => {
  const before = edit.signature(pair.topology);
  const after = (drawing) => edit.signature(drawing.topology);
  assert.equal(after(edit.move(pair, { gpu0: [50, 50] })), before);
  assert.equal(after(edit.renameTopology(pair, "other")), before);
  for (const drawing of [
    gpu(pair), edit.setHost(pair, ["gpu0"], "h"), edit.editDevices(pair, ["gpu0"], { copies: false }),
    edit.editLinks(pair, [["gpu0", "gpu1"]], { alpha: 1 }), limited,
  ]) assert.notEqual(after(drawing), before);
});

test("a file may leave out what is usual", () => {
  const { devices, links, limits } = edit.wholeTopology({
    devices: [{ name: "a", kind: "memory" }, { name: "b", kind: "gpu", host: "h", copies: null }],
    links: [{ src: "a", dst: "b", bandwidth: 5 }],
  });
  assert.deepEqual([devices[0].stores, devices[0].reduces, devices[0].host], [true, false, null]);
  assert.deepEqual([devices[1].copies, devices[1].host], [true, "h"]);
  assert.deepEqual(links[0], { alpha: 0, medium: "", count: 1, src: "a", dst: "b", bandwidth: 5 });
  assert.deepEqual(limits, []);
});

test("undo and redo restore the very same objects", () => {
  const history = new History(edit.EMPTY);
  assert.equal(history.push(edit.EMPTY), false);
  history.push(pair);
  assert.equal(history.undo(), true);
  assert.equal(history.now, edit.EMPTY);
  assert.equal(history.undo(), false);
  history.redo();
  assert.equal(history.now, pair);
});

test("a new edit forgets what was undone, and only so many are kept", () => {
  const history = new History(0, 2);
  for (const value of [1, 2, 3]) history.push(value);
  assert.deepEqual(history.past, [1, 2]);
  history.undo();
  history.push(9);
  assert.equal(history.redo(), false);
});

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

test("rows of a table get their values and names as one edit", () => {
  const groups = [{ rows: [["gpu0", "gpu1"]], values: { bandwidth: 9 } }];
  const links = edit.editRows(limited, { of: "link", groups });
  assert.deepEqual(links.topology.links.map((l) => l.bandwidth), [9, 25]);
  const swapped = edit.editRows(limited, { of: "device", groups: [], names: { gpu0: "gpu1", gpu1: "gpu0" } });
  assert.deepEqual(swapped.topology.devices.map((d) => d.name), ["gpu1", "gpu0"]);
  assert.deepEqual(swapped.topology.limits[0].links, [["gpu1", "gpu0"]]);
  assert.deepEqual(swapped.positions, { gpu1: [0, 0], gpu0: [200, 0] });
  assert.throws(() => edit.renameDevices(limited, { gpu0: "gpu1" }), /called gpu1 already/);
});
