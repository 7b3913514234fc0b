/* The tables as a spreadsheet: rows are chosen by their marks, with Shift up to another one; cells are
   filled down, pasted into and copied by the keys that spreadsheets have. What it changes is decided in
   Python (views/draw/spreadsheet.py), which hears of it by the stores table-rows and table-act. */
(function () {
  "use strict";

  const ACTS = { d: "fill", c: "copy", z: "undo", y: "redo" };
  let chosen = { device: [], link: [] };
  let cell = null; // where the focus was last: {table, row, key}
  let anchor = null; // the row that was marked last
  let acts = 0;

  const set = (id, props) => window.dash_clientside.set_props(id, props);
  const rowOf = (element) => element?.closest?.("#table tr[data-row]");
  const rows = (what) => [...document.querySelectorAll(`#table tr[data-of="${what}"]`)];
  const typed = (element) => element.matches?.("input:not([type=checkbox]), textarea");

  /** Show which rows are chosen; React may have put another row into the same element. */
  function mark() {
    for (const row of document.querySelectorAll("#table tr[data-row]")) {
      const on = chosen[row.dataset.of].includes(row.dataset.row);
      if (row.hasAttribute("data-chosen") !== on) row.toggleAttribute("data-chosen", on);
      const pick = row.querySelector(".ds-pick");
      if (pick.getAttribute("aria-checked") !== String(on)) pick.setAttribute("aria-checked", on);
    }
  }

  let watched = false;
  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    sheet: {
      /** Mark the rows of a choice; return how many they are, in words. */
      mark(now) {
        chosen = { device: [], link: [], ...now };
        if (!watched) {
          watched = true;
          new MutationObserver(mark).observe(document.getElementById("table"), {
            childList: true, subtree: true, attributeFilter: ["data-row", "aria-checked"],
          });
        }
        mark();
        const count = chosen.device.length + chosen.link.length;
        return count ? `${count.toLocaleString("en")} ${count === 1 ? "row" : "rows"} selected` : "";
      },
    },
  });

  const choose = (what, keys) => {
    chosen = { ...chosen, [what]: keys }; // the next press may come before Dash tells of this one
    mark();
    set("table-rows", { data: chosen });
  };

  /** Mark a row or take its mark away; with Shift all from the one marked last. */
  function pick(row, shift) {
    const { of, row: key } = row.dataset;
    const shown = rows(of).map((each) => each.dataset.row);
    const from = anchor?.of === of ? shown.indexOf(anchor.key) : -1;
    if (shift && from >= 0) {
      const [a, b] = [from, shown.indexOf(key)].sort((p, q) => p - q);
      choose(of, [...new Set([...chosen[of], ...shown.slice(a, b + 1)])]);
    } else if (chosen[of].includes(key)) choose(of, chosen[of].filter((each) => each !== key));
    else choose(of, [...chosen[of], key]);
    anchor = { of, key };
  }

  /** The table that is copied: the only one with chosen rows, else that of the focus, else the first. */
  function copied() {
    const some = Object.keys(chosen).filter((what) => chosen[what].length);
    if (some.length === 1) return some[0];
    return cell && rows(cell.table).length ? cell.table : document.querySelector("#table tr[data-of]")?.dataset.of;
  }

  function act(name, text = "") {
    if (name === "clear") return set("table-rows", { data: { device: [], link: [] } });
    if (name === "undo" || name === "redo") {
      return set("canvas", { command: { name, args: {}, n: Date.now() * 1000 } });
    }
    const table = name === "copy" ? copied() : cell?.table;
    acts += 1;
    const data = { act: name, table, row: cell?.row ?? "", key: cell?.key ?? "", text, n: acts };
    if (table) set("table-act", { data });
  }

  document.addEventListener("focusin", ({ target }) => {
    const place = target.closest?.("#table td[data-key]");
    if (!place) return;
    const { of, row } = rowOf(place).dataset;
    cell = { table: of, row, key: place.dataset.key };
  });

  document.addEventListener("click", (event) => {
    const mark = event.target.closest?.("#table tbody .ds-pick");
    if (mark) pick(rowOf(mark), event.shiftKey);
    const button = event.target.closest?.("[data-sheet]");
    if (button?.dataset.sheet === "paste") {
      // Whoever forbids the page to read it hears why nothing is pasted.
      const read = navigator.clipboard?.readText() ?? Promise.reject();
      read.catch(() => "").then((text) => act("paste", text));
    } else if (button) act(button.dataset.sheet);
  });

  /** The same column of the row above or below. */
  function walk(target, by) {
    const place = target.closest("td[data-key]");
    const all = rows(rowOf(place).dataset.of);
    const next = all[all.indexOf(rowOf(place)) + by];
    const field = next?.querySelector(`td[data-key="${place.dataset.key}"] input`);
    field?.focus();
    return Boolean(field);
  }

  document.addEventListener("keydown", (event) => {
    const { target } = event;
    // A cell that is drawn anew may lose the focus to the page.
    const lost = target === document.body && document.getElementById("table-pane")?.checkVisibility();
    if (!(lost || target.closest?.("#table-pane")) || event.altKey) return;
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (step && target.closest("#table td[data-key]") && !target.hasAttribute("aria-haspopup")) {
      if (walk(target, step)) event.preventDefault();
      return;
    }
    if (event.key === "Escape" && !typed(target)) act("clear");
    if (!(event.ctrlKey || event.metaKey)) return;
    const key = event.key.toLowerCase();
    const name = key === "z" && event.shiftKey ? "redo" : ACTS[key];
    // What is being typed or is marked as text is the browser's.
    if (!name || (name !== "fill" && typed(target) && (name !== "copy" || target.selectionStart !== target.selectionEnd))) return;
    if (name === "copy" && String(window.getSelection())) return;
    event.preventDefault();
    // What was typed is told only when a field is left.
    act(name, name === "fill" && typed(target) ? target.value : "");
  });

  document.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    const inCell = event.target.closest?.("#table td[data-key]");
    if (!inCell || !/[\t\n]/.test(text.trimEnd())) return;
    event.preventDefault();
    act("paste", text);
  });
})();
