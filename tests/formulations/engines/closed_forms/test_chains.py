"""Chains of stages: exchange, add up and spread, in pieces that take dimensions by turns."""

import numpy as np
import pytest

from ccl.collective import make_collective
from ccl.errors import LimitReached
from ccl.problem import Problem
from formulations import solve
from formulations.core.registry import formulation
from formulations.engines.closed_forms.words import Word, words_over
from formulations.engines.epoch_grid import relay_paths
from formulations.engines.list_scheduling.chains import MANY_TRANSFERS, Network, Stages
from formulations.schedules.chains import Distances, Search, chains_of, estimate
from gallery import open_cluster


def asked(cluster: str, size: float, *, chunks: int | None = None) -> Problem:
    topology = open_cluster(cluster)
    ranks = len(topology.ranks)
    return Problem(topology, make_collective("all-reduce", ranks, size, chunks=chunks))


@pytest.mark.parametrize(
    ("cluster", "size", "most"),
    [
        # Bounds on any plan: 1.72, 2.527 and 4.18 us; one-shot and trees take 1.96, 3.62 and 4.35.
        ("dgx-1v", 16e3, 1.74),
        ("hypercube", 64e3, 2.56),
        ("ndv2:hosts=2", 1e3, 4.2),
    ],
)
@pytest.mark.cover(12)
def test_it_is_close_to_what_no_plan_can_beat(cluster, size, most):
    result = solve(asked(cluster, size), "chains", time_limit=60)

    assert result.bound.makespan <= result.makespan <= most
    assert all(send.terms for send in result.plan.sends)


@pytest.mark.slow
def test_pieces_fill_all_dimensions_of_a_hypercube_by_turns():
    """Three stages of 0.7 us; the whole vector over each of three links of 50 GB/s, and no more."""
    result = solve(asked("hypercube", 64e3), "chains", time_limit=60)

    per_link = 3 * 0.7 + 64e3 / 50e3
    assert result.makespan < 0.8 * per_link
    assert result.plan.chunks % 3 == 0


@pytest.mark.slow
def test_hundreds_of_gpus_exchange_along_the_dimensions_of_their_torus():
    """6 x 6 x 6: the longest path has 9 links of 0.7 us; a vector of 1 KB takes next to nothing."""
    result = solve(asked("torus:shape=6x6x6", 1e3), "chains", time_limit=20)

    assert result.bound.makespan == pytest.approx(9 * 0.7)
    assert result.makespan < 1.04 * 9 * 0.7


def test_too_little_time_for_hundreds_of_gpus_is_said():
    """Of 216 GPUs an exchange is 216 x 15 messages, and seconds are foreseen for them."""
    with pytest.raises(LimitReached, match="chains found no schedule within"):
        solve(asked("torus:shape=6x6x6", 1e3), "chains", time_limit=0.2)


def test_stages_of_many_gpus_take_the_paths_along_their_rows():
    """32 hosts of 8: 65,280 transfers join their GPUs, and a stage along rails only 7,936."""
    topology = open_cluster("dgx-h100:hosts=32")
    network = Network(topology, most=1, over=lambda: True)
    rows = np.arange(256).reshape(32, 8).T

    joined = network.joined([rows])

    assert len(network.transfers) > MANY_TRANSFERS
    assert joined is not None
    along = network.transfers.chosen(
        np.flatnonzero(joined[network.transfers.src, network.transfers.dst])
    )
    assert len(along) == 8 * 32 * 31
    rank = {name: number for number, name in enumerate(topology.ranks)}
    assert all(rank[route[0]] % 8 == rank[route[-1]] % 8 for route in along.routes)
    assert (along.src == [topology.index[route[0]] for route in along.routes]).all()
    assert len(along.link) == sum(len(route) - 1 for route in along.routes)


@pytest.mark.parametrize("size", [1e3, 1e6])
@pytest.mark.parametrize("cluster", ["ndv2:hosts=2", "torus", "hypercube"])
@pytest.mark.cover(3)
def test_formulas_put_first_what_is_good(cluster, size):
    """The first word by its formulas, tried alone, is within half as much again as the best."""
    problem = asked(cluster, size)
    distances = Distances(problem)
    every = list(words_over(problem.topology, arrange=False))
    first = min(every, key=lambda each: estimate(each, size, distances))

    network = Network(problem.topology, most=1, over=lambda: False)
    sizes = np.array([each.size for each in problem.cut_into(first.pieces).collective.chunks])
    alone = Stages(network, chains_of(first), sizes).ordered(copies=4, goal=0.0)

    assert alone.makespan < 1.5 * solve(problem, "chains", time_limit=60).makespan


