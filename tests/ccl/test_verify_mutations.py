"""In a minimal schedule every send is needed: lose, delay, repeat or redirect one and it breaks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from ccl.collective import Chunk, all_gather, custom
from ccl.errors import CclError, ProblemError, ScheduleError
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.verify import verify
from tests.ccl.clusters import (
    MB,
    line,
    line_all_gather,
    mesh,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
    star,
    star_all_gather,
)


def rounds_over_a_switch(*, through: bool, epoch_duration: float = 20.0):
    """In round k GPU r sends its chunk to GPU r + k + 1: cut-through or with a stop of an epoch."""
    count = 4
    problem = Problem(star(count), all_gather(count, count * MB))
    pairs = [(k, r, (r + k + 1) % count) for k in range(count - 1) for r in range(count)]
    if through:
        sends = [Send(k, r, f"g{r}", f"g{other}", ("s",)) for k, r, other in pairs]
        return problem, Schedule(tuple(sends), epoch_duration, count - 1)
    up = [Send(k, r, f"g{r}", "s") for k, r, _ in pairs]
    down = [Send(k + 1, r, "s", f"g{other}") for k, r, other in pairs]
    return problem, Schedule((*up, *down), epoch_duration, count)


def halves():
    """One chunk goes from g0 to g3, half of it by g1 and half by g2, 10 µs a hop."""
    problem = Problem(mesh(4), custom(4, [Chunk(MB, (0,), (3,))]))
    sends = [
        Send(hop, 0, src.format(by), dst.format(by), fraction=0.5)
        for by in (1, 2)
        for hop, (src, dst) in enumerate((("g0", "g{}"), ("g{}", "g3")))
    ]
    return problem, Schedule(tuple(sends), 10.0, 2)


MINIMAL = {
    "ring": ring_all_gather(mesh(4)),
    "ring with room to spare": ring_all_gather(mesh(4), epoch_duration=40),
    "ring with latency": ring_all_gather(mesh(4, alpha=0.7), epoch_duration=20.7),
    "line": line_all_gather(line(4)),
    "copying star": star_all_gather(star(4, copies=True)),
    "copying star with room to spare": star_all_gather(star(4, copies=True), epoch_duration=40),
    "star with stops": rounds_over_a_switch(through=False),
    "star cut-through": rounds_over_a_switch(through=True),
    "halves": halves(),
    "reduce-scatter": ring_reduce_scatter(mesh(4)),
    "reduce-scatter with room to spare": ring_reduce_scatter(mesh(4), epoch_duration=40),
    "all-reduce": ring_all_reduce(mesh(4)),
}
SPREADING = {name: made for name, made in MINIMAL.items() if "reduce" not in name}


@pytest.fixture(params=MINIMAL)
def minimal(request):
    return MINIMAL[request.param]


@pytest.fixture(params=SPREADING)
def spreading(request):
    return SPREADING[request.param]


def broken(problem: Problem, schedule: Schedule, place: int, *instead: Send) -> ScheduleError:
    """Return the error met when other sends stand in the place of one."""
    sends = (*schedule.sends[:place], *instead, *schedule.sends[place + 1 :])
    with pytest.raises(ScheduleError) as caught:
        verify(problem, replace(schedule, sends=sends))
    return caught.value


def test_untouched_they_are_let_through(minimal):
    verify(*minimal)


def test_no_send_may_be_lost(minimal):
    problem, schedule = minimal

    for place, lost in enumerate(schedule.sends):
        assert f"chunk {lost.chunk}" in str(broken(problem, schedule, place))


def test_a_lost_send_is_missed_where_it_is_first_needed(spreading):
    """That is when what it brought is sent on, or at the end; a switch notices what stays in it."""
    problem, schedule = spreading

    for place, lost in enumerate(schedule.sends):
        error = broken(problem, schedule, place)

        onward = [
            send.epoch
            for send in schedule.sends
            if (send.chunk, send.src) == (lost.chunk, lost.dst) and send.epoch > lost.epoch
        ]
        if error.where == "s" == lost.src:
            assert error.epoch == lost.epoch - 1
        else:
            assert error.where == lost.dst
            assert error.epoch == min(onward, default=schedule.horizon - 1)


def test_no_send_may_be_late(minimal):
    """One epoch later it is in the way of another, or missed by the next, or after the end."""
    problem, schedule = minimal

    for place, send in enumerate(schedule.sends):
        if send.epoch + 1 == schedule.horizon:
            with pytest.raises(ProblemError, match=f"is in epoch {schedule.horizon}"):
                replace(schedule, sends=(replace(send, epoch=send.epoch + 1),))
        else:
            error = broken(problem, schedule, place, replace(send, epoch=send.epoch + 1))
            assert error.time >= send.epoch * schedule.epoch_duration


def test_no_send_may_be_repeated(minimal):
    """Either its link has no time for it or it brings what is there already."""
    problem, schedule = minimal

    for place, send in enumerate(schedule.sends):
        error = broken(problem, schedule, place, send, send)

        ways = {f"{src}->{dst}" for src, dst in send.hops}
        assert error.where in {send.src, send.dst, *ways}
        assert error.epoch in {send.epoch, send.epoch + 1}


def redirected(problem: Problem, schedule: Schedule) -> Iterator[tuple[int, Send]]:
    for place, send in enumerate(schedule.sends):
        for device in problem.topology.devices:
            if device.name not in {send.dst, send.src, *send.via}:
                yield place, replace(send, dst=device.name)


def test_no_send_may_go_elsewhere(spreading):
    problem, schedule = spreading

    for place, astray in redirected(problem, schedule):
        error = broken(problem, schedule, place, astray)

        ends = {schedule.sends[place].dst, astray.src, astray.dst}
        assert error.where in ends | {f"{src}->{dst}" for src, dst in astray.hops}


def added_up(problem: Problem, schedule: Schedule) -> bool:
    """Add contributions up epoch by epoch, as numbers; a chunk must count every one once."""
    ranks = problem.topology.rank
    count = len(ranks)
    sums = np.tile(np.eye(count, dtype=int), (count, 1, 1))
    for epoch in range(schedule.horizon):
        before = sums.copy()
        for send in schedule.sends:
            if send.epoch == epoch:
                sums[send.chunk, ranks[send.dst]] += before[send.chunk, ranks[send.src]]
    return all((sums[chunk, chunk] == 1).all() for chunk in range(count))


@pytest.mark.parametrize("epoch_duration", [20, 40])
def test_a_sum_that_goes_elsewhere_is_let_through_only_if_it_still_adds_up(epoch_duration):
    """A contribution may skip a GPU of the ring, and then it joins the sum later on."""
    problem, schedule = ring_reduce_scatter(mesh(4), epoch_duration=epoch_duration)
    assert added_up(problem, schedule)

    right = wrong = 0
    for place, astray in redirected(problem, schedule):
        sends = (*schedule.sends[:place], astray, *schedule.sends[place + 1 :])
        mutant = replace(schedule, sends=sends)
        try:
            verify(problem, mutant)
        except CclError:
            wrong += 1
        else:
            right += 1
            assert added_up(problem, mutant)

    assert (right, wrong) == (12, 12)
