/* What components of others leave out for screen readers: set where it is missing, as it appears. */
(function () {
  "use strict";

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

  let asked = false;
  function mend() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
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
