"""The room of closed forms: ways, steps on the links, sentences, and clusters drawn by chance."""

import random
from dataclasses import replace

import numpy as np
import pytest

from ccl.collective import make_collective
from ccl.errors import CclError, Infeasible
from ccl.problem import Problem
from ccl.result import ClosedForm, Stop
from ccl.topology import Link, SharedLimit, Topology, device, duplex
from ccl.verify import verify
from formulations import available, formulation, solve
from formulations.engines.closed_forms.hosts import arranged, fitted
from formulations.engines.closed_forms.routing import Reachability, levels, nearest, reachability
from formulations.engines.closed_forms.steps import TransfersByPair, Walk, walked
from formulations.engines.closed_forms.trees import EVERYONE, Messages, Task
from formulations.engines.epoch_grid import relay_paths
from formulations.engines.list_scheduling.timed import transfers_of
from gallery import open_cluster
from tests.formulations.engines.closed_forms.forms import asked, solved

FORMS = (
    "ring",
    "bidirectional-ring",
    "multi-ring",
    "recursive-doubling",
    "halving-doubling",
    "bruck",
    "pat",
    "pairwise",
    "direct",
)


def cluster(*links: Link, switches: tuple[str, ...] = ()) -> Topology:
    """Return a cluster of the GPUs that links join, and switches."""
    names = sorted({name for link in links for name in link.ends} - set(switches))
    gpus = tuple(device("gpu", name) for name in names)
    others = tuple(device("switch", name) for name in switches)
    return Topology("drawn", (*gpus, *others), links)


def laid(topology: Topology, rows: list[tuple[int, int, int, int]], nbytes: list[float]) -> Walk:
    """Lay messages (step, chunk, src, dst) on links; chunk i begins at rank i."""
    place = np.array([topology.index[name] for name in topology.ranks])
    there = np.full((len(nbytes), len(topology.devices)), np.inf)
    there[np.arange(len(nbytes)), place[: len(nbytes)]] = 0.0
    ways = TransfersByPair(transfers_of(topology), max(nbytes))
    return walked(ways, Messages.of(rows), place, nbytes=np.array(nbytes), there=there)


class TestTask:
    def test_turns_count_the_chunks_of_a_root_and_goal(self):
        task = Task(
            3, np.arange(5), np.array([0, 1, 0, 0, 1]), np.array([EVERYONE] * 3 + [2, EVERYONE])
        )

        assert task.turns().tolist() == [0, 0, 1, 0, 1]
        assert not task.spreads


class TestJoined:
    def test_ways_over_switches_join_and_those_over_gpus_do_not(self):
        """g0 - s - g1 and g1 - g2: g0 and g2 meet at g1 only."""
        topology = cluster(
            *duplex("g0", "s", bandwidth=10.0),
            *duplex("g1", "s", bandwidth=10.0),
            *duplex("g1", "g2", bandwidth=20.0),
            switches=("s",),
        )

        ways = reachability(topology)

        assert ways.has(0, 1)
        assert ways.has(1, 2)
        assert not ways.has(0, 2)
        assert not reachability(topology, 15.0).has(0, 1)
        assert [each.has(0, 1) for each in levels(topology, 0.0)] == [False, True]

    def test_fast_ways_come_first_and_short_ones_among_them(self):
        """NVLink inside, a rail of two links, the spine of four: each joins more than before."""
        found = list(nearest(open_cluster("dgx-a100:hosts=2")))

        reach = [each.out[0].bit_count() for each in found]
        assert reach == [7, 8, 15]

    def test_a_way_that_a_shared_limit_does_not_let_through_does_not_join(self):
        """Both links of the way through the switch are under a limit that one of them fills."""
        pair = cluster(
            *duplex("g0", "s", bandwidth=10.0), *duplex("s", "g1", bandwidth=10.0), switches=("s",)
        )
        both = SharedLimit("bus", (("g0", "s"), ("s", "g1")), 10.0)
        limited = Topology("limited", pair.devices, pair.links, (both,))

        assert reachability(pair).has(0, 1)
        assert not reachability(limited).has(0, 1)
        assert reachability(limited).has(1, 0)

    def test_all_are_reached_in_both_directions_or_it_is_not_strong(self):
        cycle = [(0, 1), (1, 2), (2, 0)]

        assert Reachability.of(3, cycle).strong
        assert not Reachability.of(3, cycle[:2]).strong
        assert Reachability.of(3, [*cycle, (1, 0)]).mutual.has(1, 0)
        assert not Reachability.of(3, [*cycle, (1, 0)]).mutual.has(1, 2)


