"""The canvas with a form under it: ask, solve, watch and cancel in a notebook.

The rows of the form are the options of the formulation (`formulations.option_fields`), as on the
command line and in the designer. The solver runs in a process of its own and the kernel stays
free: a kernel delivers a click only while no cell runs, so the solve is a task of its event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from html import escape
from typing import Any

import ipywidgets

from ccl.collective import COLLECTIVES, Collective, make_collective
from ccl.errors import CclError
from ccl.problem import Problem
from ccl.result import Result
from ccl.serialization.quantity import format_size, parse_size
from ccl.serialization.text import decode_json
from ccl.text import count
from ccl.topology import Topology
from formulations import (
    DEFAULT,
    OptionField,
    Progress,
    SolveJob,
    available,
    formulation,
    option_fields,
    sends_front,
    start,
)
from widgets.notebook.canvas import TopologyWidget
from widgets.notebook.run_charts import GapPlot
from widgets.notebook.still import Still
from widgets.pages.saving import Content
from widgets.view_model.scene import cuts, take
from widgets.words import point_words

_WIDE = {"description_width": "130px"}


GIVEN = "as given"
"""The collective of the problem that the panel was made with, where no row of the form makes it."""


def _chunks() -> ipywidgets.BoundedIntText:
    return ipywidgets.BoundedIntText(
        0,
        min=0,
        max=10_000,
        description="Chunks per shard",
        tooltip="So many stay whole; 0 is automatic: plans cut as they like",
    )


class SolvePanel(Still, ipywidgets.VBox):  # type: ignore[misc]  # it has no types
    """A cluster, a collective and a formulation; press Solve.

    Parameters
    ----------
    asked
        What is drawn at the start, nothing by default; a problem fills in the form as well.
    positions
        Middle of each device by name; by default those of `ccl.layout`.
    **traits
        Of the `TopologyWidget`.
    """

    def __init__(
        self,
        content: Topology | Problem | None = None,
        positions: Mapping[str, tuple[float, float]] | None = None,
        **traits: Any,
    ) -> None:
        self._given = content if isinstance(content, Problem) else None
        topology = content.topology if isinstance(content, Problem) else content
        self.canvas = TopologyWidget(topology, positions, **traits)
        """The canvas, whose `topology` is what is solved."""
        self.result: Result | None = None
        """The last result, the best so far while a solve runs."""
        self._job: SolveJob | None = None
        self._task: asyncio.Task[None] | None = None
        self._solves = self._found = 0
        kinds = [(kind.capitalize(), kind) for kind in COLLECTIVES if kind != "custom"]
        self.collective = ipywidgets.Dropdown(options=kinds, description="Collective")
        self.size = ipywidgets.Text("1MB", description="Size", continuous_update=False)
        self.chunks = _chunks()
        self.time_limit = ipywidgets.BoundedFloatText(
            20.0, min=0.1, max=86_400.0, description="Seconds at most"
        )
        names = [(each.title, each.name) for each in available()]
        self.formulation = ipywidgets.Dropdown(options=names, value=DEFAULT, description="Method")
        self.options = ipywidgets.VBox()
        self._make_buttons()
        self.gap_plot = GapPlot()
        """How close the last solve has come over time."""
        self.gap_plot.layout.display = "none"
        self.front = ipywidgets.Dropdown(description="Fewer sends", style=_WIDE)
        """The plans of the last solve, the fewest sends first; hidden where there is one."""
        self._make_front()
        for row in (self.collective, self.size, self.chunks, self.time_limit, self.formulation):
            row.style = _WIDE
        self.formulation.observe(self._formulation_changed, "value")
        self._formulation_changed()
        self._fill_in(self._given)
        super().__init__([self.canvas, self._form(), self.message, self.front, self.gap_plot])

    def _fill_in(self, problem: Problem | None) -> None:
        """Set the rows of the form, or offer the collective itself where they cannot say it."""
        self.collective.observe(self._collective_changed, "value")
        if problem is None:
            return
        collective = problem.collective
        rows = None if problem.windows else rows_of(collective)
        if rows is None:
            given = (f"{collective.kind.capitalize()}, as given", GIVEN)
            self.collective.options = [given, *self.collective.options]
            self.collective.value = GIVEN
            return
        self.collective.value = collective.kind
        self.size.value, self.chunks.value = rows

    def _collective_changed(self, *_: Any) -> None:
        self.size.disabled = self.chunks.disabled = self.collective.value == GIVEN

    def _make_buttons(self) -> None:
        self.message = ipywidgets.HTML()
        self.solve_button = ipywidgets.Button(
            description="Solve", icon="play", button_style="primary"
        )
        self.cancel_button = ipywidgets.Button(
            description="Stop", icon="stop", disabled=True, tooltip="Stop and keep the best"
        )
        self.solve_button.on_click(lambda _: self.solve())
        self.cancel_button.on_click(lambda _: self.cancel())

    def _form(self) -> ipywidgets.Widget:
        asked = ipywidgets.VBox([self.collective, self.size, self.chunks, self.time_limit])
        how = ipywidgets.VBox([self.formulation, self.options])
        buttons = ipywidgets.VBox([self.solve_button, self.cancel_button])
        return ipywidgets.HBox([asked, how, buttons])

    def _formulation_changed(self, *_: Any) -> None:
        rows = option_fields(formulation(self.formulation.value).options)
        self.options.children = tuple(option_row(row) for row in rows)

    def _make_front(self) -> None:
        self.front.layout.width, self.front.layout.display = "auto", "none"
        self._plans: tuple[Result, ...] = ()
        self.front.observe(self._plan_chosen, "value")

    @property
    def problem(self) -> Problem:
        """The problem of the form as it stands.

        Raises
        ------
        CclError
            If the drawing, the size or the chunks make no problem.
        """
        topology = self.canvas.topology
        if self.collective.value == GIVEN and self._given is not None:
            return Problem(topology, self._given.collective, self._given.windows)
        collective = make_collective(
            self.collective.value,
            len(topology.ranks),
            parse_size(self.size.value),
            chunks=self.chunks.value or None,
        )
        return Problem(topology, collective)

    def solve(self) -> asyncio.Task[None] | None:
        """Start a solve of what is drawn; return its task, or None where there is nothing to do.

        What is wrong with the question is written under the form.
        """
        if self._task is not None and not self._task.done():
            return None
        try:
            problem = self.problem
            self._job = start(
                problem,
                self.formulation.value,
                options={row.field.name: row.answer for row in self.options.children},
                time_limit=self.time_limit.value,
            )
        except CclError as error:
            self._say(str(error), wrong=True)
            return None
        self._busy(True)
        self.result, self._solves, self._found = None, self._solves + 1, 0
        self.gap_plot.clear()
        self.front.layout.display = "none"
        self._task = asyncio.ensure_future(self._follow(self._job))
        return self._task

    def cancel(self) -> None:
        """Stop the solve at once; the best plan so far stays on the canvas."""
        if self._job is not None:
            self._job.cancel()

    async def _follow(self, job: SolveJob) -> None:
        """Show what the job says until it ends."""
        news = iter(job)
        try:
            while (each := await asyncio.to_thread(next, news, None)) is not None:
                self._heard(each)
            self._done(await asyncio.to_thread(job.result))
        except CclError as error:
            self._say(str(error), wrong=True)
        finally:
            self._busy(False)

    def _heard(self, news: Progress) -> None:
        self.gap_plot.hear(news)
        self.gap_plot.layout.display = None
        if news.result is not None:
            self._show(news.result)
        found = "" if news.incumbent is None else f", best {news.incumbent:.6g} µs"
        proved = "" if news.bound is None else f", no plan below {news.bound:.6g} µs"
        self._say(f"{news.seconds:.1f} s: {news.message}{found}{proved}")

    def _show(self, result: Result) -> None:
        # Its own problem: that may be the given one with its chunks cut.
        self.result, self._found = result, self._found + 1
        self.canvas.show(result.problem, result, take=take(str(self._solves), self._found))

    def _done(self, result: Result) -> None:
        self.gap_plot.end(result)
        if self.result is None or result.plan != self.result.plan:
            self._show(result)
        self.result, self.canvas.cuts = result, cuts(result.bounds)[:1]
        self._offer(result)
        self._describe(result)

    def _offer(self, result: Result) -> None:
        """Let one choose among the plans of a solve, the best first chosen."""
        self._plans = ()  # setting the rows chooses the first of them
        rows = enumerate(sends_front(result))
        self.front.options = [
            (f"{count(row['pieces'], 'piece')} per shard: {point_words(row)}", place)
            for place, row in rows
        ]
        self.front.value = len(result.simpler)
        self._plans = result.front
        self.front.layout.display = None if result.simpler else "none"

    def _plan_chosen(self, change: Mapping[str, Any]) -> None:
        if self._plans:
            chosen = self._plans[change["new"]]
            self._show(chosen)
            self._describe(chosen)

    def _describe(self, result: Result) -> None:
        """Say how good a plan is."""
        steady = ""
        if result.steady_makespan is not None:
            steady = f"{result.steady_makespan:.6g} µs in the steady state; "
        self._say(
            f"{result.makespan:.6g} µs, {result.gap:.2%} above the lower bound of "
            f"{result.bound.makespan:.6g} µs ({result.verdict}): {result.stop}; {steady}"
            f"{result.algbw:.4g} GB/s algbw, {result.busbw:.4g} GB/s busbw"
        )

    def _busy(self, busy: bool) -> None:
        self.solve_button.disabled, self.cancel_button.disabled = busy, not busy

    def _say(self, text: str, *, wrong: bool = False) -> None:
        colour = "#c45500" if wrong else "inherit"
        self.message.value = f'<span role="status" style="color:{colour}">{escape(text)}</span>'

    def _held(self) -> Content:
        return self.canvas._held()


def rows_of(collective: Collective) -> tuple[str, int] | None:
    """Return the size and the chunks per shard that make a collective; None if none do.

    Chunks that are not to stay whole, of which there is one per shard, are 0.
    """
    kind, ranks, size = collective.kind, collective.ranks, collective.size
    if kind == "custom":
        return None
    chunks = len(collective.chunks) // len(make_collective(kind, ranks, size).chunks)
    if chunks < 1 or (chunks > 1 and not collective.whole):
        return None
    for words in (format_size(size), repr(size)):
        if make_collective(kind, ranks, parse_size(words), chunks=chunks) == collective:
            return words, chunks if collective.whole else 0
    return None


class _Row(ipywidgets.HBox):  # type: ignore[misc]  # it has no types
    """One option with its field; `answer` is the plain value, None where it is left empty.

    A sketch is typed in its plain form (`ccl.serialization.sketches`).
    """

    def __init__(self, field: OptionField, control: ipywidgets.Widget) -> None:
        self.field, self.control = field, control
        control.description = field.label
        control.tooltip = field.help
        control.style = _WIDE
        super().__init__([control, ipywidgets.Label(field.unit)])

    @property
    def answer(self) -> Any:
        """What is typed; numbers are checked where the options are made."""
        value = self.control.value
        if self.field.kind == "sketch":
            return decode_json(value, dict[str, Any]) if value.strip() else None
        return value.strip() or None if isinstance(value, str) else value


def option_row(field: OptionField) -> _Row:
    """Make the row of the form for one option."""
    if field.kind == "bool":
        return _Row(field, ipywidgets.Checkbox(field.default, indent=True))
    if field.kind == "choice":
        return _Row(field, ipywidgets.Dropdown(options=field.choices, value=field.default))
    text = "" if field.default is None else str(field.default)
    hint = "decided by the formulation" if field.optional else ""
    return _Row(field, ipywidgets.Text(text, placeholder=hint, continuous_update=False))
