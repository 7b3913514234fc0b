/* Links: the fragment of the address holds a cluster and what is asked of it. Browsers keep it to
   themselves; the page gives it to the designer that it came from, which reads it as any file. */
(function () {
  "use strict";

  const no = () => window.dash_clientside.no_update; // there only once Dash has started
  const set = (id, props) => window.dash_clientside.set_props(id, props);

  /** What stands behind "#t=", or nothing. */
  const fragment = () => (location.hash.startsWith("#t=") ? location.hash.slice(3) : "");

  let open = fragment();
  let before = ""; // what was open when a link was pasted

  /** Whether the page was here before with this link, so that what became of it comes back. */
  const again = () => {
    const [{ type } = {}] = performance.getEntriesByType("navigation");
    return type === "reload" || type === "back_forward";
  };

  const told = (title, message) =>
    set("notifications", {
      sendNotifications: [
        {
          action: "show", id: `link-${Date.now()}`, title, message,
          color: "teal", autoClose: 6000, withBorder: true,
        },
      ],
    });

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
        if (!open || (again() && (await window.topoloomDrawings.kept(home)))) return no();
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
        const kept = copy.lost ? ` Not kept: ${copy.lost}.` : "";
        const size = `${copy.fragment.length.toLocaleString("en")} letters`;
        const holds = `It holds the drawing and the question in ${size}; whoever opens it needs a designer there.${kept}`;
        const fallback = () => {
          open = copy.fragment;
          history.replaceState(null, "", hash);
          told("The link is in the address bar", `The browser keeps its clipboard to itself. ${holds}`);
        };
        if (!navigator.clipboard) return fallback();
        const link = `${location.origin}${location.pathname}${location.search}${hash}`;
        navigator.clipboard.writeText(link).then(() => told("Link copied", holds), fallback);
      },
    },
  });

  // A button of a notification, which has no callbacks of its own.
  document.addEventListener("click", ({ target }) => {
    if (target.closest?.(".ds-share-file")) set("link-file", { data: Date.now() });
  });

  // A link that is pasted over the address of this page.
  window.addEventListener("hashchange", () => {
    const next = fragment();
    if (!next || next === open) return;
    [before, open] = [open, next];
    set("linked", { data: { fragment: next, n: Date.now() } });
  });
})();
