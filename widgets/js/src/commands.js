/**
 * Everything that can be done, by name: buttons, keys and Python call the same functions with the
 * same arguments. An edit that cannot be done is told to the user and changes nothing.
 *
 * @typedef {import("./canvas.js").Canvas} Canvas
 */

import { align, freeSpot, hostRects, rectsOf } from "./arrange.js";
import { clip, paste, repeatHost } from "./clones.js";
import { saveFilm } from "./film.js";
import { centre, hullRect, rectOf } from "./geometry.js";
import * as edit from "./model.js";
import { EditError, KINDS } from "./model.js";
import { endsOfSelection, hubOf, linkAll, mesh, pairs, stamp, star } from "./patterns.js";
import { saveGif, saveWebm } from "./record.js";
import { HEATS } from "./tokens.js";

/** How far an arrow key moves the selection, in drawing units. */
export const NUDGE = 10;
const PASTE_OFFSET = 44;
/** Between a drawing and one that is added beside it. */
const BESIDE = 120;

/** @param {number} count @param {string} what */
const counted = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;

/** Draw something and select it; `linked` to all that was selected before. @param {Canvas} canvas */
function add(canvas, { kind, host, position, name, linked = false }) {
  if (!KINDS[kind]) throw new EditError(`cannot add a ${kind}; kinds are ${Object.keys(KINDS).join(", ")}`);
  const { hosts, devices } = canvas.selection;
  const into = host === undefined ? (hosts.length === 1 ? hosts[0] : null) : host;
  const at = canvas.snapping.placed(position ?? spotFor(canvas, { kind, into, beside: devices.at(-1) }));
  const ends = linked ? endsOfSelection(canvas.drawing, canvas.selection) : [];
  const alone = edit.addDevice(canvas.drawing, { kind, host: into, position: at, name });
  const made = alone.topology.devices.at(-1).name;
  canvas.commit(linkAll(alone, star(ends, made), canvas.model.get("link_preset") ?? {}).drawing);
  canvas.select({ devices: [made], hosts: into && hosts.includes(into) ? [into] : [] });
  canvas.stage.reveal(made);
  canvas.say(ends.length ? `Added ${made} with ${counted(ends.length, "link")}` : `Added ${made}`);
}

/** A free place near the selection, else in the middle of the view. @param {Canvas} canvas */
function spotFor(canvas, { kind, into, beside }) {
  const { drawing } = canvas;
  const view = canvas.stage.cy.extent();
  const rects = rectsOf(drawing);
  const hosts = hostRects(drawing.topology, rects);
  const { x, y } = into
    ? centre(hosts.get(into))
    : canvas.shown.toDrawing({ x: (view.x1 + view.x2) / 2, y: (view.y1 + view.y2) / 2 });
  const near = (into ? null : drawing.positions[beside]) ?? [x, y];
  return freeSpot(near, kind, [...rects.values(), ...(into ? [] : hosts.values())]);
}

/** Selected devices, those of selected hosts included. @param {Canvas} canvas */
const chosenDevices = ({ selection, drawing }) => {
  const { devices, hosts } = selection;
  const inHosts = drawing.topology.devices.filter((d) => hosts.includes(d.host)).map((d) => d.name);
  return [...new Set([...devices, ...inHosts])];
};

/** Links of the selected lines, both ways. @param {Canvas} canvas @returns {[string, string][]} */
const chosenLinks = ({ selection }) => selection.links.flatMap(([a, b]) => [[a, b], [b, a]]);

/** @param {Canvas} canvas */
function intoHost(canvas, { devices = chosenDevices(canvas), name }) {
  if (!devices.length) throw new EditError("a host needs devices; select some");
  const host = name === undefined ? edit.freeName(edit.hostNames(canvas.drawing.topology), "host") : name;
  canvas.commit(edit.setHost(canvas.drawing, devices, host));
  canvas.select(host === null ? { devices } : { hosts: [host] });
  canvas.say(host === null ? "Taken out of the host" : `Put ${counted(devices.length, "device")} into ${host}`);
}

/** @param {Canvas} canvas */
function remove(canvas, args) {
  if (canvas.notes.selected !== null && !(args.devices || args.links || args.hosts)) return canvas.notes.remove();
  const { selection } = canvas;
  const what = args.devices || args.links || args.hosts
    ? args
    : { devices: selection.devices, hosts: selection.hosts, links: chosenLinks(canvas) };
  const { devices, links } = canvas.drawing.topology;
  if (!canvas.commit(edit.remove(canvas.drawing, what))) return undefined;
  const now = canvas.drawing.topology;
  canvas.say(`Deleted ${counted(devices.length - now.devices.length, "device")} and ${counted(links.length - now.links.length, "link")}`);
}

