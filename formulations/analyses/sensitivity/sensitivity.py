"""Derivatives of the best rate with respect to the bandwidth of each kind of links, proved.

The best steady state has algbw A, a concave function of bandwidths with kinks
(`formulations.analyses.sensitivity.cutting_planes`). Of every class of links, and of shared limits
of one bandwidth, both one-sided derivatives are returned as elasticities

    d ln A / d ln b      to the right: what a share more gives; to the left: what a share less costs

each between 0 and 1: exact fractions where cuts decide, else to about 9 digits. Where they differ
today's cluster stands on a kink: several cuts or prices are tied, more of one class meets the next
bottleneck at once, and a single optimal dual (`Effect.price`) lies anywhere between.

They are found and proved by `Slopes`. Along a direction d from the scales 1 of today let
f(t) = A(1 + t d), concave and made of finitely many straight pieces. Its derivative to the right at
0 is the least slope among *all* planes that are tight at 0; a solve finds only some of them, and
any vertex of the optimal dual face. So look further away, where planes that rise less take over:

1. let p be the tight plane of least slope found so far, and t some distance off;
2. solve at t. If p is tight there too, f is straight between 0 and t, since it is concave and
   below p: the slope of p is the derivative, and p the proof;
3. else some plane q is tight at t and below p there. If it is tight at 0 as well it was a better p.
   Else p and q meet between 0 and t; look there next.

Every round finds another plane, so it ends; nothing is a difference of nearby values, and no step
is "small enough". The derivative to the left is that along -d, with the sign turned.

Then classes help together that do not alone. For a set K raised together the derivative is the
least slope over all tight planes, so it is at least the sum of those of its members, and

    more(K) > sum over k in K of more(k)

says that the members wait for one another. Of the classes of which less costs more than more gives
all pairs are tested, of those 20 that cost most where there are more; planes met before answer most
of them. Where nothing alone or in pairs gives anything, a smallest set that does is found by
leaving out one class after the other: all classes together always give 1, as A(c b) = c A(b).

Source: Eisner and Severance, Mathematical techniques for efficient record segmentation in large
shared databases (Journal of the ACM 23, 1976), whose tangents find all pieces; here the first.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Literal

import numpy as np

from ccl import text
from ccl.bound import Cut, across
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.text import enumerate_words
from formulations.analyses.best_rate import Optimum, optimum
from formulations.analyses.sensitivity.changes import BestRates, bounded_only, same_rate
from formulations.analyses.sensitivity.cutting_planes import (
    Classes,
    Ends,
    Number,
    Plane,
    Rates,
    Scales,
    Undecided,
    classes_of,
    link_classes,
)

ROUNDS = 100
"""More rounds than any cluster was seen to need; exact numbers need no such limit."""

FAR_UP = Fraction(1)
FAR_DOWN = Fraction(1, 2)
"""Where to look first: twice the bandwidth, and half of it."""


class Slopes:
    """What the best rate does from today's bandwidths on.

    Parameters
    ----------
    rates
        The best rate at any scales.

    Attributes
    ----------
    now
        Best algbw today, in GB/s.
    tight
        Planes that are tight today, as far as they were met.
    """

    def __init__(self, rates: Rates) -> None:
        self.rates = rates
        self.one: Scales = (Fraction(1),) * rates.classes.many
        self.tight = list(rates.at(self.one))
        self.now = self.tight[0].at(self.one)

    def more(self, classes: Collection[int]) -> tuple[Number, Plane]:
        """Return d ln algbw / d ln bandwidth to the right, of classes raised together.

        Returns
        -------
        tuple
            It, from 0 to 1, and the tight plane that rises no more.
        """
        direction = self._direction(classes, 1)
        least = self._least(direction)
        # It never falls, so nothing is less than nothing.
        held = least if self._none(least, direction) else self._toward(direction, FAR_UP)
        return max(Fraction(0), held.along(direction) / self.now), held

    def less(self, classes: Collection[int]) -> tuple[Number, Plane]:
        """Return the same to the left: what a share less costs, in shares.

        Returns
        -------
        tuple
            It, from 0 to 1, and the tight plane that falls as much.
        """
        direction = self._direction(classes, -1)
        held = self._toward(direction, FAR_DOWN)
        return max(Fraction(0), -held.along(direction) / self.now), held

    def at_most(self, classes: Collection[int]) -> Number:
        """Return the most that classes raised together can give, by the planes met so far."""
        direction = self._direction(classes, 1)
        return self._least(direction).along(direction) / self.now

    def _toward(self, direction: Sequence[int], step: Number) -> Plane:
        """Return a tight plane of least slope along a direction."""
        for _ in range(ROUNDS):
            point = tuple(1 + step * each for each in direction)
            held = self.rates.at(point)
            self._keep(held)
            near = self._least(direction)
            if self._same(near.at(point), held[0].at(point)):
                return near
            beyond = max(held, key=lambda plane: plane.along(direction))
            over = beyond.at(self.one) - self.now
            step = over / (near.along(direction) - beyond.along(direction))
        raise Undecided(f"no straight piece was found within {ROUNDS} rounds")

    def _keep(self, planes: Sequence[Plane]) -> None:
        known = {plane.weights for plane in self.tight}
        for plane in planes:
            if plane.weights not in known and self._same(plane.at(self.one), self.now):
                self.tight.append(plane)

    def _least(self, direction: Sequence[int]) -> Plane:
        return min(self.tight, key=lambda plane: plane.along(direction))

    def _none(self, plane: Plane, direction: Sequence[int]) -> bool:
        return self._same(plane.along(direction), Fraction(0))

    def _same(self, first: Number, second: Number) -> bool:
        return self.rates.same(first, second, of=self.now)

    def _direction(self, classes: Collection[int], sign: int) -> tuple[int, ...]:
        return tuple(sign * (k in classes) for k in range(self.rates.classes.many))


NOTHING = 1e-7
"""An elasticity below this is zero: the rounding error of a linear program."""

MOST_TIED = 20
"""Classes whose pairs are tested."""


MOST_CUTS = 3
"""Tied cuts in a report."""

_PRICED = 1e-4
"""Classes with a smaller share of the prices are left out."""

SIDE = 2
"""Names on a side of a cut."""

MOST_CLASSES = 4
"""Classes in one sentence."""

MOST_NAMED = 5
"""Sentences of one kind."""


@dataclass(frozen=True)
class Effect:
    """What bandwidth of one class does to the best rate.

    Parameters
    ----------
    words
        What the class is: ``NVLink 3 at 300 GB/s``.
    links
        Ends of its links; of shared limits, of the links that they hold.
    limits
        Names of its shared limits; empty where it is of links.
    many
        How many links it has, both directions counted once, or limits.
    bandwidth
        GB/s of one of its links or limits, the mean where they differ.
    more
        d ln algbw / d ln bandwidth to the right, 0 to 1; a fraction where cuts decide.
    less
        The same to the left: at least `more`.
    price
        The same by one optimal dual: between the two, and those of all classes add up to 1.
    gain
        GB/s of algbw for each GB/s added to every one of its links or limits.
    cut
        A bottleneck cut that rises by no more than `more`: it proves that more gives no more. None
        where prices prove it.
    """

    words: str
    links: tuple[Ends, ...]
    limits: tuple[str, ...]
    many: int
    bandwidth: float
    more: Number
    less: Number
    price: float
    gain: float
    cut: Cut | None

    @property
    def gains(self) -> bool:
        """Whether more of it alone gives anything."""
        return self.more > NOTHING

    @property
    def matters(self) -> bool:
        """Whether less of it costs anything."""
        return self.less > NOTHING


@dataclass(frozen=True)
class Together:
    """Classes that give more when they are raised together than the sum of what each does.

    Parameters
    ----------
    effects
        Places of the classes in `Sensitivity.effects`.
    more
        d ln algbw / d ln bandwidth to the right, of all of them at once.
    """

    effects: tuple[int, ...]
    more: Number


@dataclass(frozen=True)
class Sensitivity:
    """What limits a cluster.

    Parameters
    ----------
    problem
        The problem.
    optimum
        The best steady state and what proves it.
    cuts
        Bottleneck cuts that were met, the tied ones among them; none where prices hold it down.
    effects
        Of each class, what gives most first, then what costs most.
    together
        Sets of classes that must be raised together, what gives most first.
    exact
        Whether derivatives are fractions.
    """

    problem: Problem
    optimum: Optimum
    cuts: tuple[Cut, ...]
    effects: tuple[Effect, ...]
    together: tuple[Together, ...]
    exact: bool

    @property
    def algbw(self) -> float:
        """GB/s of the best steady state."""
        return self.optimum.algbw

    @cached_property
    def words(self) -> tuple[str, ...]:
        """What limits the cluster, in sentences, the most important first."""
        return sentences(self)


def sensitivity(
    problem: Problem, *, classes: np.ndarray | None = None, by: Literal["kind", "orbit"] = "kind"
) -> Sensitivity:
    """Return by how much the best rate follows each class of links and kind of shared limits.

    Parameters
    ----------
    problem
        The problem.
    classes
        A number for each link, from 0 on, shape (links,), equal for links that change together.
    by
        How classes are made where none are given: ``kind``, of bandwidth and medium; ``orbit``, of
        links that symmetries exchange.

    Raises
    ------
    ProblemError
        If fluid models cannot say the problem, or it is too large to be solved again and again.
    Infeasible
        If a rank cannot be reached.
    """
    topology = problem.topology
    number = link_classes(topology, by=by) if classes is None else classes
    made = classes_of(topology, number)
    return described(problem, optimum(problem), BestRates(problem, made))


def described(problem: Problem, best: Optimum, rates: Rates) -> Sensitivity:
    """Return the same by one way to find rates, with the best steady state of today."""
    slopes, classes = Slopes(rates), rates.classes
    if not same_rate(slopes.now, best.algbw):
        raise ProblemError(bounded_only(problem))
    found = [_effect(slopes, classes, k) for k in range(classes.many)]
    order = sorted(range(len(found)), key=lambda k: (-found[k].more, -found[k].less, k))
    place = {k: i for i, k in enumerate(order)}
    sets = [
        Together(tuple(sorted(place[k] for k in members)), more)
        for members, more in _sets(slopes, found)
    ]
    cuts = {cut.inside: cut for cut in best.cuts}
    cuts |= {plane.cut.inside: plane.cut for plane in slopes.tight if plane.cut is not None}
    return Sensitivity(
        problem=problem,
        optimum=best,
        cuts=tuple(cuts.values()),
        effects=tuple(found[k] for k in order),
        together=tuple(sorted(sets, key=lambda each: (-each.more, each.effects))),
        exact=rates.exact,
    )


def _effect(slopes: Slopes, classes: Classes, number: int) -> Effect:
    more, held = slopes.more((number,))
    less, _ = slopes.less((number,))
    bandwidth = float(np.mean(classes.bandwidths(number)))
    return Effect(
        words=classes.words(number),
        links=classes.ends(number),
        limits=classes.names(number),
        many=classes.lines(number),
        bandwidth=bandwidth,
        more=more,
        less=less,
        price=float(slopes.tight[0].weights[number] / slopes.now),
        gain=float(more * slopes.now) / bandwidth,
        cut=held.cut,
    )


def _sets(slopes: Slopes, found: list[Effect]) -> Iterator[tuple[tuple[int, ...], Number]]:
    """Yield classes that help one another, with what they give together."""
    tied = [k for k, each in enumerate(found) if each.less - each.more > NOTHING]
    tied.sort(key=lambda k: -found[k].less)
    some = any(each.gains for each in found)
    for pair in combinations(tied[:MOST_TIED], 2):
        alone = sum((found[k].more for k in pair), start=Fraction(0))
        if slopes.at_most(pair) - alone <= NOTHING:
            continue
        more, _ = slopes.more(pair)
        if more - alone > NOTHING:
            some = True
            yield pair, more
    if not some and tied:
        # What costs least when it is lost is left out first.
        yield _smallest(slopes, tied[::-1])


def _smallest(slopes: Slopes, members: list[int]) -> tuple[tuple[int, ...], Number]:
    """Return a set that gives something, none of whose members can be left out."""
    kept = tuple(members)
    for k in members:
        fewer = tuple(each for each in kept if each != k)
        if slopes.at_most(fewer) > NOTHING and slopes.more(fewer)[0] > NOTHING:
            kept = fewer
    return kept, slopes.more(kept)[0]


# In sentences


def sentences(found: Sensitivity) -> tuple[str, ...]:
    """Describe what holds the rate down, then what more of what gives, then what gives nothing."""
    return (_bottleneck(found), *_gains(found), *_joint(found), *_waiting(found), *_idle(found))


def _bottleneck(found: Sensitivity) -> str:
    rate = f"{found.problem.collective.kind} runs at {text.bandwidth(found.algbw)} at best"
    if not found.cuts:
        held = enumerate_words([each.words for each in found.effects if each.matters], MOST_CLASSES)
        return f"{rate}: no cut alone says so, but the prices of {held}."
    listed_cuts = [_cut(found, each) for each in found.cuts]
    if len(listed_cuts) == 1:
        return f"{rate}: the bottleneck cut is {listed_cuts[0]}."
    named = enumerate_words(listed_cuts, MOST_CUTS)
    return f"{rate}: {len(listed_cuts)} cuts are equally full, {named}."


def _gains(found: Sensitivity) -> Iterator[str]:
    gaining = [each for each in found.effects if each.gains]
    yield from map(_gain, gaining[:MOST_NAMED])
    others = len(gaining) - MOST_NAMED
    if others > 0:
        most = max(each.more for each in gaining[MOST_NAMED:])
        rest = "one other kind" if others == 1 else f"any of {others} other kinds"
        yield f"1 % more bandwidth of {rest} raises it by {percent(most)} or less."


def _gain(each: Effect) -> str:
    what = "limit" if each.limits else "link"
    every = f"each of its {text.count(each.many, what)}" if each.many > 1 else "it"
    texts = (
        f"1 % more bandwidth of {each.words} raises the best rate by {percent(each.more)}: "
        f"{each.gain:.3g} GB/s of algbw for each GB/s added to {every}"
    )
    kink = each.less - each.more > _PRICED
    return texts + (f"; 1 % less lowers it by {percent(each.less)}." if kink else ".")


def _joint(found: Sensitivity) -> Iterator[str]:
    yield from (_together(found, each) for each in found.together[:MOST_NAMED])
    others = len(found.together) - MOST_NAMED
    if others > 0:
        yield (
            f"So do {others} other pairs, by no more." if others > 1 else "So does one other pair."
        )


def _together(found: Sensitivity, each: Together) -> str:
    effects = [found.effects[i] for i in each.effects]
    names = enumerate_words([effect.words for effect in effects], MOST_CLASSES)
    if any(effect.gains for effect in effects):
        raised = percent(each.more)
        return f"{names} help each other: 1 % more of all raises the best rate by {raised}."
    return (
        f"Only together do {names} give anything: 1 % more of all of them raises the best rate "
        f"by {percent(each.more)}."
    )


def _waiting(found: Sensitivity) -> Iterator[str]:
    """Yield classes that alone give nothing, whose loss costs something; alike ones at once."""
    alike: dict[str, list[Effect]] = {}
    for each in found.effects:
        if each.matters and not each.gains:
            alike.setdefault(percent(each.less), []).append(each)
    for costs, effects in alike.items():
        names = enumerate_words([each.words for each in effects], MOST_CLASSES)
        cut = effects[0].cut if len(effects) == 1 else None
        why = "" if cut is None else f", since {_cut(found, cut)} stays as full"
        any_of = "" if len(effects) == 1 else "any of "
        alone = f"More of {any_of}{names} alone does not raise the rate{why}"
        yield f"{alone}; 1 % less lowers it by {costs}."


def _idle(found: Sensitivity) -> Iterator[str]:
    idle = [each.words for each in found.effects if not each.matters]
    if idle:
        yield f"More or a little less of {enumerate_words(idle, MOST_CLASSES)} changes nothing."


def _cut(found: Sensitivity, cut: Cut) -> str:
    where, names = across(cut, found.problem.topology)
    return f"{text.bandwidth(cut.bandwidth)} {where} {enumerate_words(names, SIDE)}"


def percent(share: Number) -> str:
    """Write an elasticity as what 1 % does: ``0.923 %``."""
    return f"{float(share):.3g} %"
