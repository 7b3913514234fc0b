/* The columns at the sides: cards that fold by their headings, columns that hide by the buttons of the
   header or by [ and ], and what of it this browser remembers. Where the page is narrow a column is a
   drawer over the canvas, which is closed again by its button, by Escape or by a press beside it. */
(function () {
  "use strict";

  const STORE = "topoloom.panels";
  const SIDES = { "[": "left", "]": "right" };
  const SHEET = { // by the headings of the canvas' sheet
    View: [["[  ]", "hide or show the columns"]],
    Drawing: [["Ctrl+O  Ctrl+S", "all drawings and their versions; keep a version"]],
    Selection: [["Ctrl+D  Ctrl+C  Ctrl+V", "in the table: fill down, copy rows, paste cells of a spreadsheet"]],
  };
  const narrow = window.matchMedia("(max-width: 59.99em)"); // as in shell.css
  const page = document.documentElement;

  const read = () => {
    try {
      return JSON.parse(window.localStorage.getItem(STORE)) ?? {};
    } catch {
      return {};
    }
  };
  const remembered = read();
  const hidden = new Set(remembered.hidden ?? []); // columns, where there is room for them
  const folded = new Set(remembered.folded ?? []); // cards, by their labels
  let drawer = ""; // the column that lies over the canvas of a narrow page

  const remember = () => {
    try {
      window.localStorage.setItem(STORE, JSON.stringify({ hidden: [...hidden], folded: [...folded] }));
    } catch {
      // A browser that stores nothing forgets it.
    }
  };

  const column = (side) => document.querySelector(`.ds-side.ds-${side}`);
  const button = (side) => document.getElementById(`panel-${side}`);
  const open = (side) => (narrow.matches ? drawer === side : !hidden.has(side));

  /** Put attributes where they are missing or others: Dash draws cards and buttons anew. */
  const show = () => {
    page.dataset.hidden = narrow.matches ? "" : [...hidden].join(" ");
    page.dataset.drawer = narrow.matches ? drawer : "";
    for (const side of Object.values(SIDES)) put(button(side), "aria-expanded", String(open(side)));
    for (const head of document.querySelectorAll(".ds-fold-button")) {
      const card = head.closest("section");
      const on = folded.has(card.getAttribute("aria-label"));
      put(head, "aria-expanded", String(!on));
      if (card.hasAttribute("data-folded") !== on) card.toggleAttribute("data-folded", on);
    }
    describeKeys();
  };

  const put = (element, name, value) => {
    if (element && element.getAttribute(name) !== value) element.setAttribute(name, value);
  };

  /** The canvas' sheet of keys has those of the page as well. */
  const describeKeys = () => {
    for (const list of document.querySelectorAll("#canvas .tl-sheet dl:not([data-page])")) {
      list.setAttribute("data-page", "");
      for (const [keys, does] of SHEET[list.dataset.keys] ?? []) {
        const term = document.createElement("dt");
        term.append(...keys.split("  ").map((key) => Object.assign(document.createElement("kbd"), { textContent: key })));
        list.append(term, Object.assign(document.createElement("dd"), { textContent: does }));
      }
    }
  };

  /** Open or close a column; a drawer takes the focus and gives it back. */
  const toggle = (side, on = !open(side)) => {
    const had = drawer;
    if (narrow.matches) drawer = on ? side : "";
    else if (on) hidden.delete(side);
    else hidden.add(side);
    remember();
    show();
    if (!narrow.matches) return;
    if (drawer) {
      column(drawer).tabIndex = -1;
      column(drawer).focus({ preventScroll: true });
    } else if (had) button(had)?.focus({ preventScroll: true });
  };

  const fold = (name, on) => {
    if (on) folded.add(name);
    else folded.delete(name);
    remember();
    show();
  };

  /** Bring what a link leads to into view before it takes the focus. */
  const reveal = (target) => {
    const side = Object.values(SIDES).find((each) => column(each)?.contains(target));
    if (!side) {
      if (drawer) toggle(drawer, false);
      return;
    }
    if (!open(side)) toggle(side, true);
    const card = target.closest("section");
    if (card?.hasAttribute("data-folded")) fold(card.getAttribute("aria-label"), false);
  };

  document.addEventListener(
    "click",
    ({ target }) => {
      const side = target.closest?.(".ds-side-button")?.dataset.side;
      const head = target.closest?.(".ds-fold-button");
      const skip = target.closest?.("[data-skip]");
      if (side) toggle(side);
      else if (head) fold(head.closest("section").getAttribute("aria-label"), head.getAttribute("aria-expanded") === "true");
      else if (skip) reveal(document.querySelector(skip.dataset.skip));
    },
    true,
  );

  // Beside a drawer; what it opens, such as a menu or a dialog, is a part of it.
  document.addEventListener("pointerdown", ({ target }) => {
    if (drawer && target.closest?.(".ds-main")) toggle(drawer, false);
  });

  const dialogs = () => [...document.querySelectorAll('[role="dialog"][data-modal-content]')];

  const typing = (target) => target.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName);

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && drawer && !dialogs().some((each) => each.checkVisibility())) {
      toggle(drawer, false);
      return;
    }
    const modified = event.ctrlKey || event.metaKey || event.altKey;
    const typed = modified && !event.getModifierState("AltGraph"); // which writes brackets on many keyboards
    const side = SIDES[event.key];
    if (!side || typed || typing(event.target) || !button(side)?.checkVisibility()) return;
    toggle(side);
    event.preventDefault();
  });

  narrow.addEventListener("change", () => {
    drawer = "";
    show();
  });

  new MutationObserver(show).observe(page, { subtree: true, childList: true });
  show();
})();
