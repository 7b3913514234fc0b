/**
 * Playback of a scene: what it looks like at a time, and the clock that runs through it. No DOM, no
 * timers.
 *
 * @typedef {import("./types.js").Scene} Scene
 * @typedef {import("./types.js").Cut} Cut
 *
 * @typedef {object} Flight a transfer, ready to be drawn
 * @property {number} index of the transfer in the scene
 * @property {number} chunk
 * @property {string} src
 * @property {string} dst
 * @property {string} key of its ends; made once, since every frame asks for it
 * @property {number} start µs
 * @property {number} sent µs at which the link is free again
 * @property {number} end µs at which all has arrived
 * @property {number} fraction
 */

import { Buffers } from "./buffers.js";
import { endsKey, signature, wholeTopology } from "./model.js";
import { originColor } from "./style.js";

/** Seconds that a whole film takes at most at normal speed. */
export const LONGEST = 20;

export class Playback {
  /** @param {Scene} scene */
  constructor(scene) {
    this.scene = scene;
    this.step = scene.epoch_duration > 0 ? scene.epoch_duration : Math.max(scene.makespan, 1);
    this.epochs = Math.max(1, scene.epochs);
    this.makespan = scene.makespan;
    this.steps = scene.steps ?? [];
    this.phases = scene.phases ?? [];
    this.links = new Map(scene.topology.links.map((l) => [endsKey(l.src, l.dst), l]));
    /** @type {Flight[]} */
    this.flights = scene.transfers.map(([chunk, src, dst, start, end, fraction = 1], index) => {
      const key = endsKey(src, dst);
      const alpha = this.links.get(key)?.alpha ?? 0;
      return { index, chunk, src, dst, key, start, sent: Math.max(start, end - alpha), end, fraction };
    });
    this.#bucket();
    this.origins = [...new Set(scene.chunks.map((chunk) => chunk.origin))].sort((a, b) => a - b);
    const place = new Map(this.origins.map((origin, i) => [origin, i]));
    /** Index of each chunk's origin among the origins. */
    this.originOf = scene.chunks.map((chunk) => place.get(chunk.origin));
  }

  /** Sort the flights into the epochs that they touch. */
  #bucket() {
    this.byEpoch = Array.from({ length: this.epochs }, () => []);
    /** Mean number of busy links in each epoch. */
    this.busy = new Float64Array(this.epochs);
    for (const flight of this.flights) {
      const last = Math.min(this.epochs - 1, Math.floor(flight.end / this.step));
      for (let e = Math.max(0, Math.floor(flight.start / this.step)); e <= last; e++) {
        this.byEpoch[e].push(flight);
        this.busy[e] += this.#share(flight, e);
      }
    }
  }

  /** Share of an epoch, of the last as long as it lasts, during which a flight holds its link. */
  #share({ start, sent }, epoch) {
    const from = epoch * this.step;
    const lasts = Math.min(this.step, Math.max(this.makespan - from, this.step * 1e-6));
    return Math.min(lasts, Math.max(0, Math.min(sent, from + this.step) - Math.max(start, from))) / lasts;
  }

  /** Epoch that a time lies in; the end of the last one belongs to it. @param {number} time µs */
  epochAt(time) {
    return Math.max(0, Math.min(this.epochs - 1, Math.floor(time / this.step + 1e-6)));
  }

  /** Number of epochs that are over at a time. @param {number} time µs */
  epochsDone(time) {
    return time >= this.makespan * (1 - 1e-9) ? this.epochs : this.epochAt(time);
  }

  /** Transfers that are on their way at a time. @param {number} time µs @returns {Flight[]} */
  inFlight(time) {
    return this.byEpoch[this.epochAt(time)].filter((f) => f.start <= time && time < f.end);
  }

  /** How busy each link is in an epoch, from 0 to 1, by its ends. @param {number} epoch */
  load(epoch) {
    const load = new Map();
    for (const flight of this.byEpoch[epoch] ?? []) {
      load.set(flight.key, Math.min(1, (load.get(flight.key) ?? 0) + this.#share(flight, epoch)));
    }
    return load;
  }

  /** How busy each link is in the whole run, from 0 to 1, by its ends. @returns {Map<string, number>} */
  get loadOfRun() {
    if (!this.ofRun) {
      this.ofRun = new Map();
      for (const { key, start, sent } of this.flights) {
        this.ofRun.set(key, Math.min(1, (this.ofRun.get(key) ?? 0) + (sent - start) / this.makespan));
      }
    }
    return this.ofRun;
  }

  /** Share of a cut's bandwidth that each epoch uses. @param {Cut} cut @returns {Float64Array} */
  crossing(cut) {
    const use = new Float64Array(this.epochs);
    const leaving = new Set(cut.links.map(([src, dst]) => endsKey(src, dst)));
    for (let e = 0; e < this.epochs; e++) {
      for (const flight of this.byEpoch[e]) {
        if (leaving.has(flight.key)) use[e] += this.#share(flight, e) * (this.links.get(flight.key)?.bandwidth ?? 0);
      }
      use[e] = Math.min(1, use[e] / cut.bandwidth);
    }
    return use;
  }
}

/** Where the player is, in µs. `advance` says how much time passed, so it needs no timer. */
export class Clock {
  /** @param {number} end µs @param {number} step µs of one step @param {number} [pace] steps a second */
  constructor(end, step, pace = 1) {
    this.end = end;
    this.stepSize = step;
    this.pace = pace;
    this.time = 0;
    this.playing = false;
    this.speed = 1;
  }

  /** @param {number} seconds of real time */
  advance(seconds) {
    if (!this.playing) return;
    this.time += seconds * this.speed * this.pace * this.stepSize;
    if (this.time >= this.end) {
      this.time = this.end;
      this.playing = false;
    }
  }

  /** Play or pause; from the end it starts over. */
  toggle(on = !this.playing) {
    if (on && this.time >= this.end) this.time = 0;
    this.playing = on && this.end > 0;
  }

  /** To the next or the previous whole step. @param {number} by 1 or -1, or more */
  step(by) {
    this.playing = false;
    const at = this.time / this.stepSize;
    const whole = by > 0 ? Math.floor(at + 1e-6) : Math.ceil(at - 1e-6);
    this.seek((whole + by) * this.stepSize);
  }

  /** @param {number} time µs */
  seek(time) {
    this.time = Math.min(this.end, Math.max(0, time));
  }
}

/** What a canvas plays a scene from. @param {Scene | null | undefined} scene none stops the player */
export function filmOf(scene) {
  if (!scene?.transfers) {
    return {
      playback: null, buffers: null, clock: new Clock(0, 1), sceneSignature: null, sceneRanks: [],
      originColors: [], chunkColors: [],
      ...(scene?.topology ? { sceneSignature: signature(wholeTopology(scene.topology)) } : {}),
    };
  }
  const playback = new Playback(scene);
  const { makespan, step, epochs, origins, originOf } = playback;
  const originColors = origins.map((_, i) => originColor(i, origins.length));
  return {
    playback,
    buffers: new Buffers(scene.tones ? { ...scene, topology: { ...scene.topology, devices: [] } } : scene),
    clock: new Clock(makespan, step, Math.max(1, epochs / LONGEST)),
    sceneSignature: signature(wholeTopology(scene.topology)),
    sceneRanks: scene.topology.devices.filter((d) => d.kind === "gpu").map((d) => d.name),
    originColors,
    chunkColors: originOf.map((origin) => originColors[origin]),
  };
}
