"""Pairwise and direct exchange: every byte straight to where it is wanted."""

from dataclasses import replace

import pytest

from ccl.errors import LimitReached
from ccl.problem import Problem
from ccl.topology import Topology, device, duplex
from formulations import solve
from formulations.schedules import direct
from tests.formulations.engines.closed_forms.forms import (
    BETA,
    HOP,
    SIZE,
    STAR,
    as_written,
    asked,
    halves,
    solved,
)

KINDS = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chunks", [1, 2])
@pytest.mark.parametrize("ranks", [2, 3, 4, 6, 7, 8])
def test_pairs_exchange_a_shard_in_each_of_p_less_one_steps(ranks, chunks, kind):
    """(p-1) (α + m/p β), with partners i xor t for p a power of two and i + t else; twice for
    an all-reduce."""
    result = solved("pairwise", asked(f"star:gpus={ranks}", kind, chunks=chunks))

    as_written(result, halves(kind) * (ranks - 1) * (STAR + SIZE / ranks * BETA))


@pytest.mark.parametrize("kind", KINDS)
def test_on_a_full_mesh_as_well(kind):
    result = solved("pairwise", asked("full-mesh:gpus=5", kind))

    as_written(result, halves(kind) * 4 * (HOP + SIZE / 5 * BETA))


@pytest.mark.parametrize("name", ["pairwise", "direct"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_replay_is_a_latency_and_a_full_port(name, kind):
    """No chunk waits for another, so steps overlap: one latency each half and p-1 shards."""
    small = solved(name, asked("star:gpus=7", kind, size=1e-6))
    whole = solved(name, asked("star:gpus=7", kind))

    assert small.makespan == pytest.approx(halves(kind) * STAR)
    assert whole.makespan == pytest.approx(halves(kind) * (STAR + 6 / 7 * SIZE * BETA))


@pytest.mark.parametrize("kind", [*KINDS, "gather", "scatter"])
@pytest.mark.parametrize("chunks", [1, 3])
@pytest.mark.parametrize("ranks", [2, 3, 5, 8])
def test_all_at_once_through_one_port(ranks, chunks, kind):
    """In turn to i + 1, i + 2, ..., so no two meet at a receiver: α + (p-1)/p mβ."""
    result = solved("direct", asked(f"star:gpus={ranks}", kind, chunks=chunks))

    as_written(result, halves(kind) * (STAR + (ranks - 1) / ranks * SIZE * BETA))


@pytest.mark.parametrize("kind", ["broadcast", "reduce"])
def test_a_root_sends_everything_to_each(kind):
    result = solved("direct", asked("star:gpus=5", kind, root=2))

    as_written(result, STAR + 4 * SIZE * BETA)


def test_on_a_full_mesh_there_are_as_many_ports_as_partners():
    """α + m/p β rather than α + (p-1)/p mβ, and the sentence says so."""
    result = solved("direct", asked("full-mesh:gpus=8", "all-to-all"))

    form = result.closed_form
    assert result.makespan == pytest.approx(HOP + SIZE / 8 * BETA)
    assert form.makespan == pytest.approx(HOP + 7 / 8 * SIZE * BETA)
    assert "GPUs use several links at once" in form.why(result.makespan)


def test_direct_takes_quicker_ways_over_other_gpus_and_says_so():
    """Two GPUs over a slow switch, 1 MB at 1 GB/s, or over a third at 100 GB/s, 10 µs a hop."""
    names = ("g0", "g1", "g2")
    links = [
        *duplex("g0", "slow", bandwidth=1.0),
        *duplex("g1", "slow", bandwidth=1.0),
        *duplex("g0", "g2", bandwidth=100.0),
        *duplex("g1", "g2", bandwidth=100.0),
    ]
    gpus = tuple(device("gpu", name) for name in names)
    topology = Topology("detour", (*gpus, device("switch", "slow")), tuple(links))
    problem = Problem(topology, asked("star:gpus=3", "all-gather", size=3e6).collective)

    result = solve(problem, "direct")

    assert result.makespan == pytest.approx(20.0)
    assert result.closed_form.in_steps == pytest.approx(1000.0)
    assert "other paths are quicker (20 µs)" in result.closed_form.why(result.makespan)


@pytest.mark.parametrize("name", ["pairwise", "direct"])
@pytest.mark.parametrize("cluster", ["ring:gpus=5", "hypercube:dimension=3"])
@pytest.mark.parametrize("kind", KINDS)
def test_where_gpus_are_not_joined_those_between_pass_on(kind, cluster, name):
    problem = asked(cluster, kind, chunks=2)

    first, second = (solved(name, problem) for _ in range(2))

    assert first.plan == second.plan
    assert first.closed_form.alone > first.closed_form.makespan


def custom_exchange() -> Problem:
    """All-to-all as demands, for which there is no formula."""
    problem = asked("line:gpus=6", "all-to-all")
    return replace(problem, collective=replace(problem.collective, kind="custom"))


def test_direct_keeps_to_its_limit_where_there_are_many_sends(monkeypatch):
    monkeypatch.setattr(direct, "SOON", 3)
    with pytest.raises(LimitReached, match="only 3 of 30 sends were placed in time"):
        solve(custom_exchange(), "direct", time_limit=1e-6)


def test_direct_places_few_sends_whatever_the_limit():
    assert solve(custom_exchange(), "direct", time_limit=1e-6).makespan > 0
