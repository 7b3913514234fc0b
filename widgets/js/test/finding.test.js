import assert from "node:assert/strict";
import { test } from "node:test";
import { matchesOf } from "../src/finding.js";

const device = (name, kind, host = null) => ({ name, kind, host });
const topology = {
  name: "t", links: [], limits: [],
  devices: [device("xgpu1", "gpu"), device("gpu10", "gpu", "h0"), device("gpu1", "gpu", "h0"), device("nic1", "nic", "h1")],
};
const names = (text) => matchesOf(topology, text).map(({ name }) => name);

test("the very name comes first, then what begins with it", () => {
  assert.deepEqual(names("GPU1"), ["gpu1", "gpu10", "xgpu1"]);
});

test("each word may be of the name, the kind or the host", () => {
  assert.deepEqual(names("gpu h0"), ["gpu10", "gpu1"]);
  assert.deepEqual(names("h1"), ["h1", "nic1"]);
  assert.deepEqual(names(" "), []);
});
