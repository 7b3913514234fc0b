/* Behaviour of the page: what must be quick or can happen nowhere else, such as keeping the drawing,
   asking after a pause, numbering commands, keys that work everywhere, what screen readers find.
   Everything else is a callback in Python. */
(function () {
  "use strict";

  const no = () => window.dash_clientside.no_update; // there only once Dash has started
  const BREATH = 60; // ms without an edit before the best rate is asked for
  const PAUSE = 350; // ms without an edit before bounds are asked for

  let restored = false; // nothing is kept before the old drawing is back
  let asking = 0;
  let asked = "";
  let following = 0;
  let followed = "";
  let number = 0; // of the last question of this page
  let measured = false; // whether the room of the plot of networks is watched
  let pair = ""; // the networks that are side by side
  let unfolded = ""; // the row of the comparison whose details are shown
  let held = ""; // the button of a row that has the focus
  let named = ""; // the name that the page shows
  let offered = { kept: null, plans: [] }; // plans of the last solve, the best at the end
  let shifted = false; // whether the last click was with Shift
  let acts = 0; // buttons of the sketch that were pressed
  const ours = new Set(); // names that the page has put there and nobody has typed
  const page = `${Date.now().toString(36)}${Math.random().toString(36).slice(2)}`;

  const command = (name, args) => ({ name, args, n: Date.now() * 1000 });

  /** Draw a label of the page as it looks onto a picture of it. */
  const pill = (ctx, label) => {
    if (label.hidden || !label.offsetWidth) return;
    const style = window.getComputedStyle(label);
    const inner = label.getBoundingClientRect();
    const outer = label.offsetParent.getBoundingClientRect();
    const [x, y] = [inner.left - outer.left, inner.top - outer.top];
    ctx.fillStyle = style.backgroundColor;
    ctx.beginPath();
    ctx.roundRect(x, y, inner.width, inner.height, inner.height / 2);
    ctx.fill();
    ctx.fillStyle = style.color;
    ctx.font = style.font;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    ctx.fillText(label.textContent, x + inner.width / 2, y + inner.height / 2);
  };

  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    topoloom: {
      /** Make a plot with its first figure, and give it those that follow. */
      plot(figure, { plot: id }, look) {
        if (!figure) return no();
        const height = figure.layout?.height;
        const props = { figure, style: height ? { ...look.style, height } : look.style };
        if (document.getElementById(id)) {
          window.dash_clientside.set_props(id, props);
          return no();
        }
        return { namespace: "dash_core_components", type: "Graph", props: { id, ...look, ...props } };
      },

      /** Bring back the drawing that this page was left with. */
      async restore(home) {
        watchScheme();
        const drawing = await window.topoloomStorage.restore(home);
        restored = true;
        window.topoloomStorage.readResult(home).then((data) => {
          if (data) window.dash_clientside.set_props("kept", { data });
        });
        if (!drawing || JSON.stringify(drawing) === JSON.stringify(home.drawing)) return [no(), no()];
        const message = {
          action: "show",
          id: "restored",
          title: "Restored",
          message: `${drawing.topology.name} is back as you left it. Open another one from the gallery, or start a new one.`,
          color: "azure",
          autoClose: 6000,
          withBorder: true,
        };
        return [drawing, [message]];
      },

      /** Keep the drawing in the browser; show its name and what it has. */
      keep(drawing, home) {
        if (!drawing) return [no(), no()];
        if (restored) window.topoloomStorage.keep(drawing, home);
        const { name } = drawing.topology;
        if (name !== named) ours.add(name);
        named = name;
        return [name, window.topoloomPicture.counts(drawing.topology)];
      },

      /** Keep the result with the drawing; once none is shown, show that of a document gone to. */
      keepResult(result, summary, course, drawing, home) {
        if (!restored) return;
        if (!result) {
          const data = window.topoloomStorage.takeAwaited();
          if (data) window.topoloomDrawings.showPlan(data);
          return;
        }
        const asked = summary?.asked ?? null;
        const note = summary ? window.topoloomDrawings.describePlan(summary) : "";
        window.topoloomStorage.writeResult({ result, asked, course }, drawing, { home, note });
      },

      rename(name, drawing) {
        const now = (name ?? "").trim();
        // The page has put it there, perhaps for a drawing that another one has followed since.
        if (ours.delete(now) || !drawing || !now || now === drawing.topology.name) return no();
        named = now;
        return command("rename_topology", { name: now });
      },

      /** Add a device; a click with Shift links it to all that is selected. */
      add(clicks) {
        const asked = window.dash_clientside.callback_context.triggered_id;
        if (!asked || !clicks.some(Boolean)) return no();
        return command("add", { kind: asked.device, linked: shifted });
      },

      /** A field that is changed is not the one any more that was refused. */
      unmark() {
        const { triggered_id: key, triggered } = window.dash_clientside.callback_context;
        if (!key || triggered.length !== 1) return;
        const props = window.dash_component_api.getLayout(key)?.props ?? {};
        for (const each of ["error", "trouble"]) {
          if (props[each]) window.dash_clientside.set_props(key, { [each]: null });
        }
      },

      shortcuts: (clicks) => (clicks ? command("shortcuts", { on: true }) : no()),

      /** Say what cannot be solved beside the field that it is about. */
      atFault: (known) => ["size", "chunks", "root"].map((each) => (known?.field === each ? known.trouble : "")),

      /** Gather the settings of the header. */
      request(collective, size, chunks, root, formulation, options, timeLimit, gap, custom, sketches) {
        const rooted = ["broadcast", "reduce", "gather", "scatter"].includes(collective);
        const request = {
          collective, size, chunks, root: rooted ? root : 0, formulation,
          options: { ...options?.[formulation], ...sketches?.[formulation] },
          time_limit: timeLimit, gap,
          custom: collective === "custom" ? custom : null,
        };
        return [request, !rooted];
      },

      /** Hear a button of the sketch; the same one pressed again is another act. */
      sketchAct() {
        const { triggered_id: asked, triggered } = window.dash_clientside.callback_context;
        if (!asked || !triggered[0].value) return no();
        return { does: asked["sketch-act"], n: (acts += 1) };
      },

      /** While a sketch is drawn, keys belong to the canvas; the drawer gives the focus back late. */
      sketching(drawing) {
        if (drawing?.fresh) setTimeout(() => document.querySelector("#canvas .tl")?.focus(), 320);
      },

      /** After a pause, ask what can be said about the drawing; a move changes nothing. */
      ask(drawing, request) {
        clearTimeout(asking);
        if (!drawing || !request) return no();
        const { name, ...moving } = drawing.topology;
        const text = JSON.stringify([moving, request]);
        if (text === asked) return no();
        asking = setTimeout(() => {
          asked = text;
          window.dash_clientside.set_props("problem-request", {
            data: { topology: drawing.topology, request },
          });
        }, asked ? PAUSE : 0);
        return no();
      },

      /** Ask for the best rate while the drawing is edited; a move changes nothing. */
      live(drawing, request) {
        clearTimeout(following);
        if (!drawing || !request) return no();
        const { name, ...moving } = drawing.topology;
        const { collective, size, chunks, root, custom } = request;
        const question = { collective, size, chunks, root, custom };
        const text = JSON.stringify([moving, question]);
        if (text === followed) return no();
        document.querySelector(".ds-live")?.setAttribute("data-old", "");
        following = setTimeout(() => {
          followed = text;
          number += 1;
          window.dash_clientside.set_props("live-question", {
            data: { topology: drawing.topology, request: question, page, n: number },
          });
        }, BREATH);
        return no();
      },

      /** The answer to the last question is there. */
      settled(found) {
        if (found?.n === number) document.querySelector(".ds-live")?.removeAttribute("data-old");
      },

      /** Draw something over the cluster, or take away what is drawn. */
      layer(clicks, now) {
        const { triggered_id: asked, triggered } = window.dash_clientside.callback_context;
        // A card that was drawn anew brings a button that nobody has pressed.
        if (!asked || triggered.length !== 1 || !triggered[0].value) return no();
        return now === asked.layer ? "" : asked.layer;
      },

      /** The marks of the layer that is on, and which button is pressed. */
      marks(layer, alike, prices, duals, tree, paths) {
        // Their ids, not their states: a card that was drawn anew has buttons without any yet.
        const buttons = window.dash_clientside.callback_context.inputs_list.at(-1);
        const all = {
          gpus: alike?.gpus?.marks, links: alike?.links?.marks, prices: prices?.marks,
          duals: duals?.marks, tree, paths,
        };
        return [all[layer] ?? null, buttons.map(({ id }) => String(id.layer === layer))];
      },

      /** Put the canvas' layers and labels together into one picture. */
      picture(clicks) {
        if (!clicks.some(Boolean)) return;
        const stage = document.querySelector("#canvas .tl-stage");
        const layers = [...stage.querySelectorAll("canvas")].filter((each) => each.width);
        const bitmap = document.createElement("canvas");
        const scale = Math.max(...layers.map((each) => each.width)) / stage.clientWidth;
        bitmap.width = stage.clientWidth * scale;
        bitmap.height = stage.clientHeight * scale;
        const ctx = bitmap.getContext("2d");
        ctx.fillStyle = window.getComputedStyle(stage.parentElement).backgroundColor;
        ctx.fillRect(0, 0, bitmap.width, bitmap.height);
        for (const each of layers) ctx.drawImage(each, 0, 0, bitmap.width, bitmap.height);
        ctx.scale(scale, scale);
        for (const label of stage.querySelectorAll(".tl-note")) pill(ctx, label);
        const link = document.createElement("a");
        link.href = bitmap.toDataURL("image/png");
        link.download = `${document.getElementById("topology-name").value || "topology"}.png`;
        link.click();
      },

      /** Show Solve or Stop, and ask for news only while there may be some. */
      running(job, course) {
        const found = course?.points?.findLast((row) => row[1] !== null);
        const gap = found ? course.readouts?.at(-1).gap : "–";
        const card = job ? (found ? "" : "ds-before") : "ds-after";
        return [
          job ? { display: "none" } : {},
          job ? {} : { display: "none" },
          found ? "Stop" : "Cancel",
          gap === "–" ? "Accept" : `Accept ${gap}`,
          !job,
          Boolean(job),
          !job && !found,
          card,
        ];
      },

      /** Let the slider stand on the plan of the page, or take for that the plan it is moved to. */
      front(value, kept, result, job) {
        if (kept !== offered.kept) {
          // They come with the result of their solve, which is the last of them.
          offered = { kept, plans: kept ? [...kept.plans, result] : [] };
        }
        const { plans } = offered;
        let place = plans.indexOf(result);
        if (place < 0) return [true, no(), no(), no(), no(), no()];
        const moved = window.dash_clientside.callback_context.triggered_id === "front-slide";
        if (moved) place = value;
        const plan = plans[place];
        if (plan !== result) window.dash_clientside.set_props("result", { data: plan });
        return [
          Boolean(job), plans.length - 1, kept.marks, place, kept.words[place],
          plan === result ? no() : plan,
        ];
      },

      /** Compare or Stop, and news only while there may be some. */
      comparing(job, seen) {
        const running = Boolean(job) && (!seen || seen.key !== job.key || seen.running);
        const none = !(job && seen?.plans);
        return [
          running ? { display: "none" } : {}, running ? {} : { display: "none" }, !running, none, none, none,
        ];
      },

      /** Propose or Stop, and news only while there may be some. */
      proposing(job, seen) {
        const running = Boolean(job) && (!seen || seen.key !== job.key || seen.running);
        return [
          running ? { display: "none" } : {}, running ? {} : { display: "none" }, !running,
          !(job && seen?.order.length),
        ];
      },

      /** The card of the network that was chosen in the plot comes into view. */
      proposed(children, chosen) {
        if (!chosen) return;
        window.requestAnimationFrame(() =>
          document.querySelector(".ds-pro-card[data-chosen='true']")?.scrollIntoView({ block: "nearest" }));
      },

      /** Say once and whenever it changes how large the plot of the networks is: what is left of its place beside axes and legend. */
      measured() {
        const place = document.getElementById("propose-found");
        if (!place || measured) return;
        measured = true;
        let timer = 0;
        const tell = () => {
          const [width, height] = [place.clientWidth - 96, 0.94 * place.clientHeight - 150];
          if (width > 0 && height > 0) window.dash_clientside.set_props("propose-size", { data: [width, height].map(Math.round) });
        };
        new ResizeObserver(() => {
          window.clearTimeout(timer);
          timer = window.setTimeout(tell, PAUSE);
        }).observe(place);
      },

      /** Two networks are side by side: the table above the cards comes into view, once for each pair. */
      paired(ticked) {
        const keys = window.dash_clientside.callback_context.inputs_list[0].map(({ id }) => id["propose-pick"]);
        const now = keys.filter((_, i) => ticked[i]).sort().join();
        if (now !== pair && now.includes(",")) document.querySelector(".ds-pro-list").scrollTop = 0;
        pair = now;
      },

      /** The rows are drawn anew: the focus goes back to its button, new details come into view. */
      unfolded(children, opened) {
        const fresh = opened && opened !== unfolded;
        unfolded = opened;
        window.requestAnimationFrame(() => {
          const lost = document.activeElement === document.body;
          if (lost && held) document.getElementById(held)?.focus({ preventScroll: true });
          if (fresh) document.querySelector(".ds-cmp-detail")?.scrollIntoView({ block: "nearest" });
        });
      },

      /**
       * The plans that are ticked, in the order of the ticks; no more can be than there are players.
       * A table that is drawn anew may be of the time before the last ticks: its marks follow what is picked.
       */
      picked(checked, before) {
        const { inputs_list: inputs, triggered } = window.dash_clientside.callback_context;
        const keys = inputs[0].map(({ id }) => id["compare-pick"]);
        const anew = triggered.length > 1 && triggered.length === keys.length;
        const now = new Set(keys.filter((key, i) => (anew ? before.includes(key) : checked[i])));
        const picked = [...before.filter((key) => now.delete(key)), ...now].slice(0, 4);
        const full = picked.length >= 4;
        return [
          String(picked) === String(before) ? no() : picked,
          keys.map((key) => full && !picked.includes(key)),
          anew ? keys.map((key) => picked.includes(key)) : keys.map(no),
        ];
      },

      /** The table or the players; a row's own button begins with that row, else the plans that are ticked. */
      beside(clicks, differ, rows, picked, show, opened) {
        const { triggered_id: asked, triggered } = window.dash_clientside.callback_context;
        const many = picked?.length ?? 0;
        const label = (now) => (now === "pair" ? "Back to the table" : many > 1 ? `Watch ${many} in step` : "Side by side");
        const ticked = asked === "compare-picked";
        if (ticked || !asked || !triggered[0].value) return [no(), label(show), no(), no(), no()];
        const row = asked["compare-beside"];
        const differs = asked === "compare-difference";
        const now = row || differs || show !== "pair" ? "pair" : "table";
        const view = now === "pair" ? (differs ? "difference" : "players") : no();
        return [now, label(now), String(now === "pair"), row ?? (many > 1 && now === "pair" ? "" : opened), view];
      },

      /** Solve again with what a remedy has changed, where it was offered for a failed solve. */
      solveAgain(count, fault) {
        if (!count || !fault) return no();
        // The request follows the changed option in the page within this time.
        setTimeout(() => document.getElementById("solve")?.click(), 150);
        return null;
      },
    },
  });

  /** An entry of the menu of formulations, with where it comes from or why it is grey. */
  const functions = (window.dashMantineFunctions = window.dashMantineFunctions || {});
  functions.formulationOption = ({ option, checked }) => {
    const h = window.React.createElement;
    return h(
      "span",
      { className: "ds-option", "data-checked": checked || undefined },
      h("b", null, option.label),
      h("small", null, option.disabled ? `Unavailable: ${option.note}` : option.note),
    );
  };

  /** Charts are drawn in Python, so the server hears when the page turns dark or light. */
  const root = document.documentElement;
  let scheme = null;
  const tellScheme = () => {
    const now = root.dataset.mantineColorScheme;
    if (!now || now === scheme) return;
    scheme = now;
    window.dash_clientside.set_props("scheme-now", { data: now });
  };
  const watchScheme = () => {
    tellScheme();
    new MutationObserver(tellScheme).observe(root, {
      attributes: true, attributeFilter: ["data-mantine-color-scheme"],
    });
  };

  document.addEventListener("click", (event) => {
    const skip = event.target.closest?.("[data-skip]");
    if (!skip) return;
    event.preventDefault();
    const target = document.querySelector(skip.dataset.skip);
    target?.scrollIntoView({ block: "start" });
    target?.focus();
  });

  document.addEventListener("focusin", ({ target }) => {
    held = target.closest?.("#compare-table") ? target.id : "";
  });

  // A row is as good as the button in it, for whoever has a mouse.
  document.addEventListener("click", (event) => {
    const row = event.target.closest?.(".ds-cmp-row");
    if (row && !event.target.closest("button, .ds-cmp-tick")) row.querySelector(".ds-cmp-open").click();
  });

  document.addEventListener("click", ({ shiftKey, target }) => {
    shifted = shiftKey;
    // The type that is chosen already is no change, but may be meant for the links that are selected.
    const type = target.closest?.(".ds-link[data-checked]");
    if (type) window.dash_clientside.set_props("link-type", { value: type.value });
  }, true);

  document.addEventListener("dragstart", (event) => {
    const tile = event.target.closest?.("[data-topology]");
    if (!tile) return;
    event.dataTransfer.setData("application/x-topology", tile.dataset.topology);
    event.dataTransfer.effectAllowed = "copy";
  });

  // The canvas wants a cluster built by numbers, or only to know whether somebody can.
  document.addEventListener("topoloom:build", (event) => {
    event.preventDefault();
    if (event.detail.open) window.dash_clientside.set_props("wizard", { opened: true });
  });

  /** Press Solve where it is shown, and wait two seconds for what was drawn just now to be looked at. */
  const pressSolve = (patience = 20) => {
    const button = document.getElementById("solve");
    if (!button?.checkVisibility({ visibilityProperty: true })) return;
    if (button.disabled && patience) setTimeout(() => pressSolve(patience - 1), 100);
    else button.click();
  };

  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
      pressSolve();
      event.preventDefault();
    }
  });

  // ---- what components of others leave out for screen readers: set where it is missing ----------

  /** Attributes that say of a button that it opens something. */
  const OPENS = ["aria-haspopup", "aria-expanded", "aria-controls"];

  /** A menu's target is wrapped in a box that has what belongs to its button. */
  function mendMenus(root) {
    for (const box of root.querySelectorAll('div[id^="mantine-"][id$="-target"]:not([role])')) {
      const button = box.querySelector("button");
      if (!button) continue;
      for (const name of OPENS) {
        if (!box.hasAttribute(name)) continue;
        button.setAttribute(name, box.getAttribute(name));
        box.removeAttribute(name);
      }
    }
  }

  /** An upload's field is opened by the button around it and is never seen. */
  function mendUploads(root) {
    for (const field of root.querySelectorAll('input[type="file"]:not([aria-label])')) {
      const button = field.parentElement?.querySelector("button");
      field.setAttribute("aria-label", button?.getAttribute("aria-label") ?? button?.textContent ?? "File");
    }
  }

  /** What a menu focuses first, before an arrow chooses an item, belongs to none of its roles. */
  function mendPlaceholders(root) {
    for (const place of root.querySelectorAll('[role="menu"] > div[tabindex]:not([role])')) {
      place.setAttribute("role", "group");
    }
  }

  /** The arrows of a pager are pictures without words. */
  function mendPagers(root) {
    for (const pager of root.querySelectorAll(".mantine-Pagination-root")) {
      const arrows = [...pager.querySelectorAll("button")].filter((each) => !each.textContent.trim());
      const words = arrows.length > 2
        ? ["First page", "Previous page", "Next page", "Last page"]
        : ["Previous page", "Next page"];
      arrows.forEach((arrow, i) => {
        if (arrow.getAttribute("aria-label") !== words[i]) arrow.setAttribute("aria-label", words[i]);
      });
    }
  }

  let mending = false;
  function mend() {
    if (mending) return;
    mending = true;
    requestAnimationFrame(() => {
      mending = false;
      mendMenus(document);
      mendUploads(document);
      mendPlaceholders(document);
      mendPagers(document);
    });
  }

  new MutationObserver(mend).observe(document.documentElement, {
    subtree: true, childList: true, attributes: true, attributeFilter: OPENS,
  });
})();
