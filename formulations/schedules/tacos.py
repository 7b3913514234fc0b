"""TACOS: links are matched with chunks, moment by moment, again and again with other chances.

In the time-expanded network every link of the cluster appears once for every moment at which it
is free. In the order of time each of these appearances is matched with one chunk that its source
holds and that its destination still wants and has not been sent, chosen by chance; where several
links could bring a chunk, the quickest does. Nothing is planned ahead and nothing is taken back. A
trial ends when nobody lacks anything, and the best of many trials is the plan: no model, no bound.

No chunk is ever sent to a rank that does not want it, so collectives in which ranks must relay for
others (all-to-all, gather, scatter) are not served. Reduce-scatter and reduce are the time reversal
on reversed links; an all-reduce adds up first, and spreads a sum as soon as it is there.

Source: Won et al., TACOS, MICRO 2024 (arXiv 2304.05301), sections IV and V.
Decisions: links become free and chunks arrive at their exact times, where the paper has epochs of
the durations of links. A link sends what its source held when it began, where the published
program lets a slow link end with what came to its source along the path. Of the chunks that a link
could take those that fewest ranks have go first (option order). With links of different speeds
every other trial lets the slower ones pass their turn now and then (option patience): a slow link
that takes what a quick one would have brought a moment later ends last. Trials for one chunk of
each orbit of a symmetry come first (option symmetry). Over switches a path from rank to rank is a
link that is free when all its links are; the paper has direct links alone.
"""

from dataclasses import dataclass
from typing import Literal

from ccl.options import option
from ccl.problem import Problem
from ccl.result import Result, Stop
from formulations.core.refusals import no_stores
from formulations.core.registry import Formulation
from formulations.core.run import Run
from formulations.engines.reverse_time import irreversible, parts

Order = Literal["rarest", "any"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """How many trials, and what they choose."""

    trials: int = option(
        100,
        "Trials",
        "Plans tried for each symmetry; fewer where they are large",
        min=1,
        max=1_000_000,
    )
    order: Order = option(
        "rarest",
        "Chunks",
        "rarest: what fewest ranks have goes first; any: all with the same chance",
    )
    patience: float = option(
        0.5,
        "Patience of slower links",
        "Chance that a slower link lets its turn pass in every other trial; 0: none "
        "ever waits, as in the paper",
        min=0.0,
        max=0.9,
    )
    symmetry: bool = option(True, "Symmetry", "Look for plans that look the same all around")
    seed: int = option(0, "Seed", "Of the random numbers", min=0, max=1000)


def refuses(problem: Problem) -> str | None:
    """Refuse limited buffers and what would have to be relayed."""
    why = no_stores(problem) or irreversible(problem)
    if why is not None:
        return why
    for part, _ in parts(problem):
        why = _no_relay(part)
        if why is not None:
            return why
    return None


def _no_relay(problem: Problem) -> str | None:
    """Return which chunk cannot reach a destination over those that want it, or None.

    Devices that cannot store are crossed; ones that store and want nothing pass nothing on.
    """
    topology = problem.topology
    stores = {each.name: each.stores for each in topology.devices}
    known: dict[tuple[frozenset[str], str], set[str]] = {}
    for number, chunk in enumerate(problem.collective.chunks):
        ends, others = (topology.ranks[rank] for rank in chunk.holders), chunk.destinations
        inside = frozenset({*ends, *(topology.ranks[rank] for rank in others)})
        start = topology.ranks[chunk.holders[0]]
        if (inside, start) not in known:
            seen, front = {start}, [start]
            while front:
                for link in topology.links_out[front.pop()]:
                    if link.dst not in seen and (link.dst in inside or not stores[link.dst]):
                        seen.add(link.dst)
                        front.append(link.dst)
            known[inside, start] = seen
        missed = inside - known[inside, start]
        if missed:
            name = min(missed, key=topology.ranks.index)
            return (
                f"chunk {number} of {start} reaches {name} only over what does not want it, and "
                "here nothing is passed on by others; list scheduling relays (list)"
            )
    return None


def run(run: Run, options: Options) -> Result:
    """Run trials until a plan meets the bound or the trials are over.

    Raises
    ------
    LimitReached
        If no trial brought every chunk where it must go.
    """
    from formulations.engines.list_scheduling.search import Matcher, answer  # noqa: PLC0415  it loads a solver

    topology = run.problem.topology
    if any(not each.stores and topology.links_out[each.name] for each in topology.devices):
        run.note("paths over switches are taken as links that share ports; the paper has none")
    answer(
        Matcher(
            run,
            options.seed,
            options.trials,
            options.symmetry,
            rarest=options.order == "rarest",
            wait=options.patience,
        )
    )
    return run.end(Stop.TIME_LIMIT if run.expired else Stop.PASSES)


FORMULATION = Formulation(
    name="tacos",
    title="TACOS (randomised link-chunk matching)",
    reference="Won et al., TACOS, MICRO 2024, arXiv 2304.05301",
    collectives=frozenset({"all-gather", "reduce-scatter", "all-reduce", "broadcast", "reduce"}),
    options=Options,
    refuses=refuses,
    run=run,
    searched_by="own search",
)
