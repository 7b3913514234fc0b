"""Messages step after step on the links, compiled; `formulations.classic.steps` calls it.

A step begins when everything of the one before is there. Within a step each message goes as soon
as its links are free, those before it served first, on the move on which it is there first.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def walk(messages, chains, pairs, moves, there):
    """Place all messages; return the moves made, of which message, when, and the end of each step.

    Parameters
    ----------
    messages
        Step, chunk, bytes of each, sorted by step.
    chains
        Pairs along the way of each message, flat, and where each begins.
    pairs
        Moves of each pair, flat, where each begins, and the device that each ends at.
    moves
        Where the links of each begin, links, beta, lead, drag, latency, slowest.
    there
        µs at which each chunk is at each device, inf where it is not; changed. Empty where every
        message carries a sum of its own, which its source has.
    """
    step, chunk, nbytes = messages
    chain, begins = chains
    steps = 0 if not len(step) else step[-1] + 1
    links = moves[1].max() + 1
    free = np.zeros(links)
    made = np.zeros(len(chain), np.int64)
    of = np.zeros(len(chain), np.int64)
    start = np.zeros(len(chain))
    ends = np.zeros(steps)
    rows = 0
    now = -1
    begin = 0.0
    for i in range(len(step)):
        if step[i] != now:
            begin = max(begin, ends[now] if now >= 0 else 0.0)
            now = step[i]
            ends[now] = begin
        at = begins[i]
        time = begin
        if len(there):
            at = _last_there(chain, begins, pairs, there, chunk[i], i)
        if at > begins[i]:
            time = max(time, there[chunk[i], pairs[2][chain[at - 1]]])
        for k in range(at, begins[i + 1]):
            move, first, time = _earliest(pairs, moves, free, chain[k], nbytes[i], time)
            for j in range(moves[0][move], moves[0][move + 1]):
                link = moves[1][j]
                free[link] = first + moves[3][j] + nbytes[i] * (moves[4][j] + moves[2][j])
            made[rows], of[rows], start[rows] = move, i, first
            rows += 1
            if len(there):
                device = pairs[2][chain[k]]
                there[chunk[i], device] = min(there[chunk[i], device], time)
        ends[now] = max(ends[now], time)
    return made[:rows], of[:rows], start[:rows], ends


@njit
def _last_there(chain, begins, pairs, there, chunk, i):
    """Return the pair of a way from which on the chunk has to be sent."""
    for k in range(begins[i + 1] - 1, begins[i] - 1, -1):
        if there[chunk, pairs[2][chain[k]]] < np.inf:
            return k + 1
    return begins[i]


@njit
def _earliest(pairs, moves, free, pair, nbytes, time):
    """Return the move of a pair on which the chunk is there first, its start and its end."""
    best, begin, end = -1, 0.0, np.inf
    for p in range(pairs[1][pair], pairs[1][pair + 1]):
        move = pairs[0][p]
        start = time
        for j in range(moves[0][move], moves[0][move + 1]):
            start = max(start, free[moves[1][j]] - moves[3][j] - nbytes * moves[4][j])
        done = start + moves[5][move] + nbytes * moves[6][move]
        if done < end * (1 - 1e-12):
            best, begin, end = move, start, done
    return best, begin, end
