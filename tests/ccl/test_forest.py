"""Forests of all-reduces and of symmetric clusters: what they stand for, are refused for, take."""

from __future__ import annotations

import itertools
import time
from collections import Counter, defaultdict, deque
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from ccl.collective import Chunk, all_gather, all_reduce, broadcast, custom, reduce_scatter
from ccl.errors import ScheduleError
from ccl.plans import Flow, Forest, Rate, Tree, depth_of
from ccl.problem import Problem
from ccl.simulate import simulate
from ccl.symmetry import Symmetry, symmetry_of
from ccl.timeline import Timeline, critical_path, link_load, link_utilisation
from ccl.topology import Link, SharedLimit, Topology, device
from ccl.tree_embedding import exact, steady_loads, steady_makespan
from ccl.verify import verify, verify_timeline
from gallery import open_cluster
from tests.ccl.clusters import MB, gpus, mesh, ring, star
from tests.ccl.judging import replay
from tests.ccl.test_verify_steady import around, both_ways, refused, upside_down

ONE = Fraction(1)


def quickest(topology, root):
    """A tree of fewest links from a rank, found breadth first over devices that store."""
    names = topology.ranks
    came, routes, front = {names[root]: None}, [], deque([names[root]])
    while front:
        start = front.popleft()
        ways = deque([(start,)])
        seen = {start}
        while ways:
            way = ways.popleft()
            for link in topology.links_out[way[-1]]:
                if link.dst in seen:
                    continue
                seen.add(link.dst)
                if not topology.device(link.dst).stores:
                    ways.append((*way, link.dst))
                elif link.dst not in came:
                    came[link.dst] = start
                    routes.append((*way, link.dst))
                    front.append(link.dst)
    return Tree(root, tuple(routes), ONE)


def symmetric(name, *, reduces=False):
    """A quickest tree of one rank of each orbit, and its images."""
    topology = open_cluster(name)
    group = symmetry_of(topology)
    roots = np.unique(group.orbits(group.ranks)).tolist()
    trees = tuple(quickest(topology, root) for root in roots)
    make = reduce_scatter if reduces else all_gather
    count = len(topology.ranks)
    turned = tuple(upside_down(tree) for tree in trees) if reduces else trees
    return Problem(topology, make(count, count * MB)), Forest(turned, reduces, symmetry=group)


def sums_at_one(count):
    """An all-reduce on a mesh: everything goes up to GPU 0 and comes back, or the other way."""
    up = Tree(0, tuple((f"g{rank}", "g0") for rank in range(1, count)), ONE)
    down = Tree(0, tuple(("g0", f"g{rank}") for rank in range(1, count)), ONE)
    problem = Problem(mesh(count), all_reduce(count, count * MB))
    return problem, Forest((up,), reduces=True, spread=(down,))


def ring_sums(count):
    """Each GPU adds up its share round the ring, and it goes round once more."""
    down = tuple(Tree(root, around(root, count, 1), Fraction(1, count)) for root in range(count))
    up = tuple(
        Tree(root, tuple((f"g{(root + k) % count}", f"g{(root + k + 1) % count}")
                         for k in range(1, count)), Fraction(1, count))
        for root in range(count)
    )  # fmt: skip
    problem = Problem(ring(count), all_reduce(count, count * MB))
    return problem, Forest(up, reduces=True, spread=down)


CLUSTERS = ("ring:gpus=6", "torus:shape=4x4", "hypercube:dimension=3", "dgx-2", "rail-only")


