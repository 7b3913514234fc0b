/** How cytoscape draws devices, hosts and links. */

export const FONT = '"Inter Variable", Inter, system-ui, -apple-system, "Segoe UI", sans-serif';

/** How far a host's box reaches beyond its devices, in drawing units. */
export const HOST_PADDING = 20;

/** @param {Record<string, string>} c colours of the theme @returns {any[]} */
export const styleSheet = (c) => [
  {
    selector: "node.device",
    style: {
      shape: "round-rectangle", width: "data(width)", height: "data(height)",
      "background-color": c.surface, "border-width": 1.6, "border-color": "data(color)",
      "corner-radius": 9, label: "data(label)", color: c.text, "font-family": FONT,
      "font-size": 11, "font-weight": 600, "text-valign": "center", "text-halign": "center",
      "text-wrap": "ellipsis", "text-max-width": 70, "min-zoomed-font-size": 4.5,
      "overlay-opacity": 0,
    },
  },
  {
    selector: "node.switch",
    style: { "background-color": c.raised, "corner-radius": 17, "text-max-width": 108 },
  },
  { selector: "node.nic", style: { "corner-radius": 5, "font-size": 10 } },
  { selector: "node.memory", style: { "text-max-width": 84 } },
  // The lower part of the box is for the buffer.
  { selector: "node.filled", style: { "text-valign": "top", "text-margin-y": 17 } },
  { selector: "node.memory.filled", style: { "text-margin-y": 15, "font-size": 10 } },
  { selector: "node.device.far1", style: { "font-size": 14 } },
  { selector: "node.device.far2", style: { "font-size": 18 } },
  { selector: "node.filled.far1", style: { "text-margin-y": 19 } },
  { selector: "node.filled.far2", style: { "text-margin-y": 23 } },
  {
    selector: "node.group",
    style: {
      shape: "round-rectangle", width: "data(width)", height: "data(height)",
      "background-color": c.surface, "border-width": 1.6, "border-color": "data(color)",
      "corner-radius": 13, label: "data(label)", color: c.text, "font-family": FONT,
      "font-size": 12.5, "font-weight": 600, "line-height": 1.35, "text-valign": "center",
      "text-wrap": "wrap", "text-max-width": 600, "min-zoomed-font-size": 4.5, "overlay-opacity": 0,
      // A second sheet behind it says that there is more inside.
      ghost: "yes", "ghost-offset-x": 4, "ghost-offset-y": -4, "ghost-opacity": 0.42,
    },
  },
  { selector: "node.group.far1", style: { "font-size": 15 } },
  { selector: "node.group.far2", style: { "font-size": 16.5 } },
  { selector: "node.group.split", style: { "border-color": c.cut, "border-style": "dashed", "border-width": 2.4 } },
  {
    selector: "node.host",
    style: {
      shape: "round-rectangle", "background-color": c.box, "background-opacity": 0.72,
      "border-color": c.boxLine, "border-width": 1.2, "corner-radius": 18, padding: HOST_PADDING,
      "compound-sizing-wrt-labels": "exclude",
      label: "data(label)", color: c.dim, "font-family": FONT, "font-size": 12,
      "font-weight": 600, "text-valign": "top", "text-halign": "center", "text-margin-y": -5,
      "min-zoomed-font-size": 5, "overlay-opacity": 0,
    },
  },
  { selector: "node.host.far1", style: { "font-size": 15 } },
  { selector: "node.host.far2", style: { "font-size": 19 } },
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
  { selector: "edge.thin", style: { opacity: 0.34 } },
  { selector: "edge.faded", style: { opacity: 0.16 } },
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
  // What a sketch leaves out.
  {
    selector: "edge.off",
    style: { opacity: 0.5, "line-style": "dashed", "line-dash-pattern": [4, 5], "line-cap": "butt" },
  },
  { selector: "edge.partly", style: { opacity: 0.55, "line-style": "dashed", "line-dash-pattern": [16, 4] } },
  { selector: "edge.off.hovered", style: { opacity: 0.9 } },
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
