"""One method after the other, in this process: bounds of a problem are proved once for all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache, partial

from ccl.collective import CollectiveKind, make_collective
from ccl.errors import ProblemError, SolveError
from ccl.options import make_options
from ccl.problem import Problem
from ccl.topology import Topology, device, duplex
from formulations.analyses.comparison.asked import question
from formulations.analyses.comparison.table import Comparison, Method, News, Row
from formulations.bounds import initial_bounds
from formulations.core.registry import formulation
from formulations.core.run import Progress
from formulations.solving.api import Proofs, solved

WARM = 1e6
"""Bytes of what is solved before the first row of a method."""


def compare(
    problem: Problem,
    formulations: Iterable[str | Method] | None = None,
    *,
    sizes: Iterable[float] | None = None,
    time_limit: float | None = None,
    progress: Callable[[News], None] | None = None,
) -> Comparison:
    """Solve `problem` with several methods at several sizes, one after the other.

    Every plan is verified and replayed; gaps are to one bound for each size. Seconds of solves
    leave out the bounds, which are proved once for all methods, and loading what they need.
    `start_comparison` does the same in a child process, where a solver that does not stop can be
    ended.

    Parameters
    ----------
    problem
        What is solved; of its collective the size is replaced (`resized`).
    formulations
        Names, ``name:option=value,option=value`` or methods; by default every formulation that
        takes the problem, constructions first and ``auto`` last.
    sizes
        Bytes of the whole buffer; by default `SIZES`.
    time_limit
        Seconds for each solve; the best plan so far is kept.
    progress
        Called with every news.

    Returns
    -------
        A row for every method and size. One that a method refuses, or for which it finds no plan,
        says why.

    Raises
    ------
    ProblemError
        If a formulation or an option does not exist, nothing is to be compared, or nothing has
        to move.
    """
    asked = question(problem, formulations, sizes=sizes, time_limit=time_limit)
    proofs = [cache(partial(initial_bounds, each)) for each in asked.problems]
    bounds = tuple(each(quick=False, whole_chunks=False)[0] for each in proofs)
    rows: list[Row] = []
    for which, place in asked.cells:
        news = News(len(rows), len(asked.cells), asked.methods[which], asked.sizes[place])
        if progress is not None:
            progress(news)
        if place == 0:
            warm_up(asked.methods[which], problem.collective.kind)
        row = row_of(
            asked.problems[place],
            asked.methods[which],
            size=asked.sizes[place],
            proofs=proofs[place],
            time_limit=time_limit,
            progress=None if progress is None else partial(_passed_on, progress, news),
        )
        rows.append(row)
        if progress is not None:
            progress(replace(news, done=len(rows), row=row))
    return Comparison(asked.problem, asked.methods, asked.sizes, bounds, tuple(rows))


def warm_up(method: Method, kind: CollectiveKind) -> None:
    """Solve what is small, so that loading a solver is not counted as seconds of the first row.

    Parameters
    ----------
    method
        Who is loaded; it may refuse.
    kind
        What it is going to solve; a custom demand is made one of pairs.
    """
    pair = Topology(
        "pair",
        (device("gpu", "g0"), device("gpu", "g1")),
        tuple(duplex("g0", "g1", bandwidth=50.0, alpha=0.7)),
    )
    made = make_collective("all-to-all" if kind == "custom" else kind, 2, WARM)
    problem = Problem(pair, made)
    proofs = cache(partial(initial_bounds, problem))
    row_of(problem, method, size=WARM, proofs=proofs, time_limit=1.0)


def row_of(
    problem: Problem,
    method: Method,
    *,
    size: float,
    proofs: Proofs,
    time_limit: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Row:
    """Solve one cell; its row says why there is no result, and any other error is a bug.

    Parameters
    ----------
    problem, method, size
        Who solves what, at how many bytes.
    proofs
        Returns the bounds of `problem` and remembers them.
    time_limit, progress
        As for `formulations.solve`.
    """
    chosen = formulation(method.formulation)
    refused = chosen.why_not(problem)
    if refused is not None:
        return Row(method, size, None, refused)
    made = make_options(chosen.options, method.options)
    # Whoever asks first shall not be the one whose seconds they are.
    proofs(quick=chosen.quick, whole_chunks=chosen.keeps_chunks(problem))
    try:
        result = solved(
            problem, chosen, made, bounds=proofs, time_limit=time_limit, progress=progress
        )
    except (ProblemError, SolveError) as error:
        return Row(method, size, None, str(error))
    return Row(method, size, result)


def _passed_on(told: Callable[[News], None], news: News, progress: Progress) -> None:
    told(replace(news, progress=progress))
