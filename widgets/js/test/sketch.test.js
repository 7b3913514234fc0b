import assert from "node:assert/strict";
import { test } from "node:test";
import { groupsOf, shownOf, switchedOff } from "../src/folded.js";
import { wholeDrawing } from "../src/model.js";

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
