"""Pareto front of latency against bandwidth: fewest rounds per chunk for each number of steps.

For each number of steps S, from the distance on, instances of C chunks per shard and R rounds are
decided in the order of R / C, the time per byte, then of C (SCCL, algorithm 1): the first that is
found is the best of S, among C up to the largest requested. It ends when R / C is that of the
worst cut, which no plan is below, whatever its steps. Instances that are no better than one of
fewer steps, or that the two bounds refute, are not asked.
"""

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from fractions import Fraction

from ccl.collective import CollectiveKind, make_collective
from ccl.errors import Infeasible, LimitReached, ProblemError
from ccl.problem import Problem
from ccl.result import Result
from ccl.topology import Topology
from formulations.bounds import quick_bounds
from formulations.core.registry import formulation
from formulations.core.run import Run
from formulations.engines.list_scheduling.search import Side
from formulations.engines.list_scheduling.timed import transfers_of
from formulations.engines.reverse_time import parts
from formulations.engines.sccl import Options
from formulations.engines.sccl.asking import Decided, Solver
from formulations.engines.sccl.instance import Least, least_of
from formulations.engines.sccl.search import solve

NAME = "sccl"

FARTHEST = 2
"""Times the rounds per chunk of the worst cut up to which instances run, and a round each."""


@dataclass(frozen=True)
class Point:
    """An instance and what is known of it.

    Parameters
    ----------
    steps, rounds, chunks
        S, R of all steps together, C per shard.
    decided
        Whether there is a plan.
    why
        What proves that no plan exists, or leaves it undecided; or empty.
    result
        The plan where there is one.
    """

    steps: int
    rounds: int
    chunks: int
    decided: Decided
    why: str = ""
    result: Result | None = None

    @property
    def cost(self) -> Fraction:
        """Rounds per chunk: time per byte in units of the slowest link's."""
        return Fraction(self.rounds, self.chunks)


def front(points: Iterable[Point]) -> tuple[Point, ...]:
    """Return the points that are found, the fewest steps first; each costs less than those."""
    stored: list[Point] = []
    for each in sorted(points, key=lambda each: (each.steps, each.cost, each.chunks)):
        if each.decided is Decided.FOUND and (not stored or each.cost < stored[-1].cost):
            stored.append(each)
    return tuple(stored)


def pareto(  # noqa: PLR0913  a topology, a collective, and how far to look
    topology: Topology,
    kind: CollectiveKind,
    size: float,
    *,
    root: int = 0,
    most_chunks: int = 6,
    most_steps: int = 12,
    seconds: float = 10.0,
    time_limit: float | None = None,
    symmetry: bool = True,
    seed: int = 0,
) -> tuple[Point, ...]:
    """Decide the instances along the front; `front` keeps those on it.

    Parameters
    ----------
    topology, kind, size, root
        The collective and where; size in bytes.
    most_chunks, most_steps
        Largest C and S.
    seconds
        For each instance at most.
    time_limit
        Seconds for everything; where it is reached, the instance that was next ends the points.
    symmetry, seed
        As the options of the formulation.

    Raises
    ------
    ProblemError
        If the formulation refuses the problem, or it is a sum for several ranks.
    Infeasible
        If no paths lead where chunks have to be.
    """
    end = math.inf if time_limit is None else time.perf_counter() + time_limit
    ranks = len(topology.ranks)

    def made(chunks: int) -> Problem:
        return Problem(topology, make_collective(kind, ranks, size, chunks=chunks, root=root))

    least = _least(made(1))
    points: list[Point] = []
    best: Fraction | None = None
    wanted = Options(mode="instance", symmetry=symmetry, seed=seed)
    with Solver() as solver:
        for steps in range(least.steps, most_steps + 1):
            for rounds, chunks in _instances(least, steps, most_chunks=most_chunks, below=best):
                left = end - time.perf_counter()
                if left <= 0:
                    late = "the time limit came before it was decided; allow more"
                    points.append(Point(steps, rounds, chunks, Decided.UNDECIDED, late))
                    return tuple(points)
                options = replace(wanted, steps=steps, rounds=rounds, seconds=min(seconds, left))
                points.append(_decided(made(chunks), chunks, options, solver))
                if points[-1].decided is Decided.FOUND:
                    best = points[-1].cost
                    break
            if best == least.rounds:
                break
    return tuple(points)


def _least(problem: Problem) -> Least:
    """Return what is proved of the collective, or of its time reversal, for one chunk per shard."""
    reason = formulation(NAME).why_not(problem)
    sides = [] if reason is not None else parts(problem)
    if len(sides) == 2:
        reason = "it adds up first, then spreads; ask for each of the two"
    if reason is not None:
        raise ProblemError(f"no front of {problem.collective.kind} on {problem.topology}: {reason}")
    side = sides[0][0]
    return least_of(side, Side(transfers_of(side.topology), side.collective).task())


def _instances(
    least: Least, steps: int, *, most_chunks: int, below: Fraction | None
) -> Iterator[tuple[int, int]]:
    """Yield rounds and chunks of what may be better than `below`, the least per chunk first."""
    found = []
    for chunks in range(1, most_chunks + 1):
        low = max(steps, math.ceil(least.rounds * chunks))
        high = low + math.ceil((FARTHEST - 1) * least.rounds * chunks) + steps
        found += [(Fraction(rounds, chunks), chunks) for rounds in range(low, high + 1)]
    for cost, chunks in sorted(found):
        if below is None or cost < below:
            yield int(cost * chunks), chunks


def _decided(problem: Problem, chunks: int, options: Options, solver: Solver) -> Point:
    """Decide one instance."""
    assert options.steps is not None
    assert options.rounds is not None
    run = Run(
        problem=problem,
        formulation=NAME,
        options=asdict(options),
        bounds=quick_bounds(problem, whole_chunks=True),
    )
    decided, why, result = Decided.FOUND, "", None
    try:
        result = solve(run, options, solver)
    except Infeasible as error:
        decided, why = Decided.IMPOSSIBLE, str(error)
    except LimitReached as error:
        decided, why = Decided.UNDECIDED, str(error)
    return Point(options.steps, options.rounds, chunks, decided, why, result)
