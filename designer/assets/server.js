/* Requests to the server: one waits while the server is away and is sent when it is back, and
   one that the server refuses is shown in its words. A drawing and a result go there once: requests
   refer to them by a fingerprint, and where the server has them no more they are stored again. */
(function () {
  "use strict";

  const ASK = "_dash-update-component";
  const STORE = "_store";
  const GONE = 205; // where the server does not have what a question refers to
  const TURNS = 3; // of a question whose drawing the server has lost
  const RECENT = 24; // drawings and results that questions may still refer to
  const MOST = 64 * 2 ** 20; // bytes of a question, as the server has it
  const AGAIN = 1000; // ms between two looks for the server
  const send = window.fetch.bind(window);

  /** Dash takes this for an answer that changes nothing. */
  const nothing = () => new Response(null, { status: 204 });

  const notify = (id, title, message, more = {}) =>
    window.dash_clientside.set_props("notifications", {
      sendNotifications: [
        {
          action: "show", id, title, message, color: "red", autoClose: 20_000, withBorder: true,
          ...more,
        },
      ],
    });

  window.topoloomNotify = notify;

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

  const refused = async (answer) => ({ status: answer.status, words: (await answer.text()).trim() });

  const refuse = ({ status, words }) => {
    notify(`refused-${status}`, "The server did not take this", words || `It says ${status}.`);
    return nothing();
  };

  const tooLarge = (body) =>
    (body?.length ?? 0) > MOST && {
      status: 413,
      words: `This is too large for the server: a question has ${MOST / 2 ** 20} MiB at most.`,
    };

  /** Ask, and once more after the server was away. */
  const reach = async (...asked) => {
    for (let turn = 0; ; turn += 1) {
      try {
        return await send(...asked);
      } catch (error) {
        if (turn === 2) throw error;
        await untilBack();
      }
    }
  };

  // ---- what is stored once -------------------------------------------------------------------

  /** 128 bits of a text, for telling contents apart, not for secrets. @param {string} text */
  const fingerprint = (text) => {
    const factors = [597399067, 2869860233, 951274213, 2716044179];
    const hash = [1779033703, 3144134277, 1013904242, 2773480762];
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      for (let k = 0; k < 4; k++) hash[k] = hash[(k + 1) % 4] ^ Math.imul(hash[k] ^ code, factors[k]);
    }
    return hash.map((each) => (each >>> 0).toString(16).padStart(8, "0")).join("");
  };

  const names = new WeakMap(); // fingerprints, each made once
  const recent = new Map(); // what questions refer to, by fingerprint; the newest last
  const stored = new Map(); // promises of the server's answers, by fingerprint

  const reference = (kind, value) => {
    if (!names.has(value)) names.set(value, fingerprint(JSON.stringify(value)));
    const name = names.get(value);
    recent.delete(name);
    recent.set(name, { kind, value });
    if (recent.size > RECENT) recent.delete(recent.keys().next().value);
    return { [`$${kind}`]: name };
  };

  const drawn = (value) => typeof value?.name === "string" && [value.devices, value.links].every(Array.isArray);

  /** A value of a question with references for what is large in it. */
  const shortened = (value) => {
    if (drawn(value)) return reference("topology", value);
    if (drawn(value?.topology)) return { ...value, topology: reference("topology", value.topology) };
    return value?.plan && drawn(value.problem?.topology) ? reference("result", value) : value;
  };

  const shorten = (rows) =>
    rows?.map((row) => (Array.isArray(row) ? shorten(row) : { ...row, value: shortened(row.value) }));

  /** Dash calls this for each question before it is written. */
  window.topoloomShorten = (question) => {
    question.inputs = shorten(question.inputs);
    if (question.state) question.state = shorten(question.state);
  };

  /** Store a value and return nothing, or why the server does not take it. */
  const sendValue = async (name) => {
    const { kind, value } = recent.get(name) ?? {};
    const body = JSON.stringify({ kind, fingerprint: name, value });
    if (tooLarge(body)) return tooLarge(body);
    const headers = { "Content-Type": "application/json" };
    const answer = await reach(STORE, { method: "POST", headers, body });
    return answer.ok ? null : refused(answer);
  };

  /** Store what a question refers to, unless the server has it. @param {string} name */
  const store = (name) => {
    if (!stored.has(name)) {
      const sending = sendValue(name);
      stored.set(name, sending);
      sending.catch(() => stored.delete(name)); // the next question tries again
    }
    return stored.get(name);
  };

  /** Ask, once what the question refers to is stored. */
  const ask = async (what, how) => {
    const wanted = [...how.body.matchAll(/\{"\$(?:topology|result)":"(\w+)"\}/g)].map((each) => each[1]);
    const forget = () => wanted.forEach((each) => stored.delete(each));
    for (let turn = 1; ; turn += 1) {
      const why = (await Promise.all(wanted.map(store))).find(Boolean);
      if (why) forget();
      if (why) return refuse(why);
      const answer = await reach(what, how);
      if (answer.status === GONE && turn < TURNS) forget();
      else return answer.ok && answer.status !== GONE ? answer : refuse(await refused(answer));
    }
  };

  window.fetch = (what, how) => {
    if (!String(what?.url ?? what).includes(ASK)) return send(what, how);
    const why = tooLarge(how?.body);
    return why ? Promise.resolve(refuse(why)) : ask(what, how);
  };
})();
