"""Best rate after one step more or less bandwidth of each class of links.

`formulations.sensitivity` returns slopes; a step may go over a kink, so the rate is solved at its
end (`formulations.analyses.sensitivity.changes` says how). Changes are yielded one class after the
other, so that somebody who waits may stop.

Which proof is taken for the rate at other bandwidths: the kinds of `best_rate`.

Each kind is used until it does not hold for some scales; then the next takes over, and the planes
that were found remain true.

The best rate by its worst cut, an exact fraction, at any scales of the classes.

The best rate by prices: of trees, or of the orbit linear program, at any scales of the classes.

Prices found at symmetric scales are alike on orbits. They are optimal prices of every single link
all the same, so their planes hold whichever links change.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

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
