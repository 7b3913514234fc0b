"""Switches split off, trees packed: what fits the cluster still does, and not one tree more."""

import itertools
from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from ccl.collective import Chunk, custom
from ccl.errors import LimitReached, SolveError
from ccl.plans import Forest
from ccl.problem import Problem
from ccl.result import Status, Stop
from ccl.topology import Link, Topology, device
from ccl.tree_embedding import steady_makespan
from ccl.verify import verify
from formulations import solve
from formulations.engines.forestcoll.plans import fixed_forest, load_of
from formulations.engines.forestcoll.search import arcs_of, forest_rate
from formulations.engines.forestcoll.splitting import Load, pack, split
from formulations.engines.kernels.maxflow import carries, flows_to
from formulations.engines.kernels.packing import split_off
from tests.formulations.engines.forestcoll.clusters import forest_of, random_cluster
from tests.formulations.engines.forestcoll.test_rates import asked

KINDS = ("all-gather", "reduce-scatter", "broadcast", "reduce")


def links_of(topology: Topology, forest: Forest) -> dict[tuple[str, str], Fraction]:
    """Return what each link carries, added up edge by edge, in shares of a root."""
    loads: defaultdict[tuple[str, str], Fraction] = defaultdict(Fraction)
    for tree in forest.every(topology):
        for route in tree.routes:
            for ends in itertools.pairwise(route):
                loads[ends] += tree.weight
    return loads


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(100, 125))
def test_trees_of_random_clusters_reach_the_rate_and_overload_no_link(seed, kind):
    """Verified, and exactly as fast as the worst cut allows; every second seed unbalanced GPUs."""
    topology = random_cluster(seed, gpus=3 + seed % 4, switches=seed % 5, even=seed % 2 == 0)
    problem = asked(topology, kind)
    rate = forest_rate(problem)

    found = forest_of(problem)

    verify(problem, found.forest)
    assert found.makespan == rate.makespan == steady_makespan(problem, found.forest)
    for ends, load in links_of(topology, found.forest).items():
        assert load * rate.speed <= Fraction(topology.link(*ends).bandwidth)
    roots = {tree.root for tree in found.forest.trees}
    for root in roots:
        copies = [each.weight * found.trees for each in found.forest.trees if each.root == root]
        assert all(each.denominator == 1 for each in copies)
        assert sum(copies) == found.trees


@pytest.mark.parametrize(
    "cluster",
    ["dgx-a100:hosts=2", "mi250:hosts=2", "ndv2:hosts=3", "dgx-2-te-ccl", "fat-tree", "dragonfly"],
)
def test_trees_of_gallery_clusters_reach_the_rate(cluster):
    problem = asked(cluster)

    found = forest_of(problem)

    verify(problem, found.forest)
    assert steady_makespan(problem, found.forest) == forest_rate(problem).makespan


def test_trees_of_rails_are_shallow():
    """A root sends to its rail's GPU in every host, which sends to its host: two edges."""
    assert forest_of(asked("dgx-a100:hosts=4")).forest.depth == 2


@pytest.mark.parametrize(("cluster", "gpus"), [("dgx-a100", 8), ("gb200-nvl72", 72)])
def test_a_broadcast_around_one_switch_goes_to_each_first_and_from_there_to_all(cluster, gpus):
    """One tree at the same rate would be a chain; trees by way of each other GPU have two edges."""
    problem = asked(cluster, "broadcast")

    found = forest_of(problem)

    verify(problem, found.forest)
    assert found.makespan == steady_makespan(problem, found.forest) == forest_rate(problem).makespan
    assert (found.trees, found.forest.depth) == (gpus - 1, 2)


@pytest.mark.parametrize("trees", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(130, 140))
def test_a_fixed_number_of_trees_is_kept(seed, trees):
    """Links as wide one way as the other stay so when rounded down to whole trees."""
    one_way = random_cluster(seed, gpus=4, switches=2, even=True)
    both = [replace(each, src=each.dst, dst=each.src) for each in one_way.links]
    topology = Topology("both ways", one_way.devices, (*one_way.links, *both))
    problem = asked(topology)
    rate = forest_rate(problem)

    found = fixed_forest(rate, trees)

    verify(problem, found.forest)
    assert found.trees == trees
    assert rate.makespan <= steady_makespan(problem, found.forest) == found.makespan
    assert all((tree.weight * trees).denominator == 1 for tree in found.forest.trees)


def test_no_number_of_trees_up_to_three_is_better_than_what_is_found():
    """Every capacity that is left out makes it worse: the next shorter time has no room."""
    rate = forest_rate(asked(random_cluster(7, even=True)))
    network, best = rate.network, rate.speed / rate.network.unit
    arcs = network.arcs
    for trees in (1, 2, 3):
        found = fixed_forest(rate, trees)
        time = found.makespan * 1000 * network.unit * trees / network.share
        less = np.array([int(each * time * Fraction(999, 1000)) for each in network.capacity])
        graph = arcs.first, arcs.head, arcs.rev, arcs.of_links(less), network.weight, network.sinks
        assert time == trees / best or not carries(*graph, trees)


