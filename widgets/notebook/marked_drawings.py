"""Drawings in a notebook that mark what proves or limits a plan, and say it in words.

* `PriceView`: prices of links (`ccl.bound`), with bars beside the drawing.
* `DifferenceView`: two plans of one problem: where one sends more, and what differs.
* `CutView`: the bounds of a cluster, a list to choose from, and what proves each.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from itertools import pairwise
from typing import Any

import ipywidgets

from ccl import text
from ccl.bound import Bound, Path, Prices
from ccl.explain.difference import Difference
from ccl.layout import layout
from ccl.problem import Problem
from ccl.result import Result
from ccl.serialization.documents import document
from ccl.topology import Topology
from formulations import quick_bounds
from widgets.notebook.canvas import TopologyWidget
from widgets.notebook.comparison import Positions
from widgets.notebook.still import WIDTH, Still
from widgets.pages.saving import Content
from widgets.print.cutting import Region, strongest
from widgets.print.diagrams import price_svg
from widgets.print.geometry.stage import Stage
from widgets.print.style import LIGHT
from widgets.print.view import View
from widgets.view_model.classes import price_marks, price_words
from widgets.view_model.scene import at_least, cuts
from widgets.words import BOUND_LABELS, bound_proof, bound_words


class Drawn(Still, ipywidgets.VBox):  # type: ignore[misc]  # it has no types
    """A view with a cluster on a canvas, which is what is saved."""

    canvas: TopologyWidget
    """The drawing."""

    def _draw(
        self, topology: Topology, positions: Positions | None, traits: dict[str, Any]
    ) -> None:
        defaults: dict[str, Any] = {"toolbar": False, "timeline": False, "height": "400px"}
        self.canvas = TopologyWidget(topology, positions or layout(topology), **defaults | traits)

    def _held(self) -> Content:
        return document(self.canvas.topology, positions=self.canvas.positions)


class PriceView(Drawn):
    """The price of each link on the drawing: µs saved for each GB/s added to it.

    Parameters
    ----------
    prices
        As `formulations.prices` returns them.
    positions
        Middle of each device by name; by default those of `ccl.layout.layout`.
    **traits
        Of the `TopologyWidget`, such as ``height="400px"``.
    """

    def __init__(
        self, prices: Prices, *, positions: Positions | None = None, **traits: Any
    ) -> None:
        self.prices = prices
        self._draw(prices.topology, positions, traits)
        self.canvas.set_trait("marks", price_marks(prices))
        about = escape(price_words(prices))
        self.about = ipywidgets.HTML(f'<span role="status">{about}</span>')
        """What the prices are of."""
        super().__init__([self.canvas, self.about])

    def _words(self) -> str:
        return str(self.prices)

    def _picture(self) -> str | None:
        return price_svg(self.prices)


class DifferenceView(Drawn):
    """What differs between two plans: the links that one uses more, and the sends in words.

    Parameters
    ----------
    difference
        As `ccl.explain.difference` returns it.
    positions
        Middle of each device by name; by default those of `ccl.layout.layout`.
    **traits
        Of the `TopologyWidget`, such as ``height="400px"``.
    """

    def __init__(
        self, difference: Difference, *, positions: Positions | None = None, **traits: Any
    ) -> None:
        self.difference = difference
        self._draw(difference.problem.topology, positions, traits)
        self.canvas.set_trait("marks", difference_marks(difference))
        told = escape(difference.text())
        self.about = ipywidgets.HTML(f'<pre style="line-height:1.45">{told}</pre>')
        """What differs in words."""
        super().__init__([self.canvas, self.about])

    def _words(self) -> str:
        return self.difference.text()


def difference_marks(difference: Difference) -> dict[str, Any] | None:
    """Mark the links over which one of the two plans sends more; None where there are none."""
    more: tuple[list[list[str]], list[list[str]]] = ([], [])
    for ends, (first, second) in difference.links.items():
        more[first < second].append(list(ends))
    groups = [
        {"tone": {"class": i}, "links": links, "label": f"more over these in {name}"}
        for i, (name, links) in enumerate(zip(difference.names, more, strict=True))
        if links
    ]
    return {"title": "Difference", "groups": groups, "arrows": True} if groups else None


MOST_BOUNDS = 12
"""Bounds in the list; a cluster with many alike cuts has thousands that tie."""


class CutView(Drawn):
    """What no plan can be faster than, and why: choose a bound, see its cut or its way.

    Parameters
    ----------
    content
        A result, whose bounds are shown; a problem, whose quick bounds are found; or a cluster.
    bounds
        Those of a cluster, or others than the result's or the problem's; the largest first.
    positions
        Middle of each device by name; by default those of `ccl.layout.layout`.
    **traits
        Of the `TopologyWidget`, such as ``height="400px"``.
    """

    def __init__(
        self,
        content: Result | Problem | Topology,
        bounds: Iterable[Bound] | None = None,
        *,
        positions: Positions | None = None,
        **traits: Any,
    ) -> None:
        topology, own = _parts(content)
        told = own if bounds is None else tuple(bounds)
        self.bounds = tuple(told)[:MOST_BOUNDS]
        """The bounds that can be chosen, the largest first."""
        self._draw(topology, positions, traits)
        rows = [(self._row(each), i) for i, each in enumerate(self.bounds)]
        self.choice = ipywidgets.RadioButtons(options=rows, layout={"width": "100%"})
        """Which of `bounds` is drawn, by its place."""
        self.about = ipywidgets.HTML()
        """The chosen one in words."""
        self.choice.observe(self._show, "value")
        super().__init__([self.canvas, self.choice, self.about])
        self._show()

    @property
    def topology(self) -> Topology:
        """The cluster that is drawn."""
        return self.canvas.topology

    def _row(self, bound: Bound) -> str:
        proof = bound_proof(bound, self.canvas.topology)
        if bound.witness is None:
            proof += f": {bound.reference}"
        return f"{at_least(bound)} · {proof}"

    @property
    def chosen(self) -> Bound | None:
        """The bound that is drawn; None where there is none at all."""
        return self.bounds[self.choice.value] if self.bounds else None

    def _show(self, _change: Any = None) -> None:
        bound = self.chosen
        self.canvas.cuts = [] if bound is None else cut_marks(bound)
        self.canvas.set_trait("marks", None if bound is None else path_marks(bound))
        self.about.value = f'<span role="status">{escape(self._sentence())}</span>'

    def _sentence(self) -> str:
        if self.chosen is None:
            return "no bound is known"
        return bound_words(self.chosen, self.canvas.topology)

    def _words(self) -> str:
        return "\n".join([self._sentence(), *(self._row(each) for each in self.bounds)])

    def _picture(self) -> str:
        return cut_svg(self.canvas.topology, self.chosen, positions=self.canvas.positions)


def cut_marks(bound: Bound) -> list[dict[str, Any]]:
    """Return the cut of a bound as the canvas draws it; empty where it is not one."""
    label = f"{BOUND_LABELS[bound.kind]} · {at_least(bound)}"
    return [
        {**each, "label": f"{label} · {text.bandwidth(each['bandwidth'])}"}
        for each in cuts([bound])
    ]


def path_marks(bound: Bound) -> dict[str, Any] | None:
    """Return the way of a bound as marks on the canvas; None where a cut proves it."""
    if not isinstance(bound.witness, Path):
        return None
    names = list(bound.witness.devices)
    links = [list(ends) for ends in pairwise(names)]
    way = {"tone": {"heat": 1.0}, "devices": names, "links": links, "label": " → ".join(names)}
    return {"title": BOUND_LABELS[bound.kind], "groups": [way], "arrows": True}


def cut_svg(topology: Topology, bound: Bound | None, *, positions: Positions) -> str:
    """Draw a cluster with the cut that proves a bound, if a cut does."""
    from widgets.print.painter import svg  # noqa: PLC0415 - it loads matplotlib

    stage = Stage.of(topology, {**layout(topology), **positions})
    cut = None if bound is None else strongest(cut_marks(bound))
    region = None if cut is None else Region(stage, cut)
    return svg(View(stage, LIGHT, width=float(WIDTH), region=region).picture())


def _parts(shown: Result | Problem | Topology) -> tuple[Topology, tuple[Bound, ...]]:
    """Return the cluster, and the bounds that come with what is shown."""
    if isinstance(shown, Result):
        return shown.problem.topology, shown.bounds
    if isinstance(shown, Problem):
        return shown.topology, quick_bounds(shown)
    return shown, ()