class TestImages:
    @pytest.mark.parametrize("name", CLUSTERS)
    def test_each_root_has_a_tree_and_each_is_an_image(self, name):
        problem, forest = symmetric(name)

        every = list(forest.every(problem.topology))

        assert len(every) == len(forest.trees) * forest.images
        assert sorted(tree.root for tree in every) == list(range(len(problem.topology.ranks)))
        assert {depth_of(tree) for tree in every} == {depth_of(tree) for tree in forest.trees}
        verify(problem, Forest(tuple(every)))

    def test_written_out_it_has_no_symmetry(self):
        problem, forest = symmetric("ring:gpus=6")
        whole = forest.unfolded(problem.topology)

        assert whole.symmetry is None
        assert whole.unfolded(problem.topology) is whole
        assert whole != forest
        assert forest == replace(forest, symmetry=symmetry_of(problem.topology))
        assert len({forest, replace(forest), whole}) == 2

    def test_depth_counts_both_halves(self):
        assert sums_at_one(4)[1].depth == 2
        assert ring_sums(5)[1].depth == 8
        assert Forest(both_ways(6)).depth == 5


class TestVerify:
    @pytest.mark.parametrize("name", CLUSTERS)
    @pytest.mark.parametrize("reduces", [False, True])
    def test_representatives_are_enough(self, name, reduces):
        verify(*symmetric(name, reduces=reduces))

    def test_a_root_without_a_representative_is_missed(self):
        problem, forest = symmetric("rail-only")
        few = replace(forest, symmetry=Symmetry(problem.topology, forest.symmetry.devices[:1]))

        assert "weigh 0 in all" in str(refused(problem, few))

    def test_weights_of_an_orbit_add_up(self):
        problem, forest = symmetric("ring:gpus=6")
        heavy = replace(forest.trees[0], weight=Fraction(2, 3))
        other = quickest(problem.topology, 1)

        assert "weigh 2/3 in all" in str(refused(problem, replace(forest, trees=(heavy,))))
        verify(problem, replace(forest, trees=(heavy, replace(other, weight=Fraction(1, 3)))))

    def test_elements_are_products_of_generators(self):
        problem, forest = symmetric("torus:shape=4x4")
        group = forest.symmetry
        devices = group.devices.copy()
        devices[[-1, -2]] = devices[[-2, -1]]
        other = replace(forest, symmetry=Symmetry(problem.topology, devices, group.powers))

        assert "not the products" in str(refused(problem, other))

    @pytest.mark.parametrize("exchanged", [(0, 1), (0, 7)])
    def test_a_permutation_that_breaks_a_link_is_refused(self, exchanged):
        problem, forest = symmetric("ring:gpus=8")
        image = np.arange(8)
        image[list(exchanged)] = image[list(exchanged)[::-1]]
        group = Symmetry(problem.topology, np.array([np.arange(8), image]), (2,))

        assert "which is no link" in str(refused(problem, replace(forest, symmetry=group)))

    def test_links_and_limits_keep_their_bandwidth(self):
        """A ring that is turned round is a ring; not so if one link or a pair of them is slow."""
        topology = ring(4)
        turn = Symmetry(topology, np.array([(np.arange(4) + k) % 4 for k in range(4)]), (4,))
        tree = Tree(0, around(0, 4, 1), ONE)
        slow = replace(topology, links=(Link("g0", "g1", 25), *topology.links[1:]))
        pair = SharedLimit("bus", (("g0", "g1"), ("g1", "g2")), 60)
        capped = replace(topology, limits=(pair,))
        verify(Problem(topology, all_gather(4, MB)), Forest((tree,), symmetry=turn))

        for other, says in ((slow, "which is not as fast"), (capped, "the shared limits")):
            forest = Forest((tree,), symmetry=replace(turn, topology=other))
            assert says in str(refused(Problem(other, all_gather(4, MB)), forest))

    def test_devices_keep_their_abilities(self):
        plain = (replace(gpus(2)[0], copies=False), gpus(2)[1])
        topology = Topology("two", plain, mesh(2).links)
        group = Symmetry(topology, np.array([[0, 1], [1, 0]]), (2,))
        forest = Forest((Tree(0, (("g0", "g1"),), ONE),), symmetry=group)

        error = refused(Problem(topology, all_gather(2, MB)), forest)

        assert "brings g0 to g1, which is not alike" in str(error)

    def test_the_collective_is_kept(self):
        topology = ring(4)
        turn = Symmetry(topology, np.array([(np.arange(4) + k) % 4 for k in range(4)]), (4,))
        forest = Forest((Tree(0, around(0, 4, 1), ONE),), symmetry=turn)
        sizes = [Chunk(MB, (rank,), tuple({0, 1, 2, 3} - {rank})) for rank in range(4)]
        other = [replace(sizes[0], size=2 * MB), *sizes[1:]]
        fewer = [replace(sizes[0], destinations=(1, 2)), *sizes[1:]]

        verify(Problem(topology, custom(4, sizes)), forest)
        for chunks in (other, fewer):
            error = refused(Problem(topology, custom(4, chunks)), forest)
            assert "whose data is not the same" in str(error)

    def test_an_element_that_leaves_a_gpu_is_refused(self):
        topology = mesh(3)
        group = Symmetry(topology, np.array([[0, 1, 2], [1, 0, 2]]), (2,))
        trees = tuple(quickest(topology, root) for root in (0, 2))

        error = refused(Problem(topology, all_gather(3, MB)), Forest(trees, symmetry=group))

        assert error.where == "g2"
        assert "leaves g2 in its place" in str(error)

    def test_a_memory_copies_on_the_way_and_is_not_asked_for(self):
        """A Steiner vertex: the memory gets the shard once and gives it to two."""
        memory = device("memory", "m")
        links = [Link(f"g{r}", "m", 50) for r in range(3)] + [
            Link("m", f"g{r}", 50) for r in range(3)
        ]
        topology = Topology("t", (*gpus(3), memory), tuple(links))
        trees = tuple(
            Tree(root, ((f"g{root}", "m"), *(("m", f"g{r}") for r in range(3) if r != root)), ONE)
            for root in range(3)
        )
        problem = Problem(topology, all_gather(3, 3 * MB))

        verify(problem, Forest(trees))
        assert steady_makespan(problem, Forest(trees)) == 40
        back = Forest(tuple(upside_down(tree) for tree in trees), reduces=True)
        error = refused(Problem(topology, reduce_scatter(3, 3 * MB)), back)
        assert "makes m add, which it cannot" in str(error)


