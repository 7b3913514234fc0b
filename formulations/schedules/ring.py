"""Rings: every GPU passes on what it receives, around a cycle of GPUs.

All-gather (Chan et al., Concurrency and Computation 2007; Thakur et al., IJHPCA 2005): in step t
= 0 .. p-2 the GPU at place i of the ring sends the shard that came from place i - t to place
i + 1. On links all alike it takes  (p-1) (α + m/p β).  Reduce-scatter is its time reversal,
all-reduce both in turn,  2 (p-1) (α + m/p β).  Broadcast passes the root's c chunks along the ring,
one behind the other:  (p-2+c) (α + m/c β);  reduce is its time reversal.

In both directions at once a shard goes half as far: ``bidirectional-ring``. Several rings side by
side share the chunks of each shard among them: ``multi-ring``.

Decision: the ring is a cycle through all GPUs that holds the slowest link as fast as can be; two
GPUs are neighbours where a link or a path over devices that cannot store joins them. It is found
by a search over paths from fast to slow, with the drawing's order of ranks first; no claim is made
that no better ring exists. With c chunks per shard every link passes chunk after chunk.
"""

from dataclasses import dataclass
from typing import Literal

from ccl.options import option
from ccl.problem import Problem
from ccl.result import Result
from formulations.core.registry import Formulation
from formulations.core.run import Run
from formulations.engines.closed_forms.rings import KINDS, send_around
from formulations.engines.closed_forms.rings import refuses as no_ring


@dataclass(frozen=True, kw_only=True)
class Options:
    """Which rings."""

    directions: Literal["one", "both"] = option(
        "one", "Directions", "One way round, or both ways at once"
    )
    rings: int = option(
        1,
        "Rings",
        "Rings side by side that share the chunks; 0 for as many as pay",
        min=0,
        max=1024,
    )


def refuses(problem: Problem) -> str | None:
    """Refuse where the GPUs lie on no cycle."""
    return no_ring(problem)


def run(run: Run, options: Options) -> Result:
    """Pass every chunk along a ring.

    Raises
    ------
    Infeasible
        If no ring can be gone around both ways.
    """
    return send_around(run, both=options.directions == "both", rings=options.rings)


FORMULATION = Formulation(
    name="ring",
    title="Ring",
    reference="Thakur, Rabenseifner, Gropp, IJHPCA 2005; Chan et al. 2007",
    collectives=KINDS,
    options=Options,
    refuses=refuses,
    run=run,
)
