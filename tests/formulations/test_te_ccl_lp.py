"""The linear program: symmetry, limited buffers, priorities, and its place beside table 8."""

import csv
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ccl.collective import Chunk, Tenant, all_to_all, custom, gather, make_collective, tenants
from ccl.errors import Infeasible, ProblemError
from ccl.problem import Problem, Window
from ccl.result import Status
from ccl.serialization.quantity import parse_size
from ccl.timeline import finish_times
from ccl.topology import SharedLimit, Topology, device, duplex
from ccl.verify import verify
from formulations import solve
from formulations.bounds import lower_bounds
from formulations.core.run import Run
from formulations.engines.epoch_grid.arcs import link_arcs
from formulations.engines.epoch_grid.decompose import commodities
from formulations.engines.epoch_grid.epochs import EpochGrid, durations
from formulations.engines.te_ccl.flow_lp import FlowModel
from gallery import open_cluster
from tests.ccl.clusters import MB, line, mesh, ring

GOLDEN = Path(__file__).parents[1] / "golden" / "te_ccl_table8_ndv2_2_chassis.csv"


def limited(topology: Topology, room: dict[str, float]) -> Topology:
    """Give devices buffers of so many bytes."""
    devices = tuple(
        replace(each, buffer_bytes=room.get(each.name, each.buffer_bytes))
        for each in topology.devices
    )
    return replace(topology, devices=devices)


def lp(problem: Problem, **options: object):
    return solve(problem, "te-ccl-lp", options=options, time_limit=20)


class TestCommodities:
    def test_add_up_chunks_of_one_pair_and_priority(self):
        """In units of 2 MB: 1 + 2 MB for one pair, 4 MB of another priority, 2 MB at home."""
        chunks = [Chunk(MB, (0,), (1,)), Chunk(2 * MB, (0,), (1,)), Chunk(2 * MB, (2,), (2,))]
        urgent = Chunk(4 * MB, (0,), (1,), priority=3.0)
        problem = Problem(ring(3), custom(3, [*chunks, urgent]))

        flows = commodities(problem, 2 * MB, symmetric=False)

        assert flows.sources.tolist() == [0]
        assert list(zip(flows.priority, flows.amount, strict=True)) == [(1.0, 1.5), (3.0, 2.0)]
        assert flows.supply().tolist() == [3.5]
        assert flows.stored.tolist() == [0.0, 0.0, 1.0]

    def test_one_source_of_a_ring_stands_for_all(self):
        flows = commodities(Problem(ring(6), all_to_all(6, 6 * MB)), MB, symmetric=True)

        assert (flows.order, len(flows.sources), len(flows.goal)) == (6, 1, 5)

    @pytest.mark.parametrize(
        ("collective", "sources"),
        [
            (gather(4, 4 * MB), 3),
            (custom(4, [Chunk(MB * (1 + r), (r,), ((r + 1) % 4,)) for r in range(4)]), 4),
            (custom(4, [Chunk(MB, (r,), ((r + 1) % 4,), priority=1.0 + r) for r in range(4)]), 4),
            (custom(4, [*(Chunk(MB, (r,), (r ^ 2,)) for r in range(4)), Chunk(MB, (1,), (1,))]), 4),
        ],
        ids=["root", "sizes", "priorities", "what stays"],
    )
    def test_a_demand_that_is_not_symmetric_keeps_all_sources(self, collective, sources):
        flows = commodities(Problem(ring(4), collective), MB, symmetric=True)

        assert (flows.order, len(flows.sources)) == (1, sources)

    def test_of_a_group_those_elements_stay_that_keep_the_demand(self):
        """Ranks 0 and 2 exchange, and 1 and 3 twice as much: half a turn keeps that."""
        swap = [Chunk(MB * (1 + r % 2), (r,), (r ^ 2,)) for r in range(4)]

        flows = commodities(Problem(ring(4), custom(4, swap)), MB, symmetric=True)

        assert (flows.order, len(flows.sources)) == (2, 2)


