/* Browser storage: what each tab keeps of its drawing, the drawing itself and its history, under an id
   of its own, and beside it the result. A tab holds a lock of its id while it lives. A reload finds
   its own; a duplicated tab, whose id is held, goes on with a copy; a new tab takes over what a closed
   one has left. */
(function () {
  "use strict";

  const STORE = "topoloom.drawing.";
  const TAB = "topoloom.tab";
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

  // ---- results: they are too large for the storage that drawings are kept in ------------------

  const DATABASE = "topoloom";
  const RESULTS = "results";

  /** @param {IDBRequest} request */
  const settled = (request) =>
    new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });

  const opened = async (mode) => {
    const request = window.indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(RESULTS);
    const database = await settled(request);
    const transaction = database.transaction(RESULTS, mode);
    transaction.oncomplete = transaction.onabort = () => database.close();
    return transaction.objectStore(RESULTS);
  };

  const results = {
    /** The result that is stored under a key; nothing where the browser stores nothing. */
    async read(key) {
      try {
        return await settled((await opened("readonly")).get(key));
      } catch {
        return undefined;
      }
    },

    /**
     * Store a result, or forget it where there is none; of other keys only those of drawings stay.
     * @param {string} key @param {any} value
     */
    async write(key, value) {
      try {
        const store = await opened("readwrite");
        const others = keys();
        for (const each of await settled(store.getAllKeys())) {
          if (each !== key && !others.includes(each)) store.delete(each);
        }
        if (value) await settled(store.put(value, key));
        else await settled(store.delete(key));
      } catch {
        // A browser without room keeps the drawing alone.
      }
    },
  };

  // ---- which tab this is ---------------------------------------------------------------------

  // Kept in reach of the page: a promise that nothing can settle is collected, and its lock with it.
  let gone;
  const living = new Promise((resolve) => (gone = resolve));
  window.addEventListener("pagehide", ({ persisted }) => persisted || gone());

  /** Hold the lock of a tab while this page lives, unless another page does. @param {string} tab */
  const hold = (tab) => {
    if (!navigator.locks) return holdByAsking(tab); // only in a secure context
    return new Promise((resolve) => {
      navigator.locks.request(`${TAB}.${tab}`, { ifAvailable: true }, (lock) => {
        resolve(lock !== null);
        return lock && living;
      });
    });
  };

  /** The same for a page that may have come back before the page before it has let go. */
  const holdAgain = async (tab, patience = TRIES) => {
    if (await hold(tab)) return true;
    if (!patience) return false;
    await new Promise((resolve) => setTimeout(resolve, 100));
    return holdAgain(tab, patience - 1);
  };

  /** The same by asking the other tabs, which answer at once. */
  const holdByAsking = (tab) => {
    const channel = new BroadcastChannel(TAB);
    return new Promise((resolve) => {
      channel.onmessage = ({ data }) => data.held === tab && resolve(false);
      channel.postMessage({ asks: tab });
      setTimeout(() => resolve(true), 200);
    }).then((free) => {
      channel.onmessage = ({ data }) => data.asks === tab && channel.postMessage({ held: tab });
      if (!free) channel.close();
      return free;
    });
  };

  const fresh = () => `${Date.now().toString(36)}${Math.random().toString(36).slice(2, 8)}`;

  /** Give this tab what another has. */
  const copy = async (from, to) => {
    for (const key of keys().filter((each) => tabOf(each) === from)) {
      const next = `${STORE}${key.slice(STORE.length).split(".")[0]}.${to}`;
      window.localStorage.setItem(next, window.localStorage.getItem(key));
      const result = await results.read(key);
      if (result) await results.write(next, result);
    }
  };

  /** Take over what a tab that is closed has left of a place. @returns {Promise<string | null>} */
  const inherit = async (where) => {
    for (const key of newestFirst(keys().filter((each) => each.slice(STORE.length).split(".")[0] === where))) {
      const tab = tabOf(key);
      if (tab && (await hold(tab))) return tab;
      if (tab) continue;
      const made = fresh();
      await hold(made);
      await copy(tab, made);
      window.localStorage.removeItem(key);
      return made;
    }
    return null;
  };

  const identify = async (home) => {
    const before = window.sessionStorage.getItem(TAB);
    if (before && (await holdAgain(before))) return before;
    const left = before ? null : await inherit(place(home));
    if (left) return left;
    const tab = fresh();
    await hold(tab);
    if (before) await copy(before, tab);
    return tab;
  };

  let tab = "";
  let known = null;
  const ready = (home) => {
    known ??= identify(home).then((found) => {
      tab = found;
      window.sessionStorage.setItem(TAB, tab);
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
      if (!found) return null;
      steps = found.steps ?? null;
      if (steps) recall(JSON.stringify(found.drawing.topology));
      return found.drawing;
    },

    /** Keep a drawing with its history, after a pause. */
    keep(drawing, home) {
      if (!tab) return;
      waiting = { drawing, home };
      clearTimeout(saving);
      saving = setTimeout(flush, 150);
    },

    /** The result that this tab was left with, or nothing. */
    readResult: (home) => results.read(key(home)),

    /** Store the result beside the drawing, or forget it where there is none. */
    writeResult: (value, home) => results.write(key(home), value),

    packed,
    unpacked,
  };
})();
