"""One canvas, an ES module, in three hosts: notebooks, the Dash application, a plain page.

``TopologyWidget``, ``SolvePanel``, which adds a form to it, ``SchedulePlayer``,
``SchedulePlayers``, ``LinkLoad``, ``CutView``, ``GapPlot``, ``Comparison`` and ``ProposeView`` are
for notebooks, ``TopologyCanvas``, ``GapChart`` and ``SchedulePair`` for Dash; none is imported
before its first use, so that a notebook does not load Dash nor the application a kernel.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ccl import __version__

if TYPE_CHECKING:
    from widgets.charts.load import curves
    from widgets.dash import GapChart, QuantityField, SchedulePair, TopologyCanvas
    from widgets.lessons import BreakASend, Lesson, verdict
    from widgets.notebook.canvas import SchedulePlayer, TopologyWidget
    from widgets.notebook.comparison import Comparison, SchedulePlayers
    from widgets.notebook.marked_drawings import CutView, DifferenceView, PriceView
    from widgets.notebook.proposals import ProposeView
    from widgets.notebook.run_charts import GapPlot, LinkLoad
    from widgets.notebook.solve_panel import SolvePanel
    from widgets.pages.saving import save

__all__ = [
    "BreakASend",
    "Comparison",
    "CutView",
    "DifferenceView",
    "GapChart",
    "GapPlot",
    "Lesson",
    "LinkLoad",
    "PriceView",
    "ProposeView",
    "QuantityField",
    "SchedulePair",
    "SchedulePlayer",
    "SchedulePlayers",
    "SolvePanel",
    "TopologyCanvas",
    "TopologyWidget",
    "__version__",
    "canvas_file",
    "curves",
    "save",
    "verdict",
]

STATIC = Path(__file__).parent / "static"

# Dash serves these from the top-level package of a component, and reads __version__ there too.
# The host fetches the others by import(), so they are no scripts of the page ("dynamic").
_js_dist = [
    {"relative_package_path": "static/dash_host.js", "namespace": "widgets"},
    {"relative_package_path": "static/quantity.js", "namespace": "widgets"},
    {"relative_package_path": "static/quantity_field.js", "namespace": "widgets"},
    {"relative_package_path": "static/canvas.js", "namespace": "widgets", "dynamic": True},
    {"relative_package_path": "static/gap_plot.js", "namespace": "widgets", "dynamic": True},
]
_css_dist: list[dict[str, Any]] = []

_HOMES = {
    "BreakASend": "widgets.lessons",
    "Comparison": "widgets.notebook.comparison",
    "CutView": "widgets.notebook.marked_drawings",
    "DifferenceView": "widgets.notebook.marked_drawings",
    "GapChart": "widgets.dash",
    "GapPlot": "widgets.notebook.run_charts",
    "Lesson": "widgets.lessons",
    "LinkLoad": "widgets.notebook.run_charts",
    "PriceView": "widgets.notebook.marked_drawings",
    "ProposeView": "widgets.notebook.proposals",
    "QuantityField": "widgets.dash",
    "SchedulePair": "widgets.dash",
    "SchedulePlayer": "widgets.notebook.canvas",
    "SchedulePlayers": "widgets.notebook.comparison",
    "SolvePanel": "widgets.notebook.solve_panel",
    "TopologyWidget": "widgets.notebook.canvas",
    "TopologyCanvas": "widgets.dash",
    "curves": "widgets.charts.load",
    "save": "widgets.pages.saving",
    "verdict": "widgets.lessons",
}


def canvas_file() -> Path:
    """Return the bundle, which is built when the package is installed.

    Raises
    ------
    ImportError
        If it was not built.
    """
    bundle = STATIC / "canvas.js"
    if not bundle.exists():
        raise ImportError(f"{bundle} is not built; run: cd widgets/js && npm ci && npm run build")
    return bundle


def __getattr__(name: str) -> Any:
    """Import a host's class at its first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
