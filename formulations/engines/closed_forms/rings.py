"""Chunks around rings, one way round or both, and the formulas for it.

On a ring of p places with a shard of b bytes in c chunks at each:

* one way round, a shard takes p-1 steps, in each of which a place passes on c chunks:
  (p-1) (α + bβ);
* both ways round at once, it goes as far one way as the other, and of a shard's chunks half go
  from either side to the place opposite, if there is one: ceil((p-1)/2) α + (p-1)/2 bβ, and half
  of the largest chunk more where p is even and c odd.

A root's c chunks of b/c bytes follow each other: (p-2+c) (α + b/c β) one way round. Both ways
round either all go both ways, half as far, or half of them each way round, whichever takes fewer
steps. Of several rings each has its share of the chunks, in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ccl.collective import CollectiveKind
from ccl.errors import Infeasible
from ccl.problem import Problem
from ccl.result import Result
from formulations.core.run import Run
from formulations.engines.closed_forms.answer import answer
from formulations.engines.closed_forms.answer import refuses as refuses_any
from formulations.engines.closed_forms.cycles import ring_of
from formulations.engines.closed_forms.lanes import side_by_side
from formulations.engines.closed_forms.messages import Messages, Task
from formulations.engines.closed_forms.pattern import Formula, Pattern

ROOTED = ("broadcast", "reduce")
"""Kinds in which one rank has or gets everything."""


KINDS: frozenset[CollectiveKind] = frozenset(
    {"all-gather", "reduce-scatter", "all-reduce", "broadcast", "reduce"}
)
"""Kinds that go around rings."""


def refuses(problem: Problem, *, both: bool = False) -> str | None:
    """Refuse where the GPUs lie on no cycle, or ways lead around none in both directions."""
    reason = refuses_any(problem)
    if reason is not None:
        return reason
    if both and len(problem.topology.ranks) < 3:
        return "both ways around a ring of 2 GPUs are the same"
    return _no_ring(both=both) if ring_of(problem.topology, both=both) is None else None


def _no_ring(*, both: bool) -> str:
    way = " that can be gone around both ways" if both else ""
    return f"no ring through all GPUs{way} was found in it"


def send_around(run: Run, *, both: bool, rings: int) -> Result:
    """Offer the schedule around so many rings, 0 for as many as pay.

    Raises
    ------
    Infeasible
        If no ring was found.
    """
    reason = refuses(run.problem, both=both)
    if reason is not None:
        msg = f"{run.formulation} cannot go around {run.problem.topology}: {reason}"
        raise Infeasible(msg)
    topology = run.problem.topology
    single = ring_of(topology, both=both)
    back = ring_of(topology.reversed(), both=both)
    assert single is not None
    assert back is not None
    if rings == 1:
        return answer(run, pattern(run.problem, [single], [back], both=both))
    found = _rings(run, both=both, most=rings) or [single]
    turned = [ring[::-1] for ring in found]
    return answer(run, pattern(run.problem, found, turned, both=both))


def _rings(run: Run, *, both: bool, most: int) -> Sequence[np.ndarray]:
    """Choose the rings on which the chunks of a shard take the least time."""
    chunks = chunks_per_shard(run.problem)
    best: tuple[float, Sequence[np.ndarray]] = (np.inf, [])
    there = 1
    for found in side_by_side(run.problem.topology):
        rings = found.chosen(both=both)
        there = max(there, len(rings))
        rings = rings[: min(most or chunks, chunks)]
        if rings and -(-chunks // len(rings)) / found.pace < best[0] * (1 - 1e-9):
            best = -(-chunks // len(rings)) / found.pace, rings
    wanted = min(most or there, there)
    if wanted > chunks:
        run.note(
            f"{wanted} rings were found side by side and have {chunks} of a shard's chunks to "
            f"share; ask for {wanted} chunks per shard to use them all"
        )
    if most > there:
        run.note(f"{most} rings were asked for and {there} found side by side")
    return best[1]


@dataclass(frozen=True)
class Around:
    """How far chunks go around a ring, one way and the other: arrays of one shape.

    Parameters
    ----------
    ahead, back
        Places that each goes to.
    """

    ahead: np.ndarray
    back: np.ndarray


def split(places: int, turn: np.ndarray, *, both: bool) -> Around:
    """Return how far the chunks of a shard go, by their turn in it."""
    if not both:
        return Around(np.full(len(turn), places - 1), np.zeros(len(turn), dtype=int))
    # The place opposite is reached by even turns from one side and by odd ones from the other.
    ahead = (places - 1) // 2 + (places % 2 == 0) * (turn % 2 == 0)
    return Around(ahead, places - 1 - ahead)


def pattern(
    problem: Problem, rings: Sequence[np.ndarray], back: Sequence[np.ndarray], *, both: bool
) -> Pattern:
    """Return the form of a problem around rings, given by the ranks around them.

    On reversed links, along which sums are read backwards, it goes around `back`.
    """
    collective = problem.collective
    rooted = collective.kind in ROOTED
    spread = _piped if rooted else _shifted

    def around(orders: Sequence[np.ndarray]) -> Callable[[Task], Messages]:
        return lambda task: _dealt(task, orders, lambda part: spread(part, both=both))

    return Pattern(
        order=np.arange(collective.ranks),
        spread=around(rings),
        turned=around(back),
        formula=(_rooted if rooted else _sharded)(problem, len(rings), both=both),
    )


def chunks_per_shard(problem: Problem) -> int:
    """Return how many chunks each rank has to give or to get, or the root of a broadcast."""
    collective = problem.collective
    return len(collective.chunks) // (1 if collective.kind in ROOTED else collective.ranks)


def _dealt(task: Task, rings: Sequence[np.ndarray], spread: Callable[[Task], Messages]) -> Messages:
    """Deal the chunks of each root among rings; places are ranks."""
    ring = task.turns() % len(rings)
    parts = []
    for number, order in enumerate(rings):
        mine = ring == number
        if mine.any():
            place = np.argsort(order)
            part = Task(task.places, task.chunk[mine], place[task.root[mine]], task.goal[mine])
            sent = spread(part)
            parts.append(replace(sent, src=order[sent.src], dst=order[sent.dst]))
    return Messages.joined(parts)


def _shifted(task: Task, *, both: bool) -> Messages:
    """In every step each place passes on what it has got in the step before."""
    far = split(task.places, task.turns(), both=both)
    parts = []
    for way, most in ((1, far.ahead), (-1, far.back)):
        for step in range(int(most.max(initial=0))):
            going = most > step
            chunk, root = task.chunk[going], task.root[going]
            src = (root + way * step) % task.places
            dst = (src + way) % task.places
            parts.append(Messages(np.full(len(chunk), step), chunk, src, dst))
    return Messages.joined(parts)


def _piped(task: Task, *, both: bool) -> Messages:
    """Chunk after chunk leaves its root and goes on a place in every step."""
    turn = task.turns()
    far, begin = _arms(task.places, turn, both=both)
    parts = []
    for way, most in ((1, far.ahead), (-1, far.back)):
        for step in range(int(most.max(initial=0))):
            going = most > step
            src = (task.root[going] + way * step) % task.places
            dst = (src + way) % task.places
            parts.append(Messages(begin[going] + step, task.chunk[going], src, dst))
    return Messages.joined(parts)


def _arms(places: int, turn: np.ndarray, *, both: bool) -> tuple[Around, np.ndarray]:
    """Return how far the chunks of a root go, and in which step each begins, by their turn."""
    many = int(turn.max(initial=0)) + 1
    whole = np.full(len(turn), places - 1)
    if not both:
        return Around(whole, 0 * whole), turn
    if places // 2 + many <= places - 1 + (many + 1) // 2:
        return Around(whole - whole // 2, whole // 2), turn
    return Around(np.where(turn % 2, 0, whole), np.where(turn % 2, whole, 0)), turn // 2


def _sharded(problem: Problem, rings: int, *, both: bool) -> Formula:
    collective = problem.collective
    p, c = collective.ranks, chunks_per_shard(problem)
    n = -(-c // rings)
    far = split(p, np.arange(n), both=both)
    steps = int(far.ahead.max())
    sent = max(int(far.ahead.sum()), int(far.back.sum())) * collective.size / p / c
    times = 2 if collective.kind == "all-reduce" else 1
    return Formula(
        "2 " * (times - 1) + _said(p, n, _share(n, c, rings), both=both),
        lambda alpha, beta: times * (steps * alpha + sent * beta),
    )


def _share(n: int, chunks: int, rings: int) -> str:
    """Write the bytes of a shard that one ring carries, n of its chunks."""
    if rings == 1:
        return "m/p"
    return f"m/({rings}p)" if chunks % rings == 0 else f"{n}/{chunks} m/p"


def _said(p: int, n: int, share: str, *, both: bool) -> str:
    """Write the formula of an all-gather with n chunks of a shard on each ring."""
    if not both:
        return f"(p-1) (α + {share} β)"
    if p % 2:
        return f"(p-1)/2 (α + {share} β)"
    if n == 1:
        return f"p/2 (α + {share} β)"
    more = "(p-1)/2" if n % 2 == 0 else f"(p-1+1/{n})/2"
    return f"(p/2 α + {more} {share} β)"


def _rooted(problem: Problem, rings: int, *, both: bool) -> Formula:
    p, c = problem.collective.ranks, chunks_per_shard(problem)
    n = -(-c // rings)
    far, begin = _arms(p, np.arange(n), both=both)
    steps = int((begin + np.maximum(far.ahead, far.back)).max())
    many = f"c/{rings}" if c % rings == 0 else str(n)
    text = "c" if rings == 1 else many
    if not both:
        steps_said = f"p-2+{text}"
    elif (far.back > 0).all():
        steps_said = f"⌈(p-1)/2⌉-1+{text}"
    else:
        steps_said = f"p-2+⌈{text}/2⌉"
    chunk = problem.collective.size / c
    return Formula(
        f"({steps_said}) (α + m/c β)", lambda alpha, beta: steps * (alpha + chunk * beta)
    )
