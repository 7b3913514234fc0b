/** Colours. Identity by Okabe and Ito's palette; vermillion is kept for bottlenecks alone. */

/** Safe for colour-blind readers; from Okabe and Ito, "Color Universal Design" (2008). */
export const OKABE_ITO = [
  "#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#F0E442", "#0072B2", "#9AD1F5", "#B39DDB",
];

/** The same identities, dark enough for thin lines on a light ground. */
const ON_LIGHT = [
  "#1b7fc0", "#b87400", "#00805c", "#b0488a", "#857800", "#004f8c", "#3aa0c9", "#6f51b5",
];

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