class TestAllReduce:
    def test_sums_go_up_and_come_down(self):
        verify(*sums_at_one(4))
        verify(*ring_sums(5))

    def test_a_root_spreads_what_it_has_added_up(self):
        problem, forest = ring_sums(4)
        moved = replace(forest.spread[0], weight=Fraction(1, 2))
        gone = replace(forest, spread=(moved, *forest.spread[1:]))

        error = refused(problem, gone)

        assert error.where == "g0"
        assert "in-trees of root 0 (g0) weigh 1/4 and its out-trees 1/2" in str(error)

    def test_all_data_is_added_up(self):
        problem, forest = ring_sums(4)

        error = refused(problem, replace(forest, trees=forest.trees[1:], spread=forest.spread[1:]))

        assert "the in-trees of all roots weigh 3/4 together" in str(error)

    @pytest.mark.parametrize("half", ["trees", "spread"])
    def test_both_halves_reach_everyone(self, half):
        problem, forest = sums_at_one(4)
        tree = getattr(forest, half)[0]
        short = replace(tree, routes=tree.routes[1:])

        assert "does not reach g1" in str(refused(problem, replace(forest, **{half: (short,)})))

    @pytest.mark.parametrize(
        "problem",
        [
            Problem(mesh(4), all_gather(4, MB)),
            Problem(mesh(4), reduce_scatter(4, MB)),
            Problem(mesh(4), broadcast(4, MB)),
        ],
    )
    def test_other_collectives_have_no_second_half(self, problem):
        assert refused(problem, sums_at_one(4)[1])

    def test_takes_two_pipelines_one_after_the_other(self):
        """4 MB up to GPU 0, each link 80 µs, and down: the last of 8 parts comes down 10 µs on."""
        problem, forest = sums_at_one(4)

        assert replay(problem, forest, chunks=2).makespan == pytest.approx(90)
        assert replay(problem, forest, chunks=16).makespan == pytest.approx(81.25)
        assert steady_makespan(problem, forest) == 80

    def test_a_ring_is_busy_all_the_time(self):
        """6 shares of 1 MB cross every link for the 4 of a ring of 4: 120 µs."""
        problem, forest = ring_sums(4)

        assert steady_makespan(problem, forest) == 120
        assert replay(problem, forest).makespan == pytest.approx(120)

    def test_in_trees_meet_out_trees(self):
        """Two in-trees of 1/3 and 2/3, two out-trees of a half: three ways, in their order."""
        problem, forest = sums_at_one(3)
        by_one = Tree(0, (("g1", "g2"), ("g2", "g0")), Fraction(1, 3))
        ups = (by_one, replace(forest.trees[0], weight=Fraction(2, 3)))
        down = replace(forest.spread[0], weight=Fraction(1, 2))
        other = Tree(0, (("g0", "g2"), ("g2", "g1")), Fraction(1, 2))
        mixed = Forest(ups, reduces=True, spread=(down, other))

        timeline = replay(problem, mixed, chunks=1)

        carried: defaultdict[tuple[str, str], float] = defaultdict(float)
        for each in timeline.transfers:
            carried[each.src, each.dst] += each.nbytes
        loads = steady_loads(problem, mixed)
        assert {link.ends: load for link, load in zip(problem.topology.links, loads, strict=True)
                } == pytest.approx({link.ends: carried[link.ends] for link in
                                    problem.topology.links})  # fmt: skip
        assert carried["g1", "g2"] == pytest.approx(MB)

    def test_images_add_up_too(self):
        problem, forest = ring_sums(4)
        turn = Symmetry(
            problem.topology, np.array([(np.arange(4) + k) % 4 for k in range(4)]), (4,)
        )
        folded = Forest(forest.trees[:1], reduces=True, spread=forest.spread[:1], symmetry=turn)

        assert set(folded.unfolded(problem.topology).trees) == set(forest.trees)
        assert steady_makespan(problem, folded) == 120
        timeline = replay(problem, folded)
        assert timeline.makespan == pytest.approx(120)
        assert timeline.link_busy == pytest.approx(dict.fromkeys(timeline.link_busy, 120))


