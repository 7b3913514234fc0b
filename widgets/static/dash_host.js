/**
 * A Dash component that hosts the canvas: its props are the model, setProps saves. It is written
 * against the React that Dash brings along, so it needs no build of its own.
 */
(function () {
  // The address of this file, so that any prefix or proxy in front of Dash is honoured.
  const base = document.currentScript.src.replace(/dash_host[^/]*\.js.*$/, "");
  let loaded = null;
  const load = () => (loaded ??= import(`${base}canvas.js`));
  const { createElement, useEffect, useRef } = React;

  function TopologyCanvas(props) {
    const element = useRef(null);
    const model = useRef(null);
    const latest = useRef(props);
    latest.current = props;

    useEffect(() => {
      let dispose = () => {};
      let live = true;
      load().then(({ default: canvas, PlainModel }) => {
        if (!live) return;
        const { setProps, ...state } = latest.current;
        model.current = new PlainModel(state, (changed) => latest.current.setProps(changed));
        dispose = canvas.render({ model: model.current, el: element.current });
      });
      return () => {
        live = false;
        model.current = null;
        dispose();
      };
    }, []);

    useEffect(() => {
      const { setProps, id, className, style, ...state } = props;
      for (const [name, value] of Object.entries(state)) model.current?.receive(name, value);
    });

    return createElement("div", {
      id: props.id,
      className: props.className,
      style: { height: "100%", ...props.style },
      ref: element,
    });
  }

  window.widgets = Object.assign(window.widgets || {}, { TopologyCanvas });
})();
