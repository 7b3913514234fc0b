/* Browser storage: what each tab keeps of its drawing, the drawing itself and its history, under an id
   of its own. A tab holds a lock of its id while it lives. A reload finds its own; a duplicated tab,
   whose id is held, goes on with a copy; a new tab takes over what a closed one has left.

   Each step of the history is one of a document (documents.js), and the tab holds the lock of the one
   that it is at. What comes without the name of a document is of the one that the tab began with.
   Where another tab is at a document, this one goes on with a copy of it. */
(function () {
  "use strict";

  const STORE = "topoloom.drawing.";
  const TAB = "topoloom.tab";
  const COPIES = "topoloom.copies";
  const MOST = 16; // drawings of this and other tabs, of files and of links
  const STEPS = 100; // of undo that a reload brings back
  const ROOM = 1_000_000; // characters of them
  const TRIES = 5; // in 100 ms each, for the page before to let its lock go

  /** A short text that differs for different drawings. */
  const digest = (text) => {
    let hash = 5381;
    for (let i = 0; i < text.length; i++) hash = ((hash * 33) ^ text.charCodeAt(i)) >>> 0;
    return hash.toString(36);
  };

  /** What a page is about: the usual drawing, or that of a file or a link. */
  const place = (home) => {
    const link = window.topoloomLink.text;
    if (link) return digest(link);
    return home.chosen ? digest(JSON.stringify(home.drawing)) : "usual";
  };

  const read = (key) => {
    try {
      return JSON.parse(window.localStorage.getItem(key));
    } catch {
      return null;
    }
  };

  const keys = () => Object.keys(window.localStorage).filter((each) => each.startsWith(STORE));
  const newestFirst = (found) => found.sort((a, b) => (read(b)?.at ?? 0) - (read(a)?.at ?? 0));
  /** The tab that a key belongs to; none where it is of a version without tabs. */
  const tabOf = (key) => key.slice(STORE.length).split(".")[1] ?? "";

  // ---- which tab this is ---------------------------------------------------------------------

  const documents = window.topoloomDocuments;
  const { fresh, hold, lockOf, release } = documents;
  const holdTab = (tab) => hold(`${TAB}.${tab}`);

  /** The same for a page that may have come back before the page before it has let go. */
  const holdAgain = async (name, patience = TRIES) => {
    if (await hold(name)) return true;
    if (!patience) return false;
    await new Promise((resolve) => setTimeout(resolve, 100));
    return holdAgain(name, patience - 1);
  };

  /** Give this tab what another has. */
  const copy = async (from, to) => {
    for (const key of keys().filter((each) => tabOf(each) === from)) {
      const [where] = key.slice(STORE.length).split(".");
      window.localStorage.setItem(`${STORE}${where}.${to}`, window.localStorage.getItem(key));
      await documents.copyPlan(key.slice(STORE.length), `${where}.${to}`);
    }
  };

  /** Take over what a tab that is closed has left of a place. @returns {Promise<string | null>} */
  const inherit = async (where) => {
    for (const key of newestFirst(keys().filter((each) => each.slice(STORE.length).split(".")[0] === where))) {
      const tab = tabOf(key);
      if (tab && (await holdTab(tab))) return tab;
      if (tab) continue;
      const made = fresh();
      await holdTab(made);
      await copy(tab, made);
      window.localStorage.removeItem(key);
      return made;
    }
    return null;
  };

  const identify = async (home) => {
    const before = window.sessionStorage.getItem(TAB);
    if (before && (await holdAgain(`${TAB}.${before}`))) return before;
    const left = before ? null : await inherit(place(home));
    if (left) return left;
    const tab = fresh();
    await holdTab(tab);
    if (before) await copy(before, tab);
    return tab;
  };

  let tab = "";
  let copies = {}; // documents that this tab is at instead of others, by these
  let known = null;
  const ready = (home) => {
    known ??= identify(home).then((found) => {
      tab = found;
      copies = JSON.parse(window.sessionStorage.getItem(COPIES) ?? "{}");
      window.sessionStorage.setItem(TAB, tab);
      documents.tidy(keys().map((each) => each.slice(STORE.length)));
    });
    return known;
  };
  const key = (home) => `${STORE}${place(home)}.${tab}`;

  // ---- history in few characters -----------------------------------------------------------

  /** Snapshots share most of what they have, so each part is written once. */
  const packed = (drawings) => {
    const pool = [];
    const places = new Map();
    const seen = new Map();
    const put = (text) => {
      if (!places.has(text)) {
        places.set(text, pool.length);
        pool.push(text);
      }
      return places.get(text);
    };
    const list = (values) => {
      if (!seen.has(values)) seen.set(values, put(JSON.stringify(values.map((each) => put(JSON.stringify(each))))));
      return seen.get(values);
    };
    const table = (values) => {
      if (!seen.has(values)) seen.set(values, put(JSON.stringify(Object.entries(values).map((each) => put(JSON.stringify(each))))));
      return seen.get(values);
    };
    const rows = drawings.map(({ topology: { devices, links, limits, ...topology }, positions, ...rest }) => ({
      topology, rest, devices: list(devices), links: list(links), limits: list(limits ?? []), positions: table(positions),
    }));
    return { pool, rows };
  };

  const unpacked = ({ pool, rows }) => {
    const made = [];
    const part = (number) => (made[number] ??= JSON.parse(pool[number]));
    const lists = [];
    const list = (number) => (lists[number] ??= part(number).map(part));
    const tables = [];
    const table = (number) => (tables[number] ??= Object.fromEntries(list(number)));
    return rows.map(({ topology, rest, devices, links, limits, positions }) => ({
      ...rest,
      topology: { ...topology, devices: list(devices), links: list(links), limits: list(limits) },
      positions: table(positions),
    }));
  };

  /** The steps nearest to now that there is room for. */
  const stepsOf = ({ past, future }) => {
    for (let many = STEPS; many >= 1; many = Math.floor(many / 2)) {
      const [back, on] = [past.slice(-many), future.slice(-many)];
      const steps = { ...packed([...back, ...on]), back: back.length };
      if (JSON.stringify(steps).length <= ROOM) return steps;
    }
    return null;
  };

  // ---- keeping -------------------------------------------------------------------------------

  const canvas = () => document.querySelector("#canvas .tl")?.__canvas ?? null;

  /** Write; where the browser has no room, first the history goes and then the oldest of others. */
  const write = (name, value) => {
    const others = newestFirst(keys().filter((each) => each !== name));
    while (others.length >= MOST) window.localStorage.removeItem(others.pop());
    let now = value;
    for (;;) {
      try {
        window.localStorage.setItem(name, JSON.stringify(now));
        return;
      } catch {
        if (now.steps) now = { ...now, steps: null };
        else if (others.length) window.localStorage.removeItem(others.pop());
        else return;
      }
    }
  };

  let waiting = null; // what is written after a pause, or when the page goes
  let saving = 0;
  let steps = null; // of the visit before, until the canvas has them

  const flush = () => {
    clearTimeout(saving);
    if (!waiting) return;
    const { drawing, home } = waiting;
    waiting = null;
    const history = canvas()?.history;
    write(key(home), { drawing, steps: steps ?? (history ? stepsOf(history) : null), at: Date.now() });
    const id = present; // of a page whose address has become another link, home says the next one
    if (touched.has(id)) claimed.then(() => keepDocument(resolved(id), drawing));
  };
  window.addEventListener("pagehide", flush);

  /** Give the canvas the steps of the visit before, once it draws what was restored. */
  const recall = (text, patience = 400) => {
    const found = canvas();
    if (found && JSON.stringify(found.drawing.topology) === text) {
      const all = unpacked(steps);
      found.recall(all.slice(0, steps.back), all.slice(steps.back));
      steps = null;
    } else if (patience) setTimeout(() => recall(text, patience - 1), 50);
    else steps = null;
  };

  // ---- which document it is at -----------------------------------------------------------------

  const touched = new Set(); // documents that are more than what a page begins with
  let present = ""; // the document that the tab is at
  let drawn = null; // what it is now
  let claimed = Promise.resolve(); // its lock is held
  let awaited = null; // its plan, which is shown once that of the document before is gone

  const resolved = (id) => (copies[id] ? resolved(copies[id]) : id);

  /** The document that a drawing is a step of. */
  const nameOf = (drawing, home) => resolved(drawing.document ?? key(home).slice(STORE.length));

  let warned = false;

  const keepDocument = async (id, drawing) => {
    if ((await documents.write(id, drawing)) || warned) return;
    warned = true;
    window.topoloomNotify("no-room", "This drawing is not among the drawings",
      "The browser keeps nothing or has no room; save the drawing as a file.");
  };

  /** Hold the lock of the present document, or of a copy of it that the tab goes on with. */
  const claim = async () => {
    while (!(await holdAgain(lockOf(present)))) {
      const from = present;
      present = copies[from] = fresh();
      if (touched.has(from)) touched.add(present);
      window.sessionStorage.setItem(COPIES, JSON.stringify(copies));
      await documents.copyPlan(from, present);
    }
  };

  /** Go to another document; one that was there before comes with its plan. */
  const change = async (id) => {
    const [from, left] = [present, drawn];
    flush();
    present = id;
    claimed = claimed.then(claim);
    if (!from) return;
    if (touched.has(from)) documents.keepVersion(from, left, { kind: "left" });
    release(lockOf(from));
    if (!(await documents.has(id))) return;
    awaited = await documents.readPlan(id);
    window.dash_clientside.set_props("other-cluster", { data: Date.now() });
  };

  /** Be at the document that the page begins with, before anything is drawn. */
  const begin = (drawing, home) => {
    drawn = drawing;
    change(nameOf(drawing, home));
  };

  window.topoloomStorage = {
    /** Whether there is a drawing that this tab was left with. */
    async has(home) {
      await ready(home);
      return read(key(home)) !== null;
    },

    /** The drawing that this tab was left with, or nothing; its history follows to the canvas. */
    async restore(home) {
      await ready(home);
      const found = read(key(home));
      if (!present) begin(found?.drawing ?? home.drawing, home);
      if (!found) return null;
      steps = found.steps ?? null;
      if (steps) recall(JSON.stringify(found.drawing.topology));
      return found.drawing;
    },

    /** Keep a drawing with its history, after a pause. */
    keep(drawing, home) {
      if (!tab) return;
      if (nameOf(drawing, home) !== present) change(nameOf(drawing, home));
      drawn = drawing;
      const { past = [], future = [] } = canvas()?.history ?? {};
      if (drawing.document || (!steps && past.length + future.length)) touched.add(present);
      waiting = { drawing, home };
      clearTimeout(saving);
      saving = setTimeout(flush, 150);
    },

    /** The plan of the document that this tab was left with, or nothing. */
    readResult: (home) => documents.readPlan(nameOf(read(key(home))?.drawing ?? home.drawing, home)),

    /** Store the plan of a drawing with its document, and as a version of that. */
    async writeResult(plan, drawing, { home, note }) {
      await claimed;
      const id = nameOf(drawing, home);
      touched.add(id);
      await keepDocument(id, drawing);
      await documents.writePlan(id, plan);
      const question = JSON.stringify(plan.asked);
      await documents.keepVersion(id, drawing, { kind: "solved", note, plan, question });
    },

    /** The plan of the document that was gone to, once. */
    takeAwaited() {
      const plan = awaited;
      awaited = null;
      return plan;
    },

    /** What the tab is at: the id of the document, and what is drawn. */
    get present() {
      return { id: present, drawing: drawn };
    },

    /** Write what waits for a pause, and wait until it is there. @param {boolean} [whole] even what is untouched */
    async settle(whole = false) {
      flush();
      await claimed;
      if (whole) touched.add(present);
      if (touched.has(present)) await keepDocument(present, drawn);
    },

    packed,
    unpacked,
  };
})();
