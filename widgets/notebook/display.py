"""What a noun of `ccl` looks like at the end of a notebook's cell (`ccl.display`).

A view of `widgets`, and a picture and words beside it for where no kernel runs. A terminal gets
the words alone.
"""

import sys
from functools import singledispatch
from typing import Any

from ccl.bound import Bound, Prices
from ccl.display import MimeBundle
from ccl.explain.difference import Difference
from ccl.problem import Problem
from ccl.result import Result
from ccl.topology import Topology
from widgets.notebook.still import TEXT, beside, words
from widgets.print.diagrams import bound_svg
from widgets.view_model.scene import moves
from widgets.words import bound_words

MOST_PLAYED = 100_000
"""Transfers of a plan that is played unasked; a page holds them all."""


def display(noun: Any) -> MimeBundle | None:
    """Return the MIME bundle of a noun, None for what is not known here."""
    if _in_terminal():
        description = _told(noun)
        return None if description is None else ({TEXT: description}, {})
    return _shown(noun)


@singledispatch
def _told(noun: Any) -> str | None:
    return words(noun) if isinstance(noun, Topology | Problem | Result) else None


@_told.register
def _(noun: Bound) -> str:
    return bound_words(noun)


@_told.register
def _(noun: Difference) -> str:
    return noun.text()


@_told.register
def _(noun: Prices) -> str:
    return str(noun)


@singledispatch
def _shown(_noun: Any) -> MimeBundle | None:
    return None


@_shown.register(Topology)
@_shown.register(Problem)
def _(noun: Topology | Problem) -> MimeBundle | None:
    from widgets.notebook.canvas import TopologyWidget  # noqa: PLC0415 - the canvas may not be built

    topology = noun if isinstance(noun, Topology) else noun.topology
    bundle = TopologyWidget(topology)._repr_mimebundle_()
    return beside(bundle, description=lambda: words(noun), drawn=lambda: None)


@_shown.register
def _(noun: Result) -> MimeBundle | None:
    from widgets.notebook.canvas import SchedulePlayer  # noqa: PLC0415 - as above
    from widgets.notebook.marked_drawings import CutView  # noqa: PLC0415 - as above

    if moves(noun.timeline) <= MOST_PLAYED:
        return _bundle(SchedulePlayer(noun))
    hint = f"\nmore than {MOST_PLAYED:,} transfers; SchedulePlayer(result) plays them all the same"
    return beside(
        _bundle(CutView(noun)), description=lambda: words(noun) + hint, drawn=lambda: None
    )


@_shown.register
def _(noun: Bound) -> MimeBundle | None:
    # It knows no cluster, so there is nothing to be moved or played: CutView(result) has it.
    return beside({}, description=lambda: bound_words(noun), drawn=lambda: bound_svg(noun))


@_shown.register
def _(noun: Difference) -> MimeBundle | None:
    from widgets.notebook.marked_drawings import DifferenceView  # noqa: PLC0415 - as above

    return _bundle(DifferenceView(noun))


@_shown.register
def _(noun: Prices) -> MimeBundle | None:
    from widgets.notebook.marked_drawings import PriceView  # noqa: PLC0415 - as above

    return _bundle(PriceView(noun))


def _bundle(view: Any) -> MimeBundle | None:
    bundle: MimeBundle | None = view._repr_mimebundle_()
    return bundle


def _in_terminal() -> bool:
    """Say whether IPython runs in a terminal, which shows no picture."""
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "TerminalInteractiveShell"
