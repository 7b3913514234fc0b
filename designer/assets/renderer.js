/* Dash has every component of the page look at its store after every step of every callback: more
   than a thousand components at two thousand steps until the page is there. Here they look at once
   where the layout has changed, which a field that is typed into needs, and once for all else that
   has changed in one go; which callbacks wait or run is shown by none of them. */
(function () {
  "use strict";

  let store;

  const calmer = (made) => {
    const subscribe = made.subscribe.bind(made);
    made.subscribe = (listener) => {
      let seen = made.getState();
      let due = false;
      const tell = () => {
        due = false;
        seen = made.getState();
        listener();
      };
      return subscribe(() => {
        const now = made.getState();
        if (now.layout !== seen.layout) {
          tell();
        } else if (!due && Object.keys(now).some((key) => key !== "callbacks" && now[key] !== seen[key])) {
          due = true;
          queueMicrotask(() => due && tell());
        }
      });
    };
    return made;
  };

  // Dash puts its store there before the first component subscribes to it.
  Object.defineProperty(window, "store", {
    configurable: true,
    get: () => store,
    set: (made) => { store = calmer(made); },
  });
})();
