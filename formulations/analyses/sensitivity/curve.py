"""Best rate over the bandwidth of some links: all its straight pieces, with what holds each.

Let f(x) be the best algbw when the bandwidth of some links is x times today's: concave, never
falling, and made of finitely many straight pieces, since it is the least of the planes of
`formulations.analyses.sensitivity.cutting_planes`. Each solve gives the value at one x and a line
that is above f everywhere and touches it there.

* Begin with the lines at both ends of the range.
* Let p be the line at a and q the line at b. If p is tight at b as well, f is straight between.
* Else they meet at some x between. If f(x) is what they say there, f is straight on both sides of
  x: it is above its chords and below its tangents, which are the same. Else a new line is tight at
  x: treat a to x and x to b likewise.

Every piece is thus proved by its ends, and no piece is missed however short; there are at most two
solves for each. In fractions this is exact. With prices of linear programs lines that differ by
less than a share of `SLACK` are one.

Source: Eisner and Severance, Mathematical techniques for efficient record segmentation in large
shared databases (Journal of the ACM 23, 1976).
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from ccl.bound import Cut
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.tree_embedding import exact
from formulations.analyses.sensitivity.changes import BestRates
from formulations.analyses.sensitivity.cutting_planes import Ends, Number, Plane, Rates, chosen

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
