import assert from "node:assert/strict";
import { test } from "node:test";
import * as edit from "../src/model.js";
import { addNote, editNote, noteRect, notesOf, removeNote } from "../src/notes.js";

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

test("a note is as large as its text, a frame as it says", () => {
  assert.deepEqual(noteRect(notesOf(two)[1]), { x1: -45, y1: -20, x2: 45, y2: 20 });
  const r = noteRect({ kind: "note", text: "a\nbb", x: 0, y: 0, width: 0, height: 0 }, (line) => 50 * line.length);
  assert.deepEqual([r.x2 - r.x1, r.y2 - r.y1], [118, 50]);
});
