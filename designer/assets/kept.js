/* Results outlive a reload: they are too large for the storage that drawings are kept in. */
(function () {
  "use strict";

  const NAME = "topoloom";
  const STORE = "results";

  /** @param {IDBRequest} asked */
  const done = (asked) =>
    new Promise((resolve, reject) => {
      asked.onsuccess = () => resolve(asked.result);
      asked.onerror = () => reject(asked.error);
    });

  const store = async (mode) => {
    const asked = window.indexedDB.open(NAME, 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore(STORE);
    const database = await done(asked);
    const transaction = database.transaction(STORE, mode);
    transaction.oncomplete = transaction.onabort = () => database.close();
    return transaction.objectStore(STORE);
  };

  window.topoloomKept = {
    /** What was kept under a key; nothing where the browser keeps nothing. */
    async read(key) {
      try {
        return await done((await store("readonly")).get(key));
      } catch {
        return undefined;
      }
    },

    /**
     * Keep a value, or forget it where there is none.
     * @param {string} key @param {any} value @param {string[]} others keys that stay as well
     */
    async write(key, value, others) {
      try {
        const results = await store("readwrite");
        const known = await done(results.getAllKeys());
        for (const each of known) if (each !== key && !others.includes(each)) results.delete(each);
        if (value) await done(results.put(value, key));
        else await done(results.delete(key));
      } catch {
        // A browser without room keeps the drawing alone.
      }
    },
  };
})();
