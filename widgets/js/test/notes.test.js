import assert from "node:assert/strict";
import { test } from "node:test";
import { clip, paste } from "../src/clones.js";
import { GROUP } from "../src/compactor.js";
import { hostKey, shownOf } from "../src/folding.js";
import * as edit from "../src/model.js";
import { addNote, editNote, mapped, noteRect, notesOf, removeNote } from "../src/notes.js";

const empty = edit.wholeDrawing({});
const two = addNote(addNote(empty, { kind: "note", text: "spare", x: 10.4, y: 0 }), { kind: "frame", text: "rack 1", width: 90, height: 40 });

test("notes and frames are part of the drawing, not of the topology", () => {
  assert.deepEqual(notesOf(two)[0], { kind: "note", text: "spare", x: 10, y: 0, width: 0, height: 0 });
  assert.equal(two.topology, empty.topology);
  assert.deepEqual(edit.wholeDrawing(JSON.parse(JSON.stringify(two))), two);
  assert.equal("annotations" in edit.wholeDrawing({ annotations: [] }), false);
  assert.throws(() => addNote(empty, { kind: "cloud" }), /cannot add a cloud/);
});

test("edits change one and leave the drawing as it is where nothing changes", () => {
  assert.equal(editNote(two, 1, { text: "rack 1" }), two);
  assert.equal(notesOf(editNote(two, 1, { text: "rack 2" }))[1].text, "rack 2");
  assert.deepEqual(notesOf(removeNote(two, 0)).map(({ kind }) => kind), ["frame"]);
  assert.equal(removeNote(removeNote(two, 0), 0).annotations, undefined);
  assert.throws(() => editNote(two, 5, {}), /no note 5; there are 2/);
});

test("edits of devices keep them", () => {
  const drawn = edit.addDevice(two, { kind: "gpu", position: [0, 0] });
  for (const next of [drawn, edit.renameDevice(drawn, "gpu0", "x"), edit.remove(drawn, { devices: ["gpu0"] })]) {
    assert.equal(next.annotations, two.annotations);
  }
});

test("a note is copied with what it stands beside, a frame with all that it holds", () => {
  const [a, b] = [[0, 0], [600, 0]];
  const pair = edit.addDevice(edit.addDevice(empty, { kind: "gpu", name: "a", position: a }), { kind: "gpu", name: "b", position: b });
  const noted = [{ kind: "note", text: "hot", x: 0, y: 70 }, { kind: "frame", text: "all", x: 300, y: 0, width: 900, height: 200 }].reduce(addNote, pair);
  const copied = (devices) => {
    const { drawing } = paste(noted, clip(noted, { devices, hosts: [] }), [0, 500]);
    return notesOf(drawing).slice(2).map(({ text, x, y }) => [text, x, y]);
  };
  assert.deepEqual(copied(["a"]), [["hot", 0, 570]]);
  assert.deepEqual(copied(["b"]), []);
  assert.deepEqual(copied(["a", "b"]), [["hot", 0, 570], ["all", 300, 500]]);
});

test("a note stays beside a host that is folded, and goes back to where it was", () => {
  const devices = Array.from({ length: 16 }, (_, i) => ({ name: `g${i}`, kind: "gpu", host: `h${i >> 3}` }));
  const places = Object.fromEntries(devices.map(({ name }, i) => [name, [100 * (i % 4) + 900 * (i >> 3), 100 * ((i % 8) >> 2)]]));
  const drawing = edit.wholeDrawing({ topology: { devices, links: [] }, positions: places });
  const shown = shownOf(drawing, new Set(["h0", "h1"].map(hostKey)));
  const note = { kind: "note", text: "spare", x: 1050, y: 180, width: 0, height: 0 };
  const there = mapped(note, shown.fromDrawing);
  assert.ok(Math.abs(there.x - shown.positions[hostKey("h1")][0]) < 1, "below the middle of its host");
  assert.deepEqual(mapped(there, shown.toDrawing), note);
  const frame = mapped({ kind: "frame", text: "", x: 1050, y: 50, width: 500, height: 300 }, shown.fromDrawing);
  assert.ok(frame.width < 500 && frame.width > GROUP.width, "around the folded host");
});

test("a note is as large as its text, a frame as it says", () => {
  assert.deepEqual(noteRect(notesOf(two)[1]), { x1: -45, y1: -20, x2: 45, y2: 20 });
  const r = noteRect({ kind: "note", text: "a\nbb", x: 0, y: 0, width: 0, height: 0 }, (line) => 50 * line.length);
  assert.deepEqual([r.x2 - r.x1, r.y2 - r.y1], [118, 50]);
});
