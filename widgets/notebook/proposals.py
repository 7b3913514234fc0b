"""Proposed networks in a notebook: a plot in two respects, ranked in a table, one of them drawn."""

from __future__ import annotations

from html import escape
from typing import Any

import ipywidgets
import plotly.graph_objects as go

from ccl import text
from ccl.layout import layout
from ccl.topology import Topology
from formulations.proposals import AXES, Axis, Candidate, Front, Request, propose
from gallery.costs import Prices
from widgets.charts.proposals import RESPECTS, Dot, proposals_figure
from widgets.notebook.marked_drawings import Drawn
from widgets.view_model.scene import drawing
from widgets.words import columns, explained_html

ROWS = 8
"""Networks of the table; those that none beats in both respects come first."""

ALWAYS: tuple[Axis, ...] = ("mix", "hops", "cables", "dollars")
"""Respects that the table has, whatever the plot shows."""

_WIDE = {"description_width": "70px"}


class ProposeView(Drawn):
    """Networks that are proposed; choose two respects and a network, or click a dot.

    To watch a search, show a view of its first front and let it hear the others::

        view = ProposeView(next(fronts)); view
        for front in fronts: view.hear(front)

    Parameters
    ----------
    content
        What is wanted, which is searched for as long as it says; or a front that was found.
    axes
        What the plot has across and up; by default dollars, where they are known, and the mix.
    theme
        ``auto``, ``light`` or ``dark``.
    **traits
        Of the `TopologyWidget` below, such as ``height="400px"``.

    Raises
    ------
    ProblemError
        If the host of a request is none of the gallery or does not divide the GPUs.
    """

    def __init__(
        self,
        content: Request | Front,
        *,
        axes: tuple[Axis, Axis] | None = None,
        theme: str = "auto",
        **traits: Any,
    ) -> None:
        self.front = found(content) if isinstance(content, Request) else content
        """All that is shown."""
        self._theme = theme
        across, up = axes or ("dollars" if "dollars" in self._known() else "latency", "mix")
        self.across, self.up = _axis("Across", across), _axis("Up", up)
        self.choice = ipywidgets.Dropdown(description="Network", style=_WIDE)
        """The network that is drawn, by its place in the table of all."""
        self.choice.layout.width = "min(420px, 100%)"
        self.table = ipywidgets.HTML()
        """The best, with a sentence each."""
        self.about = ipywidgets.HTML()
        """What was looked for, and how many were found."""
        self._list(None)
        # Whole from the start: what is added later comes in messages of its own, after empty axes.
        self.plot = go.FigureWidget(self._figure())
        self._listen()
        self._rank()
        first = self.chosen or Topology("nothing found", (), ())
        self._draw(first, layout(first), {"theme": theme, **traits})
        for each in (self.across, self.up):
            each.observe(self._ranked_anew, "value")
        self.choice.observe(self._choose, "value")
        row = ipywidgets.HBox([self.up, self.across])
        row.layout.flex_flow = "row wrap"
        super().__init__([self.about, row, self.plot, self.table, self.choice, self.canvas])

    @property
    def chosen(self) -> Topology | None:
        """The network that is drawn, None where none was found."""
        found = self._chosen
        return None if found is None else found.topology

    @property
    def axes(self) -> tuple[Axis, Axis]:
        """What the plot has across and up."""
        return self.across.value, self.up.value

    def hear(self, front: Front) -> None:
        """Show another front; the network that is drawn stays if it is still there."""
        before = self._chosen
        self.front = front
        self._list(before)
        self._ranked_anew()
        if self._chosen is not before:
            self._choose()

    def _list(self, kept: Candidate | None) -> None:
        """Offer the respects that are known and the networks, of which one may stay chosen."""
        known = [(RESPECTS[each].title, each) for each in AXES if each in self._known()]
        for each in (self.across, self.up):
            value = each.value
            each.options = known or each.options
            each.value = value if not known or value in self._known() else "latency"
        found = self.front.candidates
        places = [i for i, each in enumerate(found) if each is kept]
        self.choice.options = [(f"{i + 1}. {each.name}", i) for i, each in enumerate(found)]
        self.choice.value = (places or [0])[0] if found else None
        self.about.value = f'<span role="status">{escape(self._found())}</span>'

    @property
    def _chosen(self) -> Candidate | None:
        place = self.choice.value
        return None if place is None else self.front.candidates[place]

    def _known(self) -> set[Axis]:
        """Return the respects in which something is known of a network."""
        found = self.front.candidates
        return {each for each in AXES if any(e.along(each) is not None for e in found)}

    def _choose(self, _change: Any = None) -> None:
        chosen = self.chosen
        if chosen is not None:
            self.canvas.drawing = drawing(chosen, layout(chosen))
            self.canvas.do("fit")
        self._plot()

    def _ranked_anew(self, _change: Any = None) -> None:
        self._rank()
        self._plot()

    def _rank(self) -> None:
        rows = [(cells, self.front.why(each)) for each, cells in self._rows()]
        self.table.value = explained_html(self._heads(), rows)

    def _figure(self) -> go.Figure:
        across, up = self.axes
        best, chosen = self.front.pareto(across, up), self._chosen
        dots = [
            Dot(str(i), each.name, each.family, place, each in best, chosen=each is chosen)
            for i, each in enumerate(self.front.candidates)
            if (place := _place(each, across, up)) is not None
        ]
        return proposals_figure(
            dots,
            axes=(across, up),
            bounds=(self.front.bound(across), self.front.bound(up)),
            scheme=self._theme,
            height=380,
        )

    def _plot(self) -> None:
        made = self._figure()
        with self.plot.batch_update():
            self.plot.data = []
            self.plot.add_traces(made.data)
            self.plot.layout = made.layout
        self._listen()

    def _listen(self) -> None:
        for trace in self.plot.data:
            trace.on_click(self._clicked)

    def _clicked(self, trace: Any, points: Any, _state: Any) -> None:
        if points.point_inds and trace.customdata is not None:
            self.choice.value = int(trace.customdata[points.point_inds[0]])

    def _columns(self) -> tuple[Axis, ...]:
        """Return the respects of the table: those of the plot first."""
        known = self._known()
        return tuple(dict.fromkeys(e for e in (*reversed(self.axes), *ALWAYS) if e in known))

    def _heads(self) -> list[str]:
        return ["", "Network", *(RESPECTS[each].title for each in self._columns())]

    def _rows(self) -> list[tuple[Candidate, list[str]]]:
        """Return the best, and the cells of each; a star is on those that none beats in both."""
        best = self.front.pareto(*self.axes)
        order = {id(each): i for i, each in enumerate(self.front.candidates, start=1)}
        return [
            (
                each,
                [
                    f"{order[id(each)]}{' *' if each in best else ''}",
                    each.name,
                    *(_written(each, axis) for axis in self._columns()),
                ],
            )
            for each in self.front.ranked(ROWS, *self.axes)
        ]

    def _found(self) -> str:
        request, many = self.front.request, len(self.front.candidates)
        wanted = f"{request.gpus:,} GPUs with {text.count(request.ports, 'port')}"
        spent = f" in {text.seconds(self.front.seconds)}" if self.front.seconds else ""
        missing = self.front.not_tried
        more = f"; not tried: {missing}" if missing else ""
        best = "* no other is better in both respects"
        return f"{wanted}: {text.count(many, 'network')}{spent}; {best}{more}"

    def _words(self) -> str:
        """Say the table, and why the one that is drawn is good."""
        lines = [self._heads(), *(cells for _, cells in self._rows())]
        chosen = self._chosen
        why = [] if chosen is None else [f"{chosen.name}: {self.front.why(chosen)}"]
        return "\n".join([self._found(), columns(lines), *why])


def found(request: Request) -> Front:
    """Return the last front of a search, with bills."""
    front = Front(request=request, candidates=(), stage="", seconds=0.0)
    for front in propose(request, prices=Prices()):  # noqa: B007  the last is wanted
        pass
    return front


def _axis(description: str, value: Axis) -> ipywidgets.Dropdown:
    options = [(RESPECTS[each].title, each) for each in AXES]
    return ipywidgets.Dropdown(options=options, value=value, description=description, style=_WIDE)


def _place(candidate: Candidate, across: Axis, up: Axis) -> tuple[float, float] | None:
    first, second = candidate.along(across), candidate.along(up)
    return None if first is None or second is None else (first, second)


def _written(candidate: Candidate, axis: Axis) -> str:
    value = candidate.along(axis)
    return "" if value is None else RESPECTS[axis].write(value)
