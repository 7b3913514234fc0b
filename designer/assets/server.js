/* Requests to the server: one waits while the server is away and is sent when it is back, and
   one that the server refuses is shown in its words. */
(function () {
  "use strict";

  const ASK = "_dash-update-component";
  const MOST = 64 * 2 ** 20; // bytes of a question, as the server has it
  const AGAIN = 1000; // ms between two looks for the server
  const send = window.fetch.bind(window);

  /** Dash takes this for an answer that changes nothing. */
  const nothing = () => new Response(null, { status: 204 });

  const notify = (id, title, message, more = {}) =>
    window.dash_clientside.set_props("notifications", {
      sendNotifications: [
        {
          action: "show", id, title, message, color: "orange", autoClose: 20_000, withBorder: true,
          ...more,
        },
      ],
    });

  let back = null; // settles when the server is there again

  const alive = async () => {
    try {
      return (await send("alive", { cache: "no-store" })).ok;
    } catch {
      return false;
    }
  };

  /** Wait for the server; all questions wait for it together. */
  const untilBack = () => {
    back ??= (async () => {
      // What was only a question that got lost on its way is nobody's concern.
      let away = false;
      while (!(await alive())) {
        if (!away) {
          notify("server", "The server does not answer",
            "What you draw stays in this browser; the page goes on when the server is back.",
            { autoClose: false });
        }
        away = true;
        await new Promise((done) => setTimeout(done, AGAIN));
      }
      if (away) {
        notify("server", "The server is back", "The page goes on.",
          { action: "update", color: "teal", autoClose: 6000 });
      }
      back = null;
    })();
    return back;
  };

  const refuse = async (answer) => {
    const words = (await answer.text()).trim();
    notify(`refused-${answer.status}`, "The server did not take this", words || `It says ${answer.status}.`);
    return nothing();
  };

  /** Ask, and once more after the server was away. */
  const ask = async (...asked) => {
    for (let turn = 0; ; turn += 1) {
      try {
        const answer = await send(...asked);
        return answer.ok ? answer : await refuse(answer);
      } catch (error) {
        if (turn === 2) throw error;
        await untilBack();
      }
    }
  };

  window.fetch = (what, how) => {
    if (!String(what?.url ?? what).includes(ASK)) return send(what, how);
    if ((how?.body?.length ?? 0) > MOST) {
      notify("too-large", "The server did not take this",
        `This is too large for the server: a question has ${MOST / 2 ** 20} MiB at most.`);
      return Promise.resolve(nothing());
    }
    return ask(what, how);
  };
})();
