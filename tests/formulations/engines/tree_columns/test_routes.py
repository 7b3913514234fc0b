"""Routes that part or join at switches are crossings like any other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from ccl.collective import make_collective
from ccl.problem import Problem
from ccl.simulate import simulate
from ccl.topology import SharedLimit
from ccl.verify import verify
from formulations import solve
from formulations.engines.epoch_grid.relay_paths import let_through
from formulations.engines.list_scheduling.timed import in_epochs
from formulations.engines.tree_columns.routes import Routes, paths_of
from gallery import open_cluster

EVERYWHERE = "star:gpus=4,copies=true,reduces=true"


def linked(topology, *ends):
    return tuple(topology.link_index[each] for each in ends)


def parting(topology):
    return linked(topology, ("g0", "switch"), *(("switch", f"g{i}") for i in (1, 2, 3)))


def joining(topology):
    return linked(topology, *((f"g{i}", "switch") for i in (1, 2, 3)), ("switch", "g0"))


def test_a_route_is_a_path_or_paths_that_part_or_join():
    topology = open_cluster(EVERYWHERE)
    path = linked(topology, ("g2", "switch"), ("switch", "g0"))
    assert paths_of(topology, path) == [("g2", "switch", "g0")]
    assert paths_of(topology, parting(topology)) == [("g0", "switch", f"g{i}") for i in (1, 2, 3)]
    assert paths_of(topology, joining(topology)) == [(f"g{i}", "switch", "g0") for i in (1, 2, 3)]


def unlike(topology, speeds, alphas):
    """Return the cluster with links that differ."""
    rows = zip(topology.links, speeds, alphas, strict=True)
    return replace(
        topology, links=tuple(replace(link, bandwidth=b, alpha=a) for link, b, a in rows)
    )


@settings(max_examples=40, deadline=None)
@given(
    speeds=st.lists(st.sampled_from([10.0, 25.0, 40.0, 100.0]), min_size=8, max_size=8),
    alphas=st.lists(st.sampled_from([0.0, 0.5, 2.0]), min_size=8, max_size=8),
    joins=st.booleans(),
)
def test_what_crosses_a_route_takes_what_its_replay_takes(speeds, alphas, joins):
    topology = unlike(open_cluster(EVERYWHERE), speeds, alphas)
    kind = "reduce" if joins else "broadcast"
    problem = Problem(topology, make_collective(kind, 4, 1e6))
    routes = Routes(topology)
    route = np.array([routes.number((joining if joins else parting)(topology))])
    nbytes = np.array([problem.collective.chunk_size])
    timed, of = routes.paths.sent(route, np.array([0]), np.array([0.0]), nbytes)
    assert of.tolist() == [0, 0, 0]
    plan = in_epochs(problem, routes.paths.alone, timed)
    verify(problem, plan)
    took = routes.transfers.delay(nbytes[0])[0]
    # The longest of the paths and the slowest of them may be two: then the replay is quicker.
    assert simulate(problem, plan).makespan <= took * (1 + 1e-9)
    if len(set(alphas)) == 1 or len(set(speeds)) == 1:
        assert simulate(problem, plan).makespan == pytest.approx(took)


@settings(max_examples=40, deadline=None)
@given(
    speeds=st.lists(st.sampled_from([10.0, 25.0, 40.0, 100.0]), min_size=8, max_size=8),
    alphas=st.lists(st.sampled_from([0.0, 0.5, 2.0, 20.0]), min_size=8, max_size=8),
)
@example(speeds=[100.0] * 7 + [10.0], alphas=[0.0, 0.0, 0.0, 20.0, 0.0, 0.0, 0.0, 0.0])
def test_a_sum_under_a_limit_is_sent_on_when_its_slowest_part_is_there(speeds, alphas):
    """Paths that join start as their latencies say, and the first of them may end before others."""
    topology = unlike(open_cluster(EVERYWHERE), speeds, alphas)
    limit = SharedLimit("all", tuple(link.ends for link in topology.links), 0.9 * sum(speeds))
    problem = Problem(replace(topology, limits=(limit,)), make_collective("all-reduce", 4, 4e5))
    crosses = [each(problem.topology) for each in (joining, parting)]
    # `able_at_once` leaves out what is too much for the limit at once, as quick links beside slow.
    assume(all(map(let_through(problem.topology), crosses)))
    routes = Routes(problem.topology)
    crossed = [routes.number(each) for each in crosses]
    route, chunk, nbytes = np.array(crossed), np.array([0, 0]), np.array([1e5, 1e5])
    start = np.array([0.0, routes.transfers.delay(1e5)[crossed[0]]])
    timed, _ = routes.paths.sent(route, chunk, start, nbytes)
    waits = routes.paths.waits(route, np.array([0]), np.array([1]))
    plan = in_epochs(problem, routes.paths.alone, timed, waits=waits, epoch_duration=0.5)
    others = [replace(each, chunk=number) for number in (1, 2, 3) for each in plan.sends]
    shifted = [replace(each, epoch=each.epoch + each.chunk * plan.horizon) for each in others]
    verify(problem, replace(plan, sends=(*plan.sends, *shifted), horizon=4 * plan.horizon))


def test_a_sum_waits_once_for_what_brings_its_parts_and_what_parts_for_all():
    topology = open_cluster(EVERYWHERE)
    routes = Routes(topology)
    route = np.array([routes.number(joining(topology)), routes.number(parting(topology))])
    before, after = routes.paths.waits(route, np.array([0]), np.array([1]))
    # Crossing 0 is transfers 0 to 2, which are there at once; crossing 1 is 3 to 5.
    assert (before.tolist(), after.tolist()) == ([0], [3])
    before, after = routes.paths.waits(route, np.array([1]), np.array([0]))
    # What goes to g1, g2 and g3 is what each of them then sends.
    assert (before.tolist(), after.tolist()) == ([3, 4, 5], [0, 1, 2])


@pytest.mark.slow
@pytest.mark.parametrize(("size", "most"), [(1e6, 3.70), (16e6, 37.2)])
def test_sums_and_copies_in_the_switch_overlap(size, most):
    """Half a link's bytes of two steps: 2 x 0.7 us and the bytes once at 450 GB/s, not twice.

    One after the other, as in-switch sums and copies of whole vectors are, takes twice the bytes.
    """
    asked = Problem(
        open_cluster("dgx-h100:copies=true,reduces=true"), make_collective("all-reduce", 8, size)
    )
    least = 1.4 + size / 450e3
    found = solve(asked, "pieces", time_limit=10)
    assert least <= found.makespan <= most
    assert {each.via for each in found.plan.sends} == {("nvswitch0",)}


@pytest.mark.parametrize("most", [60.0, 100.0, 140.0])
@pytest.mark.parametrize("pieces", [0, 2])
def test_what_is_too_much_for_a_shared_limit_crosses_path_by_path(most, pieces):
    """Links to the switch of 50 GB/s each, under one limit: no plan of it breaks a rule."""
    topology = open_cluster(EVERYWHERE)
    limit = SharedLimit("up", tuple((f"g{i}", "switch") for i in range(4)), most)
    asked = Problem(replace(topology, limits=(limit,)), make_collective("all-reduce", 4, 1e3))
    found = solve(asked, "pieces", options={"pieces": pieces}, time_limit=0.5)
    assert found.makespan >= found.bounds[0].makespan * (1 - 1e-9)
    assert not found.log


@pytest.mark.parametrize("size", [64e3, 1e6])
def test_steps_of_one_shot_keep_messages_apart_in_switches_that_copy(size):
    """Copying is no loss: in steps each message goes by itself, as where switches cannot."""
    plain, copying = (
        solve(
            Problem(open_cluster(cluster), make_collective("all-reduce", 8, size)),
            "one-shot",
            time_limit=20,
        )
        for cluster in ("dgx-h100", "dgx-h100:copies=true")
    )
    assert copying.makespan <= plain.makespan * (1 + 1e-9)
    assert not copying.log


def test_vectors_that_a_switch_copies_leave_once():
    """1 KB: one latency of 0.7 us and seven vectors of 1 KB on the way into each GPU."""
    for able in ("copies=true", "copies=true,reduces=true"):
        asked = Problem(open_cluster(f"dgx-h100:{able}"), make_collective("all-reduce", 8, 1e3))
        found = solve(asked, "one-shot", time_limit=10)
        assert found.makespan == pytest.approx(0.7 + 7e3 / 450e3)
        assert not found.log
