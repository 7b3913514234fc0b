import assert from "node:assert/strict";
import { test } from "node:test";
import { boxesOf } from "../src/elements.js";
import { Axis } from "../src/compactor.js";
import { counts, endsOf, groupsOf, hostKey, shownOf, switchedOff } from "../src/folding.js";
import { overlap } from "../src/geometry.js";
import { endsKey, wholeDrawing } from "../src/model.js";

/** Three hosts of two GPUs and a switch; GPU i of each is on rail i, and there are three rails alike. */
function rails() {
  const devices = [];
  const links = [];
  const positions = {};
  const duplex = (src, dst, bandwidth) =>
    links.push({ src, dst, bandwidth }, { src: dst, dst: src, bandwidth });
  for (let h = 0; h < 3; h++) {
    for (let g = 0; g < 2; g++) {
      devices.push({ name: `h${h}g${g}`, kind: "gpu", host: `h${h}` });
      positions[`h${h}g${g}`] = [h * 600 + g * 300, 400];
      duplex(`h${h}g${g}`, `h${h}s`, 450);
      for (let r = 0; r < 3; r++) duplex(`h${h}g${g}`, `rail${r}`, 25);
    }
    devices.push({ name: `h${h}s`, kind: "switch", host: `h${h}` });
    positions[`h${h}s`] = [h * 600 + 150, 500];
  }
  for (let r = 0; r < 3; r++) {
    devices.push({ name: `rail${r}`, kind: "switch" });
    positions[`rail${r}`] = [400 + r * 200, 0];
  }
  return wholeDrawing({ topology: { name: "rails", devices, links }, positions });
}

test("hosts and alike switches are groups", () => {
  const groups = groupsOf(rails().topology);
  assert.deepEqual(groups.map((group) => [group.title, counts(group)]), [
    ["h0", "2 GPUs · 1 switch"], ["h1", "2 GPUs · 1 switch"], ["h2", "2 GPUs · 1 switch"],
    ["rail0 … rail2", "3 switches"],
  ]);
});

test("links between groups are one bundle with the sum of their bandwidths each way", () => {
  const drawing = rails();
  const all = new Set(groupsOf(drawing.topology).map(({ key }) => key));
  const shown = shownOf(drawing, all);
  assert.equal(shown.devices.length, 0);
  assert.equal(shown.lines.length, 3);
  for (const line of shown.lines) {
    assert.equal(line.forth.bandwidth, 6 * 25); // two GPUs on three rails each
    assert.equal(line.back.bandwidth, 6 * 25);
    assert.equal(endsOf(line).length, 6);
  }
  const lane = shown.lanes.get(endsKey("h1g0", "rail2"));
  const back = shown.lanes.get(endsKey("rail2", "h1g0"));
  assert.equal(lane.line, back.line);
  assert.notEqual(lane.forth, back.forth);
  assert.equal(shown.lanes.has(endsKey("h1g0", "h1s")), false);
});

test("a bundle has the largest latency of its links, each way, and counts them", () => {
  const drawing = rails();
  const alpha = new Map([[endsKey("h0g1", "rail2"), 3], [endsKey("rail1", "h0g0"), 5]]);
  drawing.topology.links = drawing.topology.links.map((l) => ({ ...l, alpha: alpha.get(endsKey(l.src, l.dst)) ?? 1 }));
  const shown = shownOf(drawing, new Set(groupsOf(drawing.topology).map(({ key }) => key)));
  const { line, forth } = shown.lanes.get(endsKey("h0g0", "rail0"));
  const [out, back] = forth ? [line.forth, line.back] : [line.back, line.forth];
  assert.deepEqual([out.alpha, back.alpha, out.count, back.count], [3, 5, 6, 6]);
});

test("one host open: its links to a folded group are bundled device by device", () => {
  const drawing = rails();
  const folded = new Set(groupsOf(drawing.topology).map(({ key }) => key).filter((key) => !key.endsWith("h1")));
  const shown = shownOf(drawing, folded);
  assert.deepEqual(shown.devices.map((d) => d.name), ["h1g0", "h1g1", "h1s"]);
  const rates = shown.lines.map((line) => line.forth.bandwidth).sort((a, b) => a - b);
  assert.deepEqual(rates, [75, 75, 150, 150, 450, 450]);
});

