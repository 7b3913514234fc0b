"""Orbit linear program: the best rate of pairs, one flow for each class of interchangeable GPUs.

Sets: A, permutations of devices that keep bandwidths, shared limits, kinds, costs and who wants
what; o, one origin of each orbit of A, n[o] origins long; a, the orbits of links under A_o, the
elements of A that fix o; i, the orbits of A on links and shared limits, with b[i] GB/s each.

Variables: R, the time in µs that the problem takes in its steady state; W[o, a] >= 0, what each
link of a carries of o's data, in bytes.

    sum of W[o, .] into v - out of v = what v wants of o's data      for one v of each orbit of A_o
                                       (v = o: minus all of it)
    sum over o of n[o] (sum over a of links of a in i) W[o, a] / (|i| b[i]) <= R
    minimise R, then with R held there the bytes on each link times its cost

Pairs of one origin flow together: who gets which byte is decided afterwards, by taking paths off
the flow. Any optimum can be averaged over A, so none is lost. An all-to-all on rails has 15
variables, however many GPUs there are.

The plan is a flow. Its steady makespan is R, and R is a bound for every plan, by the program's
prices; the replay of a single problem takes longer by latencies and finite parts.

Data that is copied or added along the path needs trees and more rows: see `orbit-trees` for plans,
`formulations.engines.orbit_lp.program` for the rows.

Source: the thesis, LP (3.16) without time, and chapter 5 taken further: every symmetry is used,
not only that of origins.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ccl.bound import Bound
from ccl.problem import Problem
from ccl.result import ModelSize, Result, Stop
from formulations.core.refusals import no_crumbs, only_pairs
from formulations.core.registry import Formulation, ModelEstimate
from formulations.core.run import Run
from formulations.engines.fluid_lp.plain import COST_ROW, CostKind, link_costs

if TYPE_CHECKING:
    from formulations.engines.orbit_lp.lp import OrbitSolution

MARGIN = 1e-9
"""Share by which the bound is lowered, for the rounding of a solver that works in floats."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is wanted beside the best rate."""

    costs: CostKind = field(default="gpus", metadata=COST_ROW)


def refuses(problem: Problem) -> str | None:
    """Leave copies, sums and several holders to trees."""
    return only_pairs(problem) or no_crumbs(problem)


GROUPS = {
    "conservation": "what flows into a class of devices flows out of it, or is wanted there",
    "bandwidth": "what the links of a class, or a shared limit, carry takes the whole time R at "
    "most",
    "time": "R is held at its least while the weighted data is minimised",
}
"""What the constraints say."""


def estimate(problem: Problem, options: Options) -> ModelEstimate:
    """Count the program; its rows are made for it, and nothing is compiled or solved."""
    from formulations.engines.orbit_lp.lp import orbit_program  # noqa: PLC0415  it loads the solver

    costs = None if options.costs == "none" else link_costs(problem.topology, options.costs)
    program = orbit_program(problem, costs=costs).program
    balance = [each.routes[0].balance for each in program.blocks]
    orbits = program.busy.shape[0]
    rows = {
        "conservation": sum(int(each.shape[0]) for each in balance),
        "bandwidth": orbits,
        "time": int(costs is not None),
    }
    entries = sum(int(each.nnz) for each in balance) + program.busy.nnz + orbits + rows["time"]
    many = sum(each.many for each in program.blocks)
    note = f"{len(program.blocks)} flows stand for {many}, by symmetry"
    return ModelEstimate(program.size[0], entries, rows, note)


def run(run: Run, options: Options) -> Result:
    """Solve the program and write its flow out for every pair.

    Raises
    ------
    LimitReached
        If the time limit came before the flow.
    """
    from formulations.engines.orbit_lp.lp import Lift, flow_along, solve_orbits  # noqa: PLC0415  it loads a solver

    topology = run.problem.topology
    costs = None if options.costs == "none" else link_costs(topology, options.costs)
    found = solve_orbits(run.problem, costs=costs, backend=run.backend, time_limit=run.left)
    run.met(ModelSize(found.columns, found.rows, 0))
    run.prove([_bound(found)])
    run.note(f"one flow stands for {_alike(found)}")
    paths = {(source, goal): ways for source, goal, ways in Lift(found).paths()}
    run.offer(flow_along(run.problem, paths), message="a flow of the best rate")
    return run.end(Stop.MODEL_OPTIMAL)


def _alike(found: OrbitSolution) -> str:
    origins = [each.many for each in found.blocks]
    many = f"{min(origins)}" if min(origins) == max(origins) else f"{min(origins)}-{max(origins)}"
    return f"{many} of {sum(origins)}, by symmetry"


def _bound(found: OrbitSolution) -> Bound:
    """Return what the prices prove."""
    topology = found.acting.topology
    names = [str(each) for each in topology.links] + [each.name for each in topology.limits]
    _, first, many = np.unique(found.row_orbits, return_index=True, return_counts=True)
    priced = sorted(np.flatnonzero(found.prices > 1e-6), key=lambda i: -found.prices[i])
    said = ", ".join(_priced(names[first[i]], int(many[i]), found.prices[i]) for i in priced[:4])
    words = f"orbit linear program, by its prices: {said}"
    return Bound(found.makespan * (1 - MARGIN), "flow", None, words, steady=True)


def _priced(name: str, many: int, price: float) -> str:
    return f"{price:.3g} on {name}" + (f" and {many - 1} alike" if many > 1 else "")


FORMULATION = Formulation(
    name="orbit-lp",
    title="Orbit linear program (best rate of pairs)",
    reference="thesis, (3.16) and chapter 5",
    collectives=frozenset({"all-to-all", "gather", "scatter", "custom"}),
    options=Options,
    refuses=refuses,
    run=run,
    model="lp",
    estimate=estimate,
    groups=GROUPS,
    whole_chunks=False,
)