def test_two_gpus_exchange_their_vectors():
    """0.7 us and 1 MB at 50 GB/s."""
    result = solve(asked("full-mesh:gpus=2,alpha=0.7", 1e6), "chains")

    assert result.makespan == pytest.approx(0.7 + 1e6 / 50e3)


@pytest.mark.parametrize(
    ("word", "messages", "pieces"),
    [
        ("xxx", 8 * 3, 1),
        # Four halves go to owners, these exchange twice, and send to the other four.
        ("hxxs", 4 + 4 + 4 + 4, 2),
        # Here the last exchange is with everyone: 8 GPUs want 2 sums, which 4 have of one.
        ("hxx", 4 + 4 + 8 * 2 - 4, 2),
        ("hhhs", 7 + 7, 8),
    ],
)
def test_messages_of_a_word_on_a_cube(word, messages, pieces):
    each = Word(word, np.arange(8).reshape(2, 2, 2), ((2, 1, 0),))

    assert (each.messages, each.pieces) == (messages, pieces)


def test_every_stage_has_groups_of_the_one_before():
    for each in words_over(open_cluster("ndv2:hosts=2")):
        for chain in chains_of(each):
            assert chain.levels[-1] == (frozenset(range(16)),)
            for fine, coarse in zip(chain.levels[:-1], chain.levels[1:], strict=True):
                assert all(sum(part <= group for group in coarse) == 1 for part in fine)


@pytest.mark.parametrize("chunks", [1, 3])
def test_a_vector_that_is_to_stay_whole_is_sent_in_the_chunks_of_the_question(chunks):
    problem = asked("star:gpus=4", 1e3, chunks=chunks)

    result = solve(problem, "chains")

    assert result.plan.chunks in (None, len(problem.collective.chunks))


@pytest.mark.parametrize("able", ["copies=true", "reduces=true", "copies=true,reduces=true"])
def test_switches_that_could_add_or_copy_only_forward(able):
    plain, asked_for = (
        solve(asked(f"star:gpus=4{able}", 16e3), "chains", time_limit=20)
        for able in ("", f",{able}")
    )

    assert asked_for.makespan == pytest.approx(plain.makespan)


@pytest.mark.parametrize(
    ("cluster", "why"),
    [
        ("full-mesh:gpus=409", "166,872 messages"),
        pytest.param("dgx-h100:hosts=512", "4,096 GPUs", marks=pytest.mark.slow),
    ],
)
def test_what_it_refuses(cluster, why):
    assert why in formulation("chains").why_not(asked(cluster, 1e3))


def test_where_paths_are_too_many_to_be_listed_stages_take_the_shortest(monkeypatch):
    """Sums go to one of two GPUs at each leaf and from there to the others; not twice all along."""
    monkeypatch.setattr(relay_paths, "MOST", 600)
    monkeypatch.setattr(relay_paths, "FEW", 600)
    result = solve(asked("fat-tree:radix=4", 1e3), "chains", time_limit=20)

    assert result.makespan < 1.8 * 6 * 0.6


def test_the_best_are_three_candidates_and_each_is_cut_finer_once(monkeypatch):
    refined, leading = [], []

    def refine(search, each, pieces, makespan):
        refined.append(each)
        leading.append([candidate for *_, candidate in search.leading])
        real(search, each, pieces, makespan)

    real = Search._refine
    monkeypatch.setattr(Search, "_refine", refine)
    solve(asked("hypercube", 256e3), "chains")
    assert len(refined) == len({*refined}) >= 3
    assert all(len(each) == len({*each}) == 3 for each in leading)


def test_sums_within_each_host_are_among_the_first_words(monkeypatch):
    """With 32 GPUs there are 128 words; the shortest of them are the worst of these hosts."""
    tried: list[str] = []

    def attempt(search, each, pieces, *, sends):
        tried.append(each.letters)
        return real(search, each, pieces, sends=sends)

    real = Search._attempt
    monkeypatch.setattr(Search, "_attempt", attempt)
    solve(asked("dgx-h100:hosts=4", 64e3), "chains", time_limit=2)

    assert "hxs" in tried[:3]


def test_a_limit_that_is_over_at_once_leaves_time_for_a_plan():
    problem = asked("gb200-nvl72", 1e3)
    result = solve(problem, "chains", time_limit=0.02)

    assert result.bound.makespan <= result.makespan < 5
