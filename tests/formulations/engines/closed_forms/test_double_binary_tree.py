"""Double binary trees: no port used twice in a step, their formula on a star."""

import numpy as np
import pytest

from ccl.collective import make_collective
from ccl.problem import Problem
from formulations import formulation, solve
from formulations.engines.closed_forms.trees import double_tree, spread
from gallery import open_cluster

SIZE = 1e6
ALPHA, BETA = 1.4, 1 / 50e3
"""Two links of a star, 0.7 µs each, of 50 GB/s: µs, and µs per byte."""

NAME = "double-binary-tree"


def asked(cluster: str, kind: str, *, chunks: int = 1, root: int = 0) -> Problem:
    topology = open_cluster(cluster)
    ranks = len(topology.ranks)
    return Problem(topology, make_collective(kind, ranks, SIZE, chunks=chunks, root=root))


def levels(tree) -> int:
    """Edges from the root to the place that is farthest from it."""
    below = {-1: -1}
    for place in np.argsort(tree.first, kind="stable").tolist():
        below[place] = below[int(tree.parent[place])] + 1
    return max(below.values())


@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize("places", [*range(2, 34), 64, 100])
def test_whoever_has_children_in_one_tree_has_none_in_the_other(places, above):
    """Both trees reach every place over at most two children each.

    A row of n places is parted by the one that has half of the rest on either side, rounded to an
    odd number on the left: floor(log2 n) levels below the root.
    """
    trees = double_tree(places, above=above)

    row = places - 1 if above else places
    inner = [set(tree.parent.tolist()) - {-1, 0 if above else -1} for tree in trees]
    assert not inner[0] & inner[1]
    for tree in trees:
        assert sorted(dst for _, dst in tree.edges) == sorted(
            set(range(places)) - set(np.flatnonzero(tree.first < 0).tolist())
        )
        assert np.bincount(tree.parent[tree.parent >= 0]).max() <= 2
        assert levels(tree) == row.bit_length() - 1 + above
        assert tree.height <= 2 * levels(tree)


@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize("places", range(2, 34))
def test_no_place_sends_or_receives_two_chunks_in_one_step(places, above):
    """And it sends only what it received in a step before, or had as a root."""
    trees = double_tree(places, above=above)

    sent = spread(trees, np.arange(7))
    steps, chunks = sent.step.tolist(), sent.chunk.tolist()
    srcs, dsts = sent.src.tolist(), sent.dst.tolist()

    assert len(set(zip(steps, srcs, strict=True))) == len(sent)
    assert len(set(zip(steps, dsts, strict=True))) == len(sent)
    came = dict(zip(zip(chunks, dsts, strict=True), steps, strict=True))
    roots = [np.flatnonzero(tree.parent < 0).tolist() for tree in trees]
    for step, chunk, src in zip(steps, chunks, srcs, strict=True):
        assert src in roots[chunk % 2] or came[chunk, src] < step
    assert set(steps) == set(range(max(steps) + 1))


@pytest.mark.parametrize("kind", ["broadcast", "reduce"])
@pytest.mark.parametrize(("ranks", "height"), [(2, 2), (3, 4)])
def test_small_broadcasts_by_hand(ranks, height, kind):
    """2: the root sends chunk after chunk, n steps, h = 2.

    3: it sends chunk 0 to place 2 in step 0 and chunk 1 to place 1 in step 1; 2 passes chunk 0 to
    1 in step 2, as 1 is sent to in step 1, and 1 passes chunk 1 to 2 in step 3. h = 4.
    """
    result = solve(asked(f"star:gpus={ranks}", kind, chunks=6), NAME)

    form, makespan = result.closed_form, (height + 6 - 2) * (ALPHA + SIZE / 6 * BETA)
    assert form.makespan == pytest.approx(makespan, rel=1e-9)
    assert form.in_steps == pytest.approx(makespan, rel=1e-9)
    assert form.expression.endswith(f"h = {height}")


@pytest.mark.parametrize("kind", ["broadcast", "reduce", "all-reduce"])
@pytest.mark.parametrize("ranks", [3, 4, 7, 8, 13])
@pytest.mark.parametrize("chunks", [2, 8])
def test_steps_are_those_of_the_highest_tree_and_one_more_for_each_further_chunk(
    ranks, chunks, kind
):
    """h + n - 2 steps of α + m/n β, up and down again in an all-reduce, h at most 2 levels.

    Levels: floor(log2(p-1)) + 1 with a root above both trees, floor(log2 p) without.
    """
    result = solve(asked(f"star:gpus={ranks}", kind, chunks=chunks, root=ranks - 1), NAME)

    form, whole = result.closed_form, kind == "all-reduce"
    many = chunks * ranks if whole else chunks
    step = ALPHA + SIZE / many * BETA
    most = 2 * (ranks.bit_length() - 1 if whole else (ranks - 1).bit_length())
    assert form.makespan <= (1 + whole) * (most + many - 2) * step * (1 + 1e-9)
    assert form.makespan >= (1 + whole) * many / 2 * step
    assert form.in_steps == pytest.approx(form.makespan, rel=1e-9)
    assert form.steps * step == pytest.approx(form.makespan, rel=1e-9)
    assert result.makespan <= form.in_steps * (1 + 1e-9)


def test_many_chunks_take_half_the_time_of_one_binary_tree():
    """Without latencies and with n = 64: h + n - 2 steps against h + 2n - 2.

    The double tree is h + 62 steps of a 64th of 20 µs, h at most 6; the single one sends every
    chunk twice: h + 126, h at least 3.
    """
    problem = asked("star:gpus=8,alpha=0", "broadcast", chunks=64)

    double = solve(problem, NAME).closed_form.in_steps
    single = solve(problem, "tree", options={"shape": "binary"}).closed_form.in_steps

    assert double <= 68 / 64 * 20.0 * (1 + 1e-9)
    assert single >= 129 / 64 * 20.0 * (1 - 1e-9)


def test_an_all_reduce_of_two_sends_half_each_way():
    """Each is the root of one tree: m/2 goes to the other and back, both ways at once.

    That is 4 of 8 chunks, a step each, there and back.
    """
    result = solve(asked("star:gpus=2", "all-reduce", chunks=4), NAME)

    makespan = 8 * (ALPHA + SIZE / 8 * BETA)
    assert result.closed_form.makespan == pytest.approx(makespan)
    assert result.makespan <= makespan * (1 + 1e-9)
    assert result.closed_form.expression == "8 (α + mβ/n)"


def test_one_chunk_goes_along_one_tree_and_the_log_says_so():
    result = solve(asked("star:gpus=4", "broadcast"), NAME)

    assert "one chunk goes along one tree only; ask for two or more" in result.log


@pytest.mark.parametrize("kind", ["broadcast", "reduce", "all-reduce"])
def test_the_same_question_has_the_same_answer_over_relays(kind):
    problem = asked("dgx-1v", kind, chunks=4)

    assert solve(problem, NAME).plan == solve(problem, NAME).plan


def test_what_is_not_one_tree_to_all_is_refused_in_words():
    why = formulation(NAME).why_not(asked("star:gpus=4", "all-gather"))

    assert "it supports all-reduce" in (why or "")
