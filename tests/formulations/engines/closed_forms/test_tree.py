"""Trees: their formulas on a star, their order on hosts, what they refuse."""

import math

import numpy as np
import pytest

from ccl.collective import make_collective
from ccl.errors import Infeasible, ProblemError
from ccl.problem import Problem
from ccl.topology import Link, Topology, device
from formulations import formulation, solve
from formulations.engines.closed_forms.hosts import from_first, laid
from formulations.engines.closed_forms.trees import SHAPES
from gallery import open_cluster
from gallery.build import Wire, star, switched_hosts

SIZE = 1e6
ALPHA, BETA = 1.4, 1 / 50e3
"""Two links of a star, 0.7 µs each, of 50 GB/s: µs, and µs per byte, the second link as the first
sends on what it receives."""

RANKS = (2, 3, 5, 8, 11)


def asked(cluster: str, kind: str, *, chunks: int = 1, root: int = 0) -> Problem:
    topology = open_cluster(cluster)
    ranks = len(topology.ranks)
    return Problem(topology, make_collective(kind, ranks, SIZE, chunks=chunks, root=root))


def solved(problem: Problem, **options):
    return solve(problem, "tree", options=options)


def as_written(result, makespan: float) -> None:
    """The formula, the steps on the star and what is derived agree; the replay is not later."""
    form = result.closed_form
    assert form.makespan == pytest.approx(makespan, rel=1e-9)
    assert form.in_steps == pytest.approx(makespan, rel=1e-9)
    assert result.makespan <= form.in_steps * (1 + 1e-9)


def turns(kind: str) -> int:
    return 2 if kind == "all-reduce" else 1


@pytest.mark.parametrize("kind", ["broadcast", "reduce", "all-reduce"])
@pytest.mark.parametrize("ranks", RANKS)
def test_binomial_tree_doubles_who_has_the_data_in_each_step(ranks, kind):
    """After t steps 2^t GPUs have all m bytes: ceil(log2 p) steps of α + m β; both ways twice."""
    result = solved(asked(f"star:gpus={ranks}", kind, chunks=2))

    steps = math.ceil(math.log2(ranks))
    as_written(result, turns(kind) * steps * (ALPHA + SIZE * BETA))


@pytest.mark.parametrize("kind", ["broadcast", "reduce", "all-reduce"])
@pytest.mark.parametrize("ranks", RANKS)
def test_chain_takes_one_step_more_for_each_further_chunk(ranks, kind):
    """Chunk j leaves the root in step j and is at the last of p in step j + p - 2, from 0.

    So the last of n chunks is there after n + p - 2 steps of α + m/n β. An all-reduce has p c
    chunks and goes up and down.
    """
    result = solved(asked(f"star:gpus={ranks}", kind, chunks=3), shape="chain")

    chunks = 3 * ranks if kind == "all-reduce" else 3
    as_written(result, turns(kind) * (ranks + chunks - 2) * (ALPHA + SIZE / chunks * BETA))


@pytest.mark.parametrize("kind", ["broadcast", "reduce", "all-reduce"])
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_binary_tree_sends_a_chunk_twice(levels, kind):
    """A full tree of d levels below the root has 2^(d+1) - 1 places.

    Left children get a chunk one step after their parent, right ones two, so the last place has
    the first chunk after 2 d steps, and another every second step: 2 (d + n - 1) of α + m/n β.
    """
    ranks = 2 ** (levels + 1) - 1
    result = solved(asked(f"star:gpus={ranks}", kind, chunks=3), shape="binary")

    chunks = 3 * ranks if kind == "all-reduce" else 3
    steps = 2 * (levels + chunks - 1)
    as_written(result, turns(kind) * steps * (ALPHA + SIZE / chunks * BETA))


