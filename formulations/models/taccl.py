"""TACCL: a sketch of the topology, then paths, order and contiguity one after the other.

Sets: chunks c; devices r that store; logical links (src, r): the paths between two of them that the
sketch leaves, each a link or an edge of a switch's hyper-edge (section 3); physical links e. Times
are in µs, s is bytes, lat = alpha + beta s of a whole path.

Step 1, path encoding (formulation 2); ``sent[c, src, r]`` is binary:

    minimise   time + w1 * mean start[c, r] over who wants c  (+ or - w2 * pairs used at switches)
    subject to time >= start[c, r]                             r wants c
               sum over src of sent[c, src, r] = 1             r wants c; <= 1 for every other r
               sent[c, r, r'] <= sum over src of sent[c, src, r]         r does not hold c at first
               start[c, r] >= start[c, src] + lat              if sent[c, src, r]
               time >= sum of beta s * sent over all that cross e        every e, equations 1 to 3
               sum over paths from host n1 to n2 of sent[c, ., .] >= 1    c starts in n1, n2 wants
               it sum over c of sent[c, src, r] >= 1              (src, r) is forced by the sketch

    for c only over devices on some shortest path from a holder to a destination. The indicator row
    has the constant M = U - earliest[c, r], U the time of quick paths that are known before. What a
    symmetry of the sketch exchanges is one variable, so there are no rows of symmetry.

Step 2, ordering (appendix A.2): all sends by their earliest starts, links and chunks keeping
running times; ties by *chunk-with-shortest-path-until-now-first* or
*chunk-with-longest-path-from-now-first*; along the paths or against them, as if time ran backwards.

Step 3, contiguity (formulation 3): with the order given, ``together[c, o]`` binary for what goes
over one link between hosts with nothing else between, ``before = 1 - together``:

    minimise   time >= send + lat
    subject to send[c, r, r'] >= start[c, r];  start = send + lat
               lat = alpha + beta * (s of c and of all o with together[c, o])
               send[o] >= start[c] if before[c, o];  send[o] = send[c] if together[c, o]
               together[c, o] <= together[c, o'] for o' before o and after c  (equation 2)

Decisions

* The paper's link is held for alpha + beta s. Here latency holds no link (`ccl.plans`), so that
  sends one after the other overlap their latencies, and going together, which saves alphas there,
  gains nothing and delays what is sent on. Steps 1 and 2 count beta s unless the option latency
  says ``holds``; step 3 is the paper's throughout and its time is in the log; the order it finds is
  offered beside the one of step 2, and the replay decides.
* Shortest is meant by costs or by hops: either will do.
* Small weights: w1 and w2 together are at most 2 % of the time. The first makes paths short where
  links have time to spare, which the paper leaves open; the second is the inclination, uc-min or
  uc-max (section 4.2).
* Formulation 1 prints the latency of o in ``before[c, o]``: as ``start[o] = send[o] + lat[o]`` that
  is ``send[o] >= start[c]``. It lets a device send what it never received, as nothing bounds start
  there; the third row of step 1 forbids it. Formulation 3 prints ``if allow_together then
  before = 1`` for the orders of switches; its text says the opposite, which is done here.
* Without a sketch one is derived: one receiver per NIC and host where switches leave a choice,
  uc-min for chunks that take longer than their latency, else uc-max, and every offset that is a
  symmetry. The log says it. An offset that is no symmetry of the logical topology and the
  collective is left out with a word.
* Neighbouring chunks of a shard that are instances of one (section 5.2) have its paths and its
  place in the order, one after the other.
* A sum for one rank: the time-reversed spreading is routed on reversed paths, then turned and
  ordered anew (section 4.3). A sum for all is both, one order over both, in which what spreads
  waits for its sum.
* Quick paths, found greedily over links' loads so far, are ordered and offered first: they bound
  step 1, start it, and stand if its limit comes before it has any.
"""

from ccl.collective import COLLECTIVES
from ccl.problem import Problem
from ccl.result import Result
from ccl.topology import binding_limits
from formulations.core.refusals import no_stores
from formulations.core.registry import Formulation
from formulations.core.run import Run
from formulations.engines.reverse_time import irreversible
from formulations.engines.taccl import Options

MOST_DELIVERIES = 20_000
"""Chunks times destinations above which ordering takes too long."""


def refuses(problem: Problem) -> str | None:
    """Leave limited buffers, shared limits and many chunks to other formulations."""
    refusal = no_stores(problem) or irreversible(problem)
    if refusal is not None:
        return refusal
    for limit in binding_limits(problem.topology):
        return (
            f"limit {limit.name} of {limit.bandwidth:g} GB/s is below the sum of its links, and "
            "here every link has a bandwidth of its own"
        )
    many = sum(len(chunk.destinations) for chunk in problem.collective.chunks)
    many *= 2 if problem.collective.kind == "all-reduce" else 1
    if many > MOST_DELIVERIES:
        return f"it has {many:,} deliveries of chunks, and here {MOST_DELIVERIES:,} are the most"
    return None


def run(run: Run, options: Options) -> Result:
    """Route, order, send together.

    Raises
    ------
    Infeasible
        If the sketch leaves no plan.
    """
    from formulations.engines.taccl.search import search  # noqa: PLC0415  it loads CVXPY

    return run.finish(search(run, options))


FORMULATION = Formulation(
    name="taccl",
    title="TACCL (sketch, paths, order, contiguity)",
    reference="Shah et al., NSDI 2023, arXiv 2111.04867",
    collectives=frozenset(COLLECTIVES),
    options=Options,
    refuses=refuses,
    run=run,
    model="milp",
)