/**
 * @param {Canvas} canvas @param {import("./clones.js").Clip | null} what
 * @param {{times?: number, at?: [number, number]}} [where] at: its middle, else beside the original
 */
function put(canvas, what, { times = 1, at } = {}) {
  if (!what) throw new EditError("nothing to paste; select devices or a host and copy them");
  const { x, y } = centre(hullRect(Object.values(what.positions).map(([px, py]) => rectOf({ x: px, y: py }))));
  const by = /** @type {[number, number]} */ (at ? [at[0] - x, at[1] - y] : [PASTE_OFFSET * times, PASTE_OFFSET * times]);
  const made = paste(canvas.drawing, what, by);
  canvas.commit(made.drawing);
  const host = new Map(made.drawing.topology.devices.map((d) => [d.name, d.host]));
  const hosts = [...made.hosts.values()];
  canvas.select({ hosts, devices: [...made.names.values()].filter((name) => !hosts.includes(host.get(name))) });
  canvas.say(`Pasted ${counted(made.names.size, "device")}`);
}

/** Add a whole drawing to the right of what there is. @param {Canvas} canvas */
function insert(canvas, { drawing }) {
  const given = edit.wholeDrawing(drawing);
  const devices = given.topology.devices.map((d) => d.name);
  const here = [...rectsOf(canvas.drawing).values()];
  const box = hullRect([...rectsOf(given).values()]);
  const there = here.length ? hullRect(here) : box;
  const at = /** @type {[number, number]} */ ([there.x2 + (here.length ? BESIDE : 0) + (box.x2 - box.x1) / 2, (there.y1 + there.y2) / 2]);
  put(canvas, clip(given, { devices, hosts: [] }), { at });
  canvas.fit();
}

/** Have a cluster built by numbers, where the page around can. @param {Canvas} canvas */
function build(canvas) {
  if (!canBuild(canvas, true)) throw new EditError("clusters are built by numbers in the designer; here open one of the gallery");
}

/** Whether the page around builds clusters; with `open` it begins. @param {Canvas} canvas @param {boolean} [open] */
export const canBuild = (canvas, open = false) =>
  !canvas.dom.root.dispatchEvent(new CustomEvent("topoloom:build", { bubbles: true, cancelable: true, detail: { open } }));

/** @param {Canvas} canvas */
function selectAll(canvas) {
  const { topology } = canvas.drawing;
  canvas.select({
    devices: topology.devices.map((d) => d.name),
    hosts: [...edit.hostNames(topology)],
    links: edit.linesOf(topology).map(({ a, b }) => [a, b]),
  });
}

/** Show what is selected as large as it may be, or everything. @param {Canvas} canvas */
function zoomToSelection(canvas) {
  const rects = canvas.stage.rectsOf(canvas.selection);
  if (!rects.length) return canvas.fit();
  return canvas.stage.show(rects);
}

/** @param {Canvas} canvas */
function nudge(canvas, { dx = 0, dy = 0 }) {
  if (canvas.notes.selected !== null) {
    canvas.notes.nudge(dx, dy);
    return;
  }
  const { positions } = canvas.drawing;
  const names = chosenDevices(canvas);
  if (!names.length) return;
  const [right, down] = canvas.snapping.stride(positions[names[0]], [dx, dy]);
  const to = Object.fromEntries(names.map((name) => [name, /** @type {[number, number]} */ ([positions[name][0] + right, positions[name][1] + down])]));
  if (canvas.commit(edit.move(canvas.drawing, to))) canvas.snapping.guide(names);
}

/** Ask the host for the positions of a drawing that nobody has arranged; it answers with a move. @param {Canvas} canvas */
function layOut(canvas) {
  const last = canvas.model.get("request");
  if (!last) throw new EditError("this page cannot lay out a drawing; the designer and a notebook can");
  canvas.tell({ request: { name: "layout", n: (last.n ?? 0) + 1 } });
  canvas.say("Laid out anew; Ctrl+Z brings the old places back");
}

/** Put devices where they are to stand, and show everything if all was in view. @param {Canvas} canvas */
function moveTo(canvas, { to }) {
  const before = canvas.stage.isFitted;
  const known = Object.fromEntries(Object.entries(to).filter(([name]) => canvas.deviceIndex.has(name)));
  if (canvas.commit(edit.move(canvas.drawing, known)) && before) canvas.fit();
}

/** @param {Canvas} canvas */
function editLinks(canvas, { links = chosenLinks(canvas), values, both = true }) {
  const { duplex, ...rest } = values;
  let next = duplex === undefined ? canvas.drawing : edit.setDuplex(canvas.drawing, links, duplex);
  next = edit.editLinks(next, links, rest, { both });
  canvas.commit(next);
}

