/* The What-if view in the page: sliders and numbers in step, and one question under way at a time. */
(function () {
  "use strict";

  const no = () => window.dash_clientside.no_update;
  const PAUSE = 250; // ms without an answer before what takes longer is asked for
  const PATIENCE = 4000; // ms after which an answer is given up
  const page = `${Date.now().toString(36)}${Math.random().toString(36).slice(2)}`;

  let number = 0; // of the last question
  let newest = null; // the answer to the last question that was answered
  let until = 0; // when the question under way is given up
  let waiting = null; // the values that are asked for next
  let last = ""; // the values that were asked for last
  let shown = null; // devices in the picture
  let settling = 0;

  const between = (value, low, high) => Math.min(high, Math.max(low, value));
  const digits = (value, many) => Number(value.toPrecision(many));
  const KINDS = { bandwidth: "bandwidth", alpha: "latency", count: "count" };

  /** The number at a place of a slider: three digits, in the middle what it is today. */
  const numberAt = (place, low, high) => {
    const today = (low + high) / 2;
    return digits(2 ** place, Math.abs(place - today) < 1e-6 ? 12 : 3);
  };

  /** How far from today: ×2, or nothing. */
  const times = (value, today) => {
    const share = value / today;
    return Math.abs(share - 1) < 1e-9 ? "" : `×${digits(share, 3)}`;
  };

  /** A size at a place of its slider, with one of ten steps for each digit. */
  const STEPS = [1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.4, 8];
  const sizeAt = (place) => {
    const tenth = Math.round(place * 10);
    const bytes = Math.round(STEPS[tenth % 10] * 10 ** Math.floor(tenth / 10));
    return window.topoloomQuantity.written(bytes, "size");
  };

  const bytesOf = (words) =>
    window.topoloomQuantity.parse(words, { kind: "size", what: "size", above: 0 }).value ?? null;

  /** After a pause, ask what takes longer of the values that were answered. */
  const settle = () => {
    clearTimeout(settling);
    settling = setTimeout(() => {
      number += 1;
      const data = { values: JSON.parse(last), page, n: number };
      window.dash_clientside.set_props("whatif-settled", { data });
    }, PAUSE);
  };

  /** The answer is there, or never comes: ask for what was moved to meanwhile. */
  const next = () => {
    until = 0;
    if (!waiting) return;
    const values = waiting;
    waiting = null;
    window.dash_clientside.set_props("whatif-asked", { data: asked(values) });
  };

  const asked = (values) => {
    until = Date.now() + PATIENCE;
    number += 1;
    return { values, shown, page, n: number };
  };

  /** What the label of a factor's slider says while it is dragged. */
  const functions = (window.dashMantineFunctions = window.dashMantineFunctions || {});
  functions.whatifTimes = (value) => `${value}×`;

  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    whatif: {
      /** Keep a slider and the number beside it in step; what moved last counts. */
      step(slide, value, low, high) {
        const { triggered_id: id } = window.dash_clientside.callback_context;
        if (!id) return [no(), no(), no(), no()];
        const count = id.what === "count";
        const moved = id.part === "slide";
        const now = moved ? (count ? slide : numberAt(slide, low, high)) : value;
        if (typeof now !== "number") return [no(), no(), no(), no()];
        const place = count ? now : now > 0 ? Math.log2(now) : low;
        const spoken = { thumb: { "aria-valuetext": window.topoloomQuantity.written(now, KINDS[id.what]) } };
        return [
          moved ? no() : between(place, low, high),
          moved ? now : no(),
          spoken,
          count ? "" : times(now, 2 ** ((low + high) / 2)),
        ];
      },

      /** The same for the size, which is typed as words. */
      size(place, words) {
        const { triggered_id: id } = window.dash_clientside.callback_context;
        const moved = id === "whatif-size-slide";
        const now = moved ? sizeAt(place) : words;
        const bytes = bytesOf(now);
        const spoken = { thumb: { "aria-valuetext": now } };
        if (moved) return [no(), now, spoken];
        return [bytes > 0 ? between(Math.log10(bytes), 3, 10.2) : no(), no(), spoken];
      },

      /** Ask what becomes of it, unless a question is under way: then ask when it is answered. */
      ask(_numbers, size) {
        const { inputs_list: inputs, triggered } = window.dash_clientside.callback_context;
        const values = { bandwidth: {}, alpha: {}, count: {}, size: (size ?? "").trim() };
        for (const { id, value } of inputs[0]) values[id.what][id.of] = value;
        const text = JSON.stringify(values);
        const anew = triggered.some(({ prop_id: id }) => id.startsWith("whatif-today"));
        if (text === last && !anew) return no();
        last = text;
        if (Date.now() < until) {
          waiting = values;
          return no();
        }
        return asked(values);
      },

      /** Draw the changed cluster, its cut and its figures, and ask for what was moved to meanwhile. */
      picture(told, choice, picked) {
        const { triggered } = window.dash_clientside.callback_context;
        if (!told) return Array(6).fill(no());
        if (told.n >= (newest?.n ?? 0)) newest = told; // else it comes after a newer one
        const now = newest;
        const news = now === told && triggered.some(({ prop_id: id }) => id.startsWith("whatif-now"));
        if (news) {
          settle();
          next();
        }
        const { figures, cuts: named } = news ? now.panel : { figures: no(), cuts: no() };
        const cuts = now.answer.cuts ?? [];
        const cut = cuts[Math.min(choice ?? 0, cuts.length - 1)];
        shown = now.drawing?.topology.devices.length ?? shown;
        const drawn = picked ? picked.cut : choice === null ? null : cut;
        return [now.drawing ?? no(), drawn ? [drawn] : [], !now.moved, picked?.marks ?? null, figures, named];
      },

      /** Run or Stop, and news only while there may be some. */
      running(job, seen) {
        const running = Boolean(job) && (!seen || seen.key !== job.key || seen.running);
        return [running ? { display: "none" } : {}, running ? {} : { display: "none" }, !running];
      },

      /** Whether a study is of the cluster and the question as they stand. */
      old(question, today, job) {
        if (!job || !question || !today) return true;
        const same = JSON.stringify(job.values) === JSON.stringify(question.values);
        return same && job.signature === today.signature;
      },

      /** Draw the curve of a class, or take it away. */
      choose(clicks, pressed) {
        const { triggered_id: id, triggered, inputs_list: inputs } = window.dash_clientside.callback_context;
        if (!id || triggered.length !== 1 || !triggered[0].value) return no();
        const key = id["whatif-class"];
        const keys = inputs[0].map(({ id: each }) => each["whatif-class"]);
        const drawn = keys.filter((_, i) => pressed[i] === "true");
        return drawn.includes(key) ? drawn.filter((each) => each !== key) : [...drawn, key].slice(-4);
      },

      /** Draw another of the tied cuts, or none. */
      cut(clicks, shown) {
        const context = window.dash_clientside.callback_context;
        const { triggered_id: id, triggered, outputs_list: outputs } = context;
        const buttons = outputs[1];
        if (!id || triggered.length !== 1 || !triggered[0].value) return [no(), buttons.map(no)];
        const chosen = id["whatif-cut"] === shown ? null : id["whatif-cut"];
        return [chosen, buttons.map(({ id: each }) => String(each["whatif-cut"] === chosen))];
      },
    },
  });
})();
