"""Sends that take next to nothing of a plan: sizes, bandwidths and latencies far apart."""

import math

import pytest

from ccl.collective import Chunk, custom, make_collective
from ccl.errors import ProblemError, ScheduleError
from ccl.problem import Problem
from ccl.schedule import Schedule, Send
from ccl.topology import Topology, device, duplex
from ccl.verify import verify
from formulations import available, formulation, solve


def line(*links: tuple[float, float]) -> Topology:
    """GPUs in a row, each joined to the next at so many GB/s and µs."""
    gpus = tuple(device("gpu", f"g{i}") for i in range(len(links) + 1))
    ends = [
        link
        for i, (bandwidth, alpha) in enumerate(links)
        for link in duplex(f"g{i}", f"g{i + 1}", bandwidth=bandwidth, alpha=alpha)
    ]
    return Topology("line", gpus, tuple(ends))


FAR = {
    "a byte beside a terabyte": Problem(
        line((50.0, 0.0), (50.0, 0.0)),
        custom(3, [Chunk(1e12, (0,), (2,)), Chunk(1.0, (1,), (2,)), Chunk(10.0, (0,), (1,))]),
    ),
    "a copied byte": Problem(
        line((50.0, 1.0), (50.0, 1.0)),
        custom(3, [Chunk(1e13, (0,), (1, 2)), Chunk(1.0, (1,), (0, 2))]),
    ),
    "a thousandth of a byte": Problem(
        line((1e-3, 0.0), (1e6, 0.0)),
        custom(3, [Chunk(1e12, (0,), (1,)), Chunk(1e-3, (1,), (2,)), Chunk(1e-3, (2,), (1,))]),
    ),
    "latency beside all else": Problem(
        line((1e3, 1e9), (1e3, 0.0)), make_collective("all-gather", 3, 3.0)
    ),
} | {
    f"links far apart, {kind}": Problem(
        line((1e-4, 0.0), (1e6, 0.0), (1e6, 0.0)), make_collective(kind, 4, 1e6)
    )
    for kind in ("all-gather", "all-to-all", "all-reduce", "reduce-scatter", "broadcast")
}


@pytest.mark.parametrize("case", FAR)
def test_the_default_has_a_plan(case):
    result = solve(FAR[case], time_limit=10)

    assert math.isfinite(result.makespan)
    assert not any("bug" in line for line in result.log)


@pytest.mark.parametrize("case", FAR)
@pytest.mark.parametrize("name", [each.name for each in available()])
def test_every_one_has_a_plan_or_says_why_not(name, case):
    if formulation(name).why_not(FAR[case]) is None:
        result = solve(FAR[case], name, time_limit=2)
        assert not any("bug" in line for line in result.log)


def test_a_linear_program_refuses_what_it_would_lose():
    chunks = [Chunk(1e9, (0,), (1,)), Chunk(1.0, (1,), (0,))]
    problem = Problem(line((50.0, 0.0)), custom(2, chunks))

    for name in ("te-ccl-lp", "orbit-lp", "thesis-fluid"):
        with pytest.raises(ProblemError, match=r"1 bytes are too little beside 1e\+09"):
            solve(problem, name)


def relayed(*, early: bool) -> tuple[Problem, Schedule]:
    """A byte that g1 hands on, when it has come or before, beside a megabyte of megaseconds."""
    collective = custom(3, [Chunk(1e12, (0,), (1,)), Chunk(1.0, (0,), (2,))])
    problem = Problem(line((50.0, 0.0), (50.0, 0.0)), collective)
    first, second = Send(0, 1, "g0", "g1"), Send(0, 1, "g1", "g2")
    last = Send(0, 0, "g0", "g1")
    sends = (second, last, first) if early else (first, second, last)
    return problem, Schedule(sends, 3e7, 1)


def test_a_byte_is_handed_on_when_it_has_come():
    verify(*relayed(early=False))


def test_a_byte_is_not_handed_on_before_it_has_come():
    with pytest.raises(ScheduleError, match="does not hold chunk 1"):
        verify(*relayed(early=True))
