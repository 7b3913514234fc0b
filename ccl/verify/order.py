"""The sends of a schedule in the order of their epochs, and whether their ways exist."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from ccl.errors import ScheduleError
from ccl.problem import Problem
from ccl.schedule import Schedule
from ccl.topology import Topology

TOLERANCE = 1e-9
"""The only tolerance: of times as a share of the whole duration, of amounts as a share of a chunk
and of loads as a share of a limit."""

Route = tuple[str, ...]
"""The devices of a way, both ends included."""


class Order:
    """Sends by epoch; of the millions that there may be, each way is kept once.

    `sends` are in order, `routes` are the different ways, `way` is the number of each send's way
    and `split` has the chunks of which parts are sent.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.sends = sorted(schedule.sends, key=attrgetter("epoch"))
        numbers: dict[tuple[str, tuple[str, ...], str], int] = {}
        self.way = [
            numbers.setdefault((send.src, send.via, send.dst), len(numbers)) for send in self.sends
        ]
        self.routes: Sequence[Route] = [(src, *via, dst) for src, via, dst in numbers]
        self.split = {send.chunk for send in self.sends if send.fraction < 1}

    @cached_property
    def epochs(self) -> NDArray[np.int64]:
        """Of each send how many other epochs before its own have sends, shape (sends,)."""
        numbers: dict[int, int] = {}
        found = [numbers.setdefault(send.epoch, len(numbers)) for send in self.sends]
        return np.array(found, dtype=np.int64)

    @cached_property
    def chunks(self) -> NDArray[np.int64]:
        """Chunk of each send, shape (sends,)."""
        return np.fromiter((send.chunk for send in self.sends), np.int64, len(self.sends))


def check_ways(problem: Problem, schedule: Schedule, order: Order) -> None:
    """Refuse sends that name what is not there, stop inside a way, or split what is whole.

    Raises
    ------
    ScheduleError
        At the first such send.
    """
    chunks = problem.collective.chunks
    wrong = [_way_broken(problem.topology, route) for route in order.routes]
    absent = {
        number for number in {send.chunk for send in order.sends} if not 0 <= number < len(chunks)
    }
    whole = {
        number
        for number in order.split - absent
        if chunks[number].reduced or len(chunks[number].destinations) > 1
    }
    if not absent and not whole and not any(wrong):
        return
    for send, way in zip(order.sends, order.way, strict=True):
        broken = wrong[way]
        if send.chunk in absent:
            broken = send.src, f"there is no such chunk; they go from 0 to {len(chunks) - 1}"
        elif broken is None and send.fraction < 1 and send.chunk in whole:
            broken = send.src, f"only {send.fraction:g} of it is sent; send the whole chunk"
        if broken is not None:
            where, what = broken
            time = send.epoch * schedule.epoch_duration
            msg = f"epoch {send.epoch}: {send}: {what}"
            raise ScheduleError(msg, where=where, time=time, epoch=send.epoch)


def _way_broken(topology: Topology, route: Route) -> tuple[str, str] | None:
    """Say where and why some devices are not a way, or None."""
    links = list(pairwise(route))
    for src, dst in links:
        if (src, dst) not in topology.link_index:
            return f"{src}->{dst}", f"{topology} has no link {src}->{dst}; use links that exist"
    if len(set(links)) < len(links):
        return route[0], "it crosses a link twice; leave out the loop"
    for name in route[1:-1]:
        if topology.device(name).stores:
            return name, f"{name} stores what it receives; make it two sends"
    return None
