/**
 * An extension of JupyterLab: of an output that has both a view and a picture (`widgets/notebook/display.py`)
 * the picture is shown until the kernel has the view, and again once a notebook is opened without.
 *
 * The Lab asks the kinds of an output in the order of their rank; that of views comes first and
 * says "model not found" where no kernel runs, whatever else the output has. So our kind has a
 * lower rank still, in notebooks alone. No build: this is the container that the Lab loads, written
 * by hand, and it takes the Lab's own modules from the scope that it is given.
 */
(() => {
  const STILL = "application/vnd.topoloom.still+json";
  const VIEW = "application/vnd.jupyter.widget-view+json";
  const STATE = "application/vnd.jupyter.widget-state+json";
  /** That of views is -10. */
  const RANK = -20;
  /** Milliseconds after news of a kernel at which its views may have come. */
  const LOOKS = [0, 120, 600, 2000];
  /** Milliseconds after which the picture is shown; a kernel that runs has sent its view by then. */
  const PATIENCE = 250;

  /** The picture of an output as an element that can run nothing. */
  function pictureOf(data) {
    const image = document.createElement("img");
    image.src = `data:image/svg+xml,${encodeURIComponent([data["image/svg+xml"]].flat().join(""))}`;
    image.alt = [data["text/plain"] ?? ""].flat().join("");
    image.title = "A picture of what was here; run the cell for the view itself.";
    image.style.maxWidth = "100%";
    return image;
  }

  /** The class of outputs of one notebook. @param {any} panel @param {any} lumino its widgets */
  function rendererFor(panel, { Panel, Widget }) {
    const { sessionContext } = panel;
    const { rendermime } = panel.content;
    const placeholder = rendermime.getFactory(VIEW);

    return class extends Panel {
      renderModel(model) {
        this.model = model;
        this.timers = [setTimeout(() => this.showStill(), VIEW in model.data ? PATIENCE : 0)];
        this.onNews = () => this.lookSoon();
        for (const signal of this.signals()) signal.connect(this.onNews);
        this.lookSoon();
        return Promise.resolve();
      }

      signals() {
        return [sessionContext.kernelChanged, sessionContext.statusChanged];
      }

      lookSoon() {
        for (const wait of LOOKS) this.timers.push(setTimeout(() => this.look(), wait));
      }

      /** Whether the kernel has the view, or else the notebook has kept its state. */
      hasView() {
        const id = this.model.data[VIEW]?.model_id;
        const kernel = sessionContext.session?.kernel;
        if (!id || !kernel || rendermime.getFactory(VIEW) === placeholder) return false;
        if (kernel.hasComm(id)) return true;
        const kept = panel.context.model?.getMetadata("widgets")?.[STATE]?.state ?? {};
        return Boolean(this.model.trusted && id in kept);
      }

      look() {
        if (this.isDisposed || !this.hasView()) return;
        this.forget();
        this.still?.dispose();
        const view = rendermime.createRenderer(VIEW);
        this.addWidget(view);
        view.renderModel(this.model);
      }

      /** The picture, or else what the Lab takes of the output's other kinds. */
      showStill() {
        if (this.isDisposed || this.still) return;
        const { [STILL]: _, [VIEW]: __, ...data } = this.model.data;
        if (data["image/svg+xml"]) {
          this.still = new Widget();
          this.still.node.append(pictureOf(data));
        } else {
          const kind = rendermime.preferredMimeType(data, this.model.trusted ? "any" : "ensure");
          if (!kind) return;
          this.still = rendermime.createRenderer(kind);
          this.still.renderModel(this.model);
        }
        this.addWidget(this.still);
      }

      forget() {
        this.timers?.forEach(clearTimeout);
        this.timers = [];
        for (const signal of this.signals()) signal.disconnect(this.onNews);
      }

      dispose() {
        if (!this.isDisposed && this.onNews) this.forget();
        super.dispose();
      }
    };
  }

  const pluginOf = ({ INotebookTracker }, lumino) => ({
    id: "topoloom:still",
    description: "Shows the picture of a view in a notebook while no kernel runs it.",
    autoStart: true,
    optional: [INotebookTracker],
    activate(_app, tracker) {
      if (!tracker) return; // no notebooks, as in Voila: there every view has its kernel
      const prepare = (panel) => {
        const Still = rendererFor(panel, lumino);
        panel.content.rendermime.addFactory(
          { safe: true, mimeTypes: [STILL], createRenderer: () => new Still() },
          RANK,
        );
      };
      tracker.forEach(prepare);
      tracker.widgetAdded.connect((_tracker, panel) => prepare(panel));
    },
  });

  let scope = {};
  /** A module that the host shares, undefined if it does not. */
  const shared = async (name) => {
    const [found] = Object.values(scope[name] ?? {});
    return found && (await found.get())();
  };

  (window._JUPYTERLAB ??= {}).topoloom = {
    init(given) {
      scope = given;
    },
    async get() {
      const [notebook, lumino] = await Promise.all(["@jupyterlab/notebook", "@lumino/widgets"].map(shared));
      const plugins = notebook && lumino ? [pluginOf(notebook, lumino)] : [];
      return () => ({ __esModule: true, default: plugins });
    },
  };
})();
