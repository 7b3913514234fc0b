"""Arrays of list scheduling, the beginning of a pass, and how functions are compiled.

`formulations.engines.kernels.dispatch` says what is done with the arrays.

All functions of searches are compiled by numba: those that Python calls, and those that only these
call. A `kernel` is cached on disk and is compiled outside every time limit
(`formulations.core.preparing`); functions that only kernels call have no doors from Python, which
take as long to compile as they do. For a constant numba compiles a function once more than for a
variable, so constants are handed on as numbers of numpy.

Numba counts the references to every array that a function is given, those in tuples too: with
forty of them that took nine tenths of the time of list scheduling, and two thirds of compiling it.
Who calls holds them all, so an `inner` function does not count; it cannot make arrays or lists or
take a list, which numba refuses, and must not return one that it was given. Those that do so are
`allocating`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from numba import njit, typeof
from numba.core.dispatcher import Dispatcher

from formulations.core.preparing import compiling, interpreting, ready, wait

_BARE: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

_UNCOUNTED: dict[str, Any] = {"_nrt": False, **_BARE}

inner = njit(**_UNCOUNTED)

allocating = njit(**_BARE)


def kernel(function):
    """Return a function that calls `function` compiled, once all are, or else as it is written."""
    # Without the lock other threads go on, such as those that hear of what other processes find.
    compiled = njit(cache=True, nogil=True)(function)
    called: Any = None
    plain: Any = None

    @wraps(function)
    def call(*args):
        nonlocal called, plain
        if called is not None:
            return called(*args)
        if interpreting() and not ready():
            plain = plain or as_written(compiled)
            return plain(*args)
        wait()
        with compiling():  # or loading, but not the first search
            compiled.compile(tuple(typeof(each) for each in args))
        called = compiled
        return compiled(*args)

    call.__dict__["compiled"] = compiled
    return call


def as_written(compiled):
    """Return the Python function of a compiled one, which calls Python functions only."""
    return _as_written(compiled, {})


def _as_written(compiled, made):
    if compiled not in made:
        function = compiled.py_func
        names = dict(function.__globals__)
        made[compiled] = FunctionType(
            function.__code__, names, function.__name__, function.__defaults__
        )
        for name in function.__code__.co_names:
            if isinstance(names.get(name), Dispatcher):
                names[name] = _as_written(names[name], made)
    return made[compiled]


NEVER = np.inf


class Net(NamedTuple):
    """Transfers for the kernel: n, with m crossings; r resources, v devices, k sizes of chunks.

    Parameters
    ----------
    src, dst, first, link, resource, beta, lead, drag, parts, latency, slowest
        As in `formulations.engines.list_scheduling.timed.Transfers`, with the resource of each
        link.
    out
        Where the transfers of each device begin, shape (v + 1,): they are sorted by `src`.
    users, user_first
        Transfers that cross each resource: flat, and where each begins.
    early, early_first
        How long before a resource is free transfers may start: the different values of each.
    far
        Quickest path in µs from device to device, for each size, shape (k, v, v).
    hop
        First transfer of the quickest path, -1 where there is none, shape (k, v, v).
    caps, cap_first
        Shared limits that each resource is under: flat, and where each begins.
    capacity
        Bytes per µs of each shared limit.
    under, under_first
        Resources under each shared limit: flat, and where each begins.
    """

    src: np.ndarray
    dst: np.ndarray
    first: np.ndarray
    link: np.ndarray
    resource: np.ndarray
    beta: np.ndarray
    lead: np.ndarray
    drag: np.ndarray
    parts: np.ndarray
    latency: np.ndarray
    slowest: np.ndarray
    out: np.ndarray
    users: np.ndarray
    user_first: np.ndarray
    early: np.ndarray
    early_first: np.ndarray
    far: np.ndarray
    hop: np.ndarray
    caps: np.ndarray
    cap_first: np.ndarray
    capacity: np.ndarray
    under: np.ndarray
    under_first: np.ndarray


class Work(NamedTuple):
    """What has to be done; c chunks.

    Parameters
    ----------
    nbytes, kind
        Size of each chunk, and its place in `Net.far`.
    rank
        What is sent first, whatever else: larger before smaller, shape (c,).
    there
        When each chunk is at each device, infinite where it is not, shape (c, v).
    wants
        Who needs it, shape (c, v).
    free
        From when on each resource is free, shape (r,).
    """

    nbytes: np.ndarray
    kind: np.ndarray
    rank: np.ndarray
    there: np.ndarray
    wants: np.ndarray
    free: np.ndarray


class Weights(NamedTuple):
    """How one pass decides.

    Parameters
    ----------
    slack
        Share of its own time by which a transfer may be later than what is expected.
    tail, few, many
        Weight of the path still to go after the transfer, of how few hold the chunk, and of how
        many it helps.
    chance
        Weight of `of_chunk` and `of_transfer`.
    choosy
        Whether of all transfers that are possible those go first that help most; else by chance.
    narrow
        Whether a transfer to a device that lacks the chunk is judged by what it helps that device
        alone; quicker where there are many.
    of_chunk, of_transfer
        Random numbers, shapes (c,) and (n,).
    limit
        µs after which the pass is given up.
    scale
        µs of a long hop, by which times are measured.
    steps
        How often a pass may test whether a transfer helps a destination until the pass is given up.
    stop
        Not 0 as soon as the pass is to be given up, shape (1,), see `stopping`.
    """

    slack: float
    tail: float
    few: float
    many: float
    chance: float
    choosy: bool
    narrow: bool
    of_chunk: np.ndarray
    of_transfer: np.ndarray
    limit: float
    scale: float
    steps: float
    stop: np.ndarray


class State(NamedTuple):
    """Where a pass stands.

    `tally` counts sends, chunks times destinations left, transmissions, moments and steps. Of
    `holders` the first `spread` of each chunk are the devices that have it or will, in their order.
    For a chunk that one device lacks, `soon` is when it is expected there, as `tally` stood at
    `since`; `round`: no other holder seemed nearer than the one from which it is expected.
    """

    there: np.ndarray
    holders: np.ndarray
    own: np.ndarray
    todo: np.ndarray
    lacking: np.ndarray
    held: np.ndarray
    holds: np.ndarray
    spread: np.ndarray
    soon: np.ndarray
    since: np.ndarray
    round: np.ndarray
    free: np.ndarray
    load: np.ndarray
    rate: np.ndarray
    together: np.ndarray
    mark: np.ndarray
    tally: np.ndarray
    transfer: np.ndarray
    chunk: np.ndarray
    start: np.ndarray
    group: np.ndarray


@contextmanager
def stopping(left: Callable[[], float]) -> Iterator[np.ndarray]:
    """Yield a zero that becomes one when no seconds are `left`, however far a pass is."""
    stop, ended = np.array([int(left() <= 0)]), threading.Event()

    def watch() -> None:
        # The clock stands still while searches are being compiled, so it is read again.
        while not ended.wait(max(0.01, min(left(), 60.0))):
            if left() <= 0:
                stop[0] = 1
                return

    if not stop[0] and left() < np.inf:
        threading.Thread(target=watch, daemon=True).start()
    try:
        yield stop
    finally:
        ended.set()


@kernel
def begin(net: Net, work: Work) -> State:
    """Return the state in which nothing has been sent yet."""
    chunks, devices = work.wants.shape
    most = chunks * devices
    state = State(
        work.there.copy(),
        np.zeros((chunks, devices), np.int32),
        np.zeros((chunks, devices), np.int64),
        np.zeros((chunks, devices), np.int64),
        np.zeros(chunks, np.int64),
        np.zeros((devices, chunks), np.int64),
        np.zeros(devices, np.int64),
        np.zeros(chunks, np.int64),
        np.zeros(chunks),
        np.zeros(chunks, np.int64),
        np.zeros(chunks, np.bool_),
        work.free.copy(),
        np.zeros(len(net.capacity)),
        np.zeros(len(net.user_first) - 1),
        np.zeros(net.link.max() + 1, np.int64),
        np.zeros(len(net.src), np.int64),
        np.zeros(5, np.int64),
        np.zeros(most, np.int64),
        np.zeros(most, np.int64),
        np.zeros(most),
        np.zeros(most, np.int64),
    )
    for chunk in range(chunks):
        for device in range(devices):
            if work.there[chunk, device] < NEVER:
                state.holders[chunk, state.spread[chunk]] = device
                state.spread[chunk] += 1
        for device in range(devices):
            if work.wants[chunk, device] and work.there[chunk, device] == NEVER:
                state.todo[chunk, state.lacking[chunk]] = device
                state.lacking[chunk] += 1
                state.tally[1] += 1
                _nearest(net, work, state, chunk, device)
    return state


@inner
def _nearest(net, work, state, chunk, device):
    """Expect the chunk from the holder from which it takes the quickest path."""
    best = NEVER
    for place in range(state.spread[chunk]):
        holder = state.holders[chunk, place]
        when = work.there[chunk, holder] + net.far[work.kind[chunk], holder, device]
        if when < best:
            best = when
            state.own[chunk, device] = holder
