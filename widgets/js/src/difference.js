/**
 * Difference of two plans on one cluster: the sends that only one of them has, those of both, and by
 * how much the links differ in the time for which they are busy.
 *
 * @typedef {import("./types.js").Scene} Scene
 * @typedef {{scene: Scene, counts: [number, number, number], busy: Map<string, [number, number]>}} Contrast
 */

import { h } from "./dom.js";
import { keyEnds, signature, wholeTopology } from "./model.js";
import { Hand } from "./pair_time.js";
import { Playback } from "./player.js";
import { duration } from "./units.js";

const ONLY_A = 0;
const ONLY_B = 1;
const BOTH = 2;

/** What each class of sends is called, and the name of its colour. */
const CLASSES = [["Only in A", "accent"], ["Only in B", "memory"], ["In both", "dim"]];

/** Links in the list of those that differ most. */
const MOST_LINKS = 8;

/** Share of a send within which two amounts are the same. */
const SAME = 1e-6;

/**
 * What the sends of both plans are compared by: the chunk where both cut the data alike, else its origin.
 * @param {Scene} a @param {Scene} b
 */
function dataOf(a, b) {
  const cut = ({ chunks }) => JSON.stringify(chunks.map(({ origin, size }) => [origin, size]));
  return cut(a) === cut(b) ? (scene, chunk) => chunk : (scene, chunk) => scene.chunks[chunk].origin;
}

/**
 * Put each transfer of a plan into the class of those of both or of its own: what the other plan brings
 * over the same link is in both, first come first served.
 */
function classes(scene, other, { data, own }) {
  const bytes = ({ chunks }, [chunk, , , , , fraction = 1]) => chunks[chunk].size * fraction;
  const key = (of, [chunk, src, dst]) => JSON.stringify([data(of, chunk), src, dst]);
  const left = new Map();
  for (const each of other.transfers) left.set(key(other, each), (left.get(key(other, each)) ?? 0) + bytes(other, each));
  return scene.transfers.map((each) => {
    const size = bytes(scene, each);
    const rest = left.get(key(scene, each)) ?? 0;
    if (rest < size * (1 - SAME)) return own;
    left.set(key(scene, each), rest - size);
    return BOTH;
  });
}

/** µs for which each link is busy. @param {Playback} playback @returns {Map<string, number>} */
const busyOf = (playback) => new Map([...playback.loadOfRun].map(([key, share]) => [key, share * playback.makespan]));

/**
 * One scene of what two plans do, whose chunks are the classes; what both do is shown when A does it.
 * @param {Scene} a @param {Scene} b on the same cluster @returns {Contrast}
 */
export function contrast(a, b) {
  const data = dataOf(a, b);
  const inA = classes(a, b, { data, own: ONLY_A });
  const inB = classes(b, a, { data, own: ONLY_B });
  const rows = (scene, found, most) =>
    scene.transfers.flatMap(([, ...rest], i) => (found[i] <= most ? [/** @type {any} */ ([found[i], ...rest])] : []));
  const transfers = [...rows(a, inA, BOTH), ...rows(b, inB, ONLY_B)].sort((one, two) => one[3] - two[3]);
  const counts = /** @type {[number, number, number]} */ ([0, 0, 0]);
  for (const [kind] of transfers) counts[kind] += 1;
  const makespan = Math.max(a.makespan, b.makespan);
  const step = Math.min(a.epoch_duration, b.epoch_duration);
  const [first, second] = [a, b].map((scene) => busyOf(new Playback(scene)));
  const links = new Set([...first.keys(), ...second.keys()]);
  return {
    scene: {
      topology: a.topology, transfers, makespan, epoch_duration: step, epochs: Math.max(1, Math.ceil(makespan / step - SAME)),
      chunks: CLASSES.map(([label], origin) => ({ origin, label, size: 1 })), holds: {}, sentences: [],
      title: "Difference of A and B", tones: CLASSES.map(([, tone]) => tone),
    },
    counts,
    busy: new Map([...links].map((key) => [key, [first.get(key) ?? 0, second.get(key) ?? 0]])),
  };
}

