/* Views as addresses: #table, #compare, #what-if and so on, behind a link as #t=...&view=table. Opening
   a view writes its address, back and forward open the view of theirs, and a page opens the one
   that its address names. */
(function () {
  "use strict";

  const HOME = "canvas";
  const ADDRESSES = { whatif: "what-if" }; // of views that are called otherwise in an address
  const LATE = 500; // ms after which a view that was gone back to is on the page

  let started = false;
  let followed = ""; // the view that the browser has gone to, until the page shows it
  let forgetting = 0;

  const addressOf = (view) => ADDRESSES[view] ?? view;
  const viewOf = (name) => Object.keys(ADDRESSES).find((each) => ADDRESSES[each] === name) ?? name;

  /** The view that an address names; the canvas where it names none. @param {string} hash */
  const named = (hash) => {
    if (!hash.startsWith("#t=")) return viewOf(hash.slice(1)) || HOME;
    return viewOf(/&view=([\w-]+)$/.exec(hash)?.[1] ?? HOME);
  };

  /** The fragment of the address of a view, beside the link that is open. @param {string} view */
  const fragment = (view) => {
    const link = window.topoloomLink.text;
    if (!link) return `#${addressOf(view)}`;
    return view === HOME ? `#t=${link}` : `#t=${link}&view=${addressOf(view)}`;
  };

  const set = (id, props) => window.dash_clientside.set_props(id, props);

  const refuse = (view) =>
    set("notifications", {
      sendNotifications: [
        {
          action: "show", id: "no-view", title: "No such view", color: "red", withBorder: true,
          message: `This designer shows no view called ${addressOf(view)}.`, autoClose: 10_000,
        },
      ],
    });

  /** What the page is called in the list of the browser's history. */
  const entitle = (view, choices) => {
    const label = choices.find(({ value }) => value === view)?.label;
    document.title = view === HOME || !label ? "Topoloom" : `${label} · Topoloom`;
  };

  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    views: {
      /** Show a view and write its address; the first time, show the one that the address names. */
      open(view, choices) {
        const known = (each) => choices.some(({ value }) => value === each);
        if (!started) {
          started = true;
          const wanted = named(location.hash);
          if (!known(wanted)) refuse(wanted);
          else if (wanted !== view) {
            follow(wanted);
            return wanted;
          }
        } else if (!followed && view !== named(location.hash)) {
          history.pushState(null, "", fragment(view));
        }
        if (view === followed) followed = "";
        entitle(view, choices);
        return view;
      },
    },
  });

  /** Let the page show a view whose address is there already. */
  const follow = (view) => {
    followed = view;
    clearTimeout(forgetting);
    forgetting = setTimeout(() => (followed = ""), LATE);
    set("view", { value: view });
  };

  window.addEventListener("popstate", () => {
    if (!started) return;
    const view = named(location.hash);
    const there = document.querySelector(`#view input[value="${CSS.escape(view)}"]`);
    if (!there) refuse(view);
    else if (view !== document.getElementById("stage").dataset.view) follow(view);
  });
})();