class TestSteady:
    @pytest.mark.parametrize("name", CLUSTERS)
    @pytest.mark.parametrize("reduces", [False, True])
    def test_loads_are_what_a_replay_carries(self, name, reduces):
        """Of the forest written out, whose replay knows no symmetry."""
        problem, forest = symmetric(name, reduces=reduces)
        timeline = simulate(problem, forest.unfolded(problem.topology), chunks=1)
        carried: defaultdict[tuple[str, str], float] = defaultdict(float)
        for each in timeline.transfers:
            carried[each.src, each.dst] += each.nbytes

        loads = steady_loads(problem, forest)

        assert loads == pytest.approx([carried[link.ends] for link in problem.topology.links])
        assert float(steady_makespan(problem, forest)) <= timeline.makespan * (1 + 1e-12)

    @pytest.mark.parametrize(("copies", "time"), [(False, 60), (True, 20)])
    def test_what_a_switch_copies_counts_once(self, copies, time):
        problem = Problem(star(4, copies=copies), broadcast(4, MB))
        tree = Tree(0, tuple(("g0", "s", f"g{r}") for r in range(1, 4)), ONE)

        assert steady_makespan(problem, Forest((tree,))) == time

    @pytest.mark.parametrize(("reduces", "time"), [(False, 60), (True, 20)])
    def test_what_a_switch_adds_up_counts_once(self, reduces, time):
        problem = Problem(star(4, reduces=reduces), reduce_scatter(4, MB))
        trees = tuple(
            Tree(root, tuple((f"g{r}", "s", f"g{root}") for r in range(4) if r != root), ONE)
            for root in range(4)
        )
        forest = Forest(trees, reduces=True)

        verify(problem, forest)
        ups = steady_loads(problem, forest)[::2]
        assert ups == pytest.approx([3 * MB / 4] * 4)
        assert steady_makespan(problem, forest) == pytest.approx(time / 4 if not reduces else 15)

    def test_is_exact(self):
        """7/3 of 10^9 bytes over 37.2 GB/s: no floating-point number is that."""
        problem = Problem(ring(3, bandwidth=37.2), all_gather(3, 1e9))
        forest = Forest(tuple(Tree(root, around(root, 3, 1), ONE) for root in range(3)))

        assert exact(37.2) == Fraction(186, 5)
        assert exact(1e9 / 3) == Fraction(10**9, 3)
        assert exact(np.nextafter(37.2, 38)) != Fraction(186, 5)
        assert steady_makespan(problem, forest) == Fraction(2 * 10**9, 3) / Fraction(37_200)

    def test_a_shared_limit_may_be_the_busiest(self):
        links = (Link("g0", "g1", 60), Link("g0", "g2", 60))
        limit = SharedLimit("bus", (("g0", "g1"), ("g0", "g2")), 100)
        problem = Problem(Topology("t", gpus(3), links, (limit,)), broadcast(3, 6 * MB))
        forest = Forest((Tree(0, (("g0", "g1"), ("g0", "g2")), ONE),))
        flow = Problem(problem.topology, custom(3, [Chunk(6 * MB, (0,), (1,))] * 2))

        assert steady_makespan(problem, forest) == 120
        assert steady_makespan(flow, Flow((Rate(0, "g0", "g1", 1.0), Rate(1, "g0", "g1", 1.0)))
                               ) == pytest.approx(200)  # fmt: skip

    def test_weights_without_a_small_denominator_stay_exact(self):
        """Weights of a denominator of 60 digits, more than whole numbers of 64 bits hold."""
        part = Fraction(10**30, 3 * 10**60 + 1)
        trees = []
        for root in range(4):
            trees.append(Tree(root, around(root, 4, 1), part))
            trees.append(Tree(root, around(root, 4, 1), 1 - part))
        problem = Problem(ring(4), all_gather(4, 4 * MB))

        assert steady_makespan(problem, Forest(tuple(trees))) == 60


