"""The thesis' linear programs for a fluid, with plans: small clusters, any collective.

Sets: links and shared limits i with b[i] GB/s; groups g, data with one root o and destinations
D(g); edges e and vertices v of the graph, in which a device that may not copy is a vertex for each
device that data can reach from it next. Variables, all >= 0: w[e, g], bytes of g on e; f[e, g, d],
those that are in flight to d; R in µs.

    minimise R, then, with R held there, sum over e and g of cost[e] w[e, g]
    subject to
    f[., g, d] is a flow of the bytes of g from o to d                    for d in D(g)
    w[e, g] >= f[e, g, d]                                                 nothing is sent twice
    sum over g, and over e in i, of w[e, g] <= 1000 R b[i]                each row i

This is LP (4.2) with no axis of time, in which R is the least that any number of hops allows; with
`hops` the graph has T + 1 layers, as there. What is added up spreads over the reversed cluster,
from its destination, and what reduces stands where what copies stood (section 3.2). Pairs flow
together by their origin and need no w (3.16). A sum for everybody is added up at rank o for a share
x[o] of the data, a variable, and spreads from there; both halves share the rows (section 4.2).

Models: ``labels`` says of all data for whom they are (3.11) and is exact, memories included;
``duplicates`` is the program above; ``relaxation`` begins with (3.13), which has one vertex for
each switch and the row "as much w leaves it as enters", and duplicates those that cheat until none
does (section 3.1); ``best`` is labels where these are few, else duplicates. The weighted data is by
default what GPUs upload and download.

Plans: a flow for pairs; for the rest a forest. Its trees come out of data with labels; where the
program had none, w of each group is filled by a program with labels of its own, which takes more of
the links than w only if flows were combined that cannot be (then the log says so). At first a
forest of the fewest hops is at hand, in case time runs out.

The optimum is a bound on the steady state and on the makespan of every plan, but for sums that all
want: there it is the optimum of adding up at roots and spreading from them.

Decisions. An edge's w is the same for all steps of its link, so R needs no search. The thesis
counts f <= w with w <= s b at every step, and calls (4.2) equivalent to it (theorem 4); here (4.2)
is solved, `formulations.engines.fluid_lp.stepwise` makes K chunks of its plan. What the thesis
prints wrongly is listed in `formulations.engines.fluid_lp.multicast` (3.11, 3.14, 3.16).

Source: the thesis, chapters 3 and 4.
"""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

from ccl.bound import Bound
from ccl.collective import COLLECTIVES
from ccl.errors import Infeasible, LimitReached
from ccl.options import option
from ccl.plans import Flow, Forest, Rate, Tree
from ccl.problem import Problem
from ccl.result import Result, Stop
from formulations.core.refusals import no_crumbs, no_stores
from formulations.core.registry import Formulation, ModelEstimate
from formulations.core.run import Run
from formulations.engines.epoch_grid.windows import too_short
from formulations.engines.fluid_lp import dantzig_wolfe_plan
from formulations.engines.fluid_lp.arborescences import fractions, links_of_pairs, trees_of
from formulations.engines.fluid_lp.multicast import variables
from formulations.engines.fluid_lp.plain import (
    COST_ROW,
    CostKind,
    FluidSolution,
    Part,
    link_costs,
    solve_plain,
)
from formulations.engines.fluid_lp.stepwise import GROUPS, Copies, count_fluid, fewest_hops
from formulations.engines.reverse_time import irreversible
from formulations.engines.steady_state import demands_of, graph_of, in_steps, moving, refusal

FEW = 7
"""Most destinations of data that is copied: their sets are labels."""

MARGIN = 1e-7
"""Share by which the bound is lowered, for the rounding of a solver that works in floats."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is solved, and what is wanted beside the best rate."""

    model: Literal["best", "labels", "duplicates", "relaxation"] = option(
        "best",
        "Switches and memories by",
        "labels: exact, few GPUs; duplicates: a vertex for each next stop of a switch; "
        "relaxation: rows for switches, made stronger until proved",
    )
    hops: int | None = option(
        None,
        "Hops at most",
        "Over links, switches counted; fewer hops fill a pipeline sooner and may carry less",
        min=1,
    )
    costs: CostKind = field(default="gpus", metadata=COST_ROW)


