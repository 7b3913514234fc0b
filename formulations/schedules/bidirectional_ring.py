"""Bidirectional ring: chunks go around a cycle of GPUs both ways at once.

All-gather: every shard goes as far in one direction as in the other, (p-1)/2 places where p is odd.
Where p is even, half of its c chunks reach the place opposite from either side. With links that
carry both directions at once it takes

    (p-1)/2 (α + m/p β)          p odd,
    p/2 α + (p-1)/2 m/p β        p and c even,
    p/2 (α + m/p β)              p even, c = 1:

half of the ``ring``'s time. Reduce-scatter is its time reversal, all-reduce both in turn. A
broadcast of c chunks sends all of them both ways, half as far,  (⌈(p-1)/2⌉-1+c) (α + m/c β),  or
half of them in each direction,  (p-2+⌈c/2⌉) (α + m/c β),  whichever takes fewer steps; reduce is
its time reversal. (Chan et al., Concurrency and Computation 2007, section 3, has the ring; the
halves are derived here.)

Decision: the ring as for ``ring``, among cycles that paths lead around in both directions.
"""

from ccl.problem import Problem
from ccl.result import Result
from formulations.core.registry import Formulation, NoOptions
from formulations.core.run import Run
from formulations.engines.closed_forms.rings import KINDS, send_around
from formulations.engines.closed_forms.rings import refuses as no_ring


def refuses(problem: Problem) -> str | None:
    """Refuse where the GPUs lie on no cycle that can be gone around both ways."""
    return no_ring(problem, both=True)


def run(run: Run, options: NoOptions) -> Result:
    """Pass every chunk both ways along the ring."""
    return send_around(run, both=True, rings=1)


FORMULATION = Formulation(
    name="bidirectional-ring",
    title="Bidirectional ring",
    reference="Chan et al., Concurrency and Computation 2007",
    collectives=KINDS,
    refuses=refuses,
    run=run,
)