def below(places: int) -> int:
    """Steps until so many places below a root have a chunk, by the halves that its children have.

    The child that is sent to first, after 1 step, has half of them rounded up, itself among them;
    the other, after 2, the rest.
    """
    if places < 2:
        return places
    return max(1 + below((places + 1) // 2 - 1), 2 + below(places // 2 - 1))


@pytest.mark.parametrize("ranks", [2, *range(4, 15)])
def test_a_binary_tree_that_is_not_full_counts_the_steps_to_its_last_place(ranks):
    """Another chunk comes every second step, so it is (h + 2n - 2) (α + m/n β).

    Two GPUs are a chain, which has one in every step.
    """
    result = solved(asked(f"star:gpus={ranks}", "broadcast", chunks=4), shape="binary")

    steps = below(ranks - 1) + (2 if ranks > 2 else 1) * 3
    as_written(result, steps * (ALPHA + SIZE / 4 * BETA))


@pytest.mark.parametrize("kind", ["broadcast", "reduce", "all-reduce"])
@pytest.mark.parametrize("ranks", RANKS)
def test_flat_tree_has_everything_on_the_roots_link(ranks, kind):
    """p - 1 times m bytes one after the other over one link, the last a latency later."""
    result = solved(asked(f"star:gpus={ranks}", kind), shape="flat")

    as_written(result, turns(kind) * (ALPHA + (ranks - 1) * SIZE * BETA))


@pytest.mark.parametrize("kind", ["gather", "scatter"])
@pytest.mark.parametrize(("shape", "steps"), [("binomial", True), ("flat", False)])
@pytest.mark.parametrize("ranks", RANKS)
def test_shards_of_a_subtree_go_together(ranks, shape, steps, kind):
    """The root sends every other shard once, (p-1)/p m bytes; the others have less to send.

    In the step of distance d the root sends d shards (the first time p - d, if that is less),
    a place i at most min(d, p - i - d) of them, so each step is as long as the root's.
    """
    result = solved(asked(f"star:gpus={ranks}", kind, chunks=2, root=ranks // 2), shape=shape)

    many = math.ceil(math.log2(ranks)) if steps else 1
    as_written(result, many * ALPHA + (ranks - 1) / ranks * SIZE * BETA)


@pytest.mark.parametrize("kind", ["gather", "scatter"])
@pytest.mark.parametrize("shape", ["chain", "binary"])
@pytest.mark.parametrize("ranks", RANKS)
def test_shards_leave_the_root_one_in_each_step_the_farthest_first(ranks, shape, kind):
    """A shard at distance d needs d - 1 steps after it has left the root.

    At least d - 1 shards leave after it: those of the places on its way. So all are there when the
    last has left and is there: p - 1 steps of α + m/p β.
    """
    result = solved(asked(f"star:gpus={ranks}", kind, chunks=2), shape=shape)

    as_written(result, (ranks - 1) * (ALPHA + SIZE / ranks * BETA))


def test_a_chain_on_a_line_takes_its_formula():
    """A line of 5, from end to end: neighbours are one link of 0.7 µs apart."""
    result = solved(asked("line:gpus=5", "broadcast", chunks=4), shape="chain")

    as_written(result, (5 + 4 - 2) * (0.7 + SIZE / 4 * BETA))


@pytest.mark.parametrize("kind", ["broadcast", "reduce", "gather", "scatter"])
def test_a_binomial_tree_is_laid_on_a_hypercube(kind):
    """Place i and place i + 2^t differ in one digit: every message crosses one link."""
    result = solved(asked("hypercube:dimension=3", kind, root=5))

    shards = 7 / 8 if kind in ("gather", "scatter") else 3
    as_written(result, 3 * 0.7 + shards * SIZE * BETA)


@pytest.mark.parametrize("shape", ["binomial", "binary", "chain"])
@pytest.mark.parametrize("hosts", [2, 3, 5])
@pytest.mark.parametrize("root", [0, 6])
def test_one_gpu_of_each_host_receives_from_outside(shape, hosts, root):
    """Hosts of 4 GPUs are rows of places; of each but the root's one place has its parent outside.

    A row of 4 places from a multiple of 4 on is a binomial subtree; binary trees part between
    hosts; a chain passes each once.
    """
    topology = switched(hosts, 4)
    blocks = from_first(topology, root)
    tree = SHAPES[shape]([4 * i for i in range(hosts)], 4 * hosts)
    order = laid(topology, blocks, tree.edges)

    assert order[0] == root
    crossed = [(src, dst) for src, dst in tree.edges if order[src] // 4 != order[dst] // 4]
    assert sorted(order[dst] // 4 for _, dst in crossed) == sorted(set(range(hosts)) - {root // 4})


def switched(hosts: int, gpus: int) -> Topology:
    """Hosts with a switch each, at 200 GB/s, on one switch at 25."""
    devices, links, boxes = switched_hosts(hosts, gpus, wire(200.0), switch="s")
    links += star("hub", [name for box in boxes for name in box], wire(25.0))
    return Topology("hosts", (*devices, device("switch", "hub")), tuple(links))


def wire(bandwidth: float) -> Wire:
    return Wire(bandwidth=bandwidth, alpha=1.0, medium="")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("places", range(2, 40))
def test_trees_reach_every_place_once_and_over_one_port(shape, places):
    """Each place has a parent that has the chunk before; in a step it sends to one child."""
    tree = SHAPES[shape]([0], places)

    assert [dst for _, dst in tree.edges] == list(range(1, places))
    flat = shape == "flat"
    assert all(tree.first[src] < tree.first[dst] for src, dst in tree.edges)
    sent = tree.spread(np.arange(3))
    turns = set(zip(sent.step.tolist(), sent.src.tolist(), sent.chunk.tolist(), strict=True))
    if not flat:
        assert len(turns) == len(sent)
    if tree.stride:
        assert len({turn[:2] for turn in turns}) == len(sent)


def test_an_all_reduce_is_added_up_at_the_gpu_with_the_fastest_ways_or_where_it_is_told():
    """Of a star with one link of 500 GB/s that GPU is the root: both halves pass its faster link.

    The flat tree then waits for nobody's but its leaves' links: 7 times 1 MB over 500 GB/s each
    way would be 14 µs, and every leaf needs 20 µs for its 1 MB; from another root it is 140 µs.
    """
    topology = open_cluster("star:gpus=8,wide=1,alpha=0")
    problem = Problem(topology, make_collective("all-reduce", 8, SIZE))

    best = solved(problem, shape="flat")
    told = solved(problem, shape="flat", all_reduce_root=3)

    assert best.makespan < 2 * 36.0
    assert told.makespan == pytest.approx(2 * 140.0)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["broadcast", "all-reduce", "gather"])
def test_trees_over_relays_are_verified_and_repeat(shape, kind):
    """DGX-1V has no link between some GPUs: chunks go over others, which keep them."""
    problem = asked("dgx-1v", kind, chunks=2)

    assert solved(problem, shape=shape).plan == solved(problem, shape=shape).plan


@pytest.mark.parametrize("shape", ["binomial", "binary", "flat"])
def test_places_are_dealt_so_that_one_way_links_lead_from_parents_to_children(shape):
    """g1 -> g0, then g0 -> g2 and g0 -> g3: nothing leads on from g2 or g3, and they have no child.

    A chain would need one.
    """
    links = [Link("g1", "g0", 50.0), Link("g0", "g2", 50.0), Link("g0", "g3", 50.0)]
    topology = Topology("fork", tuple(device("gpu", f"g{i}") for i in range(4)), tuple(links))
    problem = Problem(topology, make_collective("broadcast", 4, SIZE, root=1))

    result = solved(problem, shape=shape)

    assert {(send.src, send.dst) for send in result.plan.sends} == {each.ends for each in links}
    with pytest.raises(Infeasible, match="no path"):
        solved(problem, shape="chain")


def test_what_a_tree_does_not_take_is_said_in_words():
    gathering = asked("star:gpus=4", "all-gather")
    assert "it supports all-reduce" in (formulation("tree").why_not(gathering) or "")
    with pytest.raises(ProblemError, match="option all_reduce_root is 4; ranks go from 0 to 3"):
        solved(asked("star:gpus=4", "all-reduce"), all_reduce_root=4)
    with pytest.raises(ProblemError, match="choose one of binomial, binary, chain, flat"):
        solved(asked("star:gpus=4", "broadcast"), shape="bush")
