"""Collectives in synchronous steps and rounds (SCCL), exactly, by constraint programming.

A round is the time of one chunk over the slowest link; a link of b times its bandwidth carries b
chunks in it, b an exact fraction. A plan has S steps of ``r[s] >= 1`` rounds, R together, for C
chunks per shard. For chunk c, device v, path w from a device that stores to another (a link, or
several over devices that do not), step s, with binary ``x`` and ``has``:

    has[c, v, 0] = 1 for holders, else 0
    has[c, v, s + 1] = has[c, v, s] + sum of x[c, w, s] into v      it comes once at most
    has[c, v, S] = 1 for every v that needs c
    x[c, w, s] <= has[c, u, s] for w out of u                       no forwarding within a step
    sum of x[c, w, s] over link e <= b[e] * r[s]                    ports of switches are links
    sum of r[s] = R

Chunks that only one device needs are counted instead, as whole flows of all that begin alike, and
named afterwards: so no two that may change places are distinguished. Copies of a chunk that share
the first links of their paths to devices that copy load these once, where all such paths of its
sender part at devices that copy; else each of them loads its own.

It costs ``S alpha + R / C * L beta`` for shards of L bytes (Cai et al., PPoPP 2021, section 2),
with one latency and a barrier between steps. The schedule keeps the order of the steps on every
link, and the replay has no barrier, so that it may be shorter.

* **least-steps**: the smallest S with rounds of one each. Distances and cuts give the first S;
  list scheduling in rounds a plan to beat; every S in between is decided.
* **instance**: S and R as given. "No plan, which is proved" is distinguished from "not decided".
* **pareto**: the smallest R for each S, until R meets the bound of the cuts;
  `formulations.engines.sccl.search.pareto` does it for several C.

"Impossible" is a proof about this model: chunks come once, in steps, over switches without stopping
and over as many links as `formulations.engines.epoch_grid.arcs` lists. Chunks of one shard may
change places; rows that order them were measured to make finding slower, so that is left to the
solver.

Symmetric plans are tried first (``formulations.engines.list_scheduling.multistart``); that there
are none proves nothing. Sums are planned backwards, an all-reduce as a reduce-scatter, then an
all-gather, each with the steps and rounds that are requested
(``formulations.engines.list_scheduling.search``).
"""

from ccl.collective import COLLECTIVES
from ccl.problem import Problem
from ccl.result import Result
from formulations.core.refusals import no_limits, no_stores
from formulations.core.registry import Formulation
from formulations.core.run import Run
from formulations.engines.reverse_time import irreversible
from formulations.engines.sccl import Options


def refuses(problem: Problem) -> str | None:
    """Leave limits, chunks of several sizes and bandwidths in no ratio to other formulations."""
    if (reason := no_stores(problem)) is not None:
        return reason
    if (reason := no_limits(problem)) is not None:
        return f"{reason}, and here each link counts its own chunks"
    sizes = sorted({chunk.size for chunk in problem.collective.chunks})
    if sizes[-1] > sizes[0] * (1 + 1e-9):
        return (
            f"its chunks have {sizes[0]:g} to {sizes[-1]:g} bytes, and here rounds are of one size"
        )
    from formulations.engines.sccl.instance import uneven  # noqa: PLC0415  it loads igraph

    return uneven(problem.topology) or irreversible(problem)


def run(run: Run, options: Options) -> Result:
    """Decide instances until what is requested is found.

    Raises
    ------
    Infeasible
        If the instance requested is proved to have no plan.
    LimitReached
        If it is not decided in its time.
    """
    from formulations.engines.sccl.client import Solver  # noqa: PLC0415
    from formulations.engines.sccl.search import solve  # noqa: PLC0415  it loads numba

    with Solver() as solver:
        return solve(run, options, solver)


FORMULATION = Formulation(
    name="sccl",
    title="SCCL: steps and rounds",
    reference="Cai et al., Synthesizing Optimal Collective Algorithms, PPoPP 2021",
    collectives=frozenset(COLLECTIVES),
    options=Options,
    refuses=refuses,
    run=run,
    model="cp",
)
