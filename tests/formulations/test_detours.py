"""Among equal plans the one that moves least: ties, and detours that are left out at the end."""

from __future__ import annotations

import pytest

from ccl.collective import all_to_all
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.result import Stop
from ccl.topology import Topology, device, duplex
from ccl.verify import verify
from formulations.bounds import lower_bounds
from formulations.core.detours import moves_less
from formulations.core.run import Run
from tests.ccl.clusters import mesh, star

MB = 1e6


def run_of(problem: Problem) -> Run:
    return Run(problem=problem, formulation="test", options={}, bounds=lower_bounds(problem))


def chunk_of(problem: Problem, src: int, dst: int) -> int:
    """Number of the chunk that one rank has for another."""
    chunks = problem.collective.chunks
    return next(
        number
        for number, each in enumerate(chunks)
        if each.holders == (src,) and each.destinations == (dst,)
    )


def straight_sends(problem: Problem, *, without: tuple[int, int]) -> list[Send]:
    """Every chunk over the link that joins its ends, but one."""
    return [
        Send(0, number, f"g{each.holders[0]}", f"g{each.destinations[0]}")
        for number, each in enumerate(problem.collective.chunks)
        if each.holders != each.destinations and (each.holders[0], each.destinations[0]) != without
    ]


@pytest.fixture
def problem() -> Problem:
    """Three GPUs, each joined to each: 1 MB for another one takes 20 µs over 50 GB/s.

    From g0 to g1 a chunk may go over g2 too, which takes two sends.
    """
    return Problem(mesh(3), all_to_all(3, 3 * MB))


def detoured(problem: Problem) -> Schedule:
    """The chunk of g0 for g1 goes over g2, behind what these links carry for g2 and g1."""
    number = chunk_of(problem, 0, 1)
    over = [Send(1, number, "g0", "g2"), Send(2, number, "g2", "g1")]
    return Schedule((*straight_sends(problem, without=(0, 1)), *over), 20.0, 3)


def test_a_needless_detour_is_left_out_of_the_final_plan(problem):
    run = run_of(problem)
    run.offer(detoured(problem))
    before = run.best
    assert before is not None
    after = run.end(Stop.CONSTRUCTED)

    assert isinstance(after.plan, Schedule)
    assert len(after.plan.sends) == len(before.plan.sends) - 1 == 6
    assert after.makespan <= before.makespan
    assert moves_less(after, before)
    [straight] = [send for send in after.plan.sends if send.chunk == chunk_of(problem, 0, 1)]
    assert (straight.src, straight.dst) == ("g0", "g1")
    verify(problem, after.plan)


def test_a_detour_over_a_gpu_becomes_one_send_over_the_switch():
    """Each send has an epoch of its own; what went g0, s, g2, s, g1 goes g0, s, g1."""
    problem = Problem(star(3), all_to_all(3, 3 * MB))
    number = chunk_of(problem, 0, 1)
    others = [(each.chunk, each.src, each.dst) for each in straight_sends(problem, without=(0, 1))]
    hops = [(number, "g0", "g2"), (number, "g2", "g1"), *others]
    sends = (Send(at, chunk, src, dst, ("s",)) for at, (chunk, src, dst) in enumerate(hops))
    run = run_of(problem)
    run.offer(Schedule(tuple(sends), 40.0, len(hops)))
    after = run.end(Stop.CONSTRUCTED)

    assert isinstance(after.plan, Schedule)
    [straight] = [send for send in after.plan.sends if send.chunk == number]
    assert (straight.src, straight.via, straight.dst) == ("g0", ("s",), "g1")


def test_a_detour_that_saves_time_stays():
    """From g0 to g1 there is a link of 1 GB/s; over g2, both links have 50 GB/s."""
    names = ["g0", "g1", "g2"]
    links = (
        *duplex("g0", "g1", bandwidth=1.0),
        *duplex("g0", "g2", bandwidth=50.0),
        *duplex("g2", "g1", bandwidth=50.0),
    )
    topology = Topology("slow", tuple(device("gpu", name) for name in names), links)
    problem = Problem(topology, all_to_all(3, 3 * MB))
    there, back = chunk_of(problem, 0, 1), chunk_of(problem, 1, 0)
    plan = Schedule(
        (
            *(each for each in straight_sends(problem, without=(0, 1)) if each.chunk != back),
            Send(1, there, "g0", "g2"),
            Send(2, there, "g2", "g1"),
            Send(1, back, "g1", "g2"),
            Send(2, back, "g2", "g0"),
        ),
        20.0,
        3,
    )
    run = run_of(problem)
    run.offer(plan)

    assert run.end(Stop.CONSTRUCTED).plan == plan


def test_of_two_plans_that_take_as_long_the_one_that_moves_less_stays(problem):
    """g1 sends what is for g2 in a third epoch in both, so that both take 60 µs."""
    number = chunk_of(problem, 1, 2)
    slow = [
        Send(2, number, each.src, each.dst) if each.chunk == number else each
        for each in straight_sends(problem, without=(0, 1))
    ]
    long = detoured(problem)
    straight = Schedule((*slow, Send(0, chunk_of(problem, 0, 1), "g0", "g1")), 20.0, 3)
    run = run_of(problem)
    run.offer(long)
    run.offer(straight)
    assert run.best is not None
    assert run.best.plan == straight
    run.offer(long)
    assert run.best.plan == straight
