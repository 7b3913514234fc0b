"""One-shot sums: one message to everybody, or to a group and then to one's likes."""

import pytest

from ccl.collective import CollectiveKind, make_collective
from ccl.problem import Problem
from ccl.result import Status
from formulations import solve
from formulations.core.registry import formulation
from gallery import open_cluster


def asked(cluster: str, size: float, kind: CollectiveKind = "all-reduce") -> Problem:
    topology = open_cluster(cluster)
    return Problem(topology, make_collective(kind, len(topology.ranks), size))


@pytest.mark.slow
@pytest.mark.parametrize(("size", "makespan"), [(1e3, 0.7156), (16e3, 0.9489)])
def test_on_a_switch_it_is_optimal_for_small_sizes(size, makespan):
    """DGX H100: 0.7 us of latency and 7 vectors at 450 GB/s; cuts in time prove as much."""
    result = solve(asked("dgx-h100", size), time_limit=60)
    assert result.makespan == pytest.approx(0.7 + 7 * size / 450e3)
    assert result.makespan == pytest.approx(makespan, rel=1e-3)
    assert result.found_by == "one-shot"
    assert result.status is Status.OPTIMAL


def test_its_formula_is_met_on_one_port():
    result = solve(asked("star:gpus=6", 1e3), "one-shot")
    closed = result.closed_form
    assert closed.expression == "\N{GREEK SMALL LETTER ALPHA} + (p-1) m\N{GREEK SMALL LETTER BETA}"
    assert closed.makespan == pytest.approx(result.makespan)
    assert closed.steps == 1


def test_a_dgx_1_takes_no_longer_than_if_its_quads_exchange_then_their_likes():
    """Two steps of 0.7 us, 3 vectors then 1, over links of 25 and 50 GB/s."""
    result = solve(asked("dgx-1v", 1e3), "one-shot")
    assert 1.4 <= result.makespan <= 1.4 + 4 * 1e3 / 25e3
    assert result.makespan < solve(asked("dgx-1v", 1e3), "recursive-doubling").makespan


@pytest.mark.slow
def test_hosts_exchange_and_their_likes_while_vectors_are_still_on_their_way():
    """What comes early is in nothing that is sent later: 3.3 us of latency and little more."""
    result = solve(asked("dgx-h100:hosts=2", 1e3), "one-shot")
    assert result.makespan < 3.34
    assert all(send.terms for send in result.plan.sends)


def test_large_vectors_are_exchanged_in_groups():
    """Groups of 2 and of 4: 1 and 3 vectors of 1 MB out of each port of 50 GB/s, not 7."""
    result = solve(asked("star:gpus=8", 1e6), "one-shot")
    assert result.makespan == pytest.approx(4 * 1e6 / 50e3, rel=0.05)
    assert result.closed_form.steps == 2


@pytest.mark.parametrize(
    ("cluster", "size", "most"),
    [
        # Four hops of 0.7 us across the torus; in pieces, vectors are not stored whole on the way.
        ("torus", 1e3, 2.83),
        ("dgx-1v", 1e3, 1.44),
        ("dgx-1v", 16e3, 2.0),
        ("line", 1e3, 2.3),
    ],
)
def test_vectors_are_relayed_where_gpus_are_not_joined(cluster, size, most):
    result = solve(asked(cluster, size), "one-shot")
    assert result.makespan <= most
    assert all(len(send.terms) >= 1 for send in result.plan.sends)


@pytest.mark.parametrize(
    ("kind", "most"),
    [("all-reduce", 1.4 + 14e3 / 32e3), ("reduce", 1.4 + 7e3 / 32e3), ("reduce-scatter", 1.5)],
)
def test_memory_that_cannot_add_passes_vectors_on(kind, most):
    """Four times 0.35 us, and what others send, over a PCIe of 32 GB/s that two GPUs share."""
    result = solve(asked("pcie-server", 1e3, kind), "one-shot")
    assert result.makespan <= most * (1 + 1e-9)
    assert all(send.terms and len(send.terms) == 1 for send in result.plan.sends)
    assert any(send.src == "mem0" for send in result.plan.sends)


def test_a_vector_that_is_to_stay_whole_is_sent_in_the_chunks_of_the_question():
    topology = open_cluster("star:gpus=4")
    problem = Problem(topology, make_collective("all-reduce", 4, 1e3, chunks=1))
    result = solve(problem, "one-shot")
    assert result.plan.chunks in (None, 4)
    assert len(result.plan.sends) == 4 * 4 * 3


@pytest.mark.parametrize(
    ("cluster", "kind", "why"),
    [
        ("dgx-h100:hosts=32", "all-reduce", "65,280 messages"),
        ("star:gpus=4", "reduce", "direct sends contributions"),
    ],
)
def test_what_it_refuses(cluster, kind, why):
    assert why in formulation("one-shot").why_not(asked(cluster, 1e3, kind))