class TestOrders:
    def test_an_order_joins_every_pair_or_there_is_none(self):
        """A star of 4 around g0 has no path through all; one around place 1 has the star."""
        topology = cluster(*(one for i in (1, 2, 3) for one in duplex("g0", f"g{i}", bandwidth=1)))

        assert arranged(topology, [(0, 1), (1, 2), (2, 3)]) is None
        order = arranged(topology, [(1, 0), (1, 2), (1, 3)])
        assert order is not None
        assert order[1] == 0

    def test_the_fastest_order_counts(self):
        """Of four GPUs all joined, only the cycle 0, 2, 1, 3 has links of 10 GB/s."""
        fast = {(0, 2), (1, 2), (1, 3), (0, 3)}
        links = [
            link
            for i in range(4)
            for j in range(i + 1, 4)
            for link in duplex(f"g{i}", f"g{j}", bandwidth=10.0 if (i, j) in fast else 1.0)
        ]

        order = arranged(cluster(*links), [(i, (i + 1) % 4) for i in range(4)])

        assert order is not None
        assert order.tolist() == [0, 2, 1, 3]

    def test_too_few_neighbours_are_seen_at_once(self):
        """Sixty places of 5 neighbours each on a ring: no search could end."""
        ring = Reachability.of(60, ((i, (i + d) % 60) for i in range(60) for d in (1, 59)))
        cube = Reachability.of(
            60, ((i, (i + d) % 60) for i in range(60) for d in (1, 7, 11, 59, 53))
        )

        assert fitted(ring, cube) is None


class TestWays:
    def test_a_chain_goes_the_quickest_way_over_gpus(self):
        """From g0 to g3: over g1 at 10 and 10 GB/s, 200 µs for 1 MB; over g2 at 100 and 5, 210."""
        topology = cluster(
            Link("g0", "g1", 10.0), Link("g1", "g3", 10.0),
            Link("g0", "g2", 100.0), Link("g2", "g3", 5.0),
            Link("g3", "g0", 1.0),
        )  # fmt: skip
        ways = TransfersByPair(transfers_of(topology), 1e6)

        chain, begins = ways.chains(np.array([0, 0]), np.array([3, 1]))

        assert begins.tolist() == [0, 2, 3]
        transfers = ways.transfers
        first = ways.order[ways.pairs[:-1]][chain]
        crossed = list(
            zip(transfers.src[first].tolist(), transfers.dst[first].tolist(), strict=True)
        )
        assert crossed == [(0, 1), (1, 3), (0, 1)]

    def test_without_a_way_it_says_where_to(self):
        topology = cluster(*duplex("g0", "g1", bandwidth=1.0), Link("g2", "g0", 1.0))
        ways = TransfersByPair(transfers_of(topology), 1.0)

        with pytest.raises(Infeasible, match="leads to g2"):
            ways.chains(np.array([0]), np.array([2]))


