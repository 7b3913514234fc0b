"""BFB: every shard is broadcast breadth first, its parts chosen by a linear program for each step.

A rank at distance t from a source receives its shard in step t from neighbours at distance t - 1.
Which part comes from which of them is chosen so that the busiest link of the step is as quick as
can be. For step t, with x[v, m] the part of the shard of rank v that takes path m into the rank
u(m), and z[g] the µs of a group of links that share no part with others:

    minimise    sum over g of z[g]
    sum over m into u of x[v, m] = 1                                       each v, u at distance t
    sum over v, m over link i of bytes[v] x[v, m] / bandwidth[i] <= z[g]   each link i of group g

The links into a rank are a group, as no part of a shard can choose between links into two ranks;
so this is the paper's program for each rank and step, all of a step at once. All steps take the
sum over t of the latency of a hop and the largest z of the step, which is in the log.

The parts become trees: a point of a shard, a number from 0 to 1, takes into each rank the path in
whose part it lies, parts being laid one after the other; the neighbour that it comes from has the
whole shard. So the plan is a forest, whose steady state may be shorter than its steps, as the
busiest links of different steps need not be the same.

Reduce-scatter and reduce are the time reversal on reversed links; an all-reduce is a reduce-scatter
and an all-gather. Only distance counts, so that a slow link on the shortest path is never gone
round.

Source: Zhao et al., Efficient Direct-Connect Topologies for Collective Communications, arXiv
2202.03356 (NSDI 2025).
Decisions: the paper has direct links alone. Here paths over switches are hops as well, as long as
their links are many: what arrives over the last hop of a path with fewest links is in step. Links
of such paths that are shared, and shared limits that bind, are rows like any link, and groups are
as large as these make them. What switches could copy counts in the replay, not in the program.
"""

from collections import defaultdict

from ccl.errors import LimitReached
from ccl.plans import Forest, Tree
from ccl.problem import Problem
from ccl.result import Result
from formulations.core.refusals import no_stores, no_sums
from formulations.core.registry import Formulation, NoOptions
from formulations.core.run import Run


def refuses(problem: Problem) -> str | None:
    """Refuse limited buffers and devices that store without wanting anything."""
    topology = problem.topology
    for device in topology.devices:
        linked = topology.links_in[device.name] or topology.links_out[device.name]
        if device.kind != "gpu" and device.stores and linked:
            return (
                f"{device.name} stores without wanting anything, and here broadcasts go from rank "
                "to rank"
            )
    return no_stores(problem) or no_sums(problem)


def run(run: Run, options: NoOptions) -> Result:
    """Solve the program of each step and make trees of it."""
    del options
    kind = run.problem.collective.kind
    switches = [each.name for each in run.problem.topology.devices if not each.stores]
    if switches:
        run.note("paths over switches are taken as hops that share ports; the paper has none")
    if kind == "all-reduce":
        ranks = run.problem.collective.ranks
        share = run.problem.collective.size / ranks
        nbytes = dict.fromkeys(range(ranks), share)
        halves = [_trees(run, nbytes, reduces=reduces) for reduces in (True, False)]
        added, spread = (
            tuple(Tree(each.root, each.routes, each.weight / ranks) for each in half)
            for half in halves
        )
        forest = Forest(added, reduces=True, spread=spread)
    else:
        reduces = run.problem.collective.reduces
        forest = Forest(_trees(run, _nbytes(run.problem), reduces=reduces), reduces=reduces)
    run.offer(forest, message="a forest")
    return run.finish_rate()


def _nbytes(problem: Problem) -> dict[int, float]:
    """Return the bytes of each root."""
    nbytes: defaultdict[int, float] = defaultdict(float)
    for chunk in problem.collective.chunks:
        nbytes[(chunk.destinations if chunk.reduced else chunk.holders)[0]] += chunk.size
    return dict(nbytes)


def _trees(run: Run, nbytes: dict[int, float], *, reduces: bool) -> tuple[Tree, ...]:
    """Return the trees of a broadcast or, of a reduction, those of its time reversal reversed."""
    from formulations.engines.bfb import steps_of, trees_of  # noqa: PLC0415  it loads a solver
    from formulations.engines.forestcoll.plans import turned  # noqa: PLC0415
    from formulations.engines.list_scheduling.timed import transfers_of  # noqa: PLC0415

    topology = run.problem.topology
    transfers = transfers_of(topology.reversed() if reduces else topology)

    def stop(step: int) -> float | None:
        run.report(f"step {step} of the broadcasts")
        if run.expired:
            raise LimitReached(
                f"{run.formulation} had {step - 1} steps after {run.seconds:.0f} s; allow more"
            )
        return run.left

    steps = steps_of(transfers, nbytes, backend=run.backend, stop=stop)
    if steps.size is not None:
        run.met(steps.size)
    what = "reduction" if reduces else "broadcast"
    run.note(
        f"{what} in {len(steps.latencies)} steps: {steps.makespan:.6g} µs, of which "
        f"{sum(steps.latencies):.6g} µs are latencies"
    )
    trees = trees_of(transfers, steps)
    return tuple(turned(tree) for tree in trees) if reduces else trees


FORMULATION = Formulation(
    name="bfb",
    title="BFB (breadth-first broadcasts by linear programs)",
    reference="Zhao et al., arXiv 2202.03356, NSDI 2025",
    collectives=frozenset({"all-gather", "reduce-scatter", "all-reduce", "broadcast", "reduce"}),
    refuses=refuses,
    run=run,
    model="lp",
    whole_chunks=False,
)