class TestSymmetry:
    @pytest.mark.parametrize(
        "cluster", ["ring:gpus=6", "star:gpus=5", "dgx-a100:hosts=2", "dgx-1v", "thesis-2.4"]
    )
    def test_takes_as_many_epochs_as_all_sources(self, cluster):
        """The average of all images of an optimum is an optimum and its own image."""
        topology = open_cluster(cluster)
        ranks = len(topology.ranks)
        problem = Problem(topology, all_to_all(ranks, ranks * MB))
        run = Run(problem=problem, formulation="test", options={}, bounds=lower_bounds(problem))
        [tau] = durations(topology, MB, by="slowest")
        hops = link_arcs(EpochGrid(topology, MB, tau, fluid=0.95))

        def least(*, symmetric: bool) -> int:
            model = FlowModel(hops, run, commodities(problem, MB, symmetric=symmetric))
            for horizon in range(model.least(), 100):
                with suppress(Infeasible):
                    model.solve(horizon)
                    return horizon
            raise AssertionError

        assert least(symmetric=True) == least(symmetric=False)

    def test_counts_images_under_a_shared_limit(self):
        """Two pairs of GPUs exchange 1 MB under one limit of 100 GB/s for all four links at
        50 GB/s: 4 MB need 40 µs instead of 20."""
        links = (*duplex("g0", "g1", bandwidth=50.0), *duplex("g2", "g3", bandwidth=50.0))
        limit = SharedLimit("bus", tuple(link.ends for link in links), 100.0)
        gpus = tuple(device("gpu", f"g{r}") for r in range(4))
        pairs = [Chunk(MB, (r,), (r ^ 1,)) for r in range(4)]
        problem = Problem(Topology("pairs", gpus, links, (limit,)), custom(4, pairs))

        assert commodities(problem, MB, symmetric=True).order > 1
        assert lp(problem).makespan == pytest.approx(40.0, rel=1e-6)

    @pytest.mark.slow
    @pytest.mark.slow
    def test_128_gpus_on_rails_are_within_a_tenth_of_the_cut_of_a_host(self):
        """8 * 120 shards of 1 MB leave a host over 8 rails of 25 GB/s: 4,800 µs."""
        problem = Problem(open_cluster("dgx-a100:hosts=16"), all_to_all(128, 128 * MB))

        result = solve(problem, "te-ccl-lp", time_limit=60, gap=0.1)

        assert 4800.0 <= result.bound.makespan <= result.makespan <= 1.1 * result.bound.makespan
        assert any("128 sources that look alike" in sentence for sentence in result.log)


@pytest.mark.slow
@pytest.mark.slow
def test_direct_all_to_all_of_128_gpus_on_rails_is_one_shard_above_the_cut():
    """4,800 µs for what leaves a host, two latencies of 1.3, and 40 µs for the last shard of
    1 MB, which leaves the switch of its rail at 25 GB/s when it has wholly come."""
    problem = Problem(open_cluster("dgx-a100:hosts=16"), all_to_all(128, 128 * MB))

    result = solve(problem, "direct", time_limit=60)

    assert result.makespan == pytest.approx(4800.0 + 40.0 + 2 * 1.3)


