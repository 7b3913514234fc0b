"""Automatic: try what is quick first, stop at a proof, say who found the plan and what proves it.

1. Lower bounds: a plan that meets one is optimal and nothing else is tried.
2. List scheduling in continuous time: on most clusters it meets the bound at once.
3. The closed forms that fit: doubling, which needs the fewest steps for a sum that all want, direct
   sends, a ring, a tree.
4. Links matched with chunks by chance, again and again for a few seconds.
5. The linear program of amounts, where chunks have one destination: it may split them.
6. Constraint programming, then the integer program on a grid of epochs, to close what is left.

Each goes on with the best plan that those before it have found and within a share of the time;
every better plan is reported as it comes. Where chunks have one destination plans may split them,
and only bounds that hold for such plans count; else chunks stay whole, and where that leaves a
large gap, the log says what trees reach that send them in parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ccl.collective import COLLECTIVES
from ccl.errors import SolveError
from ccl.options import option_fields
from ccl.problem import Problem
from ccl.result import Result, Stop
from formulations.mirror import halves
from formulations.registry import Formulation, formulation
from formulations.run import Run

EFFORT = {"quick": 0.0, "normal": 10.0, "thorough": 60.0}
"""Seconds that each exact method may take."""

QUICK = ("list", "recursive-doubling", "direct", "ring", "tree", "tacos")
"""What needs no solver."""

CHANCE = 3.0
"""Seconds that a method of chance may take; the others come to their end by themselves."""

EXACT = ("te-ccl-lp", "cp-sat", "te-ccl-milp")
"""What needs one."""

TREES = "forestcoll"
"""What sends chunks in parts along trees."""

WIDE = 0.05
"""A gap above which it is said what plans of other kinds reach."""

MANY = 20_000
"""Chunks times destinations above which the first method that finds a plan has to do."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The form of the portfolio."""

    effort: Literal["quick", "normal", "thorough"] = field(
        default="normal",
        metadata={
            "label": "Effort",
            "help": "How long exact methods may try where the bound is not met: not at all, up to "
            "10 s or up to 60 s each",
        },
    )
    seed: int = field(
        default=0, metadata={"label": "Seed", "min": 0, "help": "Of the random numbers"}
    )


def refuses(problem: Problem) -> str | None:
    """Refuse what every method refuses, with the reason of the first."""
    reasons = [formulation(name).why_not(problem) for name in (*QUICK, *EXACT)]
    return None if None in reasons or not reasons else reasons[0]


def splits(problem: Problem) -> bool:
    """Whether plans may split chunks: the linear program takes the problem."""
    return formulation("te-ccl-lp").why_not(problem) is None


def run(run: Run, options: Options) -> Result:
    """Try one method after the other.

    Raises
    ------
    Infeasible
        If no method finds a way.
    LimitReached
        If the time limit came before the first plan.
    """
    failed: list[SolveError] = []
    stop = Stop.PASSES
    asked = False
    for name, seconds in _tries(run, options):
        if name in EXACT and not asked and not _done(run):
            asked = True
            _proved_more(run)
        if _done(run):
            break
        stop = _tried(run, name, seconds=seconds, seed=options.seed, failed=failed)
    if run.best is None and failed and not run.expired:
        raise failed[0]
    _said(run)
    if run.enough:
        return run.finish(run.reached)
    if run.expired:
        return run.finish(Stop.TIME_LIMIT)
    # A method that was cut off or only built a plan says nothing of the others.
    partial = stop in (Stop.CONSTRUCTED, Stop.TIME_LIMIT)
    return run.finish(Stop.EFFORT if partial else stop)


def _said(run: Run) -> None:
    """Say in the log what chunks cut into parts would reach, where whole ones are far from it."""
    problem, found = run.problem, run.best
    if found is None or found.gap <= WIDE or _in_two(problem):
        return
    if formulation(TREES).why_not(problem) is None:
        from formulations.fluid.optimum import optimum  # noqa: PLC0415

        best = optimum(problem)
        if best.makespan < found.makespan / (1 + WIDE):
            run.note(
                "chunks stay whole here; in parts that follow each other along trees "
                f"({TREES}) they take {best.makespan:.6g} µs in the steady state, "
                f"{best.algbw:.4g} GB/s"
            )


def _done(run: Run) -> bool:
    return run.enough or run.expired or (run.best is not None and _large(run.problem))


def _large(problem: Problem) -> bool:
    return sum(len(chunk.destinations) for chunk in problem.collective.chunks) > MANY


def _proved_more(run: Run) -> None:
    """Add the bounds that need a solver."""
    from formulations.bounds import flow_bounds  # noqa: PLC0415

    run.report("a bound on all demands flowing together")
    more = flow_bounds(run.problem, proved=run.bounds[0].makespan)
    if more:
        kept = [each for each in run.bounds if each.kind != "flow"]
        run.bounds = tuple(sorted((*kept, *more), key=lambda bound: -bound.makespan))


def _tries(run: Run, options: Options) -> Iterator[tuple[str, float | None]]:
    """Yield what to try and the seconds that it may take, or None for all that are left.

    Where there is little time, list scheduling leaves half of it to the others.
    """
    large = _large(run.problem)
    exact = EFFORT[options.effort] * (3 if _in_two(run.problem) else 1)
    yield QUICK[0], None if large or not exact or run.left is None else run.left / 2
    for name in QUICK[1:]:
        yield name, CHANCE if name == "tacos" else None
    if exact and not large:
        for name in EXACT:
            yield name, exact


def _in_two(problem: Problem) -> bool:
    """Whether sums are added up and then spread: a search for each half and one for both."""
    return problem.collective.reduces and None not in halves(problem.collective)


def _tried(
    run: Run, name: str, *, seconds: float | None, seed: int, failed: list[SolveError]
) -> Stop:
    """Let a method go on with what is there; keep what it adds."""
    chosen = formulation(name)
    if chosen.why_not(run.problem) is not None:
        return Stop.PASSES
    limit = run.time_limit
    if seconds is not None and (run.left is None or seconds < run.left):
        limit = run.seconds + seconds
    # What a quick method remarks is of its own plan.
    log = list(run.log) if name in QUICK else run.log
    inner = replace(run, time_limit=limit, method=name, log=log)
    stop = Stop.PASSES
    try:
        stop = chosen.run(inner, _options(chosen, seed=seed, seconds=seconds)).stop
    except SolveError as error:
        failed.append(error)
    _kept(run, inner)
    return stop


def _options(chosen: Formulation, *, seed: int, seconds: float | None) -> Any:
    """Return the options of a method: its own, with the seed and the time."""
    given: dict[str, Any] = {"seed": seed}
    if seconds is not None:
        given["seconds"] = seconds
    names = {row.name for row in option_fields(chosen.options)}
    return chosen.options(**{name: value for name, value in given.items() if name in names})


def _kept(run: Run, inner: Run) -> None:
    """Keep what a method has added: a better plan, and bounds that hold for all plans here."""
    found = inner.best
    if found is not None and (run.best is None or found.makespan < run.best.makespan):
        run.best, run.log = found, inner.log
    if inner.size is not None:
        run.met(inner.size)
    if not splits(run.problem):
        run.bounds = inner.bounds


FORMULATION = Formulation(
    name="auto",
    title="Automatic",
    reference="what is tried is listed with its own sources",
    collectives=frozenset(COLLECTIVES),
    options=Options,
    refuses=refuses,
    run=run,
    model="several",
    windows=True,
    quick=True,
    whole_chunks=lambda problem: not splits(problem),
    mathematics=__doc__ or "",
)
