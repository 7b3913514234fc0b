/**
 * Sends as filled cells over the epochs that they are planned in, or over the player's steps.
 *
 * @typedef {import("./gantt.js").Picture} Picture
 * @typedef {import("./rows.js").Row} Row
 * @typedef {import("./plan.js").Sent} Sent
 * @typedef {{x: number, width: number, first: number, count: number, each: number}} Columns those that are
 *   shown: where, from which on, how many, and how wide each is
 */

/** Pixels of a column, at least and at most. */
const WIDE = { least: 9, most: 30 };
/** Stripes of one cell; more are not told apart. */
const MOST_STRIPES = 6;
const FAINT = 0.15;

/** @type {WeakMap<Row, Map<number, Sent[]>>} */
const cellsOf = new WeakMap();

/** The cells of a row: what is planned in each column. @param {Row} row */
function cellsIn(row) {
  const known = cellsOf.get(row);
  if (known) return known;
  const cells = new Map();
  for (const send of row.sends) {
    if (send.column < 0) continue;
    const have = cells.get(send.column);
    if (have) have.push(send);
    else cells.set(send.column, [send]);
  }
  cellsOf.set(row, cells);
  return cells;
}

/** How wide the grid would like to be. @param {number} columns @param {number} room pixels for both charts */
export const widthFor = (columns, room) => Math.min(Math.max(columns * 24, 96), room * 0.44);

/**
 * Which columns are shown: all, or where they would be too narrow the page that has the current one.
 * @param {{x: number, width: number}} frame @param {{columns: number, current: number}} plan @returns {Columns}
 */
export function columnsIn({ x, width }, { columns, current }) {
  const count = Math.max(1, Math.min(columns, Math.floor(width / WIDE.least)));
  const first = Math.min(columns - count, Math.floor(current / count) * count);
  return { x, width, first, count, each: Math.min(WIDE.most, width / count) };
}

/** @param {Picture} picture @param {Columns} columns */
export function drawGrid(picture, columns) {
  const { ctx, rows, range, shift, colors, critical, chosen } = picture;
  /** @type {Map<string, {color: string, alpha: number, rects: [number, number, number, number][]}>} */
  const buckets = new Map();
  const outlines = [];
  let mark = null;
  for (let r = range[0]; r < range[1]; r++) {
    const cells = cellsIn(rows[r]);
    for (let k = 0; k < columns.count; k++) {
      const box = cellBox(rows[r], { k, columns, shift });
      const sends = cells.get(columns.first + k);
      if (!sends) {
        put(buckets, colors.empty, 0.55, [box.x, box.y, box.width, box.height]);
        continue;
      }
      stripes(buckets, sends, { box, picture });
      if (sends.some(({ i }) => critical.has(i))) outlines.push(box);
      if (chosen && sends.includes(chosen)) mark = box;
    }
  }
  for (const { color, alpha, rects } of buckets.values()) {
    ctx.fillStyle = color;
    ctx.globalAlpha = alpha;
    ctx.beginPath();
    for (const rect of rects) ctx.rect(...rect);
    ctx.fill();
  }
  ctx.globalAlpha = 1;
  outline(ctx, outlines, { color: colors.select, width: 1.6, by: 0.5 });
  if (mark) outline(ctx, [mark], { color: colors.accent, width: 2.2, by: 1.5 });
}

/** What a cell shows: a send of each chunk, of those that do not step back if there are any. */
function shownIn(sends, match) {
  const matching = match ? sends.filter(match) : sends;
  const first = new Map();
  for (const send of matching.length ? matching : sends) {
    if (!first.has(send.chunk)) first.set(send.chunk, send);
    if (first.size === MOST_STRIPES) break;
  }
  return { list: [...first.values()], faint: !matching.length };
}

function stripes(buckets, sends, { box, picture }) {
  const { chunkColors, match } = picture;
  const { list, faint } = shownIn(sends, match);
  const each = box.height / list.length;
  list.forEach(({ chunk }, s) => {
    put(buckets, chunkColors[chunk], faint ? FAINT : 1, [box.x, box.y + s * each, box.width, each - (each > 4 && s < list.length - 1 ? 1 : 0)]);
  });
}

function put(buckets, color, alpha, rect) {
  const key = `${alpha} ${color}`;
  const have = buckets.get(key);
  if (have) have.rects.push(rect);
  else buckets.set(key, { color, alpha, rects: [rect] });
}

function outline(ctx, boxes, { color, width, by }) {
  ctx.strokeStyle = color;
  ctx.lineWidth = width;
  ctx.beginPath();
  for (const box of boxes) ctx.roundRect(box.x - by, box.y - by, box.width + 2 * by, box.height + 2 * by, 2);
  ctx.stroke();
}

function cellBox(row, { k, columns, shift }) {
  const gap = columns.each > 12 ? 2 : 1;
  return {
    x: columns.x + k * columns.each + gap / 2, y: shift + row.top + 2,
    width: columns.each - gap, height: row.height - 4,
  };
}

/**
 * The column at a place and the send there, if any.
 * @param {Row} row @param {Columns} columns
 * @param {{x: number, y: number, match?: ((send: Sent) => boolean) | null}} at pixels, y from the row's top
 */
export function cellAt(row, columns, { x, y, match = null }) {
  const k = Math.floor((x - columns.x) / columns.each);
  if (k < 0 || k >= columns.count) return null;
  const column = columns.first + k;
  const { list } = shownIn(cellsIn(row).get(column) ?? [], match);
  const s = Math.floor(((y - 2) / Math.max(1, row.height - 4)) * list.length);
  return { column, send: list[Math.min(list.length - 1, Math.max(0, s))] ?? null };
}
