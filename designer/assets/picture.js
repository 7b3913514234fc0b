/* Pictures of drawings for the list of documents: hosts, links and devices as SVG, and their counts. */
(function () {
  "use strict";

  const SIZES = { gpu: [78, 60], switch: [124, 34], memory: [92, 46], nic: [70, 34] }; // as on the canvas
  const LINES = 400; // of a picture; more are a blot
  const NAMED = 40; // devices that get their names
  const LEAST = 400; // wide, so that two devices are no giants
  const PADDING = 34; // of a host

  const count = (number, one, many) => `${number} ${number === 1 ? one : many}`;

  const counts = ({ devices, links }) => {
    const of = (kind) => devices.filter((each) => each.kind === kind).length;
    const ends = new Set(links.map(({ src, dst }) => [src, dst].sort().join("\n")));
    const parts = [count(of("gpu"), "GPU", "GPUs")];
    if (of("switch")) parts.push(count(of("switch"), "switch", "switches"));
    if (of("memory")) parts.push(count(of("memory"), "memory", "memories"));
    if (of("nic")) parts.push(count(of("nic"), "NIC", "NICs"));
    parts.push(count(ends.size, "link", "links"));
    return parts.join(" · ");
  };

  const escaped = (text) => text.replace(/[&<>"]/g, (each) => `&#${each.charCodeAt(0)};`);

  /** The rectangle around others. @param {number[][]} rects [left, top, right, bottom] */
  const hull = (rects) => [0, 1].map((i) => Math.min(...rects.map((each) => each[i])))
    .concat([2, 3].map((i) => Math.max(...rects.map((each) => each[i]))));

  const rect = ([left, top, right, bottom], look, round) =>
    `<rect class="${look}" x="${left}" y="${top}" width="${right - left}" height="${bottom - top}" rx="${round}"/>`;

  /** Rectangles of the devices by name; what has no place yet is not drawn. */
  const places = ({ topology, positions }) =>
    new Map(
      topology.devices
        .filter(({ name }) => positions[name])
        .map(({ name, kind }) => {
          const [x, y] = positions[name].map(Math.round);
          const [wide, high] = SIZES[kind] ?? SIZES.gpu;
          return [name, [x - wide / 2, y - high / 2, x + wide / 2, y + high / 2]];
        }),
    );

  const hostsOf = ({ devices }, at) => {
    const found = new Map();
    for (const { name, host } of devices) {
      if (host && at.has(name)) found.set(host, [...(found.get(host) ?? []), at.get(name)]);
    }
    return [...found.values()].map((rects) => hull(rects).map((edge, i) => edge + (i < 2 ? -PADDING : PADDING)));
  };

  const linesOf = ({ links }, at) => {
    const middle = (name) => {
      const [left, top, right, bottom] = at.get(name);
      return `${(left + right) / 2} ${(top + bottom) / 2}`;
    };
    const pairs = new Set(links.filter(({ src, dst }) => at.has(src) && at.has(dst))
      .map(({ src, dst }) => (src < dst ? `M${middle(src)}L${middle(dst)}` : `M${middle(dst)}L${middle(src)}`)));
    const every = Math.max(1, Math.ceil(pairs.size / LINES));
    return [...pairs].filter((_, i) => i % every === 0).join("");
  };

  /** Return a picture as the text of an SVG. @param {{named?: boolean}} [how] with names where there are few */
  const draw = (drawing, { named = false } = {}) => {
    const { topology } = drawing;
    const at = places(drawing);
    const hosts = hostsOf(topology, at);
    const [left, top, right, bottom] = at.size ? hull([...at.values(), ...hosts]) : [0, 0, 1, 1];
    const [wide, high] = [Math.max(LEAST, right - left), Math.max(LEAST / 2, bottom - top)];
    const edge = Math.max(wide, high) * 0.03;
    const [x, y] = [(left + right - wide) / 2, (top + bottom - high) / 2];
    const box = [x - edge, y - edge, wide + 2 * edge, high + 2 * edge].map((each) => Math.round(each));
    const devices = topology.devices.filter(({ name }) => at.has(name));
    const words = named && devices.length <= NAMED
      ? devices.map(({ name }) => {
        const [x1, y1, x2, y2] = at.get(name);
        return `<text x="${(x1 + x2) / 2}" y="${(y1 + y2) / 2}">${escaped(name)}</text>`;
      })
      : [];
    return [
      `<svg viewBox="${box.join(" ")}" aria-hidden="true" style="--line: ${Math.max(2, Math.max(wide, high) / 160)}">`,
      ...hosts.map((each) => rect(each, "host", 18)),
      `<path class="links" d="${linesOf(topology, at)}"/>`,
      ...devices.map(({ name, kind }) => rect(at.get(name), SIZES[kind] ? kind : "gpu", 12)),
      ...words,
      "</svg>",
    ].join("");
  };

  window.topoloomPicture = { counts, draw };
})();
