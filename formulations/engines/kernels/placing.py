"""Transmissions in order into epochs, and messages step after step on the links, compiled.

`place`, for `list_scheduling.timed`: a transmission takes the first epoch by which its chunk is
there, in which its links keep their order and have time for it, and in which the shared limits let
it through. The rules are those of `ccl.plans`.

`walk`, for `closed_forms.steps`: a step begins when everything of the one before is there. Within a
step each message goes as soon as its links are free, those before it served first, on the transfer
on which it is there first. Those that take several transfers take turns: all make their first one
before any makes its second.
"""

from __future__ import annotations

import numpy as np

from formulations.engines.kernels.arrays import allocating, inner, kernel

SAME = 1e-9
"""Shares of an epoch that count as zero."""


@kernel
def place(routes, sends, sizes, caps, waits, scale):
    """Give each transmission the first epoch in which it can go; return epochs and the horizon.

    Of each transmission alone the shared limits must let all links through at once. `waits` says
    to which place each transfer brings something, where the places begin that it waits for, and
    which they are; and how many places there are.
    """
    transfer, _, group, _, _ = sends
    nbytes, _, _, meets = sizes
    links, tau = scale
    free = np.zeros(links)
    last = np.zeros(links, np.int64)
    stamp = np.full(links, -1, np.int64)
    came = np.zeros(waits[3])
    # Where devices copy or add, sends of a chunk over one link in one epoch would become one.
    apart = np.full((len(nbytes), links) if meets else (1, 1), -1, np.int64)
    load = np.zeros((len(caps[2]), 64))
    held = free, np.zeros(links + 1, np.int64)
    scratch = np.zeros((links, 7))
    epochs = np.zeros(len(transfer), np.int64)
    end = 0.0
    # Not the constant 0, with which all that it is handed to would be compiled once more.
    low = np.int64(0)
    while low < len(transfer):
        high = low
        while high < len(transfer) and group[high] == group[low]:
            high += 1
        laid = _laid(routes, sends, sizes, caps, scratch, low, high, tau)
        epoch = _earliest(routes, sends, came, waits, last, low, high, tau)
        if meets:
            epoch = max(epoch, _apart(routes, sends, apart, low, high) + 1)
        epoch, start, load = _placed(
            routes, sends, nbytes, caps, held, load, laid, low, high, epoch, tau
        )
        epochs[low:high] = epoch
        state = free, last, stamp, came, apart, waits[0]
        end = max(end, _taken(routes, sends, sizes, laid, state, low, high, epoch, start, tau))
        low = high
    return epochs, max(1, int(np.ceil(end / tau - SAME)))


@allocating
def _laid(routes, sends, sizes, caps, scratch, low, high, tau):
    """Return when the links of a transmission are held, and when each of its transfers is there.

    Returns
    -------
    tuple
        By link µs after the start from when on it is held, the first epoch after that of the
        transmission over which it is spread and how many they are; by transfer µs after the start
        and, where links are limited, after the beginning of its epoch. `scratch` has a place for
        each link: whether it is limited does not change.
    """
    src, _, first, link, _, lead, drag = routes
    transfer, chunk, _, lag, drags = sends
    nbytes, latency, slowest, _ = sizes
    took, spread = np.zeros(high - low), np.zeros(high - low)
    limited = joins = False
    for i in range(low, high):
        joins |= src[transfer[i]] != src[transfer[low]]
        for j in range(first[transfer[i]], first[transfer[i] + 1]):
            scratch[link[j]] = 0.0
            limited |= caps[1][link[j]] < caps[1][link[j] + 1]
    # The first of the transfers of a sum leaves at the start.
    soonest = np.inf
    for i in range(low, high):
        soonest = min(soonest, lag[i] + nbytes[chunk[i]] * drags[i])
    for i in range(low, high):
        size, number = nbytes[chunk[i]], transfer[i]
        if limited:
            until = _followed(routes, caps, scratch, number, size, lag[i], tau, False)
            took[i - low] = lag[i] + latency[number] + until
            until = _followed(routes, caps, scratch, number, size, lag[i], tau, True)
            spread[i - low] = lag[i] + latency[number] + until
            continue
        begin = lag[i] + size * drags[i] - soonest
        took[i - low] = begin + latency[number] + size * slowest[number]
        for j in range(first[number], first[number + 1]):
            scratch[link[j], 0] = begin + lead[j] + size * drag[j]
    if limited and joins:
        # A sum is there as a whole, and the first of its transfers did not know of the last.
        took[:], spread[:] = took.max(), spread.max()
    return scratch, took, spread


