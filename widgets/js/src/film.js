/** A scene made ready for playing. */

import { Buffers } from "./buffers.js";
import { signature, wholeTopology } from "./model.js";
import { originColor } from "./palette.js";
import { Clock, LONGEST, Playback } from "./player.js";

/** @param {import("./types.js").Scene | null | undefined} scene none stops the player */
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
    buffers: new Buffers(scene),
    clock: new Clock(makespan, step, Math.max(1, epochs / LONGEST)),
    sceneSignature: signature(wholeTopology(scene.topology)),
    sceneRanks: scene.topology.devices.filter((d) => d.kind === "gpu").map((d) => d.name),
    originColors,
    chunkColors: originOf.map((origin) => originColors[origin]),
  };
}
