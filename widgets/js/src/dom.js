/** Elements of the page: making them, their icons, and bitmaps as fine as the screen. */

/**
 * @param {string} tag
 * @param {Record<string, any>} [attributes] those beginning with "on" are listeners
 * @param {...(Node | string)} children
 * @returns {any}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children);
  return element;
}

/** A button with an icon and a name that a screen reader says. */
export function iconButton(icon, title, onclick, attributes = {}) {
  const button = h("button", { type: "button", title, "aria-label": title, onclick, ...attributes });
  button.innerHTML = icons[icon];
  return button;
}

/**
 * The context of a canvas element that is as fine as the screen, wiped.
 * @param {HTMLCanvasElement} strip
 */
export function wiped(strip) {
  const ratio = Math.min(2, devicePixelRatio || 1);
  const [width, height] = [strip.clientWidth, strip.clientHeight].map((v) => Math.round(v * ratio));
  if (strip.width !== width || strip.height !== height) Object.assign(strip, { width, height });
  const ctx = strip.getContext("2d");
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.clearRect(0, 0, width, height);
  return ctx;
}

const svg = (content) => `<svg viewBox="0 0 24 24" aria-hidden="true">${content}</svg>`;

export const icons = {
  select: svg('<path d="M5 3l6 16 2-7 7-2z"/>'),
  link: svg('<circle cx="5" cy="19" r="2.4"/><circle cx="19" cy="5" r="2.4"/><path d="M7 17L17 7"/>'),
  gpu: svg('<rect x="4" y="6" width="16" height="12" rx="2"/><path d="M8 10h3v4H8zM14 10h2v4h-2zM7 3v3M12 3v3M17 3v3M7 18v3M12 18v3M17 18v3"/>'),
  switch: svg('<rect x="3" y="9" width="18" height="6" rx="2"/><path d="M7 12h.01M11 12h.01M15 12h3"/>'),
  memory: svg('<rect x="3" y="7" width="18" height="9" rx="1.5"/><path d="M7 7v5M11 7v5M15 7v5M6 16v2M12 16v2M18 16v2"/>'),
  nic: svg('<path d="M4 4v17M4 7h15a1 1 0 011 1v8a1 1 0 01-1 1H4"/><path d="M9 11h3v3H9zM16 10v4M8 17v3M12 17v3M16 17v3"/>'),
  host: svg('<rect x="3.5" y="5" width="17" height="14" rx="3" stroke-dasharray="3.4 2.6"/>'),
  undo: svg('<path d="M9 14L4 9l5-5"/><path d="M4 9h9a6 6 0 010 12h-2"/>'),
  redo: svg('<path d="M15 14l5-5-5-5"/><path d="M20 9h-9a6 6 0 000 12h2"/>'),
  delete: svg('<path d="M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13"/>'),
  fit: svg('<path d="M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5"/>'),
  find: svg('<circle cx="10.5" cy="10.5" r="6"/><path d="M15 15l5 5"/>'),
  zoom: "100 %",
  labels: svg('<path d="M3 12h3M18 12h3"/><rect x="6" y="7.5" width="12" height="9" rx="2"/><path d="M9.5 12h5"/>'),
  grid: svg('<path d="M4 9.3h16M4 14.7h16M9.3 4v16M14.7 4v16"/>'),
  help: svg('<circle cx="12" cy="12" r="8.5"/><path d="M9.6 9.6a2.5 2.5 0 114 2c-1 .7-1.6 1.2-1.6 2.2M12 17h.01"/>'),
  play: svg('<path d="M7 4.5v15l13-7.5z"/>'),
  pause: svg('<path d="M7 5h3.6v14H7zM13.4 5H17v14h-3.6z"/>'),
  back: svg('<path d="M15 6l-6 6 6 6"/>'),
  next: svg('<path d="M9 6l6 6-6 6"/>'),
  first: svg('<path d="M18 6l-6 6 6 6M7 6v12"/>'),
  heat: svg('<path d="M4 18c4 0 4-12 8-12s4 12 8 12"/><path d="M4 21h16"/>'),
  log: svg('<path d="M5 6h14M5 11h14M5 16h9"/>'),
  inspect: svg('<path d="M4 4v16h16"/><path d="M7.5 8h6M10 12h8M7.5 16h4"/>'),
  film: svg('<rect x="3.5" y="5" width="17" height="14" rx="2"/><path d="M8 5v14M16 5v14M3.5 12H8M16 12h4.5"/>'),
  movie: svg('<rect x="3" y="7" width="12" height="10" rx="2"/><path d="M15 11l6-3.5v9L15 13"/>'),
  present: svg('<path d="M3 5h18M4.5 5v11h15V5M12 16v3M8.5 21l3.5-2 3.5 2"/><path d="M8 12l3-3 2 2 3-3"/>'),
  answer: svg('<path d="M3 12s3.4-6 9-6 9 6 9 6-3.4 6-9 6-9-6-9-6z"/><circle cx="12" cy="12" r="2.6"/><path d="M4 20L20 4"/>'),
  laser: svg('<circle cx="16" cy="8" r="2.4"/><path d="M13.6 10.4L4 20M16 2v1.6M22 8h-1.6M20.3 3.7l-1.2 1.2"/>'),
  follow: svg('<circle cx="12" cy="12" r="3"/><path d="M12 3v4M12 17v4M3 12h4M17 12h4"/>'),
  unused: svg('<circle cx="5" cy="12" r="2.4"/><circle cx="19" cy="12" r="2.4"/><path d="M8 12h2M14 12h2"/>'),
  add: svg('<path d="M12 5v14M5 12h14"/>'),
  difference: svg('<circle cx="9" cy="12" r="6"/><circle cx="15" cy="12" r="6"/>'),
  close: svg('<path d="M6 6l12 12M18 6L6 18"/>'),
};