/** Why two scenes have no difference to be shown, or nothing. @param {Scene | null} a @param {Scene | null} b */
export function whyNot(a, b) {
  if (!a?.transfers || !b?.transfers) return "A difference needs two schedules that can be played.";
  const [first, second] = [a, b].map(({ topology }) => signature(wholeTopology(topology)));
  return first === second ? "" : `A is on ${a.topology.name}, B on ${b.topology.name}; a difference needs one cluster.`;
}

/** The one player that shows the difference of the first two of several. */
export class DifferenceView {
  /** @param {import("./pair.js").Pair} pair */
  constructor(pair) {
    this.pair = pair;
    /** @type {import("./canvas.js").Canvas | null} */
    this.screen = null;
    /** The two that are compared. @type {(Scene | null)[]} */
    this.compared = [];
    this.legend = h("div", { class: "tlp-classes", role: "status" });
    this.stage = h("div", { class: "tlp-film" });
    this.nothing = h("p", { class: "tlp-nothing" });
    this.element = h(
      "section", { class: "tlp-difference", "aria-label": "Difference of A and B" }, this.legend, this.stage, this.nothing,
    );
  }

  get drawing() {
    return this.pair.sides[0].drawing;
  }

  /** Show it if that is wanted; films that are the same are not compared again. */
  show() {
    const { pair } = this;
    if (pair.shown !== "difference") return;
    const [a, b] = pair.sides.map((side) => side.film?.scene ?? null);
    this.nothing.textContent = whyNot(a, b);
    this.stage.hidden = this.legend.hidden = this.nothing.textContent !== "";
    if (this.stage.hidden) return;
    if (this.compared[0] !== a || this.compared[1] !== b) this.#load(a, b);
    this.compared = [a, b];
    this.screen.clock = new Hand(pair.lead, this.screen.playback);
    this.recolour();
  }

  #load(a, b) {
    const { scene, counts, busy } = contrast(a, b);
    if (this.screen) {
      this.screen.model.receive("drawing", this.drawing);
      this.screen.model.receive("scene", scene);
    } else this.screen = this.pair.open(this.stage, "Difference of A and B", { drawing: this.drawing, scene });
    const most = Math.max(SAME, ...[...busy.values()].map(([one, two]) => Math.abs(one - two)));
    this.loads = new Map([...busy].map(([key, [one, two]]) => [key, (one - two) / most]));
    this.screen.setHeat(true, "run");
    this.legend.replaceChildren(
      ...CLASSES.map(([label], i) => h("span", { class: `tlp-class tlp-is-${i}` }, h("i", { "aria-hidden": "true" }), `${label} `, h("b", {}, counts[i].toLocaleString("en")))),
      h("span", {}, "Links have the colour of the plan in which they are busier"), differing(busy),
    );
  }

  /** The theme or the scene is another one. */
  recolour() {
    const { screen, pair } = this;
    if (!screen) return;
    const tones = CLASSES.map(([, tone]) => pair.colors[tone]);
    screen.chunkColors = screen.originColors = tones;
    screen.contrast = { loads: this.loads, more: tones[ONLY_A], less: tones[ONLY_B], same: pair.colors.line };
    screen.redrawAll();
  }

  destroy() {
    this.screen?.destroy();
  }
}

/** The list of the links that differ most. @param {Map<string, [number, number]>} busy µs in A and in B */
function differing(busy) {
  const far = ([, [one, two]]) => Math.abs(one - two);
  const rows = [...busy].filter((row) => far(row) > SAME).sort((one, two) => far(two) - far(one));
  if (!rows.length) return h("span", {}, "Every link is busy for as long in both");
  return h(
    "details", {}, h("summary", {}, "Links that differ most"),
    h(
      "table", {}, h("tr", {}, ...["Busy", "A", "B"].map((each) => h("th", { scope: "col" }, each))),
      ...rows.slice(0, MOST_LINKS).map(([key, times]) => {
        return h("tr", {}, h("th", { scope: "row" }, keyEnds(key).join(" → ")), ...times.map((each) => h("td", {}, duration(each))));
      }),
    ),
  );
}
