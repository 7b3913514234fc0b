/**
 * Visual style: the colours of the themes, the typeface, and how cytoscape draws devices, hosts and
 * links. Identity has Okabe and Ito's palette; vermillion is kept for bottlenecks alone.
 */

import { FILLED, LARGE_FILLED } from "./names.js";

/** Safe for colour-blind readers; from Okabe and Ito, "Color Universal Design" (2008). */
export const OKABE_ITO = [
  "#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#F0E442", "#0072B2", "#9AD1F5", "#B39DDB",
];

/** The same identities, dark enough for thin lines on a light ground. */
const ON_LIGHT = [
  "#1b7fc0", "#b87400", "#00805c", "#b0488a", "#857800", "#004f8c", "#3aa0c9", "#6f51b5",
];

/** Colours of kinds of links: none is orange, which is the bottleneck's. */
const LINKS = {
  dark: ["#8fa8c4", "#c9a2ff", "#93c26b", "#7fd0e0", "#d98fc0", "#d6cf6a"],
  light: ["#5b7391", "#8a35b8", "#4b7a1e", "#0e7490", "#a8387f", "#7a6a00"],
};

/** Colour of a kind of links. @param {number} index @param {string} theme */
export const linkColor = (index, theme) => LINKS[theme === "light" ? "light" : "dark"][index % LINKS.dark.length];

const RAMP = [
  [61, 90, 160], [70, 130, 190], [86, 180, 233], [120, 200, 180], [180, 205, 120], [240, 200, 80],
  [240, 170, 60],
];

export const THEMES = {
  dark: {
    bg: "#0f141b", dot: "#1d2631", text: "#dfe7ef", dim: "#8e9db0", surface: "#1a222d",
    raised: "#202b38", line: "#334152", box: "#151c26", boxLine: "#2f3e50", gpu: "#4aa3ff",
    switch: "#2dc7b0", memory: "#e0b64f", nic: "#b69cff", link: "#62748a", select: "#ffffff",
    cut: "#ff7a50", onCut: "#1c0c05", cutFill: "#ff6a3d16", fill: "#1b7fe3", onFill: "#ffffff",
    empty: "#2a3645", accent: "#4aa3ff", relay: "#cc79a7", cold: "#2b4a6b", hot: "#8fd0ff", shadow: "#00000066",
  },
  light: {
    bg: "#f7f9fb", dot: "#d9e1ea", text: "#17212e", dim: "#566577", surface: "#ffffff",
    raised: "#ffffff", line: "#d3dbe4", box: "#eef2f7", boxLine: "#c3cfdb", gpu: "#1670c9",
    switch: "#0c8f7d", memory: "#946d06", nic: "#6f4fd1", link: "#7a8a9c", select: "#0b1520",
    cut: "#c45500", onCut: "#ffffff", cutFill: "#d55e0012", fill: "#1670c9", onFill: "#ffffff",
    empty: "#e2e8ef", accent: "#1670c9", relay: "#b0488a", cold: "#b9d6f2", hot: "#08468a", shadow: "#17212e22",
  },
};

/**
 * Colour of what began at an origin.
 * @param {number} index of the origin @param {number} origins how many there are
 */
export function originColor(index, origins) {
  if (origins <= OKABE_ITO.length) return OKABE_ITO[index % OKABE_ITO.length];
  const at = (index / Math.max(1, origins - 1)) * (RAMP.length - 1);
  const i = Math.min(RAMP.length - 2, Math.floor(at));
  return mixed(RAMP[i], RAMP[i + 1], at - i);
}

/** Colour of the class with a number; after all have been used they begin anew. @param {number} index */
export const classColor = (index, theme) => {
  const colors = theme === "light" ? ON_LIGHT : OKABE_ITO;
  return colors[index % colors.length];
};

/** A colour moved away from the ground, so that thin lines in it can be followed. @param {string} color hex or rgb() */
export const vivid = (color, theme) => {
  const parts = color.startsWith("#") ? channels(color) : color.match(/\d+/g).map(Number);
  const light = lightness(parts);
  if (theme === "light") return light > 120 ? mixed(parts, [11, 21, 32], (light - 120) / 260) : color;
  return light < 150 ? mixed(parts, [255, 255, 255], (150 - light) / 190) : color;
};

