/* The dialog "Drawings": every document of this browser with its picture, and the versions of the one
   that is open. Ctrl+O opens it, Ctrl+S keeps a version. */
(function () {
  "use strict";

  const MANY = 6; // documents from which on they can be searched
  const KINDS = {
    kept: "Kept by hand",
    left: "Before another drawing was opened",
    restored: "Before a version was restored",
    solved: "Solved",
  };
  const documents = window.topoloomDocuments;
  const storage = () => window.topoloomStorage;
  const set = (id, props) => window.dash_clientside.set_props(id, props);
  const root = () => document.getElementById("drawings-list");

  let words = ""; // that are searched for
  let said = null; // what was done last, and how it is undone: {text, undo}
  let looked = ""; // the version that is looked at
  let renamed = ""; // the document whose name is a field

  /** An element with attributes, handlers (on...) and children. */
  const h = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (value !== false && value !== null) element.setAttribute(key, value === true ? "" : value);
    }
    element.append(...children.filter((each) => each !== null));
    return element;
  };

  const press = (label, act, more = {}) =>
    h("button", { type: "button", class: "ds-docs-act", onclick: act, ...more }, label);

  const pictured = (svg, look) => {
    const place = h("span", { class: look });
    place.innerHTML = svg; // of our own numbers, and names that are escaped
    return place;
  };

  const when = (at) => {
    const minutes = Math.round((Date.now() - at) / 60_000);
    if (minutes < 1) return "just now";
    if (minutes < 60) return `${minutes} min ago`;
    if (minutes < 600) return `${Math.round(minutes / 60)} h ago`;
    return new Date(at).toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
  };

  /** Ids of the documents that tabs hold, where the browser says so. */
  const held = async () => {
    const found = (await navigator.locks?.query())?.held ?? [];
    return new Set(found.map(({ name }) => name));
  };

  // ---- what can be done ----------------------------------------------------------------------

  const close = () => set("drawings", { opened: false });

  const show = (drawing, id) => {
    set("canvas", {
      drawing: { ...drawing, document: id },
      command: { name: "fit", args: {}, n: Date.now() * 1000 },
    });
    set("view", { value: "canvas" });
    close();
  };

  const open = async ({ id, name }) => {
    if (id === storage().present.id) return close();
    const found = await documents.read(id);
    if (!found) return tell(`${name} is not there any more.`);
    if (!(await held()).has(documents.lockOf(id))) return show(found.drawing, id);
    const drawing = renamedTo(found.drawing, `${name} copy`);
    window.topoloomNotify("open-elsewhere", "Opened as a copy", `${name} is open in another tab, so this is ${name} copy.`,
      { color: "azure", autoClose: 6000 });
    return show(drawing, await documents.create(drawing, id));
  };

  const renamedTo = ({ topology, ...rest }, name) => ({ ...rest, topology: { ...topology, name } });

  const rename = async ({ id, name: before }, name) => {
    renamed = "";
    if (name && name !== before) {
      if (id === storage().present.id) set("canvas", { command: { name: "rename_topology", args: { name }, n: Date.now() * 1000 } });
      await documents.write(id, renamedTo((await documents.read(id)).drawing, name));
    }
    refresh(`[data-id="${id}"] .ds-docs-open`);
  };

  const duplicate = async ({ id, name }) => {
    const { drawing } = await documents.read(id);
    const made = await documents.create(renamedTo(drawing, `${name} copy`), id);
    said = { text: `${name} copy is there.` };
    refresh(`[data-id="${made}"] .ds-docs-open`);
  };

  const remove = async ({ id, name }) => {
    await documents.remove(id);
    const undo = async () => {
      await documents.remove(id, null);
      tell(`${name} is back.`, `[data-id="${id}"] .ds-docs-open`);
    };
    said = { text: `${name} is deleted.`, undo };
    refresh(".ds-docs-said button");
  };

  const tell = (text, focus) => {
    said = { text };
    return refresh(focus);
  };

  /** Keep the present drawing as a version of its document. @param {string} [note] */
  const keepByHand = async (note = "") => {
    await storage().settle(true);
    const { id, drawing } = storage().present;
    const plan = await documents.readPlan(id);
    return documents.keepVersion(id, drawing, { kind: "kept", note, plan: plan ?? null });
  };

  const restore = async ({ id: version, at }) => {
    await storage().settle(true);
    const { id, drawing } = storage().present;
    const found = await documents.read(version);
    await documents.keepVersion(id, drawing, { kind: "restored", plan: await documents.readPlan(id) });
    show(found.drawing, id);
    if (found.plan) window.topoloomDrawings.showPlan(found.plan);
    window.topoloomNotify("restored-version", "A version is restored",
      `It is of ${when(at)}. What was there before is a version now; Ctrl+Z brings it back as well.`,
      { color: "azure", autoClose: 6000 });
  };

  // ---- all of them as a file -----------------------------------------------------------------

  const ask = (request) => set("drawings-request", { data: { ...request, n: Date.now() } });

  const saveAll = async () => {
    await storage().settle(true);
    const found = await Promise.all((await documents.list()).map(({ id }) => documents.read(id)));
    if (found.length) ask({ drawings: found.map(({ drawing }) => drawing) });
    else tell("There is no drawing to save yet.");
  };

  const openFile = (name, contents) => {
    tell(`Reading ${name} …`);
    ask({ name, contents });
  };

  const choose = () => {
    const field = h("input", { type: "file", accept: "application/json,.json" });
    field.addEventListener("change", ({ target: { files: [file] } }) => {
      const reader = new FileReader();
      reader.onload = () => openFile(file.name, reader.result);
      reader.onerror = () => tell(`${file.name} cannot be read.`);
      reader.readAsDataURL(file);
    });
    field.click();
  };

  /** Keep each drawing of a file as a document; one whose name there is already is a copy. */
  const takeAll = async (drawings) => {
    const names = new Set((await documents.list()).map(({ name }) => name));
    const made = [];
    for (const drawing of drawings) {
      let { name } = drawing.topology;
      while (names.has(name)) name = `${name} copy`;
      names.add(name);
      if (!(await documents.write(documents.fresh(), renamedTo(drawing, name)))) break;
      made.push(name);
    }
    const all = drawings.length === 1 ? "The drawing is" : `All ${drawings.length} drawings are`;
    return made.length === drawings.length
      ? `${all} there: ${made.slice(0, 3).join(", ")}${made.length > 3 ? " and more" : ""}.`
      : `${made.length} of ${drawings.length} drawings are there; the browser has no room for more.`;
  };

  // ---- what is shown -------------------------------------------------------------------------

  const nameField = (each) => {
    const field = h("input", {
      class: "ds-docs-field", "aria-label": `Name of ${each.name}`, value: each.name, maxlength: 200,
      onkeydown: (event) => {
        if (event.key === "Enter") rename(each, field.value.trim());
        if (event.key !== "Escape") return;
        event.stopPropagation(); // which would close the dialog
        rename(each, "");
      },
    });
    field.addEventListener("blur", () => renamed === each.id && rename(each, field.value.trim()));
    return field;
  };

  const card = (each, { here, elsewhere }) => {
    const place = here ? "open here" : elsewhere ? "open in another tab" : when(each.at);
    const fixed = (what) => ({
      "aria-label": `${what} ${each.name}`,
      disabled: elsewhere || (here && what === "Delete"),
      title: elsewhere ? "Open in another tab" : here && what === "Delete" ? "Open another drawing to delete this one" : null,
    });
    return h("li", { class: "ds-docs-card", "data-id": each.id, "data-here": here },
      h("button", { type: "button", class: "ds-docs-open", "aria-label": `Open ${each.name}, ${each.counts}, ${place}`, onclick: () => open(each) },
        pictured(each.picture, "ds-docs-picture"),
        renamed === each.id ? null : h("b", {}, each.name),
        h("small", {}, each.counts),
        h("small", { class: here || elsewhere ? "ds-docs-where" : null }, place)),
      renamed === each.id ? nameField(each) : null,
      h("div", { class: "ds-docs-acts" },
        press("Rename", () => { renamed = each.id; refresh(".ds-docs-field"); }, fixed("Rename")),
        press("Duplicate", () => duplicate(each), { "aria-label": `Duplicate ${each.name}` }),
        press("Delete", () => remove(each), fixed("Delete"))));
  };

  const versionRow = (each) => {
    const label = each.note || KINDS[each.kind];
    const on = looked === each.id;
    const about = `${label}, ${when(each.at)}`;
    return h("li", { class: "ds-docs-version", "data-version": each.id },
      pictured(each.picture, "ds-docs-small"),
      h("div", {}, h("b", { title: label }, label), h("small", {}, `${when(each.at)} · ${each.counts}`)),
      h("div", { class: "ds-docs-acts" },
        press(on ? "Hide" : "Look", () => { looked = on ? "" : each.id; refresh(`[data-version="${each.id}"] button`); },
          { "aria-label": `${on ? "Hide" : "Look at"} ${about}`, "aria-expanded": String(on) }),
        press("Restore", () => restore(each), { "aria-label": `Restore ${about}` })),
      each.large ? pictured(each.large, "ds-docs-large") : null);
  };

  const keepForm = () => {
    const field = h("input", { class: "ds-docs-field", placeholder: "What it is, if you like", "aria-label": "What this version is", maxlength: 200 });
    return h("form", {
      class: "ds-docs-keep",
      onsubmit: async (event) => {
        event.preventDefault();
        await keepByHand(field.value.trim());
        tell("The version is kept.", ".ds-docs-keep input");
      },
    }, field, h("button", { class: "ds-docs-main", type: "submit" }, "Keep this version"));
  };

  const searchField = () => h("input", {
    class: "ds-docs-field", type: "search", placeholder: "Search drawings", "aria-label": "Search drawings", value: words,
    oninput: ({ target }) => { words = target.value; refresh(".ds-docs-head input"); },
  });

  const content = async () => {
    const all = await documents.list();
    const locks = await held();
    const { id, drawing } = storage().present;
    const versions = await documents.versions(id);
    const seen = versions.find((each) => each.id === looked);
    if (seen) seen.large = window.topoloomPicture.draw((await documents.read(looked)).drawing, { named: true });
    const found = all.filter(({ name }) => name.toLowerCase().includes(words.toLowerCase()));
    const cards = found.map((each) => card(each, {
      here: each.id === id,
      elsewhere: each.id !== id && locks.has(documents.lockOf(each.id)),
    }));
    const none = all.length ? `No drawing is called “${words}”.` : "Nothing is kept yet. What you change is kept here by itself.";
    return [
      h("section", { "aria-label": "All drawings" },
        h("div", { class: "ds-docs-head" },
          all.length > MANY || words ? searchField() : h("span", { class: "ds-quiet" }, "Kept by this browser, the last changed first"),
          press("Open file", choose, { class: "ds-docs-main", title: "Drawings that Save all has put into a file" }),
          press("Save all", saveAll, { class: "ds-docs-main", title: "All drawings in one file, without versions and plans" }),
          press("New", () => { close(); document.getElementById("new").click(); }, { class: "ds-docs-main" })),
        h("p", { class: "ds-docs-said", role: "status" }, said?.text ?? "", said?.undo ? press("Undo", said.undo) : null),
        cards.length ? h("ul", { class: "ds-docs-cards" }, ...cards) : h("p", { class: "ds-quiet" }, none)),
      h("section", { class: "ds-docs-versions", "aria-label": "Versions" },
        h("h3", {}, `Versions of ${drawing?.topology.name ?? "this drawing"}`),
        keepForm(),
        versions.length
          ? h("ul", {}, ...versions.map(versionRow))
          : h("p", { class: "ds-quiet" }, "None yet. One is kept when a solve has a plan, when you open another drawing, and when you ask for it.")),
    ];
  };

  /** Which button or field it is: of which row, and its place there; what it is called may change. @param {Element} each */
  const placeOf = (each) => {
    const { id = "", version = "" } = each.closest("[data-id], [data-version]")?.dataset ?? {};
    return [id, version, each.className, [...each.parentElement.children].indexOf(each)].join();
  };

  let turn = 0; // of drawing anew: only the last counts, whichever is read first

  /** Draw the dialog anew. @param {string} [focus] selector of what has the focus then, by default what has it now */
  const refresh = async (focus) => {
    const mine = (turn += 1);
    const children = await content();
    if (mine !== turn) return;
    const had = root().contains(document.activeElement) ? placeOf(document.activeElement) : null;
    root().replaceChildren(...children);
    const same = () => [...root().querySelectorAll("button, input")].find((each) => placeOf(each) === had);
    const target = focus ? root().querySelector(focus) : same();
    target?.focus();
    if (target?.matches(".ds-docs-card input")) target.select();
    else if (target?.matches("input")) target.setSelectionRange(target.value.length, target.value.length);
  };

  const openDialog = async () => {
    [words, said, looked, renamed] = ["", null, "", ""];
    set("drawings", { opened: true });
    await refresh();
    root().setAttribute("aria-busy", "true");
    await storage().settle();
    if (!renamed) await refresh(); // a field that is typed into stays
    root().removeAttribute("aria-busy");
  };

  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    drawings: {
      /** The server has read a file, or written one. */
      async answered(answer) {
        if (!answer) return;
        set("drawings", { opened: true }); // the file may have been dropped on the page
        tell(answer.said ?? (await takeAll(answer.drawings)));
      },
    },
  });

  window.topoloomDrawings = {
    openFile,

    /** Whether the address of a file's data begins as one of all drawings does. */
    isFile: (contents) => atob(contents.slice(contents.indexOf(",") + 1).slice(0, 400)).includes('"topoloom-drawings/'),

    /** Show a plan that the browser kept, and put into the header what it answers. */
    showPlan(plan) {
      const asked = plan.asked ?? {};
      if (asked.collective && asked.collective !== "custom") {
        for (const each of ["collective", "size", "chunks", "root"]) set(each, { value: asked[each] ?? "" });
      }
      set("kept", { data: plan });
    },

    /** Say in a few words what a plan is: All-gather 1MB: 25.3 µs. */
    describePlan({ asked, makespan }) {
      const [value, unit] = makespan < 1000 ? [makespan, "µs"] : makespan < 1e6 ? [makespan / 1000, "ms"] : [makespan / 1e6, "s"];
      const kind = asked?.collective ?? "plan";
      return `${kind[0].toUpperCase()}${kind.slice(1)} ${asked?.size ?? ""}: ${Number(value.toPrecision(3))} ${unit}`;
    },
  };

  document.addEventListener("click", ({ target }) => {
    if (target.closest?.("#drawings-open")) openDialog();
  });

  document.addEventListener("keydown", async (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    const key = event.key.toLowerCase();
    if (key !== "o" && key !== "s") return;
    event.preventDefault();
    if (key === "o") openDialog();
    else if (await keepByHand()) {
      window.topoloomNotify("version-kept", "A version is kept", "Ctrl+O shows the drawings and their versions.",
        { color: "teal", autoClose: 4000 });
    }
  });
})();