def lifted(problem, forest, timeline):
    """All transfers that a timeline stands for, those of one link one after the other."""
    group, index = forest.symmetry, problem.topology.link_index
    chunks = group.chunks(problem.collective)
    every = []
    for each in timeline.transfers:
        place = index[each.src, each.dst]
        took: Counter[int] = Counter()
        many = int((group.links[:, place] == place).sum())
        for element in range(group.order):
            link = problem.topology.links[group.links[element, place]]
            # The bundle is sent one after the other; all of it is there when its last is.
            step, turn = (each.sent - each.start) / many, took[link.ends]
            took[link.ends] += 1
            start = each.start + turn * step
            alpha = each.end - each.sent
            every.append(
                replace(
                    each,
                    end=start + step + alpha,
                    chunk=int(chunks[element, each.chunk]),
                    src=link.src,
                    dst=link.dst,
                    start=start,
                    sent=start + step,
                    nbytes=each.nbytes / many,
                )
            )
    every.sort(key=lambda each: each.start)
    return Timeline(tuple(every), timeline.makespan, timeline.chunks)


class TestReplayOfImages:
    @pytest.mark.parametrize("name", [*CLUSTERS, "fat-tree:radix=4"])
    @pytest.mark.parametrize("reduces", [False, True])
    def test_what_it_stands_for_is_a_timeline_of_the_whole(self, name, reduces):
        """Written out, no link sends two things at once, and everything arrives by the makespan."""
        problem, forest = symmetric(name, reduces=reduces)

        timeline = replay(problem, forest, chunks=3)
        whole = lifted(problem, forest, timeline)

        verify_timeline(problem, whole)
        wanted = [chunk.destinations for chunk in problem.collective.chunks]
        rank = problem.topology.rank
        ends = [each.end for each in whole.transfers if rank.get(each.dst) in wanted[each.chunk]]
        assert max(ends) == pytest.approx(timeline.makespan)
        count = Counter((each.chunk, each.dst) for each in whole.transfers)
        for number, ranks in enumerate(wanted):
            for one in ranks:
                assert count[number, problem.topology.ranks[one]] >= 3

    @pytest.mark.parametrize("name", [*CLUSTERS, "fat-tree:radix=4"])
    def test_links_are_as_busy_as_the_steady_state_says(self, name):
        problem, forest = symmetric(name)
        timeline = replay(problem, forest, chunks=2)
        betas = np.array([link.beta for link in problem.topology.links])

        busy = [timeline.link_busy.get(link.ends, 0.0) for link in problem.topology.links]
        used = link_utilisation(problem, timeline)

        assert busy == pytest.approx(steady_loads(problem, forest) * betas)
        assert [used[link.ends] * timeline.makespan for link in problem.topology.links] == (
            pytest.approx(busy)
        )
        slots = link_load(problem, timeline, timeline.makespan / 7)
        assert slots.sum(axis=1) * timeline.makespan / 7 == pytest.approx(busy)

    @pytest.mark.parametrize("name", CLUSTERS)
    def test_comes_close_to_the_replay_of_the_whole(self, name):
        """Both serve what is furthest behind; ties fall differently, and no more."""
        problem, forest = symmetric(name)
        whole = simulate(problem, forest.unfolded(problem.topology), chunks=40)

        timeline = simulate(problem, forest, chunks=40)

        assert timeline.makespan == pytest.approx(whole.makespan, rel=0.05)
        assert timeline.images * len(timeline.transfers) == len(whole.transfers)

    def test_the_critical_path_runs_over_images(self):
        problem, forest = symmetric("ring:gpus=6")
        timeline = simulate(problem, forest, chunks=2)

        path = critical_path(problem, timeline)

        assert path[-1].end == pytest.approx(timeline.makespan)
        assert all(one.end <= two.start + 1e-9 or one.sent <= two.start + 1e-9
                   for one, two in itertools.pairwise(path))  # fmt: skip
        assert path[0].start == pytest.approx(0)

    @pytest.mark.parametrize("share", [0.5, 0.75])
    def test_limits_of_as_many_links_of_each_orbit_let_a_share_of_each_through(self, share):
        """Both links into each GPU of a ring both ways, or only those of one GPU and the next."""
        topology = open_cluster("ring:gpus=6,bandwidth=50,alpha=0")
        limits = tuple(
            SharedLimit(f"into {name}", tuple(link.ends for link in topology.links_in[name]),
                        100 * share)
            for name in topology.ranks
        )  # fmt: skip
        capped = replace(topology, limits=limits)
        group = symmetry_of(capped)
        tree = quickest(capped, 0)
        problem = Problem(capped, all_gather(6, 6 * MB))
        forest = Forest((tree,), symmetry=group)
        assert group.order == 6

        timeline = replay(problem, forest, chunks=8)

        assert timeline.images == 6
        verify_timeline(problem, lifted(problem, forest, timeline))
        assert timeline.makespan >= float(steady_makespan(problem, forest)) * (1 - 1e-9)

    def test_two_links_of_an_orbit_share_what_their_limit_has(self):
        """Each link of a ring one way is under two limits of 60 GB/s with its neighbours: 30 GB/s
        for each, 100 µs for 3 MB."""
        turn = np.array([(np.arange(4) + k) % 4 for k in range(4)])
        ends = [link.ends for link in ring(4).links]
        limits = tuple(
            SharedLimit(f"bus {r}", (ends[r], ends[(r + 1) % 4]), 60.0) for r in range(4)
        )
        topology = replace(ring(4), limits=limits)
        problem = Problem(topology, all_gather(4, 4 * MB))
        forest = Forest((Tree(0, around(0, 4, 1), ONE),), symmetry=Symmetry(topology, turn, (4,)))

        timeline = replay(problem, forest, chunks=2)

        assert timeline.images == 4
        assert timeline.makespan == pytest.approx(100)
        assert steady_makespan(problem, forest) == 100
        verify_timeline(problem, lifted(problem, forest, timeline))

    def test_limits_that_are_not_so_are_replayed_in_full(self):
        """One orbit has two links in a limit and the other one: written out, and as it should be.

        GPU r sends to r + 1 and r + 2 of 4; the limit holds both links into a GPU and one out.
        """
        links = tuple(
            Link(f"g{r}", f"g{(r + step) % 4}", 50.0) for step in (1, 2) for r in range(4)
        )
        limits = tuple(
            SharedLimit(
                f"bus {r}",
                (
                    (f"g{r}", f"g{(r + 1) % 4}"),
                    (f"g{(r - 1) % 4}", f"g{r}"),
                    (f"g{(r - 2) % 4}", f"g{r}"),
                ),
                60.0,
            )
            for r in range(4)
        )
        topology = Topology("t", gpus(4), links, limits)
        turn = Symmetry(topology, np.array([(np.arange(4) + k) % 4 for k in range(4)]), (4,))
        problem = Problem(topology, all_gather(4, 4 * MB))
        forest = Forest((quickest(topology, 0),), symmetry=turn)

        timeline = replay(problem, forest, chunks=4)

        assert timeline.images == 1
        assert len(timeline.transfers) == 4 * 3 * 4


