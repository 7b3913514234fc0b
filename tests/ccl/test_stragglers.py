"""Links that lag: latency and time per byte scaled."""

import math
from dataclasses import replace

import pytest

from ccl.collective import all_gather, all_to_all
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.topology import SharedLimit
from formulations import solve
from formulations.analyses.failures.degradation import add_stragglers
from formulations.bounds import best_bound
from tests.ccl.clusters import MB, line, ring


def test_of_a_link_only_that_link_lags():
    cluster = ring(3, alpha=0.5)

    lagging = add_stragglers(cluster, [("g0", "g1")], alpha=4.0, beta=2.0)

    slow = replace(cluster.links[0], bandwidth=25.0, alpha=2.0)
    assert lagging == replace(cluster, links=(slow, *cluster.links[1:]))


def test_of_a_device_all_links_lag_once():
    """The two links between g0 and g1 are named three times and lag by the factor once."""
    cluster = line(3)

    lagging = add_stragglers(cluster, ["g0", ("g1", "g0"), ("g1", "g0")], beta=5.0)

    assert [link.bandwidth for link in lagging.links] == [10.0, 10.0, 50.0, 50.0]


def test_limits_stay():
    limits = (SharedLimit("bus", (("g0", "g1"), ("g1", "g2")), 60.0),)

    assert add_stragglers(replace(ring(3), limits=limits), ["g0"], beta=2.0).limits == limits


def test_nobody_straggles_when_nobody_is_named():
    assert add_stragglers(ring(3), [], alpha=2.0, beta=2.0) == ring(3)


@pytest.mark.parametrize(
    ("where", "factors", "says"),
    [
        (["g9"], {}, "ring has no device called g9"),
        ([("g1", "g0")], {}, "ring has no link g1->g0"),
        (["g0"], {"alpha": 0.0}, "stragglers of ring have alpha times 0.0; give a positive one"),
        (["g0"], {"beta": math.inf}, "stragglers of ring have beta times inf; give a positive"),
        (["g0"], {"beta": math.nan}, "beta times nan"),
    ],
)
def test_refuses(where, factors, says):
    with pytest.raises(ProblemError, match=says):
        add_stragglers(ring(3), where, **factors)


def test_one_straggling_link_of_a_ring_is_the_bound_and_is_met():
    """All-gather of 1 MB shards on a one-way ring of 4 at 50 GB/s, g0->g1 three times as slow.

    All shards but that of g1 must cross that link, which takes 3 * 60 µs. That is also enough:
    the shard of g0 goes first, that of g3 next, and that of g2, there after two hops of 20 µs,
    last; g1 is the only one that still lacks it, so nothing follows it.
    """
    lagging = add_stragglers(ring(4), [("g0", "g1")], beta=3.0)
    problem = Problem(lagging, all_gather(4, 4 * MB))

    result = solve(problem, "te-ccl-milp", time_limit=20)

    assert best_bound(problem).makespan == pytest.approx(180.0)
    assert result.makespan == pytest.approx(180.0)


def test_latency_of_a_straggling_link_is_waited_for_once():
    """All-to-all of 1 MB shards between 2 ranks: one of both ways takes 20 + 10 * 0.5 µs."""
    lagging = add_stragglers(line(2, alpha=0.5), [("g1", "g0")], alpha=10.0)
    problem = Problem(lagging, all_to_all(2, 2 * MB))

    assert best_bound(problem).makespan == pytest.approx(25.0)
    assert solve(problem, "te-ccl-lp", time_limit=20).makespan == pytest.approx(25.0)