def refuses(problem: Problem) -> str | None:
    """Leave limited buffers, several holders and many destinations to others."""
    reason = no_stores(problem) or irreversible(problem) or no_crumbs(problem) or refusal(problem)
    if reason is not None:
        return reason
    demands = demands_of(problem)
    if _of_pairs(problem):
        return None
    reason = dantzig_wolfe_plan.no_forest(demands)
    if reason is not None:
        return reason
    groups = (*demands.spreads, *demands.sums)
    most = max((len(each.others) for each in groups), default=len(problem.topology.ranks) - 1)
    if most > FEW:
        return (
            f"data has {most} destinations, whose sets are labels here, and more than {FEW} have "
            "too many: use orbit-trees"
        )
    return None


def estimate(problem: Problem, options: Options) -> ModelEstimate:
    """Count the program, or the first of the relaxations."""
    labelled = not _of_pairs(problem) and _labelled(problem, options)
    relaxed = options.model == "relaxation" and options.hops is None and not _of_pairs(problem)
    copies: Copies = "relaxed" if relaxed else "subsets" if labelled else "exact"
    found = count_fluid(problem, copies=copies, steps=options.hops)
    note = {
        "relaxed": "the first relaxation, with rows for switches; duplicates come where they cheat",
        "subsets": "with a label for each set of destinations",
        "exact": "with a vertex for each next stop of a switch that may not copy",
    }[copies]
    return replace(found, note=note)


def run(run: Run, options: Options) -> Result:
    """Solve the program and write its plan.

    Raises
    ------
    ProblemError
        If the options select labels and there are too many.
    Infeasible
        If data cannot arrive in so many hops.
    """
    pairs = _of_pairs(run.problem)
    need = fewest_hops(run.problem)
    if options.hops is not None and options.hops < need.many:
        raise Infeasible(too_short(options.hops, need, unit="hop"))
    run.merit = dantzig_wolfe_plan.steady_time
    if not pairs and options.hops is None:
        run.offer(
            dantzig_wolfe_plan.nearest_forest(run.problem), message="a forest of the fewest hops"
        )
    try:
        found = _solved(run, options, pairs=pairs)
        _prove(run, options, found)
        plan = _flow(run.problem, found) if pairs else _forest(run, options, found)
        run.offer(plan, message="a plan of the best rate")
    except LimitReached:
        run.note("time ran out in a linear program")
        return run.finish(Stop.TIME_LIMIT)
    return run.finish(Stop.MODEL_OPTIMAL)


def _of_pairs(problem: Problem) -> bool:
    """Return whether every chunk goes from one rank to one, so that the plan is a flow."""
    return all(len(each.destinations) == 1 and not each.reduced for each in moving(problem))


def _solved(run: Run, options: Options, *, pairs: bool) -> FluidSolution:
    from formulations.engines.fluid_lp.strengthened import strengthened  # noqa: PLC0415

    costs = link_costs(run.problem.topology, options.costs)
    if options.model == "relaxation" and options.hops is None and not pairs:
        led = strengthened(run.problem, costs=costs, joined=True, backend=run.backend)
        for sentence in led.log:
            run.note(sentence)
        found = led.solution
    else:
        found = solve_plain(
            run.problem,
            copies="subsets" if not pairs and _labelled(run.problem, options) else "exact",
            steps=options.hops,
            costs=costs,
            joined=True,
            backend=run.backend,
            time_limit=run.left,
        )
    run.met(found.size)
    run.note(
        f"the linear program's optimum: {found.makespan:.6g} µs, {found.cost:.6g} weighted bytes"
    )
    return found


