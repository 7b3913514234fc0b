"""Sends that take next to nothing of a plan: sizes, bandwidths and latencies far apart."""

import math
from random import Random

import pytest

from ccl.collective import Chunk, CollectiveKind, custom, make_collective
from ccl.errors import ProblemError, ScheduleError
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.simulate.engine import Engine
from ccl.topology import Link, SharedLimit, Topology, device, duplex
from ccl.verify import verify, verify_timeline
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


STEPS = 50
"""Moments at which something happens in a replay, for each job, that are more than enough."""


@pytest.fixture(autouse=True)
def replays_come_to_an_end(monkeypatch):
    """Stop a replay in which more happens than can be of use."""
    steps: dict[Engine, int] = {}
    run, step = Engine.run, Engine._step

    def counted(self, now):
        steps[self] += 1
        assert steps[self] <= STEPS * (len(self._jobs) + 10), f"no end at {now!r} µs"
        step(self, now)

    def begun(self):
        steps[self] = 0
        run(self)

    monkeypatch.setattr(Engine, "_step", counted)
    monkeypatch.setattr(Engine, "run", begun)


def star(rates: list[tuple[float, float]], *, limits: list[tuple[str, float]]) -> Topology:
    """GPUs on a switch, ways to it first; limits over the ways "in" or "out" of it, or all."""
    names = [f"g{i}" for i in range(len(rates) // 2)]
    ends = [(name, "s") for name in names] + [("s", name) for name in names]
    links = tuple(Link(*pair, *rate) for pair, rate in zip(ends, rates, strict=True))
    some = {"in": ends[: len(names)], "out": ends[len(names) :], "all": ends}
    devices = (*(device("gpu", name) for name in names), device("switch", "s"))
    shared = [SharedLimit(f"l{i}", tuple(some[of]), most) for i, (of, most) in enumerate(limits)]
    return Topology("star", devices, links, tuple(shared))


def under_limits(seed: int) -> Problem:
    """A star whose links have up to 10**12 times the bandwidth of others."""
    random = Random(seed)
    bandwidths = random.choice([(1e-3, 1e3), (1e-6, 7.3, 1e3, 1e6), (33.3, 77.7, 11.1)])
    alphas = random.choice([(0.0,), (1.0,), (20.0,), (0.0, 0.7, 5.0), (1e-6, 1e3)])
    gpus = random.randint(2, 6)
    rates = [(random.choice(bandwidths), random.choice(alphas)) for _ in range(2 * gpus)]
    parts = {
        "in": sum(rate for rate, _ in rates[:gpus]),
        "out": sum(rate for rate, _ in rates[gpus:]),
    }
    limits = [(of, most * random.uniform(0.05, 0.9)) for of, most in parts.items()]
    kinds: tuple[CollectiveKind, ...] = ("all-gather", "all-to-all", "all-reduce", "gather")
    size = random.choice([1e-3, 1.0, 1e6, 1e9])
    collective = make_collective(random.choice(kinds), gpus, size, chunks=random.choice([1, 4]))
    return Problem(star(rates, limits=limits), collective)


@pytest.mark.parametrize("alpha", [0.0, 0.7, 1.0, 5.0])
def test_replays_under_limits_end_where_clocks_cannot_tell_moments_apart(alpha):
    """At 250,000 µs the last bytes over 1,000 GB/s take less than a clock of 64 bits can count."""
    rates = [(1e3, alpha)] * 8
    rates[0] = 1e-3, alpha
    topology = star(rates, limits=[("out", 900.0)])

    result = solve(Problem(topology, make_collective("all-gather", 4, 1e6)), "direct", time_limit=2)

    verify_timeline(result.problem, result.timeline)


def test_replays_of_next_to_no_bytes_under_limits_end():
    """1 byte in 15 chunks, after latencies of 20 µs."""
    topology = star([(12.0, 20.0), (25.0, 0.7)] * 5, limits=[("out", 12.0), ("all", 40.0)])
    problem = Problem(topology, make_collective("all-reduce", 5, 1.0, chunks=3))

    for name in ("direct", "ring", "tree"):
        result = solve(problem, name, time_limit=2)
        verify_timeline(result.problem, result.timeline)


@pytest.mark.parametrize("seed", range(80))
def test_replays_under_limits_end_and_obey(seed):
    result = solve(under_limits(seed), "direct", time_limit=2)

    verify_timeline(result.problem, result.timeline)


def test_what_takes_next_to_nothing_goes_on_in_the_epoch_that_is_meant():
    """It comes to the switch so soon after an epoch began that rounding could hide it."""
    into = [(1e3, 0.0), (1e3, 0.0), (1e-6, 0.0), (1e-6, 0.0)]
    out = [(1e-6, 0.0), (1e6, 0.0), (1e3, 0.0), (1e6, 0.0)]
    topology = star([*into, *out], limits=[("out", 1e6)])
    problem = Problem(topology, make_collective("all-reduce", 4, 4e-3, chunks=1))

    result = solve(problem, "direct", time_limit=2)

    verify_timeline(result.problem, result.timeline)
