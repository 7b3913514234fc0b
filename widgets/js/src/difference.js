/**
 * Difference of two plans on one cluster: the sends that only one of them has, those of both, and by
 * how much the links differ in the time for which they are busy.
 *
 * Bytes are counted over every link that they cross. Those of the same data over the same link are in
 * both as far as both plans bring them there, however they are cut; so what is only in A and what is
 * in both add up to all that A sends, and likewise for B.
 *
 * @typedef {import("./types.js").Scene} Scene
 * @typedef {{scene: Scene, sums: [number, number, number], unit: string, busy: Map<string, [number, number]>,
 *   plans: [Playback, Playback]}} Contrast
 */

import { h, iconButton } from "./dom.js";
import { whole } from "./inspect/plan.js";
import { keyEnds, signature, wholeTopology } from "./model.js";
import { Hand } from "./pair_time.js";
import { Playback } from "./player.js";
import { bytes, duration } from "./units.js";

const ONLY_A = 0;
const ONLY_B = 1;
const BOTH = 2;

/** What each class of sends is called, and the name of its colour. */
const CLASSES = [["Only in A", "accent"], ["Only in B", "memory"], ["In both", "dim"]];

/** Links in the list of those that differ most. */
const MOST_LINKS = 8;

/** Share of a send within which two amounts are the same. */
const SAME = 1e-6;

/** Whether both cut the data alike. @param {Scene} a @param {Scene} b */
function cutAlike(a, b) {
  const cut = ({ chunks }) => JSON.stringify(chunks.map(({ origin, size }) => [origin, size]));
  return cut(a) === cut(b);
}

/** Bytes that a transfer brings over its link. @param {Scene} scene @param {import("./types.js").Transfer} transfer */
const bytesOf = ({ chunks }, [chunk, , , , , fraction = 1]) => chunks[chunk].size * fraction;

/**
 * The transfers of a plan, each with the share of it that the other plan sends too, first come first served.
 * @param {Scene} scene @param {Scene} other @param {(scene: Scene, chunk: number) => number} data what is compared
 */
function sharesInBoth(scene, other, data) {
  /** @param {Scene} of @param {import("./types.js").Transfer} transfer */
  const key = (of, [chunk, src, dst]) => JSON.stringify([data(of, chunk), src, dst]);
  const left = new Map();
  for (const each of other.transfers) left.set(key(other, each), (left.get(key(other, each)) ?? 0) + bytesOf(other, each));
  return scene.transfers.map((each) => {
    const size = bytesOf(scene, each);
    const rest = left.get(key(scene, each)) ?? 0;
    const both = Math.min(size, rest);
    left.set(key(scene, each), rest - both);
    const share = size > 0 ? both / size : 1;
    return share < SAME ? 0 : share > 1 - SAME ? 1 : share;
  });
}

/** Of a plan: the parts of its transfers that are its own, and those of both. @param {Scene} scene @param {number[]} shares @param {number} own */
function parts(scene, shares, own) {
  return scene.transfers.flatMap((each, i) => {
    const [, src, dst, start, end, fraction = 1] = each;
    const part = (kind, share) => ({ kind, bytes: bytesOf(scene, each) * share, row: /** @type {any} */ ([kind, src, dst, start, end, fraction * share]) });
    return [part(BOTH, shares[i]), part(own, 1 - shares[i])].filter(({ bytes }) => bytes > 0);
  });
}

/** µs for which each link is busy. @param {Playback} playback @returns {Map<string, number>} */
const busyOf = (playback) => new Map([...playback.loadOfRun].map(([key, share]) => [key, share * playback.makespan]));

/**
 * What a chunk of one of two plans is compared by: itself where both cut the data alike, else its origin.
 * @param {Scene} a @param {Scene} b @returns {(scene: Scene, chunk: number) => number}
 */
export function comparedBy(a, b) {
  return cutAlike(a, b) ? (_, chunk) => chunk : (scene, chunk) => scene.chunks[chunk].origin;
}

/**
 * One scene of what two plans do, whose chunks are the classes; what both do is shown when A does it.
 * @param {Scene} wholeA @param {Scene} wholeB on the same cluster
 * @param {number | null} [only] the chunk, or the origin, whose sends are compared; all where it is null
 * @returns {Contrast}
 */
