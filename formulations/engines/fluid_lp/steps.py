"""From a steady state to a schedule: many small chunks, one started in every step.

A forest says which way data goes, not when. Cut the data into K chunks and let every chunk take
all trees in proportion of their weights. Chunk k = 0 .. K - 1 starts in step k, and what crosses
the j-th link of a tree, counted from where the data comes from, does so in step k + j. With

    R    µs of the steady state: every link carries its bytes within R at its bandwidth,
    T    links that any piece of data crosses one after the other, at most,

a step of R / K µs suffices: in one step a link carries of each of its crossings one chunk at most,
1 / K of its bytes. All is done after T + K - 1 steps, in

    R (T + K - 1) / K  =  R + R (T - 1) / K,

which tends to R as K grows. This is theorem 4 of the thesis (section 4.1) and its proof. There the
chunks are fluid; here each share of a chunk that takes a tree is a chunk of its own, so that the
schedule has whole chunks and is verified, whatever the weights. Switches take a step like every
device, since what has reached one in a step leaves it in the next.

The theorem knows no latency. With latencies a step is longer by the largest one used, a µs, so that
what is sent in a step is there when it ends:

    R + R (T - 1) / K + a (T + K - 1),

which is least at about K = sqrt(R (T - 1) / a) and does not tend to R. The replay forgets the
steps and lets the latency of one chunk overlap the next one, so it is faster than this.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from ccl.collective import Collective
from ccl.errors import ProblemError
from ccl.laying import Way, steady_makespan, ways
from ccl.plans import Forest, Schedule, Send
from ccl.problem import Problem
from ccl.simulate import simulate
from ccl.verify import verify

COUNTS = tuple(2**power for power in range(9))
"""Numbers of chunks that a table of conversions has, from 1 to 256."""

MOST_SENDS = 2_000_000
"""Sends above which a schedule is not made."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """A steady state made a schedule of so many chunks; times in µs.

    Parameters
    ----------
    chunks
        K.
    steps
        T + K - 1, the epochs of the schedule.
    depth
        T.
    rate
        R, the time of the steady state.
    duration
        Until the last epoch of the verified schedule ends.
    makespan
        Of its replay, which forgets the epochs.
    """

    chunks: int
    steps: int
    depth: int
    rate: float
    duration: float
    makespan: float

    @property
    def fill(self) -> float:
        """R (T - 1) / K, in µs: what it takes to fill the trees and to empty them."""
        return self.rate * (self.depth - 1) / self.chunks

    @property
    def latency(self) -> float:
        """What latencies add to the duration, in µs; nothing without them."""
        return self.duration - self.rate - self.fill


def staggered(problem: Problem, forest: Forest, *, chunks: int) -> tuple[Problem, Schedule]:
    """Return a problem with the data in K chunks for each tree, and its verified schedule.

    Parameters
    ----------
    problem
        What the forest is for.
    forest
        One that `ccl.verify` accepts, of any kind; images are written out.
    chunks
        K.

    Raises
    ------
    ProblemError
        If K is not positive, the schedule would be too large, links have less bandwidth for a
        time, or nothing moves.
    """
    verify(problem, forest)
    laid = list(ways(problem, forest.unfolded(problem.topology)))
    _check(problem, laid, chunks)
    divided = _divided(problem, laid, chunks)
    links = [link.ends for link in problem.topology.links]
    sends = sorted(
        (
            Send(start + step, start * len(laid) + number, *links[link])
            for start in range(chunks)
            for number, way in enumerate(laid)
            for link, step in zip(way.links, way.steps, strict=True)
        ),
        key=lambda send: send.epoch,
    )
    rate = Fraction(steady_makespan(problem, forest))
    used = {link for way in laid for link in way.links}
    alpha = max(problem.topology.links[link].alpha for link in used)
    schedule = Schedule(tuple(sends), float(rate / chunks) + alpha, _depth(laid) + chunks - 1)
    verify(divided, schedule)
    return divided, schedule


def conversion(
    problem: Problem, forest: Forest, *, counts: Iterable[int] = COUNTS
) -> tuple[Conversion, ...]:
    """Return what schedules of several numbers of chunks take, each verified and replayed.

    Raises
    ------
    ProblemError
        As `staggered`.
    """
    rate = float(steady_makespan(problem, forest))
    found = []
    for chunks in counts:
        divided, schedule = staggered(problem, forest, chunks=chunks)
        found.append(
            Conversion(
                chunks=chunks,
                steps=schedule.horizon,
                depth=schedule.horizon - chunks + 1,
                rate=rate,
                duration=schedule.duration,
                makespan=simulate(divided, schedule).makespan,
            )
        )
    return tuple(found)


def _depth(laid: Iterable[Way]) -> int:
    return max(max(way.steps) for way in laid) + 1


def _divided(problem: Problem, laid: Iterable[Way], chunks: int) -> Problem:
    """Return the problem with a chunk for each share that starts in each step."""
    collective = problem.collective
    listed = [(collective.chunks[way.chunk], float(way.share)) for way in laid]
    once = tuple(replace(chunk, size=chunk.size * share / chunks) for chunk, share in listed)
    return replace(
        problem,
        collective=Collective(collective.kind, collective.ranks, collective.size, once * chunks),
    )


def _check(problem: Problem, laid: list[Way], chunks: int) -> None:
    sends = chunks * sum(len(way.links) for way in laid)
    if chunks < 1:
        msg = f"a schedule of {chunks} chunks cannot be made; give 1 or more"
        raise ProblemError(msg)
    if not sends:
        msg = f"{problem.collective.kind} moves nothing over these trees"
        raise ProblemError(msg)
    if sends > MOST_SENDS:
        msg = (
            f"{chunks} chunks make {sends:,} sends, and {MOST_SENDS:,} are the most that are made; "
            "ask for fewer chunks"
        )
        raise ProblemError(msg)
    if problem.windows:
        msg = "links have less bandwidth for a time, so there is no steady state"
        raise ProblemError(msg)
