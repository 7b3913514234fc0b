"""Blink: spanning trees of one root, as many and as wide as the links carry.

Data of root r goes down trees T that reach every GPU (broadcast), or up the same trees turned
round (reduce). With w[T] the GB/s of a tree and b(e) those of link e:

    maximise    sum over T of w[T]
    sum over T with e of w[T] <= b(e)                         each link e

1. Rate. The maximum is the least of the largest flows from r to another GPU (Edmonds), found as an
   exact fraction with the cut that proves it. With packing "exact" trees are grown that reach it
   (`formulations.engines.forestcoll.splitting`).
2. Packing "multiplicative weights", the paper's: in each round the cheapest tree, by prices of
   links that grow with what they carry, takes what its narrowest link has. Its trees come near
   the rate; a linear program then says what each should carry.
3. Few trees. With at most k trees, z[T] whether T is used: w[T] <= z[T] min over e in T of b(e),
   sum over T of z[T] <= k, z whole. Both packings hand in their trees.
4. All-reduce: up to one root and down again. Where links are the same both ways, a tree uses one
   direction up and the other down, so trees are packed in the graph without directions, and which
   rank is the root does not matter; it is one near the middle. In general link e lets o(e) down
   and b(e) - o(e) up:

       maximise    X
       o(S) >= X             each cut S between the root and a GPU, o(S) what leaves it
       b(S) - o(S) >= X      the same on links turned round

   Cuts are added as they are overrun. With halves "in turn" the trees are those of the broadcast
   alone and go up first, then down, as ForestColl's authors have run Blink.

An all-gather by one root is an all-reduce without sums and as slow as one, so it is not served:
`forestcoll` has trees of every root. Switches are not served either: `blink-switch`.

Source: Wang et al., Blink, MLSys 2020, section 3; ForestColl (arXiv 2402.06787), section 4.6.
Decisions: exact packing and the program of step 4 are ours, where the paper has the approximation.
"""

from ccl.problem import Problem
from ccl.result import Result
from formulations.core.registry import Formulation
from formulations.core.run import Run
from formulations.engines.blink import Options


def refuses(problem: Problem) -> str | None:
    """Refuse switches, and what trees of relays cannot do at the rate of the worst cut."""
    from formulations.engines.forestcoll.search import refusal  # noqa: PLC0415  it loads numba

    why = refusal(problem)
    if why is not None:
        return why
    for device in problem.topology.devices:
        if not device.stores and problem.topology.links_out[device.name]:
            return (
                f"it has switches, such as {device.name}, and here trees go from GPU to GPU; "
                "blink-switch removes them first"
            )
    return None


def run(run: Run, options: Options) -> Result:
    """Pack the trees of one root."""
    from formulations.engines.blink.packer import solve_blink  # noqa: PLC0415  it loads the solver

    return solve_blink(run, options)


FORMULATION = Formulation(
    name="blink",
    title="Blink (spanning trees of one root)",
    reference="Wang et al., Blink, MLSys 2020",
    collectives=frozenset({"all-reduce", "broadcast", "reduce"}),
    options=Options,
    refuses=refuses,
    run=run,
    model="lp",
    whole_chunks=False,
)