/** Link what is selected by a pattern, and say how many links were made. @param {Canvas} canvas */
function linkBy(canvas, { how, hub = canvas.hovered?.device ?? canvas.keyboard.reached, ...values }) {
  const { drawing, selection } = canvas;
  const names = endsOfSelection(drawing, selection, { gpus: how === "mesh" });
  if (names.length < 2) throw new EditError("links need two devices; select more");
  const wanted = { star: () => star(names, hubOf(drawing, names, hub)), pairs: () => pairs(drawing, names), mesh: () => mesh(names) }[how];
  if (!wanted) throw new EditError(`cannot link as ${how}; there are star, pairs and mesh`);
  const { drawing: next, made, there } = linkAll(drawing, wanted(), { ...canvas.model.get("link_preset"), ...values });
  if (made && !canvas.commit(next)) return;
  const rest = there ? `; ${there === 1 ? "one was" : `${there} were`} there already` : "";
  canvas.panels.showToast(`${counted(made, "link")} made${rest}`);
}

/** @param {Canvas} canvas */
function stampSelection(canvas, { times, join = null }) {
  const { devices, hosts } = canvas.selection;
  if (hosts.length === 1 && !devices.some((name) => canvas.hostOf(name) !== hosts[0])) {
    return run(canvas, "repeat_host", { host: hosts[0], times: times - 1, join });
  }
  const made = stamp(canvas.drawing, canvas.selection, times);
  if (!canvas.commit(made.drawing)) return undefined;
  canvas.select({ devices: made.devices, hosts: made.hosts });
  if (!canvas.stage.inView(canvas.stage.rectsOf(canvas.selection))) canvas.fit();
  return canvas.panels.showToast(`There are ${times} in all`);
}

/**
 * Show the load of the links, now or of the whole run; without arguments the next of now, whole run, off.
 * @param {Canvas} canvas
 */
function heat(canvas, { on, of }) {
  if (of !== undefined && !HEATS[of]) throw new EditError(`load is shown of ${Object.keys(HEATS).join(" or ")}, not of ${of}`);
  if (on !== undefined || of !== undefined) canvas.setHeat(on ?? true, of ?? "now");
  else if (!canvas.heat) canvas.setHeat(true, "now");
  else canvas.setHeat(canvas.heatOf === "now", "run");
  canvas.say(canvas.heat ? `Link load: ${HEATS[canvas.heatOf]}` : "Link load is not shown");
}