/** @param {number[]} channels red, green, blue */
const lightness = ([r, g, b]) => 0.299 * r + 0.587 * g + 0.114 * b;

/** Ink that can be read on a colour. @param {string} color hex or rgb() */
export const inkOn = (color) => {
  const parts = color.startsWith("#") ? channels(color) : color.match(/\d+/g).map(Number);
  return lightness(parts) > 140 ? "#0b1520" : "#ffffff";
};

/** Colour between two hex colours. @param {string} from @param {string} to @param {number} share */
export const between = (from, to, share) => mixed(channels(from), channels(to), share);

const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

const mixed = (a, b, share) =>
  `rgb(${a.map((value, k) => Math.round(value + (b[k] - value) * share)).join(",")})`;

/** Which theme the page around the canvas has: Mantine's, JupyterLab's, the system's. */
export function pageTheme() {
  const mantine = document.documentElement.dataset.mantineColorScheme;
  if (mantine === "light" || mantine === "dark") return mantine;
  const lab = document.body?.dataset.jpThemeLight;
  if (lab) return lab === "true" ? "light" : "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

export const FONT = '"Inter Variable", Inter, system-ui, -apple-system, "Segoe UI", sans-serif';

/** How far a host's box reaches beyond its devices, in drawing units. */
export const HOST_PADDING = 20;

/** Class of names that are seen from a distance, the nearest first. @param {number} i */
const far = (i) => (i ? `.far${i}` : "");

/** Names, the farther away the larger; above a buffer, which takes the lower part of the box, they have less room. */
const NAMES = FILLED.flatMap((_, i) => [
  { selector: `node.device${far(i)}, node.group${far(i)}`, style: { "font-size": `data(near${i})` } },
  { selector: `node.gpu.filled${far(i)}`, style: { "font-size": `data(full${i})`, "text-margin-y": [17, 17.5, 19, 23, 24][i] } },
  { selector: `node.memory.filled${far(i)}`, style: { "font-size": [10, 11, 12, 14, 14][i] } },
]);

/** Names in presenter mode: 1.6 times as large, where the boxes have the space. */
const LARGE = [
  ...FILLED.map((_, i) => ({ selector: `node.device.large${far(i)}, node.group.large${far(i)}`, style: { "font-size": `data(large${i})` } })),
  ...LARGE_FILLED.map((size, i) => ({ selector: `node.filled.large${far(i)}`, style: { "font-size": size } })),
  { selector: "node.gpu.large, node.memory.large", style: { "text-max-width": 76 } },
  { selector: "node.gpu.filled.large, node.memory.filled.large", style: { "text-margin-y": 24 } },
];

/** @param {Record<string, string>} c colours of the theme @returns {any[]} */
export const styleSheet = (c) => [
  {
    selector: "node.device",
    style: {
      shape: "round-rectangle", width: "data(width)", height: "data(height)",
      "background-color": c.surface, "border-width": 1.6, "border-color": "data(color)",
      "corner-radius": 9, label: "data(label)", color: c.text, "font-family": FONT,
      "font-weight": 600, "text-valign": "center", "text-halign": "center",
      "text-wrap": "ellipsis", "text-max-width": 70, "min-zoomed-font-size": 4.5,
      "overlay-opacity": 0,
    },
  },
  {
    selector: "node.switch",
    style: { "background-color": c.raised, "corner-radius": 17, "text-max-width": 116 },
  },
  { selector: "node.nic", style: { "corner-radius": 5 } },
  { selector: "node.memory", style: { "text-max-width": 84 } },
  // The lower part of the box is for the buffer.
  { selector: "node.filled", style: { "text-valign": "top" } },
  { selector: "node.memory.filled", style: { "text-margin-y": 15 } },
  {
    selector: "node.group",
    style: {
      shape: "round-rectangle", width: "data(width)", height: "data(height)",
      "background-color": c.surface, "border-width": 1.6, "border-color": "data(color)",
      "corner-radius": 13, label: "data(label)", color: c.text, "font-family": FONT,
      "font-weight": 600, "line-height": 1.35, "text-valign": "center",
      "text-wrap": "wrap", "text-max-width": 600, "min-zoomed-font-size": 4.5, "overlay-opacity": 0,
      // A second sheet behind it says that there is more inside.
      ghost: "yes", "ghost-offset-x": 4, "ghost-offset-y": -4, "ghost-opacity": 0.42,
    },
  },
  { selector: "node.group.split", style: { "border-color": c.cut, "border-style": "dashed", "border-width": 2.4 } },
  {
    selector: "node.host",
    style: {
      shape: "round-rectangle", "background-color": c.box, "background-opacity": 0.72,
      "border-color": c.boxLine, "border-width": 1.2, "corner-radius": 18, padding: HOST_PADDING,
      "overlay-opacity": 0,
    },
  },
  ...NAMES,
  ...LARGE,
  { selector: "node.small", style: { "text-opacity": 0 } },
  { selector: "node.small:selected", style: { "text-opacity": 1 } },
  {
    selector: "edge",
    style: {
      width: "data(width)", "line-color": c.link, opacity: 0.62, "curve-style": "straight",
      "target-arrow-shape": "none", "target-arrow-color": c.link, "arrow-scale": 0.8,
      "overlay-opacity": 0, "line-cap": "round",
    },
  },
  {
    selector: "edge.bent",
    style: {
      "curve-style": "unbundled-bezier", "control-point-distances": "data(bend)",
      "control-point-weights": 0.5, "edge-distances": "node-position",
    },
  },
  { selector: "edge.bundle", style: { opacity: 0.46 } },
  { selector: "edge[tint]", style: { "line-color": "data(tint)", "target-arrow-color": "data(tint)", opacity: 0.8 } },
  { selector: "edge.thin", style: { opacity: 0.34 } },
  { selector: "edge.faded", style: { opacity: 0.16 } },
  { selector: "edge.unused", style: { visibility: "hidden" } },
  { selector: "edge.oneway", style: { "target-arrow-shape": "triangle" } },
  { selector: "edge.hovered", style: { opacity: 1 } },
  {
    selector: "edge.cut",
    style: {
      "line-color": c.cut, "target-arrow-color": c.cut, opacity: 1, "line-style": "dashed",
      "line-dash-pattern": [9, 5], "line-cap": "butt", "z-index": 9,
    },
  },
  { selector: "edge.cut.faded", style: { opacity: 0.34 } },
  // The part that it has for itself is drawn above the graph; the wire beyond is everybody's.
  { selector: "edge.wired", style: { "line-color": c.link, "target-arrow-color": c.link, opacity: 0.62, "line-dash-pattern": "data(gap)" } },
  { selector: "edge.wired[tint]", style: { "line-color": "data(tint)", "target-arrow-color": "data(tint)", opacity: 0.8 } },
  { selector: "edge.wired.bundle", style: { opacity: 0.46 } },
  { selector: "edge.wired.thin", style: { opacity: 0.34 } },
  { selector: "edge.wired.faded", style: { opacity: 0.16 } },
  { selector: "edge.wired.hovered", style: { opacity: 1 } },
  // What a sketch leaves out.
  {
    selector: "edge.off",
    style: { opacity: 0.5, "line-style": "dashed", "line-dash-pattern": [4, 5], "line-cap": "butt" },
  },
  { selector: "edge.partly", style: { opacity: 0.55, "line-style": "dashed", "line-dash-pattern": [16, 4] } },
  { selector: "edge.off.hovered", style: { opacity: 0.9 } },
  {
    selector: "edge.turned",
    style: {
      "curve-style": "segments", "edge-distances": "node-position",
      "source-endpoint": "data(start)", "target-endpoint": "data(end)",
      "segment-weights": "data(weights)", "segment-distances": "data(distances)",
    },
  },
  { selector: "edge.wired:selected", style: { "line-style": "solid" } },
  // Only the pieces at its ends are seen of it, and nothing that they lead past is harder to touch.
  {
    selector: "edge.stubs",
    style: { "line-style": "dashed", "line-dash-pattern": "data(dash)", "line-cap": "butt", "z-index": -1 },
  },
  {
    selector: ":selected",
    style: {
      "border-color": c.select, "border-width": 2.8, "line-color": c.select,
      "target-arrow-color": c.select, opacity: 1,
    },
  },
  {
    selector: "core",
    style: {
      "selection-box-color": c.accent, "selection-box-opacity": 0.12,
      "selection-box-border-color": c.accent, "selection-box-border-width": 1,
      "active-bg-opacity": 0,
    },
  },
];