class TestSteps:
    def test_messages_of_a_step_share_a_link_in_their_order_and_steps_wait(self):
        """2 MB and 1 MB at 1 GB/s with 5 µs: 2,005 and 3,005; the next step begins then."""
        topology = cluster(*duplex("g0", "g1", bandwidth=1.0, alpha=5.0))
        rows = [(1, 0, 1, 0), (0, 0, 0, 1), (0, 1, 0, 1)]
        place = np.arange(2)
        ways = TransfersByPair(transfers_of(topology), 2e6)

        walk = walked(
            ways, Messages.of(rows), place, nbytes=np.array([2e6, 1e6]), there=np.empty((0, 0))
        )

        assert walk.timed.chunk.tolist() == [0, 1, 0]
        assert walk.timed.start.tolist() == pytest.approx([0.0, 2000.0, 3005.0])
        assert walk.ends.tolist() == pytest.approx([3005.0, 5010.0])
        assert walk.alone.tolist() == pytest.approx([3005.0, 2005.0])

    def test_relays_take_turns_and_keep_what_passes(self):
        """On a line g0 - g1 - g2 of 1 GB/s, 1 MB each: g0 to g2 and g1 to g2 in one step.

        Both first moves go at once, so the relayed chunk is there after 2,000 µs; the third
        message, to g1, is not sent, as the chunk is kept there.
        """
        topology = cluster(*duplex("g0", "g1", bandwidth=1.0), *duplex("g1", "g2", bandwidth=1.0))

        walk = laid(topology, [(0, 0, 0, 2), (0, 1, 1, 2), (1, 0, 0, 1)], [1e6, 1e6])

        assert walk.timed.start.tolist() == pytest.approx([0.0, 0.0, 1000.0])
        assert walk.ends.tolist() == pytest.approx([2000.0, 2000.0])
        assert (walk.crowd, topology.links[walk.busiest].ends) == (2, ("g1", "g2"))

    def test_of_two_switches_the_one_that_is_free_is_taken(self):
        """Two chunks of 1 MB from g0 to g1 over two switches of 1 GB/s at once: 1,000 µs."""
        links = [one for s in ("s", "t") for g in ("g0", "g1") for one in duplex(g, s, bandwidth=1)]
        topology = cluster(*links, switches=("s", "t"))
        place = np.array([topology.index[name] for name in topology.ranks])
        ways = TransfersByPair(transfers_of(topology), 1e6)
        messages = Messages.of([(0, 0, 0, 1), (0, 1, 0, 1)])

        walk = walked(ways, messages, place, nbytes=np.full(2, 1e6), there=np.empty((0, 0)))

        assert walk.ends.tolist() == pytest.approx([1000.0])
        assert len(set(walk.timed.transfer.tolist())) == 2


class TestWhy:
    """Each number of a closed form gives its own reason."""

    @pytest.mark.parametrize(
        ("changed", "makespan", "said"),
        [
            ({}, 100.0, "f = 100 µs, and so it is here"),
            ({"alone": 90.0, "in_steps": 90.0}, 90.0, "some links are faster than the slowest"),
            ({"alone": 120.0, "in_steps": 120.0}, 120.0, "its messages take longer paths (120 µs)"),
            (
                {"in_steps": 150.0, "busiest": ("a", "b"), "crowd": 3},
                150.0,
                "messages share links, 3 at once on a->b (150 µs)",
            ),
            ({"in_steps": 60.0}, 60.0, "GPUs use several links at once or pass on"),
            ({}, 80.0, "steps overlap (80 µs)"),
            ({"elsewhere": True}, 80.0, "other paths are quicker (80 µs)"),
            ({}, 130.0, "shared limits or the order of sends slow it (130 µs)"),
        ],
    )
    def test_a_reason_is_given_for_each_difference(self, changed, makespan, said):
        numbers = {"makespan": 100.0, "alone": 100.0, "in_steps": 100.0, **changed}
        form = ClosedForm(expression="f", alpha=1.0, beta=1.0, steps=1, **numbers)

        assert said in form.why(makespan)

    def test_links_that_differ(self):
        """On a DGX-1 doubling crosses single and double NVLinks, and counts the slower ones."""
        result = solved("recursive-doubling", asked("dgx-1v:alpha=0", "all-gather"))

        form = result.closed_form
        assert form.beta == pytest.approx(1e-3 / 25)
        assert "some links are faster than the slowest" in form.why(result.makespan)

    def test_links_that_are_shared(self):
        """Pairwise on two hosts: over the rails 8 GPUs of a host send at once to other rails."""
        result = solved("pairwise", asked("dgx-a100:hosts=2", "all-gather", size=1e8))

        form = result.closed_form
        assert form.crowd > 1
        assert form.busiest is not None
        assert f"at once on {'->'.join(form.busiest)}" in form.why(result.makespan)

    def test_ways_over_gpus(self):
        result = solved("bruck", asked("ring:gpus=6", "all-to-all"))

        assert "its messages take longer paths" in result.closed_form.why(result.makespan)