/** @type {Record<string, (canvas: Canvas, args: any) => unknown>} */
const COMMANDS = {
  select: (canvas, args) => {
    if (args.devices || args.links || args.hosts) canvas.select(args);
    else canvas.setMode("select");
  },
  link: (canvas, { src, dst, ...values }) => {
    if (src === undefined) return canvas.setMode("link");
    canvas.commit(edit.addLink(canvas.drawing, src, dst, { ...canvas.model.get("link_preset"), ...values }));
    canvas.say(`Linked ${src} and ${dst}`);
  },
  add,
  host: intoHost,
  ungroup: (canvas) => intoHost(canvas, { name: null }),
  rename: (canvas, { device, host }) => {
    if (canvas.notes.selected !== null && !(device ?? host)) canvas.notes.type();
    else canvas.renaming.open(device ?? host ? { device, host } : undefined);
  },
  note: (canvas, what) => canvas.notes.add({ ...what, kind: "note" }),
  frame: (canvas, what) => canvas.notes.add({ ...what, kind: "frame" }),
  edit_note: (canvas, { number = canvas.notes.selected, values }) => canvas.notes.edit(number, values),
  resize_note: (canvas, { dx, dy }) => canvas.notes.resize(dx, dy),
  select_note: (canvas, { number }) => (number === undefined ? canvas.notes.walk() : canvas.notes.select(number)),
  rename_device: (canvas, { device, name }) => {
    const selected = canvas.selection.devices.includes(device);
    canvas.commit(edit.renameDevice(canvas.drawing, device, name));
    if (selected) canvas.select({ devices: [name] });
  },
  rename_host: (canvas, { host, name }) => {
    canvas.commit(edit.renameHost(canvas.drawing, host, name));
    canvas.select({ hosts: [name] });
  },
  rename_topology: (canvas, { name }) => canvas.commit(edit.renameTopology(canvas.drawing, name)),
  edit_devices: (canvas, { devices = chosenDevices(canvas), values }) =>
    canvas.commit(edit.editDevices(canvas.drawing, devices, values)),
  edit_links: editLinks,
  move: moveTo,
  layout: layOut,
  edit_rows: (canvas, how) => canvas.commit(edit.editRows(canvas.drawing, how)),
  edit_limits: (canvas, { limits }) => canvas.commit(edit.editLimits(canvas.drawing, limits)),
  delete: remove,
  nudge,
  copy: (canvas) => {
    const what = clip(canvas.drawing, canvas.selection);
    if (!what) throw new EditError("nothing to copy; select devices or a host");
    canvas.clipboard = { what, pasted: 0 };
    canvas.say(`Copied ${counted(what.topology.devices.length, "device")}`);
  },
  paste: (canvas, { at }) => {
    canvas.clipboard.pasted += at ? 0 : 1;
    put(canvas, canvas.clipboard.what, { times: canvas.clipboard.pasted, at });
  },
  duplicate: (canvas) => put(canvas, clip(canvas.drawing, canvas.selection)),
  insert,
  build,
  repeat_host: (canvas, { host = canvas.selection.hosts[0], ...how }) => {
    const made = repeatHost(canvas.drawing, host, { ...canvas.model.get("link_preset"), ...how });
    canvas.commit(made.drawing);
    canvas.select({ hosts: made.hosts });
    canvas.fit();
    canvas.say(`There are ${counted(made.hosts.length, "host")} like ${host}`);
  },
  link_by: linkBy,
  stamp: stampSelection,
  align: (canvas, { how }) => canvas.commit(align(canvas.drawing, canvas.selection, how)),
  undo: (canvas) => canvas.travel("undo"),
  redo: (canvas) => canvas.travel("redo"),
  fit: (canvas) => canvas.fit(),
  zoom_selection: zoomToSelection,
  zoom: (canvas, { level = 1 }) => canvas.zoom(level / canvas.stage.cy.zoom()),
  labels: (canvas, { on = !canvas.linkLabels.on }) => canvas.linkLabels.turn(on),
  color_links: (canvas, how) => canvas.linkClasses.turn(how),
  filter_links: (canvas, which) => canvas.linkClasses.filter(which),
  grid: (canvas, { on = !canvas.snapping.grid }) => canvas.snapping.turn(on),
  map: (canvas, { on = !canvas.minimap.on }) => canvas.minimap.turn(on),
  find: (canvas, { on }) => canvas.finding.show(on),
  menu: (canvas, { at }) => canvas.menu.open(at),
  fold: (canvas, how) => canvas.folding.turn(how),
  select_all: selectAll,
  play: (canvas) => canvas.transport.play(true),
  pause: (canvas) => canvas.transport.play(false),
  toggle: (canvas) => canvas.transport.play(!canvas.clock.playing),
  step: (canvas, { by = 1, of = "epoch" }) => canvas.transport.step(by, of),
  seek: (canvas, { time }) => canvas.transport.seek(time),
  speed: (canvas, { value }) => canvas.transport.setSpeed(value),
  newest: (canvas) => canvas.incumbents.showNewest(),
  heat,
  log: (canvas, { on }) => canvas.panels.showLog(on),
  inspect: (canvas, { on = !canvas.inspector.open }) => canvas.inspector.show(on),
  focus: (canvas, what) => canvas.inspector.look(what),
  follow: (canvas, { on = !canvas.following.on, chunk }) => canvas.following.turn(on, chunk),
  present: (canvas, { on = !canvas.presenter.on }) => canvas.presenter.turn(on),
  hide_answer: (canvas, { on = !canvas.presenter.hiding }) => canvas.presenter.hide(on),
  laser: (canvas, { on = !canvas.presenter.laser.on }) => canvas.presenter.point(on),
  only_used: (canvas, { on = !canvas.presenter.onlyUsed }) => canvas.presenter.useOnly(on),
  shortcuts: (canvas, { on }) => canvas.panels.showShortcuts(on),
  export_gif: saveGif,
  export_webm: saveWebm,
  export_film: saveFilm,
};

/**
 * Run a command; what it refuses, now or later, is shown in the user's words.
 * @param {Canvas} canvas @param {string} name @param {object} [args]
 */
export function run(canvas, name, args = {}) {
  const refuse = (error) => {
    if (!(error instanceof EditError)) throw error;
    canvas.refuse(error.message);
  };
  try {
    if (!COMMANDS[name]) {
      throw new EditError(`no command is called ${name}; there are ${Object.keys(COMMANDS).join(", ")}`);
    }
    const done = COMMANDS[name](canvas, args ?? {});
    return done instanceof Promise ? done.catch(refuse) : done;
  } catch (error) {
    return refuse(error);
  }
}
