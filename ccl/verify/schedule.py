"""The rules of a schedule, one after the other in time."""

from __future__ import annotations

import math
from collections import defaultdict

from ccl.errors import ScheduleError
from ccl.problem import Problem
from ccl.schedule import Schedule, Send
from ccl.verify.buffers import check_buffers
from ccl.verify.contents import Content, Holdings, Parts, Sums, Whole, broken
from ccl.verify.times import Clock, Timed, check_ways
from ccl.verify.trees import Tree


def verify_schedule(problem: Problem, schedule: Schedule) -> None:
    """Check links, capacity, shared limits, causality, switches, sums, buffers and the end.

    Raises
    ------
    ScheduleError
        At the first broken rule in time; a send that names what is not there comes first.
    """
    check_ways(problem, schedule)
    clock = Clock(problem, schedule)
    found = (
        clock.overload,
        clock.excess(),
        _Replay(problem, schedule, clock).run(),
        check_buffers(problem, clock),
    )
    errors = [error for error in found if error is not None]
    if errors:
        raise min(errors, key=lambda error: error.time)


class _Replay:
    """Follows every chunk through the devices in exact time."""

    def __init__(self, problem: Problem, schedule: Schedule, clock: Clock) -> None:
        self._problem = problem
        self._schedule = schedule
        self._clock = clock
        self._devices = {each.name: each for each in problem.topology.devices}
        self._holdings = self._by_kind()
        # By chunk, device that cannot store, and epoch: what came for it and what leaves in it.
        self._came: defaultdict[tuple[int, str, int], list[Content]] = defaultdict(list)
        self._leaving: defaultdict[tuple[int, str, int], list[int]] = defaultdict(list)
        self._carried: dict[int, Content] = {}
        for i, timed in enumerate(clock.sends):
            if not self._devices[timed.send.src].stores:
                self._leaving[self._departure(timed.send)].append(i)

    def _by_kind(self) -> list[Holdings]:
        """Return for each chunk the holdings that it is counted in."""
        chunks = self._problem.collective.chunks
        split = {send.chunk for send in self._schedule.sends if send.fraction < 1}
        kinds: list[list[int]] = [[], [], []]
        of_chunk = []
        for number, chunk in enumerate(chunks):
            kind = 2 if chunk.reduced else int(number in split)
            kinds[kind].append(number)
            of_chunk.append(kind)
        holdings: tuple[Holdings, ...] = (
            Whole(self._problem, kinds[0]),
            Parts(self._problem, kinds[1]),
            Sums(self._problem, kinds[2]),
        )
        return [holdings[kind] for kind in of_chunk]

    @staticmethod
    def _departure(send: Send) -> tuple[int, str, int]:
        return send.chunk, send.src, send.epoch

    def run(self) -> ScheduleError | None:
        """Return the first error."""
        events = []
        for i, timed in enumerate(self._clock.sends):
            events.append((timed.start + self._clock.slack, 1, i))
            events.append((timed.end, 0, i))
        events.sort()
        try:
            for _, starts, i in events:
                if starts:
                    self._leave(i)
                else:
                    self._arrive(i)
        except ScheduleError as error:
            return error
        return self._incomplete()

    def _leave(self, i: int) -> None:
        timed = self._clock.sends[i]
        device = self._devices[timed.send.src]
        if i in self._carried:
            return
        if device.stores:
            tree = self._clock.trees.get(i)
            places = (i,) if tree is None or tree.joins else tree.places
            content = self._holdings[timed.send.chunk].leave(timed, device)
            self._carried.update(dict.fromkeys(places, content))
        else:
            self._settle(timed)

    def _settle(self, timed: Timed) -> None:
        """Give each send that leaves a device that cannot store its share of what came."""
        key = self._departure(timed.send)
        device = self._devices[timed.send.src]
        came = self._came.pop(key, [])
        if not came:
            what = (
                f"{device.name} stores nothing and sends {timed.send}, but nothing of it came "
                "between the epoch before and this one"
            )
            raise broken(timed, device, what)
        numbers = self._leaving[key]
        leaving = [self._clock.sends[i].send for i in numbers]
        holdings = self._holdings[timed.send.chunk]
        contents = holdings.cross(timed, device, came=came, leaving=leaving)
        self._carried.update(zip(numbers, contents, strict=True))

    def _arrive(self, i: int) -> None:
        timed = self._clock.sends[i]
        device = self._devices[timed.send.dst]
        if i not in self._carried:
            what = (
                f"{timed.send} takes too little of the {self._schedule.duration:g} µs of the "
                "schedule to be told from none; make the epochs shorter"
            )
            raise broken(timed, device, what, arrived=True)
        if timed.end > self._schedule.duration + self._clock.slack:
            what = (
                f"{timed.send} arrives at {timed.end:g} µs, after the last epoch, which ends at "
                f"{self._schedule.duration:g} µs; send it earlier or add epochs"
            )
            raise broken(timed, device, what, arrived=True)
        if device.stores:
            tree = self._clock.trees.get(i)
            if tree is None or not tree.joins:
                self._holdings[timed.send.chunk].arrive(timed, device, self._carried[i])
            elif i == tree.turn:
                self._holdings[timed.send.chunk].arrive(timed, device, self._joined(tree))
            return
        epoch = math.ceil((timed.end - self._clock.slack) / self._schedule.epoch_duration)
        key = timed.send.chunk, device.name, epoch
        if key not in self._leaving:
            what = (
                f"{timed.send} reaches {device.name}, which stores nothing, at {timed.end:g} µs "
                f"and does not leave it in epoch {epoch}; send it on then"
            )
            raise broken(timed, device, what, arrived=True)
        self._came[key].append(self._carried[i])

    def _joined(self, tree: Tree) -> Content:
        """Return what the sends of a tree bring as one."""
        sends = [self._clock.sends[place] for place in tree.places]
        sums = self._holdings[sends[0].send.chunk]
        # Only sends of reduced chunks run together.
        assert isinstance(sums, Sums)
        return sums.together(sends, [self._carried[place] for place in tree.places], self._devices)

    def _incomplete(self) -> ScheduleError | None:
        """Return what a destination lacks at the end."""
        ranks = self._problem.topology.ranks
        for number, chunk in enumerate(self._problem.collective.chunks):
            for rank in chunk.destinations:
                lacks = self._holdings[number].missing(number, rank)
                if lacks is not None:
                    return ScheduleError(
                        f"{lacks} at the end, {self._schedule.duration:g} µs",
                        where=ranks[rank],
                        time=self._schedule.duration,
                        epoch=self._schedule.horizon - 1,
                    )
        return None
