"""Several rings side by side, as GPUs with several links and hosts with several ports allow.

R rings through all GPUs, none of which takes bandwidth that another has, deal the c chunks of each
shard in turn:

    (p-1) (α + m/(p R) β)         all-gather and its time reversal, reduce-scatter, where R divides
    c, 2 (p-1) (α + m/(p R) β)       all-reduce,
    (p-2+c/R) (α + m/c β)         broadcast and reduce;

α and β are those of one ring's slowest path. A DGX-1 whose GPUs have six NVLinks has six rings; a
cluster of hosts with k ports has k, of which each enters and leaves every host by ports of its own.
(NCCL's rings; Wang et al., Blink, MLSys 2020, section 2.)

Decision: for every bandwidth that links have, rings of at least that bandwidth are searched one
after the other, those that can be gone around both ways first; a link is in as many as its
bandwidth goes into. Where one more may be there the search begins again with the ranks in another
order. Of all these the rings count on which a shard's chunks take the least time, latencies aside;
with fewer chunks than rings there are fewer rings, and the log says so.
"""

from ccl.problem import Problem
from ccl.result import Result
from formulations.core.registry import Formulation, NoOptions
from formulations.core.run import Run
from formulations.engines.closed_forms.rings import KINDS, send_around
from formulations.engines.closed_forms.rings import refuses as no_ring


def refuses(problem: Problem) -> str | None:
    """Refuse where the GPUs lie on no cycle."""
    return no_ring(problem)


def run(run: Run, options: NoOptions) -> Result:
    """Pass every chunk along its ring."""
    return send_around(run, both=False, rings=0)


FORMULATION = Formulation(
    name="multi-ring",
    title="Multi-ring",
    reference="NCCL; Wang et al., Blink, MLSys 2020",
    collectives=KINDS,
    refuses=refuses,
    run=run,
)