def rails(hosts):
    """Rails of DGX A100 with the group that turns hosts and GPUs, and a tree of GPU 0.

    It sends to the first GPU of every host over its rail, and these copy over their switches.
    """
    topology = open_cluster(f"thesis-dgx-a100:hosts={hosts},used=nvlink-only")
    first = np.arange(len(topology.devices))
    inside, others = first[: 9 * hosts].reshape(hosts, 9), first[9 * hosts :]
    turned = np.concatenate([np.roll(inside, -1, axis=0).ravel(), others])
    within = np.concatenate([np.roll(inside[:, :8], -1, axis=1), inside[:, 8:]], axis=1).ravel()
    within = np.concatenate([within, np.roll(others, -1)])
    elements = first[None, :]
    for generator, power in ((turned, hosts), (within, 8)):
        blocks = [elements]
        for _ in range(power - 1):
            blocks.append(generator[blocks[-1]])
        elements = np.concatenate(blocks)
    group = Symmetry(topology, elements, (hosts, 8))
    routes = [("g0", "rail0", f"g{8 * host}") for host in range(1, hosts)]
    routes += [
        (f"g{8 * host}", f"nvswitch{host}", f"g{8 * host + other}")
        for host in range(hosts)
        for other in range(1, 8)
    ]
    count = len(topology.ranks)
    forest = Forest((Tree(0, tuple(routes), ONE),), symmetry=group)
    return Problem(topology, all_gather(count, count * MB)), forest