def fits(load: Load, capacity: dict[tuple[int, int], int]) -> bool:
    """Say whether all trees still fit such capacities, by flows from scratch."""
    ends = np.array([each for each in capacity if capacity[each]])
    arcs = arcs_of(len(load.trees), ends[:, 0], ends[:, 1], roots=load.network.gpus)
    values = arcs.of_links(np.array([each for each in capacity.values() if each]))
    graph = arcs.first, arcs.head, arcs.rev, values, load.trees, load.network.sinks
    return bool(carries(*graph, 1))


def most_by_trying(load: Load, capacity: dict[tuple[int, int], int], way: tuple[int, ...]) -> int:
    """Return how much can be split off a way of two links, one unit after the other."""
    u, w, t = way
    most = 0
    while capacity.get((u, w), 0) and capacity.get((w, t), 0):
        after = dict(capacity)
        after[u, w] -= 1
        after[w, t] -= 1
        if u != t:
            after[u, t] = after.get((u, t), 0) + 1
        if not fits(load, after):
            break
        capacity, most = after, most + 1
    return most


@pytest.mark.parametrize("seed", range(140, 170))
def test_as_much_is_split_off_as_can_be(seed):
    """One pair at a switch, against trying one unit after the other with flows from scratch."""
    topology = random_cluster(seed, gpus=4, switches=2)
    load = load_of(forest_rate(asked(topology)))
    network = load.network
    capacity = dict(
        zip(
            zip(network.src.tolist(), network.dst.tolist(), strict=True),
            load.capacity.tolist(),
            strict=True,
        )
    )
    for hub in range(4, len(topology.devices)):
        into = [a for a, b in capacity if b == hub]
        out = [b for a, b in capacity if a == hub]
        for u, t in itertools.product(into, out):
            ends = dict.fromkeys([*capacity, *[(u, t)] * (u != t)])
            src, dst = (np.array(each) for each in zip(*ends, strict=True))
            arcs = arcs_of(len(load.trees), src, dst, roots=network.gpus)
            values = arcs.of_links(np.array([capacity.get(each, 0) for each in ends]))
            room = flows_to(arcs.first, arcs.head, arcs.rev, values, load.trees, network.sinks, 1)
            # Splitting knows no source.
            room[:, arcs.head[: room.shape[1]] == len(load.trees)] = 0
            place = dict(zip(ends, arcs.place.tolist(), strict=True))
            across = place[u, t] if u != t else -1
            pair = np.array([[place[u, hub], place[hub, t], across, 10**9]])

            done = split_off(arcs.first[:-1], arcs.head, arcs.rev, values, room, pair, hub)

            assert done[0] == most_by_trying(load, capacity, (u, hub, t))


@pytest.mark.parametrize("seed", range(170, 190))
def test_connections_carry_what_their_ways_do_and_all_trees_still_fit(seed):
    topology = random_cluster(seed, gpus=5, switches=4)
    load = load_of(forest_rate(asked(topology)))

    found = split(load)

    gpus = set(load.network.gpus.tolist())
    ends = zip(found.tail.tolist(), found.head.tolist(), strict=True)
    capacity = dict(zip(ends, found.capacity.tolist(), strict=True))
    assert fits(load, capacity)
    links: Counter[tuple[int, int]] = Counter()
    for pair, ways in found.routes.items():
        assert sum(many for _, many in ways) == capacity[pair]
        for way, many in ways:
            assert (way[0], way[-1]) == pair
            assert gpus.isdisjoint(way[1:-1])
            links.update(dict.fromkeys(itertools.pairwise(way), many))
    for src, dst, most in zip(load.network.src, load.network.dst, load.capacity, strict=True):
        assert links[int(src), int(dst)] <= most


def test_packing_leaves_no_tree_out_where_capacity_is_tight():
    """A one-way ring of three: each link carries the trees of all but one root, and is full."""
    names = ("g0", "g1", "g2")
    ring = tuple(Link(names[i], names[(i + 1) % 3], 4.0) for i in range(3))
    topology = Topology("ring", tuple(device("gpu", name) for name in names), ring)
    load = load_of(forest_rate(asked(topology)))

    trees = pack(load, split(load))

    assert {each.root: each.edges for each in trees} == {
        0: ((0, 1), (1, 2)),
        1: ((1, 2), (2, 0)),
        2: ((2, 0), (0, 1)),
    }
    assert [each.copies for each in trees] == [1, 1, 1]


