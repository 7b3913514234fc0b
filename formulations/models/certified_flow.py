"""Certified flow: the best rate of pairs on clusters without symmetry, to within a share of it.

Sets: s, ranks that send; e, links with b(e) GB/s; L, shared limits.

Variables: flow[e, s] >= 0, bytes of s that cross e; T, µs of the steady state.

    sum of flow[., s] out of v - into v = what s has to send if v is s, else - what v needs of s
    sum over s of flow[e, s]            <= b(e) T                 for every link
    sum over e in L and s of flow[e, s] <= b(L) T                 for every shared limit L
    minimise T

`orbit-lp` solves this exactly and has a variable for each class of links; without symmetry that is
one for each link and source, and a thousand times the work. Here a first-order method comes near
within seconds, and neither its end nor its accuracy is trusted: the bound is worked out from its
prices in whole numbers, and the flow is made good, so that what is shown as the gap is true
(`formulations.engines.fluid_lp.certified`).

Source: the thesis, LP (3.16) without time. Decision: half a percent is near enough by default, as
what a single problem takes longer by latencies and finite parts is more than that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ccl.bound import Bound
from ccl.options import option
from ccl.problem import Problem
from ccl.result import ModelSize, Result, Stop
from formulations.core.refusals import no_crumbs, only_pairs
from formulations.core.registry import Formulation, ModelEstimate
from formulations.core.run import Run

if TYPE_CHECKING:
    from formulations.engines.fluid_lp.certified import CertifiedFlow

PATIENCE = 60.0
"""Seconds where there is no limit."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How near is near enough."""

    near: float = option(
        0.5, "Near", "How far above its bound the steady state may be, in percent", min=0.0
    )


def refuses(problem: Problem) -> str | None:
    """Leave copies, sums and several holders to trees, and very large clusters to symmetry."""
    from formulations.engines.fluid_lp.certified import too_large  # noqa: PLC0415  it loads CVXPY

    return only_pairs(problem) or no_crumbs(problem) or too_large(problem)


GROUPS = {
    "conservation": "what a source sends leaves it, passes on, and arrives where it is wanted",
    "bandwidth": "what a link or a shared limit carries of all sources takes the time T at most",
}
"""What the constraints say."""


def estimate(problem: Problem, options: Options) -> ModelEstimate:
    """Count the program."""
    del options
    links, devices = len(problem.topology.links), len(problem.topology.devices)
    sources = len({chunk.holders[0] for chunk in problem.collective.chunks if not chunk.in_place})
    under = links + sum(len(each.links) for each in problem.topology.limits)
    rows = {"conservation": devices * sources, "bandwidth": links + len(problem.topology.limits)}
    entries = 2 * links * sources + under * sources + rows["bandwidth"]
    return ModelEstimate(links * sources + 1, entries, rows, "a flow for each source")


def run(run: Run, options: Options) -> Result:
    """Come nearer and nearer."""
    # It loads CVXPY.
    from formulations.engines.fluid_lp.certified import certified_flows  # noqa: PLC0415
    from formulations.engines.orbit_lp.lp import flow_along  # noqa: PLC0415

    seconds = PATIENCE if run.left is None else run.left
    for found in certified_flows(run.problem, seconds=seconds, near=options.near / 100):
        run.met(ModelSize(found.columns, found.constraints, 0))
        run.prove([_bound(found)])
        paths = {(source, goal): ways for source, goal, ways in found.paths()}
        run.offer(flow_along(run.problem, paths), message="a flow that was made good")
        run.report(f"a steady state {100 * found.gap:.2f} % above its bound")
        if run.expired:
            break
    run.note(f"its steady state is {100 * found.gap:.2g} % above what no plan can beat")
    return run.end(Stop.MODEL_GAP if found.gap * 100 <= options.near else Stop.TIME_LIMIT)


def _bound(found: CertifiedFlow) -> Bound:
    words = "cheapest paths at prices of links, in whole numbers"
    return Bound(float(found.bound), "flow", None, words, steady=True)


FORMULATION = Formulation(
    name="certified-flow",
    title="Certified flow (pairs without symmetry)",
    reference="thesis, (3.16), by a first-order method",
    collectives=frozenset({"all-to-all", "gather", "scatter", "custom"}),
    options=Options,
    refuses=refuses,
    run=run,
    model="lp",
    estimate=estimate,
    groups=GROUPS,
    whole_chunks=False,
)
