/**
 * One time for several films, in µs: the faster one ends earlier and waits. No DOM, no timers.
 *
 * @typedef {import("./player.js").Playback} Playback
 */

import { LONGEST } from "./player.js";

/** Share of a makespan within which two times are the same. */
const SAME = 1e-9;

/** The clock that all of them go by. It is told how much time passed, so it needs no timer. */
export class Lead {
  /** @param {() => void} [changed] called when it was moved by hand */
  constructor(changed = () => {}) {
    this.changed = changed;
    /** @type {Playback[]} */
    this.playbacks = [];
    this.time = 0;
    this.end = 0;
    /** µs a second at normal speed. */
    this.pace = 1;
    this.playing = false;
    this.speed = 1;
  }

  /** Go by other films; the time stays where it is. @param {Playback[]} playbacks */
  load(playbacks) {
    this.playbacks = playbacks;
    this.end = Math.max(0, ...playbacks.map((each) => each.makespan));
    const seconds = Math.max(1, ...playbacks.map((each) => Math.min(LONGEST, each.epochs)));
    this.pace = this.end / seconds;
    this.time = Math.min(this.time, this.end);
    this.playing &&= this.end > 0;
  }

  /** @param {number} seconds of real time */
  advance(seconds) {
    if (!this.playing) return;
    this.time += seconds * this.speed * this.pace;
    if (this.time < this.end) return;
    this.time = this.end;
    this.playing = false;
  }

  /** Play or pause; from the end it starts over. */
  toggle(on = !this.playing) {
    if (on && this.time >= this.end) this.time = 0;
    this.playing = on && this.end > 0;
    this.changed();
  }

  /** @param {number} time µs */
  seek(time) {
    this.time = Math.min(this.end, Math.max(0, time));
    this.changed();
  }

  /** To the next or the previous moment at which an epoch of any film begins or one ends. @param {number} by */
  step(by) {
    this.playing = false;
    for (let left = Math.abs(by); left > 0; left--) this.time = by > 0 ? this.#next() : this.#before();
    this.changed();
  }

  #next() {
    const { time } = this;
    const found = this.playbacks
      .filter(({ makespan }) => time < makespan * (1 - SAME))
      .map(({ step, makespan }) => Math.min(makespan, (Math.floor(time / step + 1e-6) + 1) * step));
    return found.length ? Math.min(...found) : this.end;
  }

  #before() {
    const { time } = this;
    return Math.max(0, ...this.playbacks.map(({ step, makespan }) =>
      time > makespan * (1 + SAME) ? makespan : (Math.ceil(time / step - 1e-6) - 1) * step));
  }
}

/** What one film sees of the lead's time: a clock that stops at its own end. */
export class Hand {
  /** @param {Lead} lead @param {Playback | null} playback */
  constructor(lead, playback) {
    this.lead = lead;
    this.end = playback?.makespan ?? 0;
    this.stepSize = playback?.step ?? 1;
  }

  get time() {
    return Math.min(this.lead.time, this.end);
  }

  get playing() {
    return this.lead.playing;
  }

  set playing(on) {
    this.lead.playing = on;
  }

  get speed() {
    return this.lead.speed;
  }

  set speed(value) {
    this.lead.speed = value;
  }

  /** The lead is told how much time passed. */
  advance() {}

  toggle(on) {
    this.lead.toggle(on);
  }

  step(by) {
    this.lead.step(by);
  }

  /** The end of one film is the end of all. @param {number} time µs */
  seek(time) {
    this.lead.seek(time >= this.end ? this.lead.end : time);
  }
}