class TestBuffers:
    def test_a_relay_keeps_no_more_than_its_buffer(self):
        """On a line 6 MB cross g1, whose buffer takes 2 MB: 120 µs over each link, and g1 begins
        to send when it has 2 MB at the latest, after 40 µs."""
        topology = limited(line(3), {"g1": 2 * MB})
        problem = Problem(topology, custom(3, [Chunk(6 * MB, (0,), (2,))]))

        result = lp(problem)

        verify(problem, result.plan)
        assert 120.0 < result.makespan <= 120.0 + 40.0

    @pytest.mark.parametrize(("room", "epochs"), [(4 * MB, 3), (MB, 5)])
    def test_a_relay_passes_on_a_buffer_in_each_epoch(self, room, epochs):
        """4 MB into g1 at 50 GB/s and out at 25, in epochs of 80 µs.

        With room for all of it, it is in after one epoch and out after two more of 2 MB each;
        with room for 1 MB, four epochs bring 1 MB each and the fifth takes the last one on.
        """
        links = (*duplex("g0", "g1", bandwidth=50.0), *duplex("g1", "g2", bandwidth=25.0))
        topology = limited(Topology("slow exit", line(3).devices, links), {"g1": room})
        problem = Problem(topology, custom(3, [Chunk(4 * MB, (0,), (2,))]))

        result = lp(problem, epoch_duration=80.0)

        assert result.plan.horizon == epochs
        with pytest.raises(Infeasible):
            lp(problem, epoch_duration=80.0, horizon=epochs - 1)

    def test_a_full_cluster_can_still_exchange(self):
        """Each GPU has 3 shards, gets 3 and has room for 3: what leaves makes room at once."""
        names = {f"g{r}": 3 * MB for r in range(4)}
        problem = Problem(limited(mesh(4), names), all_to_all(4, 4 * MB))

        result = lp(problem)

        verify(problem, result.plan)
        assert result.status is Status.OPTIMAL
        assert result.makespan == pytest.approx(20.0)

    @pytest.mark.parametrize(
        ("rank", "when"), [("g0", "3e\\+06 bytes at the start"), ("g1", "1e\\+06 bytes at the end")]
    )
    def test_a_buffer_that_cannot_do_is_refused(self, rank, when):
        scatter = make_collective("scatter", 4, 4 * MB)
        problem = Problem(limited(mesh(4), {rank: 0.9 * MB}), scatter)

        with pytest.raises(ProblemError, match=f"{rank} has {when} and its buffer takes 900000"):
            lp(problem)

    def test_what_stays_at_home_counts(self):
        """g1 has 2 MB of its own for ever and a buffer of 2.5 MB: 1 MB more is too much."""
        chunks = [Chunk(2 * MB, (1,), (1,)), Chunk(MB, (0,), (1,))]
        problem = Problem(limited(line(2), {"g1": 2.5 * MB}), custom(2, chunks))

        with pytest.raises(ProblemError, match=r"g1 has 3e\+06 bytes at the end"):
            lp(problem)

    def test_a_relay_that_is_full_lets_nothing_through(self):
        """g1 keeps 2 MB for ever and has room for no byte more."""
        chunks = [Chunk(2 * MB, (1,), (1,)), Chunk(MB, (0,), (2,))]
        problem = Problem(limited(line(3), {"g1": 2 * MB}), custom(3, chunks))

        with pytest.raises(Infeasible, match=r"the buffers let nothing through within .* epochs"):
            lp(problem)

    @pytest.mark.parametrize("seed", range(6))
    def test_plans_for_buffers_drawn_by_chance_are_verified(self, seed):
        rng = np.random.default_rng(seed)
        room = {f"g{r}": float(rng.uniform(3.0, 5.0)) * MB for r in range(4)}
        topology = limited(ring(4, alpha=float(rng.choice([0.0, 5.0]))), room)
        problem = Problem(topology, all_to_all(4, 4 * MB))

        result = lp(problem)

        verify(problem, result.plan)
        assert result.makespan >= result.bound.makespan


class TestWindows:
    def test_half_the_bandwidth_for_a_while_costs_half_of_it(self):
        """4 MB at 50 GB/s are 80 µs; from 20 to 60 µs half as much goes through: 20 µs more."""
        slow = Window((("g0", "g1"),), 20.0, 60.0, 0.5)
        problem = Problem(line(2), custom(2, [Chunk(4 * MB, (0,), (1,))]), (slow,))

        result = lp(problem, epoch_duration=20.0)

        assert result.makespan == pytest.approx(100.0, rel=1e-5)

    def test_while_a_link_is_down_data_goes_round(self):
        """3 MB from g0 to g1 in a triangle at 50 GB/s, g0->g1 down for 40 µs.

        Round about 1 MB per 20 µs arrives from 20 µs on, directly from 40 µs on: the third has
        arrived after 60 µs; were no link down, it had after 40.
        """
        down = Window((("g0", "g1"),), 0.0, 40.0, 0.0)
        whole = Problem(mesh(3), custom(3, [Chunk(3 * MB, (0,), (1,))]))

        broken = lp(replace(whole, windows=(down,)), epoch_duration=20.0)

        assert broken.makespan == pytest.approx(60.0, rel=1e-5)
        assert lp(whole, epoch_duration=20.0).makespan == pytest.approx(40.0, rel=1e-5)

    def test_sources_do_not_stand_for_one_another(self):
        slow = Window((("g0", "g1"),), 20.0, 60.0, 0.5)
        problem = Problem(ring(4), all_to_all(4, 4 * MB), (slow,))

        assert commodities(problem, MB, symmetric=True).order == 1

    @pytest.mark.parametrize("cluster", ["ring:gpus=4", "star:gpus=4", "thesis-3.1"])
    @pytest.mark.parametrize("share", [0.0, 0.3])
    def test_plans_are_verified_where_windows_cut_epochs(self, cluster, share):
        topology = open_cluster(cluster)
        ranks, some = len(topology.ranks), tuple(link.ends for link in topology.links[:2])
        window = Window(some, 7.0, 33.0, share)
        problem = Problem(topology, all_to_all(ranks, ranks * MB), (window,))

        result = lp(problem, epoch_duration=9.0)

        verify(problem, result.plan)
        assert result.makespan >= result.bound.makespan * (1 - 1e-9)


