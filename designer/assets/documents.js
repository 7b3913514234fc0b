/* Documents: the drawings that this browser keeps by name, each with its plan and with versions of it.

   The browser keeps them and not the server: who draws need not be who serves, people who share a
   server share nothing else, and what is drawn while the server is away is kept like all else. It is
   the database that plans were kept in before, so it outlives pages and servers; the same page under
   another address (host or port) has documents of its own. What a tab is at, with its undo, is in
   storage.js, which writes here; the list that people see is in drawings.js. */
(function () {
  "use strict";

  const DATABASE = "topoloom";
  const STORES = {
    results: {}, // plans, by the key of their document
    documents: { keyPath: "id" }, // what the list shows: name, counts, picture, when
    versions: { keyPath: "id" }, // likewise, each of a document
    contents: {}, // what is drawn, by the id of a document or a version; of a version its plan as well
  };
  const MOST = 30; // versions of a document that were made by themselves
  const DAY = 86_400_000;
  const BY_HAND = "kept";
  const IN_PASSING = ["left", "restored"]; // kinds that say no more of a drawing that is a version already

  const fresh = () => `${Date.now().toString(36)}${Math.random().toString(36).slice(2, 8)}`;

  /** @param {IDBRequest} request */
  const settled = (request) =>
    new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });

  const opened = () => {
    const request = window.indexedDB.open(DATABASE, 2);
    request.onupgradeneeded = () => {
      const there = request.result.objectStoreNames;
      for (const [name, how] of Object.entries(STORES)) {
        if (!there.contains(name)) request.result.createObjectStore(name, how);
      }
    };
    return settled(request);
  };

  /** Return what one transaction finds; nothing where the browser stores nothing or has no room. */
  const within = async (mode, act) => {
    try {
      const database = await opened();
      const names = Object.keys(STORES);
      const transaction = database.transaction(names, mode);
      const ended = new Promise((resolve, reject) => {
        transaction.oncomplete = resolve;
        transaction.onabort = () => reject(transaction.error);
      }).finally(() => database.close());
      const stores = Object.fromEntries(names.map((name) => [name, transaction.objectStore(name)]));
      return (await Promise.all([act(stores), ended]))[0];
    } catch {
      return undefined;
    }
  };

  /** The key of a plan; that of a document's first tab is as it was before there were documents. */
  const planKey = (id) => `topoloom.drawing.${id}`;

  /** A drawing without the name of its document. */
  const bare = ({ topology, positions, annotations }) => ({ topology, positions, ...(annotations && { annotations }) });
  const textOf = (drawing) => JSON.stringify(bare(drawing));

  const about = (drawing) => ({
    name: drawing.topology.name,
    counts: window.topoloomPicture.counts(drawing.topology),
    picture: window.topoloomPicture.draw(drawing),
    at: Date.now(),
  });

  const newestFirst = (found) => found.sort((a, b) => b.at - a.at);
  const versionsOf = async (versions, id) =>
    newestFirst((await settled(versions.getAll())).filter((each) => each.document === id));

  /** Forget a document with all that belongs to it. */
  const forget = async (stores, id) => {
    stores.documents.delete(id);
    stores.contents.delete(id);
    stores.results.delete(planKey(id));
    for (const each of await versionsOf(stores.versions, id)) forgetVersion(stores, each);
  };

  const forgetVersion = ({ versions, contents }, { id }) => {
    versions.delete(id);
    contents.delete(id);
  };

  // ---- locks: which documents are open, and where -------------------------------------------

  // Kept in reach of the page: a promise that nothing can settle is collected, and its lock with it.
  const letGo = new Map();
  window.addEventListener("pagehide", ({ persisted }) => persisted || letGo.forEach((end) => end()));

  /** Hold a lock while this page lives or until it is let go, unless another page does. */
  const hold = (name) => {
    if (letGo.has(name)) return Promise.resolve(true);
    if (!navigator.locks) return holdByAsking(name); // only in a secure context
    return new Promise((resolve) => {
      navigator.locks.request(name, { ifAvailable: true }, (lock) => {
        resolve(lock !== null);
        return lock && new Promise((end) => letGo.set(name, end));
      });
    });
  };

  /** The same by asking the other tabs, which answer at once. */
  const holdByAsking = (name) => {
    const channel = new BroadcastChannel("topoloom.tab");
    return new Promise((resolve) => {
      channel.onmessage = ({ data }) => data.held === name && resolve(false);
      channel.postMessage({ asks: name });
      setTimeout(() => resolve(true), 200);
    }).then((free) => {
      channel.onmessage = ({ data }) => data.asks === name && channel.postMessage({ held: name });
      if (free) letGo.set(name, () => channel.close());
      else channel.close();
      return free;
    });
  };

  const release = (name) => {
    letGo.get(name)?.();
    letGo.delete(name);
  };

  const lockOf = (id) => `topoloom.document.${id}`;

  window.topoloomDocuments = {
    fresh,
    hold,
    release,
    lockOf,

    /** All that are not deleted, the last changed first. */
    list: async () =>
      newestFirst((await within("readonly", ({ documents }) => settled(documents.getAll()))) ?? [])
        .filter((each) => !each.deleted),

    /** What is drawn in a document or a version, and the plan of a version. */
    read: (id) => within("readonly", ({ contents }) => settled(contents.get(id))),

    has: async (id) => Boolean(await within("readonly", ({ documents }) => settled(documents.count(id)))),

    /** Keep a drawing as what its document is now. Returns nothing where there is no room. */
    write: (id, drawing) =>
      within("readwrite", async ({ documents, contents }) => {
        const there = await settled(documents.get(id));
        if (!there && !drawing.topology.devices.length) return true;
        const before = await settled(contents.get(id));
        if (there && !there.deleted && textOf(before.drawing) === textOf(drawing)) return true;
        documents.put({ id, ...about(drawing) });
        contents.put({ drawing: bare(drawing) }, id);
        return true;
      }),

    /** Make one more document, and return its id. @param {string} [from] whose plan it gets */
    async create(drawing, from) {
      const id = fresh();
      await window.topoloomDocuments.write(id, drawing);
      if (from) await window.topoloomDocuments.copyPlan(from, id);
      return id;
    },

    /** Take it off the list, or put it back; a day later it is forgotten. */
    remove: (id, deleted = Date.now()) =>
      within("readwrite", async ({ documents }) => {
        const found = await settled(documents.get(id));
        if (found) documents.put({ ...found, deleted });
      }),

    /** Forget what was deleted more than a day ago, and plans of neither a document nor a tab. */
    tidy: (tabs) =>
      within("readwrite", async (stores) => {
        const all = await settled(stores.documents.getAll());
        const known = new Set([...tabs, ...all.map(({ id }) => id)].map(planKey));
        for (const key of await settled(stores.results.getAllKeys())) {
          if (!known.has(key)) stores.results.delete(key);
        }
        for (const { id, deleted } of all) {
          if (deleted && Date.now() - deleted > DAY) await forget(stores, id);
        }
      }),

    versions: async (id) => (await within("readonly", ({ versions }) => versionsOf(versions, id))) ?? [],

    /**
     * Keep a version. Where the newest has the same drawing and answers no other question, that one
     * takes up what is new, and stays one that was kept by hand.
     * @param {string} id of the document
     * @param {{kind: string, note?: string, plan?: any, question?: string}} how
     */
    keepVersion: (id, drawing, { kind, note = "", plan = null, question = "" }) =>
      within("readwrite", async ({ versions, contents }) => {
        const known = await versionsOf(versions, id);
        const [last] = known;
        const before = last && (await settled(contents.get(last.id)));
        const same = before && textOf(before.drawing) === textOf(drawing);
        const again = same && (!question || !last.question || question === last.question);
        if (!again && !drawing.topology.devices.length) return null;
        if (again && IN_PASSING.includes(kind)) return last;
        const version = {
          ...about(drawing),
          id: again ? last.id : fresh(),
          document: id,
          kind: again && last.kind === BY_HAND ? BY_HAND : kind,
          note: note || (again ? last.note : ""),
          question: question || (again ? last.question : ""),
        };
        versions.put(version);
        contents.put({ drawing: bare(drawing), plan: plan ?? (again ? before.plan : null) }, version.id);
        const themselves = known.filter((each) => each.kind !== BY_HAND);
        if (!again) for (const each of themselves.slice(MOST)) forgetVersion({ versions, contents }, each);
        return version;
      }),

    /** The plan of a document, or nothing. */
    readPlan: (id) => within("readonly", ({ results }) => settled(results.get(planKey(id)))),

    writePlan: (id, plan) => within("readwrite", ({ results }) => settled(results.put(plan, planKey(id)))),

    copyPlan: (from, to) =>
      within("readwrite", async ({ results }) => {
        const plan = await settled(results.get(planKey(from)));
        if (plan) results.put(plan, planKey(to));
      }),
  };
})();
