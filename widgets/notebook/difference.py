"""Two plans of one problem in a notebook: where one sends more, and what differs in words."""

from __future__ import annotations

from html import escape
from typing import Any

import ipywidgets

from ccl.explain.difference import Difference
from ccl.layout import layout
from ccl.serialization.documents import document
from widgets.notebook.canvas import TopologyWidget
from widgets.notebook.comparison import Positions
from widgets.notebook.still import Still
from widgets.pages.saving import Content


class DifferenceView(Still, ipywidgets.VBox):  # type: ignore[misc]  # it has no types
    """What differs between two plans: the links that one uses more, and the sends in words.

    Parameters
    ----------
    difference
        As `ccl.explain.difference` returns it.
    positions
        Middle of each device by name; by default `ccl.layout.layout` is asked.
    **traits
        Of the `TopologyWidget`, such as ``height="400px"``.
    """

    def __init__(
        self, difference: Difference, *, positions: Positions | None = None, **traits: Any
    ) -> None:
        self.difference = difference
        topology = difference.problem.topology
        defaults = {"toolbar": False, "timeline": False, "height": "400px"}
        where = positions or layout(topology)
        self.canvas = TopologyWidget(topology, where, **defaults | traits)
        """The drawing."""
        self.canvas.set_trait("marks", difference_marks(difference))
        told = escape(difference.text())
        self.about = ipywidgets.HTML(f'<pre style="line-height:1.45">{told}</pre>')
        """What differs in words."""
        super().__init__([self.canvas, self.about])

    def _words(self) -> str:
        return self.difference.text()

    def _held(self) -> Content:
        return document(self.difference.problem.topology, positions=self.canvas.positions)


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