@inner
def _followed(routes, caps, scratch, transfer, size, lag, tau, whole):
    """Lay out a transfer that crosses a limited link; return the µs until it has left the last.

    Latencies come on top. A limited link is held over whole epochs or as long as it takes, and as
    long as bytes come to it; another waits until it can send without a pause.
    """
    _, _, first, link, beta, lead, _ = routes
    begin = until = 0.0
    known = 3 if whole else 5
    for j in range(first[transfer], first[transfer + 1]):
        here = scratch[link[j]]
        # Where transfers join, the last of them knows of all from when until when bytes come.
        begin, until = max(here[known], begin), max(here[known + 1], until)
        here[known], here[known + 1] = begin, until
        busy = size * beta[j]
        if caps[1][link[j]] == caps[1][link[j] + 1]:
            begin = max(begin, until - busy)
            until = begin + busy
        elif whole:
            here[1] = np.floor((lag + lead[j] + begin) / tau + SAME)
            here[2] = _many(max(busy, until - begin), tau)
            until = begin + here[2] * tau
        else:
            until = max(begin + busy, until)
        if whole:
            here[0] = lag + lead[j] + begin
    return until


@allocating
def _placed(routes, sends, nbytes, caps, held, load, laid, low, high, epoch, tau):
    """Return the first epoch from one on in which it can go, its start, and the limits' load."""
    free, counted = held
    while True:
        start, later = _fits(routes, sends, nbytes, free, laid[0], low, high, epoch, tau)
        if later == epoch:
            later, load = _loads(
                routes, sends, nbytes, caps, load, counted, laid[0], low, high, epoch, tau
            )
        if later == epoch:
            return epoch, start, load
        epoch = later


@inner
def _taken(routes, sends, sizes, laid, state, low, high, epoch, start, tau):
    """Note what a transmission holds and brings; return when the last of it is there."""
    _, _, first, link, beta, _, _ = routes
    transfer, chunk, _, _, _ = sends
    nbytes, _, _, meets = sizes
    scratch, took, spread = laid
    free, last, stamp, came, apart, into = state
    end = 0.0
    for i in range(low, high):
        for j in range(first[transfer[i]], first[transfer[i] + 1]):
            last[link[j]] = epoch
            if stamp[link[j]] != low:
                stamp[link[j]] = low
                free[link[j]] = start + scratch[link[j], 0] + nbytes[chunk[i]] * beta[j]
        arrival = max(start + took[i - low], epoch * tau + spread[i - low])
        came[into[i]] = max(came[into[i]], arrival)
        end = max(end, arrival)
        if meets:
            apart[chunk[i], link[first[transfer[i]]]] = epoch
            apart[chunk[i], link[first[transfer[i] + 1] - 1]] = epoch
    return end


@inner
def _many(busy, tau):
    """Count the epochs of a transmission of `busy` µs."""
    return max(1, int(np.ceil(busy / tau - SAME)))


@inner
def _earliest(routes, sends, came, waits, last, low, high, tau):
    """Return the first epoch by which everything is there and that keeps the order of links."""
    _, _, first, link, _, _, _ = routes
    transfer, begins, places = sends[0], waits[1], waits[2]
    epoch = 0
    for i in range(low, high):
        for k in range(begins[i], begins[i + 1]):
            epoch = max(epoch, int(np.ceil(came[places[k]] / tau - SAME)))
        for j in range(first[transfer[i]], first[transfer[i] + 1]):
            epoch = max(epoch, last[link[j]])
    return epoch


@inner
def _apart(routes, sends, apart, low, high):
    """Return the last epoch in which a chunk crossed its first or last link in another group."""
    _, _, first, link, _, _, _ = routes
    transfer, chunk, _, _, _ = sends
    epoch = -1
    for i in range(low, high):
        if first[transfer[i] + 1] - first[transfer[i]] > 1:
            epoch = max(epoch, apart[chunk[i], link[first[transfer[i]]]])
            epoch = max(epoch, apart[chunk[i], link[first[transfer[i] + 1] - 1]])
    return epoch


@inner
def _fits(routes, sends, nbytes, free, scratch, low, high, epoch, tau):
    """Return the start in an epoch, and the epoch, or the next one in which it may fit."""
    _, _, first, link, beta, _, _ = routes
    transfer, chunk, _, _, _ = sends
    start = epoch * tau
    for i in range(low, high):
        for j in range(first[transfer[i]], first[transfer[i] + 1]):
            start = max(start, free[link[j]] - scratch[link[j], 0])
    for i in range(low, high):
        for j in range(first[transfer[i]], first[transfer[i] + 1]):
            busy = nbytes[chunk[i]] * beta[j]
            if start + busy > (epoch + _many(busy, tau)) * tau + SAME * tau:
                return start, max(epoch + 1, int(np.ceil(start / tau - SAME)))
    return start, epoch