def test_sums_that_are_exchanged_are_steps_of_their_own():
    """A step's sends may not begin before its sums are complete, also where links are shared.

    Whole vectors of 1 MB in 4 steps: no rank sends in step t + 1 what it has not added up, which
    `verify` sees; the replay takes no longer than the steps.
    """
    problem = asked("dgx-a100:hosts=2", "all-reduce", chunks=2)

    result = solved("recursive-doubling", problem)

    verify(problem, result.plan)
    assert result.closed_form.steps == 4
    assert len(result.plan.sends) == 4 * 16 * 32
    assert result.makespan <= result.closed_form.in_steps * (1 + 1e-9)


@pytest.mark.parametrize("name", FORMS)
def test_limited_buffers_and_a_single_gpu_are_refused_in_words(name):
    star = open_cluster("star:gpus=4")
    small = replace(star.devices[1], buffer_bytes=1.0)
    tight = replace(star, devices=(star.devices[0], small, *star.devices[2:]))

    why = formulation(name).why_not(Problem(tight, make_collective("all-gather", 4, 1e6)))

    assert why is not None
    assert small.name in why
    assert "has a limited buffer" in why


def test_sends_that_would_be_placed_one_by_one_are_refused_where_they_are_too_many():
    """Of 600 GPUs an all-to-all has 359,400 chunks, and an all-gather a closed form."""
    ring = open_cluster("ring:gpus=600")
    chunks = {kind: make_collective(kind, 600, 1e6) for kind in ("all-to-all", "all-gather")}
    direct = formulation("direct")

    assert "359,400 sends one by one" in direct.why_not(Problem(ring, chunks["all-to-all"]))
    assert direct.why_not(Problem(ring, chunks["all-gather"])) is None


@pytest.mark.parametrize("name", ["direct", "pairwise"])
def test_an_all_to_all_over_switches_is_not_followed_device_by_device(name):
    """Of 432 GPUs on 612 devices 114 million places would be too many."""
    tree = open_cluster("fat-tree:radix=12")
    problem = Problem(tree, make_collective("all-to-all", 432, 1e6))

    assert formulation(name).why_not(problem) is None
    assert "too many" in formulation("bruck").why_not(problem)


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter", "all-to-all"])
def test_on_a_fat_tree_whose_paths_are_not_all_listed_direct_sends_do_not_wait(kind, monkeypatch):
    """Each GPU sends 127 of 128 shards, one after the other, and the last crosses six links.

    No path over other GPUs is quicker, so none is looked for.
    """
    monkeypatch.setattr(relay_paths, "MOST", 50_000)
    monkeypatch.setattr(relay_paths, "FEW", 20_000)
    tree = open_cluster("fat-tree:radix=8")
    result = solve(Problem(tree, make_collective(kind, 128, 1e6)), "direct")

    assert result.makespan == pytest.approx(1e3 / 50 * 127 / 128 + 6 * 0.6)
    assert result.stop is Stop.CONSTRUCTED


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", FORMS)
def test_on_random_clusters_a_form_is_verified_or_says_why_not(name, seed):
    """Links by chance; where a form is served, its replay is not later than its steps."""
    chance = random.Random(f"{name} {seed}")
    gpus = chance.randint(4, 8)
    topology = open_cluster(f"random:gpus={gpus},seed={seed}")
    form = formulation(name)
    kind = chance.choice(sorted(form.collectives - {"custom"}))
    problem = Problem(topology, make_collective(kind, gpus, 1e6, chunks=chance.choice((1, 3))))
    if form.why_not(problem) is not None:
        with pytest.raises(CclError, match=name):
            solve(problem, name)
        return

    result = solve(problem, name)

    verify(problem, result.plan)
    assert result.closed_form is not None
    assert result.makespan <= result.closed_form.in_steps * (1 + 1e-9)
    assert result.bound.makespan <= result.makespan * (1 + 1e-9)


def test_all_forms_are_in_the_menu():
    assert set(FORMS) <= {each.name for each in available()}
