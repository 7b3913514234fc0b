"""Chunks around one ring or several, in one direction or both, and the formulas for it.

On a ring of p places with a shard of b bytes in c chunks at each:

* one way round, a shard takes p-1 steps, in each of which a place passes on c chunks:
  (p-1) (α + bβ);
* both directions at once, it goes as far in one direction as in the other, and of a shard's chunks
  half go from either side to the place opposite, if there is one: ceil((p-1)/2) α + (p-1)/2 bβ, and
  half of the largest chunk more where p is even and c odd.

A root's c chunks of b/c bytes follow each other: (p-2+c) (α + b/c β) in one direction. Both
directions either all go in both, half as far, or half of them in each, whichever
takes fewer steps. Of several rings each has its share of the chunks, in turn.

`side_by_side` finds several rings, none of which takes bandwidth that another has. At a pace, a
link has as many lanes as its bandwidth goes into. Rings are searched one after the other over the
lanes that are left, those that can be gone around in both directions first; what a symmetry makes
of the last ring is tried before anything is searched. Where one more may be there the search begins
again with the ranks in another order. No claim is made that there are no more.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np

from ccl.collective import CollectiveKind
from ccl.errors import Infeasible
from ccl.problem import Problem
from ccl.result import Result
from ccl.symmetry import symmetry_of
from ccl.topology import Topology
from formulations.core.run import Run
from formulations.engines.closed_forms import routing
from formulations.engines.closed_forms.steps import answer
from formulations.engines.closed_forms.steps import refuses as refuses_any
from formulations.engines.closed_forms.trees import Messages, Task
from formulations.engines.list_scheduling.timed import transfers_of

SEARCHES = 12
"""Searches among which the work for a pace is shared."""

ATTEMPTS = 20
"""Orders of the ranks that are tried at one pace, all but the first by chance."""

MOST = 24
"""Rings at one pace: where links are thousands of times as fast as others, there are thousands."""

FEW = 64
"""Ranks up to which more than one order is tried."""


@dataclass(frozen=True)
class Rings:
    """Rings that take no more of any link than it has.

    Parameters
    ----------
    pace
        GB/s that each may have all around.
    both
        Those that may be gone around in both directions at once.
    ahead
        Those that may be gone around in one direction besides.
    """

    pace: float
    both: tuple[np.ndarray, ...]
    ahead: tuple[np.ndarray, ...]

    def chosen(self, *, both: bool) -> tuple[np.ndarray, ...]:
        """Return rings to be gone around both ways, or all of them, each in its own direction."""
        if both:
            return self.both
        turned = (np.roll(ring[::-1], 1) for ring in self.both)
        return (*self.both, *turned, *self.ahead)


def side_by_side(topology: Topology) -> list[Rings]:
    """Return for each pace of a link as many rings as were found."""
    lanes = _Lanes(topology)
    every = [lanes.rings(pace) for pace in routing.paces(topology)]
    return [each for each in every if each.both or each.ahead]


class _Lanes:
    """How often each link can be taken at a pace."""

    def __init__(self, topology: Topology) -> None:
        self.count = len(topology.ranks)
        self.bandwidth = np.array([link.bandwidth for link in topology.links])
        self.speed: list[float] = self.bandwidth.tolist()
        self.left: list[int] = []
        self.spent = 0
        self.symmetries = symmetry_of(topology).ranks[1:]
        transfers = transfers_of(topology, fewer=True)
        rank = {topology.index[name]: rank for name, rank in topology.rank.items()}
        self.routes: dict[tuple[int, int], list[routing.Hop]] = {}
        hops = np.split(transfers.link, transfers.first[1:-1])
        for src, dst, hop in zip(transfers.src.tolist(), transfers.dst.tolist(), hops, strict=True):
            if src in rank and dst in rank:
                self.routes.setdefault((rank[src], rank[dst]), []).append(tuple(hop.tolist()))
        for every in self.routes.values():
            every.sort(key=len)

    def rings(self, pace: float) -> Rings:
        """Find rings at a pace, as many as there are."""
        left = routing.WORK
        chance = np.random.default_rng(0)
        best = Rings(pace, (), ())
        for attempt in range(ATTEMPTS if self.count <= FEW else 1):
            order = chance.permutation(self.count) if attempt else np.arange(self.count)
            self.spent = 0
            found = self._attempt(pace, order)
            left -= self.spent
            if len(found.chosen(both=False)) > len(best.chosen(both=False)):
                best = found
            if len(best.chosen(both=False)) >= min(self._most, MOST) or left <= 0:
                break
        return best

    def _attempt(self, pace: float, order: np.ndarray) -> Rings:
        self.left = np.floor(self.bandwidth / pace * (1 + 1e-9)).astype(int).tolist()
        self._most = self._ports()
        both = self._found(order, self._take_both, mutual=True)
        return Rings(pace, both, self._found(order, self._take, mutual=False))

    def _ports(self) -> int:
        """Return a number of rings above which some GPU has no links left."""
        out, into = [0] * self.count, [0] * self.count
        seen: set[tuple[int, int]] = set()
        for (src, dst), hops in self.routes.items():
            for hop in hops:
                for ports, rank, link in ((out, src, hop[0]), (into, dst, hop[-1])):
                    if (id(ports), link) not in seen:
                        seen.add((id(ports), link))
                        ports[rank] += self.left[link]
        return min(*out, *into)

    def _found(
        self, order: np.ndarray, take: Callable[[int, int], routing.Hop | None], *, mutual: bool
    ) -> tuple[np.ndarray, ...]:
        """Take rings one after the other, each beginning at another rank."""
        rings: list[np.ndarray] = []
        while len(rings) < MOST:
            image = self._image(rings, take)
            if image is not None:
                rings.append(image)
                continue
            at = np.roll(order, -len(rings)).tolist()
            place = np.argsort(at)
            every = [each.mutual if mutual else each for each in self._joined(place.tolist())]
            patience = routing.Patience(max(routing.WORK // SEARCHES, 100 * self.count))
            begin = patience.left
            ring = routing.cycle(
                every[-1],
                patience,
                faster=every[:-1],
                take=partial(_as_places, take, at),
                give=self._give,
            )
            self.spent += begin - patience.left
            if ring is None:
                break
            rings.append(np.array(at)[ring])
        return tuple(rings)

    def _image(
        self, rings: Sequence[np.ndarray], take: Callable[[int, int], routing.Hop | None]
    ) -> np.ndarray | None:
        """Take the image of the last ring under a symmetry that fits beside all of them."""
        for images in self.symmetries if rings else ():
            ring = images[rings[-1]]
            hops: list[routing.Hop] = []
            for src, dst in pairwise([*ring.tolist(), int(ring[0])]):
                hop = take(src, dst)
                if hop is None:
                    break
                hops.append(hop)
            if len(hops) == len(ring):
                return np.array(ring)
            for hop in hops:
                self._give(hop)
        return None

    def _joined(self, place: list[int]) -> list[routing.Reachability]:
        """Return which places free paths join, at first by the fastest and shortest only."""
        pairs: dict[tuple[float, int], list[tuple[int, int]]] = {}
        for (src, dst), hops in self.routes.items():
            hop = self._shortest(hops)
            if hop is not None:
                near = -min(self.speed[link] for link in hop), len(hop)
                pairs.setdefault(near, []).append((place[src], place[dst]))
        kinds = sorted(pairs) or [(0.0, 0)]
        return [
            routing.Reachability.of(
                self.count, (pair for each in kinds[: i + 1] for pair in pairs.get(each, ()))
            )
            for i in range(len(kinds))
        ]

    def _shortest(self, hops: list[routing.Hop]) -> routing.Hop | None:
        return next((hop for hop in hops if all(self.left[link] for link in hop)), None)

    def _take(self, src: int, dst: int) -> routing.Hop | None:
        hop = self._shortest(self.routes[src, dst])
        for link in hop or ():
            self.left[link] -= 1
        return hop

    def _take_both(self, src: int, dst: int) -> routing.Hop | None:
        there = self._take(src, dst)
        back = None if there is None else self._take(dst, src)
        if there is None or back is None:
            self._give(there or ())
            return None
        return (*there, *back)

    def _give(self, hop: routing.Hop) -> None:
        for link in hop:
            self.left[link] += 1


def _as_places(
    take: Callable[[int, int], routing.Hop | None], at: list[int], src: int, dst: int
) -> routing.Hop | None:
    return take(at[src], at[dst])


ROOTED = ("broadcast", "reduce")
"""Kinds in which one rank has or gets everything."""


KINDS: frozenset[CollectiveKind] = frozenset(
    {"all-gather", "reduce-scatter", "all-reduce", "broadcast", "reduce"}
)
"""Kinds that go around rings."""


def refuses(problem: Problem, *, both: bool = False) -> str | None:
    """Refuse where the GPUs lie on no cycle, or paths lead around none in both directions."""
    reason = refuses_any(problem)
    if reason is not None:
        return reason
    if both and len(problem.topology.ranks) < 3:
        return "both directions around a ring of 2 GPUs are the same"
    return _no_ring(both=both) if routing.ring_of(problem.topology, both=both) is None else None


def _no_ring(*, both: bool) -> str:
    direction = " that can be gone around in both directions" if both else ""
    return f"no ring through all GPUs{direction} was found in it"


def send_around(run: Run, *, both: bool, rings: int) -> Result:
    """Offer the schedule around so many rings, 0 for as many as pay.

    Raises
    ------
    Infeasible
        If no ring was found.
    """
    reason = refuses(run.problem, both=both)
    if reason is not None:
        raise Infeasible(f"{run.formulation} cannot go around {run.problem.topology}: {reason}")
    topology = run.problem.topology
    single = routing.ring_of(topology, both=both)
    back = routing.ring_of(topology.reversed(), both=both)
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
        run.note(f"{most} rings were requested and {there} found side by side")
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
) -> routing.Pattern:
    """Return the form of a problem around rings, given by the ranks around them.

    On reversed links, along which sums are read backwards, it goes around `back`.
    """
    collective = problem.collective
    rooted = collective.kind in ROOTED
    spread = _piped if rooted else _shifted

    def around(orders: Sequence[np.ndarray]) -> Callable[[Task], Messages]:
        return lambda task: _dealt(task, orders, lambda part: spread(part, both=both))

    return routing.Pattern(
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
            part = task.chosen(mine)
            sent = spread(replace(part, root=np.argsort(order)[part.root]))
            parts.append(replace(sent, src=order[sent.src], dst=order[sent.dst]))
    return Messages.joined(parts)


def _shifted(task: Task, *, both: bool) -> Messages:
    """Send every chunk on around the ring, all from the first step on."""
    far = split(task.places, task.turns(), both=both)
    return _onwards(task, far, np.zeros_like(task.root))


def _piped(task: Task, *, both: bool) -> Messages:
    """Send chunks from the root one after the other, each on as soon as it is there."""
    return _onwards(task, *_arms(task.places, task.turns(), both=both))


def _onwards(task: Task, far: Around, begin: np.ndarray) -> Messages:
    """Send each chunk as far as it has to go both ways, from the step on in which it begins."""
    parts = []
    for direction, most in ((1, far.ahead), (-1, far.back)):
        for step in range(int(most.max(initial=0))):
            going = most > step
            src = (task.root[going] + direction * step) % task.places
            dst = (src + direction) % task.places
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


def _sharded(problem: Problem, rings: int, *, both: bool) -> routing.Formula:
    collective = problem.collective
    p, c = collective.ranks, chunks_per_shard(problem)
    n = -(-c // rings)
    far = split(p, np.arange(n), both=both)
    steps = int(far.ahead.max())
    sent = max(int(far.ahead.sum()), int(far.back.sum())) * collective.size / p / c
    times = 2 if collective.kind == "all-reduce" else 1
    return routing.Formula(
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


def _rooted(problem: Problem, rings: int, *, both: bool) -> routing.Formula:
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
    return routing.Formula(
        f"({steps_said}) (α + m/c β)", lambda alpha, beta: steps * (alpha + chunk * beta)
    )
