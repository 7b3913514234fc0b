/* Exchange of clusters: files that are chosen or dropped, text for the clipboard, and links, whose
   fragment holds a cluster and the question about it. Browsers keep the fragment to themselves; the
   page gives it to the designer that it came from, which reads it as any file. */
(function () {
  "use strict";

  const no = () => window.dash_clientside.no_update; // there only once Dash has started
  const MOST_BYTES = 40_000_000; // as the server has it
  const set = (id, props) => window.dash_clientside.set_props(id, props);

  const notify = (title, message, { color = "teal", autoClose = 6000 } = {}) =>
    set("notifications", {
      sendNotifications: [
        { action: "show", id: `exchange-${Date.now()}`, title, message, color, autoClose, withBorder: true },
      ],
    });

  const refuse = (message) => notify("Cannot open", message, { color: "red", autoClose: 20_000 });

  /** What was pressed, if it was a user who did: a card that was drawn anew brings new buttons. */
  const pressed = () => {
    const { triggered_id: asked, triggered } = window.dash_clientside.callback_context;
    return asked && triggered.length === 1 && triggered[0].value ? asked : null;
  };

  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    exchange: {
      /** A file was chosen or dropped. */
      picked(contents, name) {
        if (!contents) return no();
        set("upload", { contents: null }); // so that the same file can be chosen again
        if (window.topoloomDrawings.isFile(contents)) {
          window.topoloomDrawings.openFile(name, contents);
          return no();
        }
        return { name: name ?? "file", contents, settings: {}, act: "read" };
      },

      /** A question was answered: read again with the answer. */
      answered(_clicks, file) {
        const asked = pressed();
        if (!asked || !file) return no();
        const settings = { ...file.settings, [asked.of]: asked["import-answer"] };
        return { ...file, settings, act: "read" };
      },

      /** Read again with what stands in the form; an empty field says nothing. */
      again(_clicks, values, names, file) {
        if (!pressed() || !file) return no();
        const settings = { ...file.settings };
        names.forEach((id, i) => {
          const value = (values[i] ?? "").trim();
          if (value) settings[id["import-setting"]] = value;
          else delete settings[id["import-setting"]];
        });
        return { ...file, settings, act: "read" };
      },

      /** Take over what was found, or add it. */
      done(_clicks, file) {
        const asked = pressed();
        return asked && file ? { ...file, act: asked["import-do"] } : no();
      },

      /** A new question or message takes the focus, since the button that had it is gone. */
      shown() {
        setTimeout(() => document.querySelector("#import-body [data-autofocus]")?.focus(), 80);
      },

      /** Nothing is kept of a file that nobody asks about any more. */
      closed(opened) {
        if (opened === false) set("file-read", { data: null });
      },

      /** Put a text on the clipboard, or into a file where the browser does not let us. */
      copied(copy) {
        if (!copy) return;
        const lost = copy.lost ? ` Not kept: ${copy.lost}.` : "";
        const fallback = () => {
          set("download", { data: { content: copy.text, filename: copy.filename } });
          notify("Downloaded", `The browser keeps its clipboard to itself, so that it is a file.${lost}`);
        };
        if (!navigator.clipboard) return fallback();
        navigator.clipboard
          .writeText(copy.text)
          .then(() => notify("Copied", `${copy.what} is on the clipboard.${lost}`), fallback);
      },
    },
  });

  /* Files from the desktop ------------------------------------------------------------------ */

  /** Whether something from outside the page is dragged; devices of the palette are not. */
  const foreign = (event) => Boolean(event.dataTransfer?.types.includes("Files"));

  let veil = null;
  const show = (on) => {
    if (!veil) {
      veil = document.createElement("div");
      veil.className = "ds-drop";
      veil.setAttribute("aria-hidden", "true");
      veil.innerHTML =
        '<div><i class="ico ico-open"></i><b>Drop a file</b>' +
        "<span>a topology, a plan or a sketch, of nvidia-smi, NCCL, MSCCL, TE-CCL, TACCL, ASTRA-sim and more</span></div>";
      document.body.append(veil);
    }
    veil.toggleAttribute("data-on", on);
  };

  const tooLarge = ({ name, size }) => {
    if (size <= MOST_BYTES) return false;
    const has = `${Math.ceil(size / 1e6).toLocaleString("en")} MB`;
    refuse(`${name} has ${has}; at most ${MOST_BYTES / 1e6} MB are read here.`);
    return true;
  };

  const take = (file) => {
    if (tooLarge(file)) return;
    const reader = new FileReader();
    reader.onload = () => set("upload", { contents: reader.result, filename: file.name });
    reader.onerror = () => refuse(`${file.name} cannot be read; is it a folder?`);
    reader.readAsDataURL(file);
  };

  // The button passes over what is too large without a word.
  document.addEventListener(
    "change",
    ({ target }) => {
      if (target.closest?.("#upload") && target.files?.length) tooLarge(target.files[0]);
    },
    true,
  );

  const on = (name, does) =>
    window.addEventListener(
      name,
      (event) => {
        if (!foreign(event)) return;
        event.preventDefault();
        event.stopPropagation();
        does(event);
      },
      true,
    );
  on("dragenter", () => show(true));
  on("dragover", (event) => {
    event.dataTransfer.dropEffect = "copy";
    show(true);
  });
  on("dragleave", (event) => {
    if (!event.relatedTarget) show(false);
  });
  on("drop", (event) => {
    show(false);
    const files = [...event.dataTransfer.files];
    if (files.length > 1) refuse(`${files.length} files were dropped; drop them one after the other.`);
    else if (files.length) take(files[0]);
  });

  /* Links ------------------------------------------------------------------------------------- */

  /** What stands behind "#t=" and before the view that is open, or nothing. */
  const fragment = () => (location.hash.startsWith("#t=") ? location.hash.slice(3).split("&view=")[0] : "");

  let open = fragment();
  let before = ""; // what was open when a link was pasted

  /** Whether the page was here before with this link, so that what became of it comes back. */
  const again = () => {
    const [{ type } = {}] = performance.getEntriesByType("navigation");
    return type === "reload" || type === "back_forward";
  };

  window.topoloomLink = {
    /** The link that is open: its drawing is kept apart from the user's own. */
    get text() {
      return open;
    },
  };

  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    share: {
      /** The page is there: hand on its link, unless it only comes back. */
      async opened(home) {
        if (!open || (again() && (await window.topoloomStorage.has(home)))) return no();
        return { fragment: open, n: Date.now() };
      },

      /** It is none: the page goes on with what was there, and brings that back. */
      refused(link, home) {
        if (link !== open) return;
        open = before;
        history.replaceState(null, "", `${location.pathname}${location.search}${open && `#t=${open}`}`);
        set("home-drawing", { data: { ...home } }); // not as an output, which would be a circle
      },

      /** Put the link on the clipboard, or into the address bar where the browser does not let us. */
      copied(copy) {
        if (!copy) return;
        const hash = `#t=${copy.fragment}`;
        const lost = copy.lost ? ` Not kept: ${copy.lost}.` : "";
        const size = `${copy.fragment.length.toLocaleString("en")} letters`;
        const holds = `It holds the drawing and the question in ${size}; whoever opens it needs a designer there.${lost}`;
        const fallback = () => {
          open = copy.fragment;
          history.replaceState(null, "", hash);
          notify("The link is in the address bar", `The browser keeps its clipboard to itself. ${holds}`);
        };
        if (!navigator.clipboard) return fallback();
        const link = `${location.origin}${location.pathname}${location.search}${hash}`;
        navigator.clipboard.writeText(link).then(() => notify("Link copied", holds), fallback);
      },
    },
  });

  // A button of a notification, which has no callbacks of its own.
  document.addEventListener("click", ({ target }) => {
    if (target.closest?.(".ds-share-file")) set("link-file", { data: Date.now() });
  });

  // A link that is pasted over the address of this page, or left by going back.
  window.addEventListener("hashchange", () => {
    const next = fragment();
    if (next === open) return;
    if (!next) {
      location.reload(); // brings back what was drawn under the address without the link
      return;
    }
    [before, open] = [open, next];
    set("linked", { data: { fragment: next, n: Date.now() } });
  });
})();