def _labelled(problem: Problem, options: Options) -> bool:
    """Return whether the whole program has labels."""
    if options.model != "best":
        return options.model == "labels"
    demands = demands_of(problem)
    ranks = len(problem.topology.ranks)
    sizes = [len(each.others) for each in (*demands.spreads, *demands.sums)]
    sizes += [ranks - 1] * (2 * ranks if demands.free else 0)
    layers = 1 if options.hops is None else options.hops
    return layers * variables(graph_of(problem.topology), sizes) <= _QUICK


_QUICK = 6_000
"""Variables with which labels take a second or less."""


def _prove(run: Run, options: Options, found: FluidSolution) -> None:
    """Add the optimum to the bounds, where it is one for every plan."""
    if options.hops is not None or demands_of(run.problem).free:
        return
    least = found.makespan
    devices = run.problem.topology.devices
    if run.problem.collective.reduces and any(d.stores and not d.reduces for d in devices):
        costs = link_costs(run.problem.topology, "none")
        apart = solve_plain(run.problem, costs=costs, backend=run.backend, time_limit=run.left)
        least = min(least, apart.makespan)
        run.note(
            f"in-trees keep away from what stores and cannot add; with it {least:.6g} µs at best"
        )
    bound = Bound(least * (1 - MARGIN), "flow", None, "linear program of a fluid", steady=True)
    run.prove([bound])


def _flow(problem: Problem, found: FluidSolution) -> Flow:
    """Return the flow of every chunk, as the shares of its pair."""
    topology, rates = problem.topology, []
    wants: dict[int, dict[int, float]] = {}
    for group in demands_of(problem).spreads:
        wants.setdefault(group.root, {})[group.others[0]] = group.nbytes
    shares = {}
    for part in found.parts:
        for number, group in enumerate(part.groups):
            edges = links_of_pairs(part.graph, part.w[:, number], group.root, wants[group.root])
            shares.update({(group.root, rank): links for rank, links in edges.items()})
    for number, chunk in enumerate(problem.collective.chunks):
        if chunk.in_place:
            continue
        for link, share in shares.get((chunk.holders[0], chunk.destinations[0]), {}).items():
            src, dst = topology.links[link].ends
            rates.append(Rate(number, src, dst, min(share, 1.0)))
    return Flow(tuple(rates))


def _forest(run: Run, options: Options, found: FluidSolution) -> Forest:
    """Return the forest of a solution."""
    trees: dict[bool, tuple[Tree, ...]] = {False: (), True: ()}
    for part in found.parts:
        trees[part.reduces] += _trees(run, options, part)
    if found.shares is None:
        return Forest(trees[False] or trees[True], reduces=bool(trees[True]))
    shares: list[Fraction] = fractions(dantzig_wolfe_plan.carried_shares(found.shares))
    return dantzig_wolfe_plan.all_reduce_forest(trees[True], trees[False], shares)


def _trees(run: Run, options: Options, part: Part) -> tuple[Tree, ...]:
    """Return the trees of a part, by labels of each group where it has none."""
    from formulations.engines.fluid_lp.strengthened import check  # noqa: PLC0415

    if part.labelled:
        return trees_of(part)
    graph = in_steps(graph_of(part.graph.topology), options.hops)
    trees: tuple[Tree, ...] = ()
    for number in part.held:
        done = check(part, number, graph, labels=True, backend=run.backend, time_limit=run.left)
        if not done.holds:
            run.note(
                f"data of rank {part.groups[number].root} takes more than the program says: it "
                "combined flows that cannot be"
            )
        trees += trees_of(done.part)
    return trees


FORMULATION = Formulation(
    name="thesis-fluid",
    title="Thesis: linear program of a fluid",
    reference="thesis, LP (4.2), (3.11), (3.13), (3.16) and section 4.2",
    collectives=frozenset(COLLECTIVES),
    options=Options,
    refuses=refuses,
    run=run,
    model="lp",
    estimate=estimate,
    groups=GROUPS,
    whole_chunks=False,
)