test("nothing folded is the drawing as it is", () => {
  const drawing = rails();
  const shown = shownOf(drawing, new Set());
  assert.equal(shown.positions, drawing.positions);
  assert.equal(shown.devices, drawing.topology.devices);
});

test("folding keeps the order of blocks, brings them nearer, and leads back to the drawing", () => {
  const drawing = rails();
  const keys = groupsOf(drawing.topology).map(({ key }) => key);
  const shown = shownOf(drawing, new Set(keys));
  const xs = keys.slice(0, 3).map((key) => shown.positions[key][0]);
  assert.ok(xs[0] < xs[1] && xs[1] < xs[2]);
  assert.ok(xs[1] - xs[0] < 400);
  for (const x of [-50, 20, 333, 700, 2000]) {
    const there = shown.toDrawing({ x, y: 100 });
    assert.ok(Number.isFinite(there.x));
  }
});

test("switches that stand between hosts keep their width when the hosts are folded", () => {
  const drawing = rails();
  for (let r = 0; r < 3; r++) drawing.positions[`rail${r}`] = [450, 350 + 60 * r];
  const shown = shownOf(drawing, new Set(["h0", "h1", "h2"].map(hostKey)));
  const boxes = [...boxesOf(shown).values()];
  assert.equal(boxes.length, 6);
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => assert.ok(!overlap(a, b))));
});

test("an axis shortens what needs less and goes back to where it came from", () => {
  const axis = new Axis([
    { from: 0, to: 400, need: 100 }, { from: 200, to: 300, need: Infinity }, { from: 1000, to: 1100, need: Infinity },
  ]);
  assert.equal(axis.at(200) - axis.at(0), 50);
  assert.equal(axis.at(300) - axis.at(200), 100);
  assert.equal(axis.at(1000) - axis.at(400), 64);
  for (const x of [-20, 0, 77, 250, 600, 1050, 1200]) assert.ok(Math.abs(axis.back(axis.at(x)) - x) < 1e-9);
});

/** Two hosts of two GPUs; each GPU has a link both ways to its twin, and g0 one way to g1. */
const drawing = wholeDrawing({
  topology: {
    name: "pairs",
    devices: [0, 1, 2, 3].map((i) => ({ name: `g${i}`, kind: "gpu", host: `h${i >> 1}` })),
    links: [["g0", "g1"], ["g0", "g2"], ["g2", "g0"], ["g1", "g3"], ["g3", "g1"]].map(([src, dst]) => ({
      src, dst, bandwidth: 50,
    })),
  },
  positions: { g0: [0, 0], g1: [100, 0], g2: [0, 300], g3: [100, 300] },
});
const names = (ids) => [...ids].map((id) => id.replace(/[\u0001-\u0003]/g, " ").trim());

test("a line is off when all its directions are, and partly off before", () => {
  const { lanes } = shownOf(drawing, new Set());
  const { whole, part } = switchedOff(lanes, [["g0", "g1"], ["g2", "g0"], ["g1", "g3"], ["g3", "g1"]]);
  assert.deepEqual(names(whole), ["g0 g1", "g1 g3"]);
  assert.deepEqual(names(part), ["g0 g2"]);
});

test("a bundle is off when all its links are, and links that are not drawn are nothing", () => {
  const shown = shownOf(drawing, new Set(groupsOf(drawing.topology).map(({ key }) => key)));
  const four = [["g0", "g2"], ["g2", "g0"], ["g1", "g3"], ["g3", "g1"]];
  assert.equal(switchedOff(shown.lanes, four).whole.size, 1);
  assert.equal(switchedOff(shown.lanes, four.slice(1)).part.size, 1);
  assert.equal(switchedOff(shown.lanes, [["g0", "g1"], ["x", "y"]]).whole.size, 0);
});