def test_a_switch_is_not_crossed_where_the_trees_do_without():
    """Of rails under a spine the spine is not needed: no route has more than two links."""
    forest = forest_of(asked("dgx-a100:hosts=3,fabric=rail")).forest

    assert max(len(route) for tree in forest.trees for route in tree.routes) == 3


def test_a_way_round_that_is_not_needed_stays_where_without_it_a_switch_is_out_of_balance():
    """s0 sends 1 of 2 GB/s to s1 over the switch far; 1 is enough, but s0 takes in 2."""
    devices = [device("gpu", "g0"), device("gpu", "g1")]
    devices += [device("switch", name) for name in ("s0", "s1", "far")]
    links = (
        *(Link("g0", "s0", 2.0), Link("s0", "s1", 1.0), Link("s0", "far", 1.0)),
        *(Link("far", "s1", 1.0), Link("s1", "g1", 2.0), Link("g1", "g0", 1.0)),
    )
    problem = asked(Topology("way round", tuple(devices), links))

    found = forest_of(problem)

    verify(problem, found.forest)
    assert steady_makespan(problem, found.forest) == forest_rate(problem).makespan


def test_too_many_connections_are_refused_before_memory_runs_out(monkeypatch):
    monkeypatch.setattr("formulations.engines.forestcoll.splitting.NUMBERS", 1000)

    with pytest.raises(SolveError, match=r"numbers to split rail0 off.* take orbit-trees"):
        forest_of(asked("dgx-a100:hosts=2"))


def test_an_all_reduce_is_both_halves_at_once():
    problem = asked("mi250:hosts=1", "all-reduce")

    found = forest_of(problem)

    verify(problem, found.forest)
    assert found.forest.reduces
    assert found.forest.spread
    assert steady_makespan(problem, found.forest) <= found.makespan


def test_roots_with_more_data_have_as_many_more_trees():
    topology = random_cluster(3, gpus=4)
    everyone = [tuple(rank for rank in range(4) if rank != root) for root in range(4)]
    chunks = [Chunk((root + 1) * 1e6, (root,), everyone[root]) for root in range(4)]
    problem = Problem(topology, custom(4, chunks))

    found = forest_of(problem)

    verify(problem, found.forest)
    assert steady_makespan(problem, found.forest) == forest_rate(problem).makespan


def test_the_formulation_says_depth_and_trees_and_proves_its_rate():
    result = solve(asked("mi250:hosts=2"), "forestcoll")

    assert result.status is Status.THROUGHPUT
    assert result.stop is Stop.RATE
    assert result.steady_makespan == pytest.approx(1e6 / (166 / 15 * 1e3))
    assert any("83 trees per root" in line and "GPUs deep" in line for line in result.log)
    assert any(each.steady and each.kind == "cut" for each in result.bounds)


@pytest.mark.slow
def test_a_scan_takes_the_best_number_of_trees():
    """Of 1, 2, 3 and 4 trees on two MI250 boxes 3 are best, 342.86 GB/s; 83 need no scan of 90."""
    problem = asked("mi250:hosts=2")

    scanned = solve(problem, "forestcoll", options={"scan": 4})
    whole = solve(problem, "forestcoll", options={"scan": 90})

    assert scanned.steady_makespan == pytest.approx(32e6 / (32 * 75 / 7) / 1e3)
    assert "3 trees per root are 3.29% slower than the best rate" in scanned.log
    assert whole.status is Status.THROUGHPUT


def test_a_switch_that_could_copy_is_told():
    result = solve(asked("star:gpus=4,copies=true"), "forestcoll")

    assert "switch could copy or add up, and relays here: the cut allows no more" in result.log
    assert result.status is Status.THROUGHPUT


def test_a_limit_stops_between_trees(monkeypatch):
    monkeypatch.setattr("formulations.models.forestcoll.GRACE", 0.0)
    with pytest.raises(LimitReached, match="of 64 roots after"):
        solve(asked("mi250:hosts=4"), "forestcoll", time_limit=1e-3)


def test_whole_trees_on_one_way_links_may_leave_a_switch_that_cannot_be_split():
    """A link into s carries 5 k / 10 trees for every k out of it, rounded down."""
    gpus = tuple(device("gpu", f"g{i}") for i in range(3))
    links = (
        *(Link(f"g{i}", "s", 5.0) for i in range(2)),
        Link("s", "g2", 10.0),
        *(Link("g2", f"g{i}", 7.0) for i in range(2)),
    )
    problem = asked(Topology("funnel", (*gpus, device("switch", "s")), links))

    for trees in (1, 2, 3):
        try:
            found = forest_of(problem, trees=trees)
        except SolveError as error:
            assert "ask for another number of trees" in str(error)  # noqa: PT017
        else:
            verify(problem, found.forest)
            assert found.makespan >= forest_rate(problem).makespan