def test_rails_of_two_hosts_by_hand():
    """A GPU sends 1 of 16 MB over its rail at 25 GB/s, 40 µs, and 7 copies of both shards of its
    rail over its NVLinks at 300 GB/s: 14 MB in 46.7 µs."""
    problem, forest = rails(2)

    verify(problem, forest)
    loads = steady_loads(problem, forest)
    of = {link.ends: load for link, load in zip(problem.topology.links, loads, strict=True)}
    assert of["g0", "rail0"] == of["rail0", "g0"] == MB
    assert of["g3", "nvswitch0"] == of["nvswitch0", "g3"] == 14 * MB
    assert steady_makespan(problem, forest) == Fraction(140, 3)


def test_a_thousand_gpus_of_rails_are_verified_and_replayed_quickly():
    """1,024 GPUs, a tree of 1,023 edges for each: 127 shards of 1 MB over each rail link, and a
    few parts in the pipeline. It takes 1.3 s here; the forest written out has a million edges."""
    problem, forest = rails(128)
    begin = time.process_time()

    verify(problem, forest)
    timeline = simulate(problem, forest)

    assert time.process_time() - begin < 6
    assert timeline.images == 1024
    assert steady_makespan(problem, forest) == 127 * 40
    assert 1 <= timeline.makespan / (127 * 40) < 1.01
    verify_timeline(problem, timeline)


def test_refused_is_a_schedule_error():
    with pytest.raises(ScheduleError):
        verify(Problem(mesh(2), all_gather(2, MB)), Forest(()))
