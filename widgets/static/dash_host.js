/**
 * Dash components that host the canvas, whose props are the model and setProps saves, and the gap
 * plot. They are written against the React that Dash brings along and need no build of their own.
 */
(function () {
  // The address of this file, so that any prefix or proxy in front of Dash is honoured.
  const base = document.currentScript.src.replace(/dash_host[^/]*\.js.*$/, "");
  const loaded = {};
  const load = (file) => (loaded[file] ??= import(`${base}${file}`));
  const { createElement, useEffect, useRef } = React;

  /**
   * What the page wants of the canvas. What the canvas saved comes back as props later, when it
   * may have moved on already; such an echo must not undo what was done since.
   */
  class Inbox {
    constructor(state) {
      this.seen = state;
      this.sent = new Map();
    }

    saved(changed) {
      for (const [name, value] of Object.entries(changed)) {
        this.sent.set(name, [...(this.sent.get(name) ?? []), value]);
      }
    }

    /** Pairs of name and value that are new and not our own. */
    news(state) {
      const changed = Object.entries(state).filter(([name, value]) => value !== this.seen[name]);
      this.seen = state;
      return changed.filter(([name, value]) => {
        const sent = this.sent.get(name) ?? [];
        const echo = sent.indexOf(value);
        this.sent.set(name, echo < 0 ? [] : sent.slice(echo + 1));
        return echo < 0;
      });
    }
  }

  const stateOf = ({ setProps, id, className, style, ...state }) => state;

  /** The canvas, or two players in step where the model has films. */
  function TopologyCanvas(props) {
    const element = useRef(null);
    const host = useRef(null);
    const latest = useRef(props);
    latest.current = props;

    useEffect(() => {
      let dispose = () => {};
      let live = true;
      load("canvas.js").then(({ default: canvas, PlainModel }) => {
        if (!live) return;
        const state = stateOf(latest.current);
        const inbox = new Inbox(state);
        const model = new PlainModel(state, (changed) => {
          inbox.saved(changed);
          latest.current.setProps(changed);
        });
        host.current = { inbox, model };
        dispose = canvas.render({ model, el: element.current });
      });
      return () => {
        live = false;
        host.current = null;
        dispose();
      };
    }, []);

    useEffect(() => {
      if (!host.current) return;
      const { inbox, model } = host.current;
      for (const [name, value] of inbox.news(stateOf(props))) model.receive(name, value);
    });

    return createElement("div", {
      id: props.id,
      className: props.className,
      style: { height: "100%", ...props.style },
      ref: element,
    });
  }

  function GapChart({ id, className, style, course }) {
    const element = useRef(null);
    const plot = useRef(null);
    const latest = useRef(course);
    latest.current = course;

    useEffect(() => {
      let live = true;
      load("gap_plot.js").then(({ Plot }) => {
        if (!live) return;
        plot.current = new Plot(element.current);
        plot.current.show(latest.current);
      });
      return () => {
        live = false;
        plot.current?.destroy();
        plot.current = null;
      };
    }, []);

    useEffect(() => {
      plot.current?.show(course);
    }, [course]);

    return createElement("div", { id, className, style, ref: element });
  }

  window.widgets = Object.assign(window.widgets || {}, {
    GapChart, SchedulePair: TopologyCanvas, TopologyCanvas,
  });
})();
