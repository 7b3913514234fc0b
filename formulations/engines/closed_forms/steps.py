"""Messages on the links, one step after the other, and the times that tell a formula from a replay.

A message starts with its step, or when the links of its way are free; a step begins when all of
the one before is there. A chunk that goes over devices that store on its way is kept by each of
them, so a later message to one of them is not sent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.engines.closed_forms.messages import Messages
from formulations.engines.closed_forms.ways import Ways
from formulations.engines.kernels.stepping import walk
from formulations.engines.list_scheduling.routes import Moves
from formulations.engines.list_scheduling.timed import TimedMoves


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
        µs that each step would take if all between two places, or with one port all that leaves
        or reaches a place, went alone, shape (steps,).
    costs
        Largest latency in µs and largest µs per byte of the ways that are used, first of those
        within a host, then of those between hosts; 0 where there are none, shape (2, 2).
    busiest, crowd
        Number of the link that messages between most different places cross in one step, and
        how many these are.
    """

    timed: TimedMoves
    step: np.ndarray
    ends: np.ndarray
    alone: np.ndarray
    costs: np.ndarray
    busiest: int
    crowd: int


def walked(
    ways: Ways,
    messages: Messages,
    place: np.ndarray,
    *,
    nbytes: np.ndarray,
    there: np.ndarray,
    one_port: bool = False,
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
    one_port
        Whether, of a message alone, all that its place sends and takes in goes through one port.

    Raises
    ------
    Infeasible
        If no way leads from one place to another.
    """
    order = np.argsort(messages.step, kind="stable")
    step, chunk = messages.step[order], messages.chunk[order]
    src, dst = place[messages.src[order]], place[messages.dst[order]]
    chain, begins = ways.chains(src, dst)
    moves, best = ways.moves, ways.order[ways.pairs[:-1]]
    made, of, start, ends = walk(
        (step, chunk, nbytes[chunk]),
        (chain, begins),
        (ways.order, ways.pairs, moves.dst[best]),
        (moves.first, moves.link, moves.beta, moves.lead, moves.drag, moves.latency, moves.slowest),
        there,
    )
    if there.size:
        kept = _led_on(moves, made, chunk[of], place)
        made, of, start = made[kept], of[kept], start[kept]
    timed = TimedMoves(made, chunk[of], start, np.arange(len(made)))
    pair = src * len(moves.topology.devices) + dst
    busiest, crowd = _busiest(ways, timed, step[of], pair[of])
    took = [
        _alone(ways, (chain, begins), nbytes[chunk], step=step, between=between)
        for between in ((src, dst) if one_port else (pair,))
    ]
    return Walk(
        timed=timed,
        step=step[of],
        ends=ends,
        alone=np.maximum.reduce(took),
        costs=_costs(moves, best[np.unique(chain)]),
        busiest=busiest,
        crowd=crowd,
    )


def _led_on(moves: Moves, made: np.ndarray, chunk: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Return the moves to places, or to devices from which their chunk goes on.

    A chunk on its way over a memory may come to its place by another message first.
    """
    devices = len(moves.topology.devices)
    wants = np.isin(np.arange(devices), place)
    src, dst = chunk * devices + moves.src[made], chunk * devices + moves.dst[made]
    kept = np.arange(len(made))
    while True:
        led = wants[moves.dst[made[kept]]] | np.isin(dst[kept], src[kept])
        if led.all():
            return kept
        kept = kept[led]


def _costs(moves: Moves, used: np.ndarray) -> np.ndarray:
    """Return the largest costs of some moves, within hosts and between them, shape (2, 2)."""
    hosts = np.array([each.host or "" for each in moves.topology.devices])
    within = hosts[moves.src[used]] == hosts[moves.dst[used]]
    return np.array(
        [
            [every[used][which].max(initial=0.0) for every in (moves.latency, moves.slowest)]
            for which in (within, ~within)
        ]
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
    pairs, which = np.unique(pair, return_inverse=True)
    met = np.unique(where * len(pairs) + which[row]) // len(pairs)
    places, crowds = np.unique(met, return_counts=True)
    top = int(crowds.argmax())
    return int(places[top] % links), int(crowds[top])


def _alone(
    ways: Ways,
    chains: tuple[np.ndarray, np.ndarray],
    nbytes: np.ndarray,
    *,
    step: np.ndarray,
    between: np.ndarray,
) -> np.ndarray:
    """Return µs of each step if what is `between` the same had its way for itself.

    Chunk follows chunk: each holds the slowest of its way's moves, and the one that takes longest
    besides goes all the way.
    """
    chain, begins = chains
    moves = ways.moves
    best = ways.order[ways.pairs[:-1]]
    latency = np.add.reduceat(moves.latency[best][chain], begins[:-1])
    total = np.add.reduceat(moves.slowest[best][chain], begins[:-1])
    worst = np.maximum.reduceat(moves.slowest[best][chain], begins[:-1])
    keys = step * (int(between.max()) + 1) + between
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    held, besides = np.zeros(len(first)), np.zeros(len(first))
    np.add.at(held, which, worst * nbytes)
    np.maximum.at(besides, which, latency + (total - worst) * nbytes)
    ends = np.zeros(int(step.max()) + 1)
    np.maximum.at(ends, step[first], held + besides)
    return ends
