"""Rules of a schedule, one after the other in time."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np

from ccl.errors import ScheduleError
from ccl.plans import Order, Schedule, Send
from ccl.problem import Problem
from ccl.topology import Device
from ccl.verify.contents import (
    Content,
    Parts,
    Possession,
    Sums,
    Terms,
    Whole,
    broken_rule,
    check_buffers,
)
from ccl.verify.order import Tree, check_paths
from ccl.verify.times import Clock, Timed
from ccl.verify.vectorised import settle

_MOST_EPOCHS = 2.0**53
"""What a float counts exactly."""


def verify_schedule(problem: Problem, schedule: Schedule) -> None:
    """Check links, capacity, shared limits, causality, switches, sums, buffers and the end.

    Raises
    ------
    ScheduleError
        At the first broken rule in time; a send that names what is not there comes first.
    """
    order = Order(schedule)
    check_paths(problem, schedule, order)
    _check_epochs(problem, schedule)
    clock = Clock(problem, schedule, order)
    replay = _Replay(problem, schedule, clock=clock, order=order)
    found = (
        clock.overload,
        clock.excess(),
        replay.run(),
        check_buffers(problem, clock, replay.terms()),
    )
    errors = [error for error in found if error is not None]
    if errors:
        raise min(errors, key=lambda error: error.time)


def _check_epochs(problem: Problem, schedule: Schedule) -> None:
    """Refuse epochs so short that those of a send cannot be counted exactly."""
    rates = {link.ends: link.bandwidth for link in problem.topology.links}
    for limit in problem.topology.limits:
        rates |= {ends: min(rates[ends], limit.bandwidth) for ends in limit.links}
    size, tau = problem.collective.chunk_size, schedule.epoch_duration
    if schedule.horizon > _MOST_EPOCHS:
        raise ScheduleError(
            f"{schedule.horizon:.3g} epochs are more than can be counted exactly; use fewer",
            where=problem.topology.name,
        )
    latency = math.fsum(link.alpha for link in problem.topology.links)
    for (src, dst), rate in rates.items():
        took = latency + size * 1e-3 / rate
        if not took < _MOST_EPOCHS * tau:
            raise ScheduleError(
                f"epochs of {tau:g} µs are too short to count those of a send over {src}->{dst}, "
                f"which takes {took:g} µs; make them longer",
                where=f"{src}->{dst}",
            )


class _Replay:
    """Follows every chunk through the devices in exact time."""

    def __init__(self, problem: Problem, schedule: Schedule, *, clock: Clock, order: Order) -> None:
        self._problem = problem
        self._schedule = schedule
        self._clock = clock
        self._order = order
        self._devices = {each.name: each for each in problem.topology.devices}
        self._settled = settle(problem, schedule.duration, order, clock)
        self._holdings = self._by_kind()
        # By chunk, device that cannot store, and epoch: what came for it and what leaves in it.
        self._came: defaultdict[tuple[int, str, int], list[Content]] = defaultdict(list)
        self._leaving: defaultdict[tuple[int, str, int], list[int]] = defaultdict(list)
        self._carried: list[Content | None] = [None] * len(order.sends)
        held = [self._devices[route[0]].stores for route in order.routes]
        if not all(held):
            for i, number in enumerate(order.route_of):
                if not held[number]:
                    self._leaving[self._departure(order.sends[i])].append(i)

    def _by_kind(self) -> list[Possession]:
        """Return for each chunk the holdings that it is counted in."""
        chunks = self._problem.collective.chunks
        kinds: list[list[int]] = [[], [], [], []]
        of_chunk = []
        for number, chunk in enumerate(chunks):
            kind = int(number in self._order.split)
            if chunk.reduced:
                kind = 3 if number in self._order.named else 2
            if not self._settled[number]:
                kinds[kind].append(number)
            of_chunk.append(kind)
        holdings: tuple[Possession, ...] = (
            Whole(self._problem, kinds[0]),
            Parts(self._problem, kinds[1]),
            Sums(self._problem, kinds[2]),
            Terms(self._problem, kinds[3]),
        )
        return [holdings[kind] for kind in of_chunk]

    def terms(self) -> dict[int, Terms]:
        """Return the holdings of the chunks of which sends name what they carry."""
        return {
            number: those for number, those in enumerate(self._holdings) if isinstance(those, Terms)
        }

    @staticmethod
    def _departure(send: Send) -> tuple[int, str, int]:
        return send.chunk, send.src, send.epoch

    def run(self) -> ScheduleError | None:
        """Return the first error."""
        sends = np.flatnonzero(~self._settled[self._order.chunks])
        left = self._clock.starts[sends] + self._clock.slack
        # What takes less than the slack is there when it has left.
        times = np.concatenate([np.maximum(self._clock.ends[sends], left), left])
        numbers, leaves = np.tile(sends, 2), np.repeat([False, True], len(sends))
        # At one moment what arrives comes before what leaves, each in the order of the schedule.
        events = np.lexsort((numbers, leaves, times))
        try:
            for place, goes in zip(numbers[events].tolist(), leaves[events].tolist(), strict=True):
                if goes:
                    self._leave(place)
                else:
                    self._arrive(place)
        except ScheduleError as error:
            return error
        return self._incomplete()

    def _leave(self, i: int) -> None:
        if self._carried[i] is not None:
            return
        timed = self._clock.sends[i]
        send = timed.send
        device = self._devices[send.src]
        if not device.stores:
            self._settle(timed)
            return
        content = self._carried[i] = self._holdings[send.chunk].leave(timed, device)
        tree = self._clock.trees.get(i)
        if tree is not None and not tree.joins:
            for place in tree.places:
                self._carried[place] = content

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
            raise broken_rule(timed, device, what)
        numbers = self._leaving[key]
        leaving = [self._clock.sends[i].send for i in numbers]
        holdings = self._holdings[timed.send.chunk]
        contents = holdings.cross(timed, device, came=came, leaving=leaving)
        for i, content in zip(numbers, contents, strict=True):
            self._carried[i] = content

    def _arrive(self, i: int) -> None:
        timed = self._clock.sends[i]
        send, _, end = timed
        device = self._devices[send.dst]
        content = self._left(i)
        if end > self._schedule.duration + self._clock.slack:
            what = (
                f"{send} arrives at {end:g} µs, after the last epoch, which ends at "
                f"{self._schedule.duration:g} µs; send it earlier or add epochs"
            )
            raise broken_rule(timed, device, what, arrived=True)
        if not device.stores:
            self._pass(timed, device, content)
            return
        tree = self._clock.trees.get(i)
        if tree is None or not tree.joins:
            self._holdings[send.chunk].arrive(timed, device, content)
        elif i == tree.turn:
            self._holdings[send.chunk].arrive(timed, device, self._joined(tree))

    def _left(self, i: int) -> Content:
        """Return what a send carries; it leaves now if all happens at one moment."""
        if self._carried[i] is None:
            self._leave(i)
        content = self._carried[i]
        assert content is not None
        return content

    def _pass(self, timed: Timed, device: Device, content: Content) -> None:
        """Note what came to a device that cannot store for its next epoch."""
        tau, slack = self._schedule.epoch_duration, self._clock.slack
        epoch, late = math.ceil((timed.end - slack) / tau), math.ceil(timed.end / tau)
        key = timed.send.chunk, device.name, epoch
        if epoch < late:
            # Late by no more than the slack, it may be in time, but seldom within its own epoch.
            epochs = sorted(range(epoch, late + 1), key=lambda each: each <= timed.send.epoch)
            keys = [(*key[:2], each) for each in epochs]
            key = next((each for each in keys if each in self._leaving), key)
        if key not in self._leaving:
            what = (
                f"{timed.send} reaches {device.name}, which stores nothing, at {timed.end:g} µs "
                f"and does not leave it in epoch {epoch}; send it on then"
            )
            raise broken_rule(timed, device, what, arrived=True)
        self._came[key].append(content)

    def _joined(self, tree: Tree) -> Content:
        """Return what the sends of a tree bring as one."""
        sends = [self._clock.sends[place] for place in tree.places]
        sums = self._holdings[sends[0].send.chunk]
        # Only sends of reduced chunks run together.
        assert isinstance(sums, Sums)
        return sums.together(sends, [self._left(place) for place in tree.places], self._devices)

    def _incomplete(self) -> ScheduleError | None:
        """Return what a destination lacks at the end."""
        ranks = self._problem.topology.ranks
        for number in np.flatnonzero(~self._settled).tolist():
            for rank in self._problem.collective.chunks[number].destinations:
                lacks = self._holdings[number].missing(number, rank)
                if lacks is not None:
                    return ScheduleError(
                        f"{lacks} at the end, {self._schedule.duration:g} µs",
                        where=ranks[rank],
                        time=self._schedule.duration,
                        epoch=self._schedule.horizon - 1,
                    )
        return None
