"""Messages on the links, one step after the other, and the times that tell a formula from a replay.

A message starts with its step, or when the links of its way are free; a step begins when all of
the one before is there. A chunk that goes over devices that store on its way is kept by each of
them, so a later message to one of them is not sent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.classic.messages import Messages
from formulations.classic.ways import Ways
from formulations.compiled.stepping import walk
from formulations.timed import TimedMoves


@dataclass(frozen=True)
class Walk:
    """Messages laid on the links.

    Parameters
    ----------
    timed
        The moves, with the starts that steps in turn give them.
    step
        Step of each move, shape (moves,).
    ends
        µs at which each step is over, shape (steps,).
    alone
        µs that each step would take if all between two places went alone, shape (steps,).
    latency, slowest
        Largest of the ways that are used: µs, µs per byte.
    busiest, crowd
        Number of the link that messages between most different places cross in one step, and
        how many these are.
    """

    timed: TimedMoves
    step: np.ndarray
    ends: np.ndarray
    alone: np.ndarray
    latency: float
    slowest: float
    busiest: int
    crowd: int


def walked(
    ways: Ways,
    messages: Messages,
    place: np.ndarray,
    *,
    nbytes: np.ndarray,
    there: np.ndarray,
) -> Walk:
    """Lay messages on the links.

    Parameters
    ----------
    ways
        Between the devices.
    messages
        Among places.
    place
        Device number at each place, shape (places,).
    nbytes
        Of each chunk of the collective, shape (chunks,).
    there
        µs at which each chunk is at each device, inf where it is not, shape (chunks, devices);
        empty where every message carries a sum of its own.

    Raises
    ------
    Infeasible
        If no way leads from one place to another.
    """
    order = np.argsort(messages.step, kind="stable")
    step, chunk = messages.step[order], messages.chunk[order]
    src, dst = place[messages.src[order]], place[messages.dst[order]]
    chain, begins = ways.chains(src, dst)
    moves = ways.moves
    best = ways.order[ways.pairs[:-1]]
    made, of, start, ends = walk(
        (step, chunk, nbytes[chunk]),
        (chain, begins),
        (ways.order, ways.pairs, moves.dst[best]),
        (moves.first, moves.link, moves.beta, moves.lead, moves.drag, moves.latency, moves.slowest),
        there,
    )
    timed = TimedMoves(made, chunk[of], start, np.arange(len(made)))
    busiest, crowd = _busiest(
        ways, timed, step[of], src[of] * len(moves.topology.devices) + dst[of]
    )
    alone = _alone(ways, (chain, begins), nbytes[chunk], (step, src, dst))
    used = np.unique(chain)
    return Walk(
        timed=timed,
        step=step[of],
        ends=ends,
        alone=alone,
        latency=float(moves.latency[best[used]].max(initial=0.0)),
        slowest=float(moves.slowest[best[used]].max(initial=0.0)),
        busiest=busiest,
        crowd=crowd,
    )


def _busiest(ways: Ways, timed: TimedMoves, step: np.ndarray, pair: np.ndarray) -> tuple[int, int]:
    """Return the link that most pairs of devices share in one step, and how many."""
    moves = ways.moves
    many = np.diff(moves.first)[timed.move]
    row = np.repeat(np.arange(len(timed)), many)
    offset = np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)
    link = moves.link[moves.first[timed.move][row] + offset]
    links = len(moves.topology.links)
    where = step[row] * links + link
    met = np.unique(np.stack([where, pair[row]]), axis=1)[0]
    places, crowds = np.unique(met, return_counts=True)
    top = int(crowds.argmax())
    return int(places[top] % links), int(crowds[top])


def _alone(
    ways: Ways,
    chains: tuple[np.ndarray, np.ndarray],
    nbytes: np.ndarray,
    between: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> np.ndarray:
    """Return µs of each step if what goes between two devices had its way for itself.

    Chunk follows chunk: all but the largest hold the slowest of the way's moves, and the largest
    goes all the way.
    """
    chain, begins = chains
    moves = ways.moves
    best = ways.order[ways.pairs[:-1]]
    latency = np.add.reduceat(moves.latency[best][chain], begins[:-1])
    total = np.add.reduceat(moves.slowest[best][chain], begins[:-1])
    worst = np.maximum.reduceat(moves.slowest[best][chain], begins[:-1])
    keys = np.stack(between)
    bundles, first, which = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    which = np.ravel(which)
    largest = np.zeros(bundles.shape[1])
    together = np.zeros(bundles.shape[1])
    np.maximum.at(largest, which, nbytes)
    np.add.at(together, which, nbytes)
    took = latency[first] + total[first] * largest + worst[first] * (together - largest)
    ends = np.zeros(int(bundles[0].max()) + 1)
    np.maximum.at(ends, bundles[0], took)
    return ends
