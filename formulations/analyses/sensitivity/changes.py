"""Best rate at other bandwidths of links: after one step of each class, and over a range of one.

The proof is one of the kinds of `best_rate`: the worst cut, an exact fraction, or prices of trees
or of the orbit linear program. Each kind is used until it does not hold for some scales; then the
next takes over, and the planes that were found remain true. Prices found at symmetric scales are
alike on orbits. They are optimal prices of every single link all the same, so their planes hold
whichever links change.

A step (`changes`) may go over a kink, where slopes (`formulations.sensitivity`) say too little, so
the rate is solved at its end. Changes are yielded one class after the other, so that somebody who
waits may stop.

A range (`rate_curve`), with all its straight pieces and what holds each: let f(x) be the best algbw
when the bandwidth of some links is x times today's: concave, never falling, and made of finitely
many straight pieces, since it is the least of the planes of
`formulations.analyses.sensitivity.cutting_planes`. Each solve gives the value at one x and a line
that is above f everywhere and touches it there.

* Begin with the lines at both ends of the range.
* Let p be the line at a and q the line at b. If p is tight at b as well, f is straight between.
* Else they meet at some x between. If f(x) is what they say there, f is straight on both sides of
  x: it is above its chords and below its tangents, which are the same. Else a new line is tight at
  x: treat a to x and x to b likewise.

Every piece is thus proved by its ends, and no piece is missed however short; there are at most two
solves for each. In fractions this is exact. With prices of linear programs lines that differ by
less than a share of `cutting_planes.SLACK` are one.

Source: Eisner and Severance, Mathematical techniques for efficient record segmentation in large
shared databases (Journal of the ACM 23, 1976).
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from ccl.bound import Cut
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.tree_embedding import exact
from formulations.analyses.best_rate import held_by_ends, programmable
from formulations.analyses.sensitivity.cutting_planes import (
    Classes,
    Ends,
    Number,
    Plane,
    Rates,
    Scales,
    Undecided,
    chosen,
    classes_of,
)
from formulations.engines import steady_state
from formulations.engines.forestcoll.search import (
    WHOLE,
    Network,
    Rate,
    cut_decides,
    network_of,
    rate_of,
    representatives,
)
from formulations.engines.orbit_lp.group import Uniform
from formulations.engines.steady_state import balanced
from formulations.engines.tree_columns import task


def cuts_decide(problem: Problem, classes: Classes) -> bool:
    """Return whether the worst cut is the best rate whichever class changes.

    A switch must give out what it takes in of every class, and no shared limit may come to bind.
    """
    topology = problem.topology
    relays = {each.name for each in topology.devices if each.kind != "gpu"}
    return (
        not topology.limits
        and cut_decides(problem)
        and balanced(topology, relays, classes=classes.links)
    )


class CutRates(Rates):
    """Worst cuts (`formulations.engines.forestcoll.search`), in fractions.

    Parameters
    ----------
    problem
        One whose rate cuts decide (`cuts_decide`).
    classes
        What changes together.
    """

    exact = True

    def __init__(self, problem: Problem, classes: Classes) -> None:
        super().__init__(classes)
        self._network = network_of(problem)
        self._reduces = problem.collective.reduces
        self._sinks = representatives(self._network, classes.links)
        self._speed = exact(problem.collective.size) / self._network.share

    def _found(self, scales: Scales) -> tuple[Plane, ...]:
        found = rate_of(self._scaled(scales), sinks=self._sinks, reduces=self._reduces)
        now = Rate(self._network, found.speed, found.sides, found.flows, self._reduces)
        # The largest side comes first; the smallest says most to people.
        pairs = list(zip(now.sides, now.cuts, strict=True))[::-1]
        return tuple(
            Plane(weights=self._weights(side.astype(bool)), cut=cut) for side, cut in pairs
        )

    def _weights(self, inside: np.ndarray) -> tuple[Fraction, ...]:
        network, number = self._network, self.classes.links
        crossing = inside[network.src] & ~inside[network.dst]
        leaving = np.zeros(self.classes.many, dtype=np.int64)
        np.add.at(leaving, number[crossing], network.capacity[crossing])
        each = self._speed * network.unit / int(network.weight[inside].sum())
        return tuple(many * each for many in leaving.tolist())

    def _scaled(self, scales: Scales) -> Network:
        network = self._network
        parts = [Fraction(each) for each in scales]
        below = math.lcm(*(each.denominator for each in parts))
        above = [int(each * below) for each in parts]
        common = math.gcd(*above)
        factor = [each // common for each in above]
        most = int(network.capacity.sum()) * max(factor) * int(network.weight.sum())
        if most >= WHOLE:
            finest = max(each.denominator for each in parts)
            raise Undecided(
                f"flows at scales in parts of {finest} are too fine for whole numbers of 64 bits"
            )
        scale = np.array(factor, dtype=np.int64)[self.classes.links]
        return replace(
            network, capacity=network.capacity * scale, unit=network.unit * Fraction(common, below)
        )


PATIENCE = 2.0
"""Seconds after which trees that are not proved are given up."""


class TreeRates(Rates):
    """Best trees (`tree_columns.search`) of the cluster with other bandwidths."""

    exact = False

    def __init__(self, problem: Problem, classes: Classes) -> None:
        super().__init__(classes)
        self._problem = problem

    def _found(self, scales: Scales) -> tuple[Plane, ...]:
        # CVXPY takes most of a second to load.
        from formulations.engines.tree_columns.search import best_trees  # noqa: PLC0415
        from formulations.engines.tree_columns.task import limit_orbits  # noqa: PLC0415

        topology = self.classes.scaled(scales)
        found = best_trees(replace(self._problem, topology=topology), seconds=PATIENCE)
        if not found.proved:
            raise Undecided(f"no best trees were proved on {topology} within {PATIENCE:g} s")
        rows = found.task.rows
        share = found.prices / found.prices.sum()
        fold = rows.fold[: rows.links]
        links = (share[: rows.links] / fold.sum(axis=1)) @ fold
        limits = np.zeros(0)
        if topology.limits:
            orbit = np.array(limit_orbits(topology, found.task.symmetry))
            limits = (share[rows.links :] / np.bincount(orbit))[orbit]
        algbw = self._problem.collective.size / float(found.time) * 1e-3
        return (_plane(self.classes, algbw, np.concatenate([links, limits]), scales=scales),)


class ProgramRates(Rates):
    """The orbit linear program, which is compiled once.

    Parameters
    ----------
    problem
        One that fluid models can say.
    classes
        What changes together; symmetries that mix them are not used.
    """

    exact = False

    def __init__(self, problem: Problem | Uniform, classes: Classes) -> None:
        super().__init__(classes)
        from formulations.engines.orbit_lp.lp import orbit_program  # noqa: PLC0415
        from formulations.solvers.cvxpy_highs import Backend  # noqa: PLC0415

        size = problem.size if isinstance(problem, Uniform) else problem.collective.size
        self._size, self._backend = size, Backend()
        self._program = orbit_program(problem, classes=classes.links).program
        rows = self._program.rows
        self._class = np.zeros(int(rows.max()) + 1, dtype=np.int64)
        self._class[rows] = classes.rows
        self._many = np.bincount(rows)

    def _found(self, scales: Scales) -> tuple[Plane, ...]:
        program = self._program
        scale = np.array([float(each) for each in scales])[self._class]
        program.scale.value = scale
        makespan = program.fastest(self._backend)
        # Duals are per unit of a row's right hand side, which is its scale.
        share = program.prices * scale
        row = (share / share.sum() / self._many)[program.rows]
        return (_plane(self.classes, self._size / makespan * 1e-3, row, scales=scales),)


def _plane(classes: Classes, algbw: float, share: np.ndarray, *, scales: Scales) -> Plane:
    """Return the plane of prices.

    Parameters
    ----------
    classes
        What changes together.
    algbw
        The best, in GB/s, at `scales`.
    share
        Of each link, then of each shared limit, in what everything costs there; they add up to 1.
    scales
        Where it is tight.
    """
    each = np.bincount(classes.rows, share, minlength=classes.many)
    weights = algbw * each / np.array([float(scale) for scale in scales])
    return Plane(tuple(weights.tolist()), prices=held_by_ends(classes.topology, share.tolist()))


AGREE = 1e-6
"""Share by which rates of different kinds of proof may differ."""


class BestRates(Rates):
    """The best rate by the first kind of proof that holds.

    Parameters
    ----------
    problem
        The problem.
    classes
        What changes together.

    Raises
    ------
    ProblemError
        If fluid models cannot say the problem, or it is too large to be solved again and again;
        so does `at` where only a bound is available.
    """

    def __init__(self, problem: Problem, classes: Classes) -> None:
        super().__init__(classes)
        self._problem = problem
        self._left = _kinds(problem, classes)
        self._next()

    @property
    def exact(self) -> bool:
        """Whether all that was found so far are fractions."""
        return self._rates.exact

    def _found(self, scales: Scales) -> tuple[Plane, ...]:
        while True:
            try:
                self._check()
                return self._rates.at(scales)
            except Undecided:
                self._next()

    def _check(self) -> None:
        """Refuse a kind that took over and says otherwise: a program may only bound the rate."""
        for scales, planes in list(self._known.items())[:1]:
            if not same_rate(self._rates.value(scales), planes[0].at(scales)):
                raise ProblemError(bounded_only(self._problem))

    def _next(self) -> None:
        make = next(self._left, None)
        if make is None:
            raise ProblemError(
                f"{self._problem.collective.kind} on {self._problem.topology} is too large to be "
                "solved again for other bandwidths; ask of a smaller cluster of its kind"
            )
        self._rates = make(self._problem, self.classes)


def same_rate(first: Number, second: Number) -> bool:
    """Return whether two rates that different proofs gave are one."""
    return abs(float(first) - float(second)) <= AGREE * float(second)


def bounded_only(problem: Problem) -> str:
    """Return the message that derivatives are of no rate that a plan has."""
    return (
        f"the best trees of {problem.collective.kind} on {problem.topology} were not proved in "
        "time for all bandwidths, and the linear program only bounds their rate; ask again, or of "
        "a smaller cluster of its kind"
    )


def _kinds(problem: Problem, classes: Classes) -> Iterator[Callable[[Problem, Classes], Rates]]:
    if cuts_decide(problem, classes):
        yield CutRates
    why = steady_state.refusal(problem)
    if why is not None:
        raise ProblemError(
            f"no fluid optimum of {problem.collective.kind} on {problem.topology}: {why}"
        )
    if not steady_state.only_pairs(problem) and task.refusal(problem) is None:
        yield TreeRates
    if programmable(problem):
        yield ProgramRates


STEP = 0.01
"""Share of more and of less bandwidth."""


@dataclass(frozen=True)
class Change:
    """Return the best rate after links of one class change by a step.

    Parameters
    ----------
    words
        What they are.
    links
        Their ends; of a shared limit, those it holds.
    more, less
        Change of algbw, as a share of it, for a share of `STEP` more and less bandwidth: ``more``
        is 0 or above, ``less`` 0 or below.
    price
        An optimal dual: by how much of its change algbw would follow, if the dual were unique.
    """

    words: str
    links: tuple[Ends, ...]
    more: float
    less: float
    price: float


def changes(
    problem: Problem, *, classes: np.ndarray | None = None, step: float = STEP
) -> tuple[Change, ...]:
    """Return the effect of a step of each class of links and kind of shared limits, largest first.

    Parameters
    ----------
    problem
        The problem.
    classes
        A number for each link, from 0 on, shape (links,); by default `link_classes`.
    step
        Share of more and of less bandwidth.

    Raises
    ------
    ProblemError
        If fluid models cannot say the problem.
    """
    found = each_change(problem, classes=classes, step=step)
    return tuple(sorted(found, key=lambda each: each.less - each.more))


def each_change(
    problem: Problem, *, classes: np.ndarray | None = None, step: float = STEP
) -> Iterator[Change]:
    """Yield the effect of each class in order, then of each kind of shared limits.

    Parameters
    ----------
    problem, classes, step
        As for `changes`.

    Raises
    ------
    ProblemError
        If fluid models cannot say the problem.
    """
    yield from changes_by(BestRates(problem, classes_of(problem.topology, classes)), step)


def changes_by(rates: Rates, step: float = STEP) -> Iterator[Change]:
    """Yield the same by one way to find rates."""
    classes, part = rates.classes, Fraction(step).limit_denominator(10_000)
    today: Scales = (Fraction(1),) * classes.many
    held = rates.at(today)[0]
    now = held.at(today)
    for number in range(classes.many):
        more, less = (
            float(rates.value((*today[:number], by, *today[number + 1 :])) / now - 1)
            for by in (1 + part, 1 - part)
        )
        yield Change(
            words=classes.words(number),
            links=classes.ends(number),
            more=max(more, 0.0),
            less=min(less, 0.0),
            price=float(held.weights[number] / now),
        )


LOW, HIGH = 0.25, 4.0
"""The range of factors that is usual."""


@dataclass(frozen=True)
class Piece:
    """A straight piece of a curve: algbw = constant + slope * factor.

    Parameters
    ----------
    start, end
        Factors of the bandwidth between which it holds.
    constant
        GB/s that the links which change have no part in.
    slope
        GB/s for each time today's bandwidth.
    cut
        The bottleneck cut of the piece, with bandwidths of today, or None where prices prove it.
    prices
        Share of each link in what holds the rate down, where prices prove it.
    """

    start: Number
    end: Number
    constant: Number
    slope: Number
    cut: Cut | None = None
    prices: Mapping[Ends, float] = field(default_factory=dict)

    def at(self, factor: Number) -> Number:
        """Return the value of its line in GB/s, which is never below the best algbw."""
        return self.constant + self.slope * factor


@dataclass(frozen=True)
class RateCurve:
    """The best algbw of a problem over the bandwidth of some of its links.

    Parameters
    ----------
    problem
        With the bandwidths of today.
    words
        What the links are.
    links
        Ends of the links that change.
    limits
        Names of the shared limits that change.
    pieces
        From the lowest factor to the highest.
    exact
        Whether all numbers are fractions.
    """

    problem: Problem
    words: str
    links: tuple[Ends, ...]
    limits: tuple[str, ...]
    pieces: tuple[Piece, ...]
    exact: bool

    @property
    def breaks(self) -> tuple[tuple[Number, Number], ...]:
        """Factor and algbw in GB/s of both ends and of every kink between."""
        first = self.pieces[0]
        ends = ((each.end, each.at(each.end)) for each in self.pieces)
        return ((first.start, first.at(first.start)), *ends)

    def at(self, factor: Number) -> Number:
        """Return the best algbw in GB/s.

        Raises
        ------
        ProblemError
            If the factor is outside of the range.
        """
        low, high = self.pieces[0].start, self.pieces[-1].end
        if not low <= factor <= high:
            raise ProblemError(
                f"the curve goes from {float(low):g} to {float(high):g} times today's bandwidth, "
                f"not to {float(factor):g}; ask for a wider one"
            )
        return self.piece(factor).at(factor)

    def piece(self, factor: Number) -> Piece:
        """Return the piece at a factor; at a kink, the one that begins there."""
        place = bisect_right([each.start for each in self.pieces], factor) - 1
        return self.pieces[max(place, 0)]


def rate_curve(
    problem: Problem,
    links: Iterable[Ends],
    *,
    limits: Iterable[str] = (),
    low: float = LOW,
    high: float = HIGH,
) -> RateCurve:
    """Return the best algbw over the bandwidth of some links, all else as today.

    Parameters
    ----------
    problem
        The problem.
    links
        Ends of the links that change together: `Effect.links` of a class, for example.
    limits
        Names of the shared limits that change with them: `Effect.limits`. The links of a limit are
        then no part of it; leave `links` empty where limits change alone.
    low, high
        From how many times today's bandwidth to how many.

    Raises
    ------
    ProblemError
        If the range is empty, a link is not there, fluid models cannot say the problem or it is too
        large to be solved again and again.
    """
    if not (0 < low < high and math.isfinite(high)):
        raise ProblemError(
            f"no curve goes from {low:g} to {high:g} times the bandwidth; give 0 < low < high"
        )
    made = chosen(problem.topology, links, limits)
    rates = BestRates(problem, made)
    pieces = _Search(rates).run(exact(low), exact(high))
    numbers = [i for i, each in enumerate(made.links.tolist()) if each]
    return RateCurve(
        problem=problem,
        words=made.words(1),
        links=tuple(problem.topology.links[i].ends for i in numbers),
        limits=made.names(1),
        pieces=pieces,
        exact=rates.exact,
    )


@dataclass
class _Search:
    rates: Rates

    def run(self, low: Fraction, high: Fraction) -> tuple[Piece, ...]:
        """Return all pieces."""
        first, last = self._line(low, high), self._line(high, low)
        return tuple(_merged(self._between(first, last, low, high), self._same))

    def _between(self, p: Plane, q: Plane, low: Number, high: Number) -> Iterator[Piece]:
        """Yield the pieces between two factors, at which `p` and `q` are tight."""
        if self._same(_at(p, high), _at(q, high)):
            yield _piece(p, low, high)
            return
        if self._same(_at(q, low), _at(p, low)):
            yield _piece(q, low, high)
            return
        meet = (q.weights[0] - p.weights[0]) / (p.weights[1] - q.weights[1])
        if not low < meet < high:  # closer to an end than floats can resolve
            yield _piece(min(p, q, key=lambda each: _at(each, (low + high) / 2)), low, high)
            return
        found = self.rates.at((Fraction(1), meet))[0]
        if self._same(_at(found, meet), _at(p, meet)):
            yield _piece(p, low, meet)
            yield _piece(q, meet, high)
            return
        yield from self._between(p, found, low, meet)
        yield from self._between(found, q, meet, high)

    def _line(self, factor: Fraction, other: Fraction) -> Plane:
        """Return the tight plane at one end that is lowest at the other."""
        return min(self.rates.at((Fraction(1), factor)), key=lambda each: _at(each, other))

    def _same(self, first: Number, second: Number) -> bool:
        return self.rates.same(first, second, of=max(first, second))


def _at(plane: Plane, factor: Number) -> Number:
    return plane.weights[0] + plane.weights[1] * factor


def _piece(plane: Plane, start: Number, end: Number) -> Piece:
    return Piece(start, end, plane.weights[0], plane.weights[1], plane.cut, plane.prices)


def _merged(pieces: Iterable[Piece], same: Callable[[Number, Number], bool]) -> Iterator[Piece]:
    """Join neighbours on one line."""
    last: Piece | None = None
    for each in pieces:
        if last is not None and same(last.at(each.end), each.at(each.end)):
            last = replace(last, end=each.end)
            continue
        if last is not None:
            yield last
        last = each
    if last is not None:
        yield last
