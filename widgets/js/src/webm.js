/**
 * A WebM file put together in memory: encoded frames in clusters, chapters, and cues to seek by.
 * Matroska's elements are an id, a size and a payload (RFC 8794, RFC 9559).
 *
 * @typedef {{data: Uint8Array, time: number, key: boolean}} Frame time: ms
 * @typedef {{start: number, label: string}} Chapter start: ms
 */

/** Milliseconds that a cluster is long at most: a block's time in it is a signed number of 16 bits. */
const CLUSTER = 30_000;

/** @param {number} value @param {number} [length] bytes @returns {number[]} the most significant byte first */
function bytesOf(value, length = 8) {
  const found = [];
  for (let rest = value, i = 0; i < length; i++) {
    found.unshift(rest % 256);
    rest = Math.floor(rest / 256);
  }
  return found;
}

/** @param {string} id hex @returns {number[]} */
const idOf = (id) => (id.match(/../g) ?? []).map((each) => parseInt(each, 16));

/** An element; its size always takes eight bytes. @param {string} id @param {...(Uint8Array | number[])} payload */
function element(id, ...payload) {
  const size = payload.reduce((sum, each) => sum + each.length, 0);
  const head = [...idOf(id), 0x01, ...bytesOf(size, 7)];
  const found = new Uint8Array(head.length + size);
  found.set(head);
  let at = head.length;
  for (const each of payload) {
    found.set(each, at);
    at += each.length;
  }
  return found;
}

const integer = (id, value, length = 8) => element(id, bytesOf(value, length));
const text = (id, value) => element(id, new TextEncoder().encode(value));
const real = (id, value) => {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  return element(id, new Uint8Array(view.buffer));
};

/** @param {Frame} frame @param {number} from ms at which its cluster begins */
const block = ({ data, time, key }, from) => element("a3", [0x81, ...bytesOf(time - from, 2), key ? 0x80 : 0], data);

/** Frames in clusters, each of which begins with a key frame. @param {Frame[]} frames */
function clusters(frames) {
  /** @type {Frame[][]} */
  const found = [];
  for (const frame of frames) {
    const last = found.at(-1);
    if (!last || (frame.key && frame.time > last[0].time) || frame.time - last[0].time > CLUSTER) found.push([frame]);
    else last.push(frame);
  }
  return found.map((each) => ({
    time: each[0].time,
    bytes: element("1f43b675", integer("e7", each[0].time), ...each.map((frame) => block(frame, each[0].time))),
  }));
}

/** @param {Chapter[]} chapters @param {number} end ms */
function chaptersOf(chapters, end) {
  const atoms = chapters.map(({ start, label }, i) =>
    element(
      "b6", integer("73c4", i + 1), integer("91", start * 1e6), integer("92", (chapters[i + 1]?.start ?? end) * 1e6),
      element("80", text("85", label), text("437c", "eng")),
    ));
  return element("1043a770", element("45b9", ...atoms));
}

/** @param {{time: number}[]} parts @param {number[]} places of the clusters, from the beginning of the segment's payload */
const cues = (parts, places) =>
  element("1c53bb6b", ...parts.map(({ time }, i) => element("bb", integer("b3", time), element("b7", integer("f7", 1), integer("f1", places[i])))));

/**
 * @param {Frame[]} frames in their order, the first one a key frame
 * @param {{width: number, height: number, codec: "V_VP8" | "V_VP9", title: string, duration: number, chapters: Chapter[]}} about duration: ms
 * @returns {Uint8Array}
 */
export function webm(frames, { width, height, codec, title, duration, chapters }) {
  const parts = clusters(frames);
  const head = [
    element("1549a966", integer("2ad7b1", 1_000_000), real("4489", duration), text("7ba9", title), text("4d80", "Topoloom"), text("5741", "Topoloom")),
    element("1654ae6b", element(
      "ae", integer("d7", 1), integer("73c5", 1), integer("83", 1), text("86", codec),
      element("e0", integer("b0", width), integer("ba", height)),
    )),
    ...(chapters.length ? [chaptersOf(chapters, duration)] : []),
  ];
  const before = [...head, cues(parts, parts.map(() => 0))].reduce((sum, each) => sum + each.length, 0);
  const places = parts.map((_, i) => parts.slice(0, i).reduce((sum, { bytes }) => sum + bytes.length, before));
  const header = element("1a45dfa3", integer("4286", 1), integer("42f7", 1), integer("42f2", 4), integer("42f3", 8), text("4282", "webm"), integer("4287", 4), integer("4285", 2));
  const segment = element("18538067", ...head, cues(parts, places), ...parts.map(({ bytes }) => bytes));
  const file = new Uint8Array(header.length + segment.length);
  file.set(header);
  file.set(segment, header.length);
  return file;
}
