"""Blink + switch removal: spanning trees of one root on connections between GPUs alone.

Blink packs trees on links from GPU to GPU. Where there are switches, their bandwidth is first
given to connections past them, as ForestColl does: of links u -> w and w -> t of a switch w as much
as can be becomes a connection u -> t, so that every flow from the root to a GPU stays as large
(`forestcoll`, step 3, has the rule). Blink's trees are then packed on the connections:

    maximise    sum over T of w[T]
    sum over T with c of w[T] <= b(c)                         each connection c

exactly or by multiplicative weights, any number of trees or few, and laid on the links that each
connection is made of. An all-reduce first parts each link between what goes up and what goes down,
switches balanced for both, and then removes them from either part. `blink` has the rest.

Source: ForestColl (arXiv 2402.06787), section 5, whose authors call it Blink+Switch; Wang et al.,
Blink, MLSys 2020.
Decisions: switches are removed for the rate of the one root, not for that of an all-gather, which
is at least as good for its trees.
"""

from ccl.problem import Problem
from ccl.result import Result
from formulations.core.registry import Formulation
from formulations.core.run import Run
from formulations.engines.blink import Options


def refuses(problem: Problem) -> str | None:
    """Refuse what trees of relays cannot do at the rate of the worst cut."""
    from formulations.engines.forestcoll.search import refusal  # noqa: PLC0415  it loads numba

    return refusal(problem)


def run(run: Run, options: Options) -> Result:
    """Remove the switches and pack the trees of one root."""
    from formulations.engines.blink.packer import solve_blink  # noqa: PLC0415  it loads the solver

    return solve_blink(run, options)


FORMULATION = Formulation(
    name="blink-switch",
    title="Blink + switch removal",
    reference="Zhao et al., ForestColl, arXiv 2402.06787; Wang et al., Blink, MLSys 2020",
    collectives=frozenset({"all-reduce", "broadcast", "reduce"}),
    options=Options,
    refuses=refuses,
    run=run,
    model="lp",
    whole_chunks=False,
)
