"""List scheduling in continuous time: at every event the send that helps most.

No model and no grid: links become free and chunks arrive at their exact times, and at each of
these moments every link that is free takes the chunk that helps most, if any does
(``formulations.engines.kernels.dispatch`` has the rule). One such pass takes well under a
millisecond on 16 GPUs. Passes differ in their weights and in chance; the best plan counts, and one
that meets a lower bound is optimal and ends the search.

A cluster with symmetry is planned for one chunk of each orbit
(``formulations.engines.list_scheduling.multistart``), which is faster by the order of the group and
mostly better. Devices that cannot store are crossed without stopping; where they copy, one
transmission serves several ports. Reductions are planned backwards on reversed links; all-reduce
spreads each sum while others are still being added up
(``formulations.engines.list_scheduling.search``).

It proves nothing by itself: how good a plan is, the bounds say.
"""

from __future__ import annotations

from dataclasses import dataclass

from ccl.collective import COLLECTIVES
from ccl.options import option
from ccl.problem import Problem
from ccl.result import Result, Stop
from formulations.core.refusals import no_stores
from formulations.core.registry import Formulation
from formulations.core.run import Run
from formulations.engines.reverse_time import irreversible


@dataclass(frozen=True, kw_only=True)
class Options:
    """The form of list scheduling."""

    passes: int = option(
        120,
        "Passes",
        "Plans tried for each symmetry; fewer where they are large",
        min=1,
        max=1_000_000,
    )
    symmetry: bool = option(True, "Symmetry", "Look for plans that look the same all around")
    seed: int = option(0, "Seed", "Of the random numbers", min=0)


def refuses(problem: Problem) -> str | None:
    """Leave limited buffers to other formulations."""
    return no_stores(problem) or irreversible(problem)


def run(run: Run, options: Options) -> Result:
    """Run passes until a plan meets the bound or the passes are over.

    Raises
    ------
    Infeasible
        If no paths lead where chunks have to be.
    """
    from formulations.engines.list_scheduling.search import search  # noqa: PLC0415  it loads numba

    search(run, seed=options.seed, passes=options.passes, symmetry=options.symmetry)
    return run.end(Stop.TIME_LIMIT if run.expired else Stop.PASSES)


FORMULATION = Formulation(
    name="list",
    title="List scheduling in continuous time",
    reference="Graham, Bell System Technical Journal 45, 1966; rule and quotient are our own",
    collectives=frozenset(COLLECTIVES),
    options=Options,
    refuses=refuses,
    run=run,
    searched_by="own search",
)
