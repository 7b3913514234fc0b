"""Messages step after step on the links, compiled; `closed_forms.steps` calls it.

A step begins when everything of the one before is there. Within a step each message goes as soon
as its links are free, those before it served first, on the move on which it is there first. Those
that take several moves take turns: all make their first one before any makes its second.
"""

from __future__ import annotations

import numpy as np

from formulations.engines.kernels.kernels import inner, kernel


@kernel
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
    free = np.zeros(moves[1].max() + 1)
    made = np.zeros(len(chain), np.int64)
    of = np.zeros(len(chain), np.int64)
    start = np.zeros(len(chain))
    ends = np.zeros(0 if not len(step) else step[-1] + 1)
    at = begins[:-1].copy()
    time = np.zeros(len(step))
    rows, first = 0, 0
    begin = 0.0
    for now in range(len(ends)):
        after = first
        while after < len(step) and step[after] == now:
            time[after] = begin
            after += 1
        ends[now] = begin
        left = after - first
        while left:
            left = 0
            for i in range(first, after):
                at[i] = _passed(chain, begins, pairs, there, chunk, at, time, i)
                if at[i] == begins[i + 1]:
                    continue
                pair = chain[at[i]]
                move, begun, time[i] = _earliest(pairs, moves, free, pair, nbytes[i], time[i])
                _hold(moves, free, move, nbytes[i], begun)
                made[rows], of[rows], start[rows] = move, i, begun
                rows += 1
                at[i] += 1
                if len(there):
                    device = pairs[2][pair]
                    there[chunk[i], device] = min(there[chunk[i], device], time[i])
                ends[now] = max(ends[now], time[i])
                left += at[i] < begins[i + 1]
        first = after
        begin = max(begin, ends[now])
    return made[:rows], of[:rows], start[:rows], ends


@inner
def _hold(moves, free, move, nbytes, begun):
    """Hold the links of a move until it has left them."""
    for j in range(moves[0][move], moves[0][move + 1]):
        free[moves[1][j]] = begun + moves[3][j] + nbytes * (moves[4][j] + moves[2][j])


@inner
def _passed(chain, begins, pairs, there, chunk, at, time, i):
    """Return the pair of a way from which on a message's chunk still has to be sent.

    Where it is kept already, it is sent on from there; its time is changed to when it is.
    """
    if len(there):
        for k in range(begins[i + 1] - 1, at[i] - 1, -1):
            when = there[chunk[i], pairs[2][chain[k]]]
            if when < np.inf:
                time[i] = max(time[i], when)
                return k + 1
    return at[i]


@inner
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
