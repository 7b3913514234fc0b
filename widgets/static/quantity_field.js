/**
 * A field for a quantity with its unit, as a Dash component: it says beside itself what it has
 * understood, marks what it refuses, and changes no value silently. Its value is the number in the
 * unit of its kind, the text itself where that stays as typed, or nothing where it is empty.
 */
(function () {
  "use strict";

  const { createElement: h, useEffect, useId, useRef, useState } = React;
  const { parse, understood, written } = window.topoloomQuantity;

  const PAUSE = 600; // ms without a key before what is typed is judged

  const none = (value) => value === null || value === undefined || value === "";
  const shown = (value, kind) => (typeof value === "number" ? written(value, kind) : (value ?? ""));

  const sentence = (words) => `${words[0].toUpperCase()}${words.slice(1)}.`;

  /** What stands in a field: a value, why it is none, and what is said beside it. */
  const readField = (text, { kind, what, least, above, most, optional, factors }) => {
    if (!text.trim() && optional) return { value: "", remark: "" };
    const times = factors && /^(.*)[x×]$/i.exec(text.trim());
    if (times) return { remark: "", ...parse(times[1], { kind: "number", what, above: 0 }) };
    const found = parse(text, { kind, what, least, above, most });
    return found.trouble ? found : { ...found, remark: understood(text, found.value, kind) };
  };

  /** What stands around the input: who names it, and what describes it. */
  function frame({ id, label, description, prefix, size, className, style }, input, remark, parts) {
    return h(
      "div",
      { className: `tl-field ${className ?? ""}`, style, "data-size": size ?? "xs" },
      label && h("label", { htmlFor: id, className: "tl-field-label" }, label),
      description && h("div", { id: parts.description, className: "tl-field-note" }, description),
      h("div", { className: "tl-field-box" }, prefix && h("span", { className: "ds-prefix" }, prefix), input),
      h("div", { id: parts.remark, className: "tl-field-told", "data-wrong": remark.wrong || undefined }, remark.words),
    );
  }

  function QuantityField(props) {
    const { id, value, kind, subject, hold, verbatim, debounce, setProps } = props;
    const name = useId();
    const timer = useRef(0);
    // What is typed stands until the value changes under it, or it is about something else.
    const [now, setNow] = useState(null);
    const typing = now && Object.is(now.of, value) && now.subject === subject ? now : null;
    const text = typing?.text ?? shown(value, kind);
    const found = readField(text, props);
    // Half of a unit is no mistake yet: what is refused is said after a pause.
    const trouble = found.trouble || ((!typing || typing.settled) && props.trouble) || "";
    // Whoever knows more may refuse an empty field as well.
    const wrong = Boolean(trouble) && (typing ? typing.settled : Boolean(props.trouble) || !none(value));
    useEffect(() => () => clearTimeout(timer.current), []);

    const put = (next, settled) => setNow({ text: next, of: value, subject, edited: true, settled });

    /** Give the value to the page. @param {string} typed @param {boolean} done whether it is written anew */
    const commit = (typed, done) => {
      clearTimeout(timer.current);
      const read = readField(typed, props);
      const next = read.trouble || verbatim ? typed.trim() : read.value;
      if (read.trouble && hold) {
        put(typed, true);
        return;
      }
      const tidy = done && !read.trouble && !verbatim ? shown(next, kind) : typed;
      setNow({
        text: tidy, of: next, subject, edited: !done, settled: true, remark: done ? read.remark : undefined,
      });
      if (!Object.is(next, value) && !(none(next) && none(value))) setProps({ value: next });
    };

    const onChange = ({ target }) => {
      const typed = target.value;
      put(typed, false);
      clearTimeout(timer.current);
      timer.current = setTimeout(() => (debounce ? commit(typed, false) : put(typed, true)), debounce || PAUSE);
    };
    const leave = ({ target }) => {
      if (typing?.edited) commit(target.value, true);
    };
    const onKeyDown = (event) => {
      if (event.key === "Enter") leave(event);
      if (event.key === "Escape" && typing?.edited) {
        clearTimeout(timer.current);
        setNow(null);
        event.stopPropagation();
      }
    };

    const parts = { remark: `${name}-told`, description: `${name}-note` };
    const words = wrong ? sentence(trouble) : (typing?.remark ?? (typing?.edited ? found.remark : ""));
    const described = [props.description && parts.description, words && parts.remark].filter(Boolean);
    const input = h("input", {
      id, type: "text", value: text, onChange, onBlur: leave, onKeyDown,
      placeholder: props.placeholder, disabled: props.disabled, title: props.title,
      inputMode: kind === "count" ? "numeric" : "decimal",
      autoComplete: "off", spellCheck: false,
      "aria-label": props.ariaLabel,
      "aria-invalid": wrong ? "true" : undefined,
      "aria-describedby": described.join(" ") || undefined,
    });
    return frame(props, input, { words, wrong }, parts);
  }

  window.widgets = Object.assign(window.widgets || {}, { QuantityField });
})();