class TestPriorities:
    @pytest.mark.parametrize("urgent", ["a", "b"])
    def test_the_tenant_that_counts_more_is_done_first(self, urgent):
        """Both send 4 MB from g0 to g1 at 50 GB/s: 80 µs each, one after the other."""
        one = custom(2, [Chunk(4 * MB, (0,), (1,))])
        jobs = [Tenant(name, one, (0, 1), 1.0 + 9.0 * (name == urgent)) for name in "ab"]
        problem = Problem(line(2), tenants(2, jobs))

        result = lp(problem, objective="early-arrivals")

        done = finish_times(problem, result.timeline)
        [other] = set("ab") - {urgent}
        assert done[urgent] <= 80.0 * 1.1
        assert done[other] == pytest.approx(160.0)

    def test_crossing_tenants_are_served_by_weight(self):
        """a from g0 and b from g1 share the link g1->g2; whoever counts more waits for nobody.

        b alone is through after 80 µs; a, whose first bytes need a hop more, after little more
        than 80 when it goes first.
        """
        one = custom(2, [Chunk(4 * MB, (0,), (1,))])

        def done(weight: float) -> dict[str, float]:
            jobs = [Tenant("a", one, (0, 2), weight), Tenant("b", one, (1, 2))]
            problem = Problem(line(3), tenants(3, jobs))
            return finish_times(problem, lp(problem, objective="early-arrivals").timeline)

        assert done(0.05)["b"] < 90.0 < done(0.05)["a"]
        assert done(20.0)["a"] < 110.0 < done(20.0)["b"]


class TestEpochs:
    def test_are_as_many_times_as_long_as_asked_for(self):
        """1 MB at 50 GB/s without latency is an epoch of 20 µs, and three times that 60."""
        problem = Problem(ring(4), all_to_all(4, 4 * MB))

        result = lp(problem, epoch="slowest", epoch_multiplier=3)

        assert result.plan.epoch_duration == pytest.approx(60.0)
        assert "epochs are 3 times as long, as requested" in result.log

    def test_short_beside_a_latency_become_longer_and_say_so(self):
        """A shard of 0.5 KB takes 0.01 µs; the latency is 300 of these epochs, more than 200."""
        problem = Problem(ring(2, alpha=3.0), all_to_all(2, 1e3))

        kept, longer = (lp(problem, epoch="slowest", lengthen_short=each) for each in (False, True))

        assert kept.plan.epoch_duration == pytest.approx(0.01)
        assert longer.plan.epoch_duration == pytest.approx(0.05)
        assert kept.makespan == longer.makespan == pytest.approx(3.01)
        assert "epochs of 0.01 µs are short beside a latency and became 0.05 µs" in longer.log

    def test_of_which_a_latency_is_a_whole_number_win_where_it_dominates(self):
        """All-to-all of 250 byte shards on NDv2 x 2, whose hosts one link of 12.5 GB/s joins.

        From the 3 GPUs two hops away from it to the 3 two hops behind it 9 shards of 0.02 µs must
        cross, none before 1.4 µs: 1.4 + 0.18 + 1.3 + 1.4 = 4.28 µs, and the paper has 4.5.
        """
        problem = Problem(open_cluster("ndv2:hosts=2"), all_to_all(16, 4e3))

        assert 4.28 <= lp(problem).makespan <= 4.28 * 1.01


@pytest.mark.slow
@pytest.mark.parametrize(
    "size", ["1GB", "256MB", "64MB", "16MB", "4MB", "1MB", "256KB", "64KB", "16KB", "4KB", "1KB"]
)
@pytest.mark.cover(2)
def test_all_to_all_of_table_8_beats_the_better_column(size):
    """Both epoch durations of the paper; ours counts every latency and all 16 GPUs."""
    with GOLDEN.open(encoding="utf-8") as file:
        published = [
            float(row["finish_us"])
            for row in csv.DictReader(file)
            if row["collective"] == "alltoall" and row["output_buffer"] == size
        ]
    problem = Problem(open_cluster("ndv2:hosts=2"), all_to_all(16, parse_size(size)))

    result = solve(problem, "te-ccl-lp", time_limit=20)

    assert len(published) == 2
    assert result.makespan <= min(published)