export function contrast(wholeA, wholeB, only = null) {
  const alike = cutAlike(wholeA, wholeB);
  const data = comparedBy(wholeA, wholeB);
  const [a, b] = [wholeA, wholeB].map((scene) =>
    only === null ? scene : { ...scene, transfers: scene.transfers.filter(([chunk]) => data(scene, chunk) === only) });
  const inA = parts(a, sharesInBoth(a, b, data), ONLY_A);
  const inB = parts(b, sharesInBoth(b, a, data), ONLY_B).filter(({ kind }) => kind === ONLY_B);
  const sums = /** @type {[number, number, number]} */ ([0, 0, 0]);
  for (const { kind, bytes: size } of [...inA, ...inB]) sums[kind] += size;
  const transfers = [...inA, ...inB].map(({ row }) => row).sort((one, two) => one[3] - two[3]);
  const makespan = Math.max(a.makespan, b.makespan);
  const step = Math.min(a.epoch_duration, b.epoch_duration);
  const plans = /** @type {[Playback, Playback]} */ ([new Playback(a), new Playback(b)]);
  const [first, second] = plans.map(busyOf);
  const links = new Set([...first.keys(), ...second.keys()]);
  return {
    scene: {
      topology: a.topology, transfers, makespan, epoch_duration: step, epochs: Math.max(1, Math.ceil(makespan / step - SAME)),
      chunks: CLASSES.map(([label], origin) => ({ origin, label, size: 1 })), holds: {}, sentences: [],
      title: "Difference of A and B", tones: CLASSES.map(([, tone]) => tone),
    },
    sums, plans, unit: alike ? "the same chunk" : "data of the same origin",
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
    /** @type {ReturnType<import("./pair.js").Pair["open"]> | null} */
    this.screen = null;
    /** The two that are compared. @type {(Scene | null)[]} */
    this.compared = [];
    /** Data that alone is compared: the chunk that is looked at. @type {{data: number, name: string} | null} */
    this.only = null;
    /** What was taken over from the players, each as JSON. @type {Record<string, string>} */
    this.carried = {};
    this.busier = h("span");
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
    const { only, ...wanted } = this.#chosen(a, b);
    if (this.compared[0] !== a || this.compared[1] !== b || this.only?.data !== only?.data) this.#load(a, b, only);
    this.compared = [a, b];
    this.screen.clock = new Hand(pair.lead, this.screen.playback);
    this.#carry(wanted);
    this.recolour();
  }

  /** What is chosen in the player that was used last, else in the first that has anything chosen. */
  #chosen(a, b) {
    const sides = this.pair.sides.slice(0, 2);
    const order = [...sides.filter((side) => side === this.pair.used), ...sides].filter(({ screen }) => screen?.playback);
    const screens = order.map(({ screen }) => screen);
    const looking = order.find(({ screen }) => screen.inspector.focus);
    const { chunk = null, link, rank, host } = looking?.screen.inspector.focus ?? {};
    const data = comparedBy(a, b);
    return {
      only: chunk === null ? null : { data: data(looking.film.scene, chunk), name: named(a, b, looking.screen, chunk) },
      focus: whole({ link, rank, host }),
      selection: screens.map(({ selection }) => selection).find((each) => Object.values(each).some(({ length }) => length)) ?? {},
      heat: screens.find(({ heat }) => heat)?.heatOf ?? "run",
    };
  }

  /** Choose here what has been chosen anew in the players; what was done here since stays. */
  #carry(wanted) {
    const act = {
      focus: (focus) => this.screen.inspector.look(focus),
      selection: (selection) => this.screen.select(selection),
      heat: (of) => this.screen.setHeat(true, of),
    };
    for (const [name, value] of Object.entries(wanted)) {
      const now = JSON.stringify(value);
      if (this.carried[name] === now) continue;
      this.carried[name] = now;
      act[name](value);
    }
  }

  /** Compare all sends again, and look at no chunk in the players. */
  #widen() {
    for (const { screen } of this.pair.sides.slice(0, 2)) screen?.inspector.drop("chunk");
    this.show();
  }

  #load(a, b, only) {
    this.only = only;
    const { scene, sums, unit, busy, plans } = contrast(a, b, only?.data ?? null);
    if (this.screen) {
      this.screen.model.receive("drawing", this.drawing);
      this.screen.model.receive("scene", scene);
    } else {
      this.screen = this.pair.open(this.stage, "Difference of A and B", { drawing: this.drawing, scene });
      this.screen.onHeat = () => this.#tellHeat();
    }
    this.plans = plans;
    const most = Math.max(SAME, ...[...busy.values()].map(([one, two]) => Math.abs(one - two)));
    this.loads = new Map([...busy].map(([key, [one, two]]) => [key, (one - two) / most]));
    const title = `Bytes over links, each link that they cross counted. In both: ${unit} over the same link. ` +
      "With what is only in A they are all that A sends, with what is only in B all that B sends.";
    const row = (label, i) => h("span", { class: `tlp-class tlp-is-${i}`, title }, h("i", { "aria-hidden": "true" }), `${label} `, h("b", {}, bytes(sums[i])));
    const narrowed = only && h("span", { class: "tlp-only" }, `Only ${only.name}`, iconButton("close", "Compare all data", () => this.#widen()));
    this.legend.replaceChildren(
      ...(narrowed ? [narrowed] : []),
      h("span", { title }, "Bytes over links"), ...CLASSES.map(([label], i) => row(label, i)), this.busier, differing(busy),
    );
    this.#tellHeat();
  }

  /** Say what the colours of the links mean. */
  #tellHeat() {
    const { heat, heatOf } = this.screen;
    this.busier.textContent = heat ? `Links have the colour of the plan in which they are busier${heatOf === "now" ? " now" : ""}` : "";
  }

  /** By how much links are busier in A, of the run or at a time; a plan that is over is busy nowhere. @param {"now" | "run"} of @param {number} time µs */
  #busierAt(of, time) {
    if (of === "run") return this.loads;
    const [first, second] = this.plans.map((plan) => (time > plan.makespan * (1 + SAME) ? new Map() : plan.load(plan.epochAt(time))));
    const keys = new Set([...first.keys(), ...second.keys()]);
    return new Map([...keys].map((key) => [key, (first.get(key) ?? 0) - (second.get(key) ?? 0)]));
  }

  /** The theme or the scene is another one. */
  recolour() {
    const { screen, pair } = this;
    if (!screen) return;
    const tones = CLASSES.map(([, tone]) => pair.colors[tone]);
    screen.chunkColors = screen.originColors = tones;
    screen.contrast = {
      load: (of, time) => this.#busierAt(of, time), epochAt: (time) => this.plans.map((plan) => plan.epochAt(time)).join(),
      more: tones[ONLY_A], less: tones[ONLY_B], same: pair.colors.line,
    };
    screen.redrawAll();
  }

  destroy() {
    this.screen?.destroy();
  }
}

/** A chunk of one of two plans, or the data of its origin, for people. */
function named(a, b, screen, chunk) {
  const { origin, label } = screen.playback.scene.chunks[chunk];
  return cutAlike(a, b) ? label : `data of ${screen.sceneRanks[origin] ?? `rank ${origin}`}`;
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