@allocating
def _loads(routes, sends, nbytes, caps, load, counted, scratch, low, high, epoch, tau):
    """Take its share of the shared limits and return the epoch; a later one if they are full."""
    if not len(caps[2]):
        return epoch, load
    full, load = _added(
        routes, sends, nbytes, caps, load, counted, scratch, low, high, epoch, tau, 1.0
    )
    if full < 0:
        return epoch, load
    _, load = _added(
        routes, sends, nbytes, caps, load, counted, scratch, low, high, epoch, tau, -1.0
    )
    # It is too much for that epoch until the first of its links comes after it.
    latest = 0
    _, _, first, link, _, _, _ = routes
    for i in range(low, high):
        for j in range(first[sends[0][i]], first[sends[0][i] + 1]):
            latest = max(latest, int(scratch[link[j], 1]))
    return max(epoch + 1, full - latest + 1), load


@allocating
def _added(routes, sends, nbytes, caps, load, counted, scratch, low, high, epoch, tau, sign):
    """Add what a transmission takes of each limit, or take it away.

    Returns
    -------
    tuple
        The last epoch for which it is too much, -1 if it fits; and the load.
    """
    _, _, first, link, _, _, _ = routes
    transfer, chunk, _, _, _ = sends
    flat, begin, most = caps
    full = np.int64(-1)
    # A link that several transfers of the transmission cross is crossed once.
    counted[-1] += 1
    for i in range(low, high):
        for j in range(first[transfer[i]], first[transfer[i] + 1]):
            if counted[link[j]] == counted[-1]:
                continue
            counted[link[j]] = counted[-1]
            many = int(scratch[link[j], 2])
            since = epoch + int(scratch[link[j], 1])
            if since + many > load.shape[1]:
                longer = np.zeros((load.shape[0], 2 * (since + many)))
                for row in range(load.shape[0]):
                    for k in range(load.shape[1]):
                        longer[row, k] = load[row, k]
                load = longer
            for place in range(begin[link[j]], begin[link[j] + 1]):
                for k in range(since, since + many):
                    load[flat[place], k] += sign * nbytes[chunk[i]] / many
                    if load[flat[place], k] > most[flat[place]] * tau * (1 + SAME / 2):
                        full = max(full, np.int64(k))
    return full, load


@kernel
def walk(messages, chains, pairs, transfers, there):
    """Place all messages; return the transfers, of which message, when, and the end of each step.

    Parameters
    ----------
    messages
        Step, chunk, bytes of each, sorted by step.
    chains
        Pairs along the path of each message, flat, and where each begins.
    pairs
        Transfers of each pair, flat, where each begins, and the device that each ends at.
    transfers
        Where the links of each begin, links, beta, lead, drag, latency, slowest.
    there
        µs at which each chunk is at each device, inf where it is not; changed. Empty where every
        message carries a sum of its own, which its source has.
    """
    step, chunk, nbytes = messages
    chain, begins = chains
    free = np.zeros(transfers[1].max() + 1)
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
                best, begun, time[i] = _soonest(pairs, transfers, free, pair, nbytes[i], time[i])
                _hold(transfers, free, best, nbytes[i], begun)
                made[rows], of[rows], start[rows] = best, i, begun
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
def _hold(transfers, free, transfer, nbytes, begun):
    """Hold the links of a transfer until it has left them."""
    for j in range(transfers[0][transfer], transfers[0][transfer + 1]):
        free[transfers[1][j]] = (
            begun + transfers[3][j] + nbytes * (transfers[4][j] + transfers[2][j])
        )


@inner
def _passed(chain, begins, pairs, there, chunk, at, time, i):
    """Return the pair of a path from which on a message's chunk still has to be sent.

    Where it is stored already, it is sent on from there; its time is changed to when it is.
    """
    if len(there):
        for k in range(begins[i + 1] - 1, at[i] - 1, -1):
            when = there[chunk[i], pairs[2][chain[k]]]
            if when < np.inf:
                time[i] = max(time[i], when)
                return k + 1
    return at[i]


@inner
def _soonest(pairs, transfers, free, pair, nbytes, time):
    """Return the transfer of a pair on which the chunk is there first, its start and its end."""
    best, begin, end = -1, 0.0, np.inf
    for p in range(pairs[1][pair], pairs[1][pair + 1]):
        transfer = pairs[0][p]
        start = time
        for j in range(transfers[0][transfer], transfers[0][transfer + 1]):
            start = max(start, free[transfers[1][j]] - transfers[3][j] - nbytes * transfers[4][j])
        done = start + transfers[5][transfer] + nbytes * transfers[6][transfer]
        if done < end * (1 - 1e-12):
            best, begin, end = transfer, start, done
    return best, begin, end
