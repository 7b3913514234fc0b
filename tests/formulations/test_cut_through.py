"""No byte leaves a switch before it has come and no link carries more than its bandwidth, in plans
of every kind; and the one example that once needed three times a link's bandwidth."""

import random
from dataclasses import replace

import pytest

from ccl.collective import Chunk, all_gather, all_reduce, all_to_all, custom, reduce_scatter
from ccl.errors import Infeasible, ProblemError, ScheduleError
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.simulate import simulate
from ccl.timeline import Timeline, Transfer
from ccl.topology import Link, SharedLimit, Topology, device
from ccl.verify import verify, verify_timeline
from formulations import solve
from formulations.engines.epoch_grid.arcs import hyper_edges
from formulations.engines.epoch_grid.epochs import EpochGrid, durations
from formulations.engines.epoch_grid.plans import demand, schedule
from formulations.engines.reverse_time import backwards, parts
from formulations.engines.te_ccl.greedy import greedy
from tests.ccl.undirected import on_a_line

MB = 1e6


def slow_to_fast() -> Problem:
    """1 MB from g0 and from g3 to g2: g0's comes to the switch at half of the rate of s->g2.

    g3's is in g1 after 500 µs, and not before may g1 send it on. By then s->g2 has carried 0.5 MB
    at most, and the other 1.5 MB take 750 µs: 1,250 in all, and 1,500 if both are sent as a whole.
    """
    ends = {("g0", "s"): 1, ("g1", "s"): 2, ("s", "g2"): 2, ("g3", "g1"): 2}
    back = {("g2", "g0"): 1, ("g2", "g3"): 1}
    gpus = [device("gpu", f"g{rank}") for rank in range(4)]
    links = tuple(Link(*pair, float(bandwidth)) for pair, bandwidth in (ends | back).items())
    topology = Topology("slow to fast", (*gpus, device("switch", "s")), links)
    return Problem(topology, custom(4, [Chunk(MB, (0,), (2,)), Chunk(MB, (3,), (2,))]))


def crossing(chunk: int, src: str, dst: str, start: float, sent: float) -> Transfer:
    return Transfer(chunk, src, dst, start, sent, sent, MB)


@pytest.mark.parametrize("after", [(), ((), (), (0,), (1,), (3,))])
def test_a_timeline_in_which_a_fast_link_is_ahead_of_a_slow_one_is_refused(after):
    """At 500 µs 1 MB would have left the switch, and half of it had come."""
    transfers = (
        crossing(0, "g0", "s", 0, 1000),
        crossing(1, "g3", "g1", 0, 500),
        crossing(0, "s", "g2", 0, 500),
        crossing(1, "g1", "s", 500, 1000),
        crossing(1, "s", "g2", 500, 1000),
    )

    with pytest.raises(
        ScheduleError, match=r"s stores nothing .* that have not come yet"
    ) as caught:
        verify_timeline(slow_to_fast(), Timeline(transfers, 1000.0, after=after))
    assert caught.value.where == "s"

    # It would do if the last byte only left with the last that comes: then both have the link.
    slow = replace(transfers[2], sent=1000.0, end=1000.0)
    with pytest.raises(ScheduleError, match="s->g2 sends two things at once"):
        verify_timeline(
            slow_to_fast(), Timeline((*transfers[:2], slow, *transfers[3:]), 1000.0, after=after)
        )


@pytest.mark.parametrize("first", [0, 1])
def test_the_replay_lets_no_more_than_its_bandwidth_over_a_link(first):
    """Either chunk holds s->g2 for 500 µs, neither before 500 µs: g0's has come to half by then."""
    later = (Send(0, 1, "g3", "g1"), Send(2 - first, 1, "g1", "g2", ("s",)))
    problem = slow_to_fast()
    plan = Schedule((*later, Send(first, 0, "g0", "g2", ("s",))), 500.0, 3)

    verify(problem, plan)
    timeline = simulate(problem, plan)

    verify_timeline(problem, timeline)
    assert timeline.makespan == pytest.approx(1500.0)


@pytest.mark.parametrize(
    ("name", "least"),
    [("list", 1250), ("cp-sat", 1250), ("te-ccl-milp", 1250), ("direct", 1250), ("auto", 1000)],
)
def test_no_plan_is_faster_than_bytes_can_come(name, least):
    """If g1 may pass on bytes before it has all of them, 2 MB over s->g2 are all there is to do."""
    problem = slow_to_fast()

    result = solve(problem, name, time_limit=10)

    verify_timeline(problem, result.timeline)
    assert result.makespan >= least * (1 - 1e-9)


@pytest.mark.parametrize("rate", [25.0, 10.0])
def test_sums_over_unequal_links_are_as_fast_as_what_they_mirror(rate):
    """A reduction is planned as a broadcast backwards: both have the same best plan."""
    links = [
        Link(*pair, bandwidth, 0.7)
        for name, bandwidth in (("g0", 50.0), ("g1", rate), ("g2", 12.5))
        for pair in ((name, "s"), ("s", name))
    ]
    gpus = [device("gpu", f"g{rank}") for rank in range(3)]
    topology = Topology("unequal", (*gpus, device("switch", "s")), tuple(links))
    down = Problem(topology, all_gather(3, 3 * MB))
    up = Problem(topology.reversed(), down.collective.reversed())

    found = [solve(each, "cp-sat", time_limit=10) for each in (down, up)]

    assert found[0].makespan == pytest.approx(found[1].makespan)
    assert found[0].status == found[1].status


def cluster(rng: random.Random, *, limited: bool) -> Topology:
    """Two to four GPUs on two switches whose links differ by up to ten times."""
    names = [f"g{rank}" for rank in range(rng.randint(2, 4))]
    able = [(False, False), (True, False), (False, True), (True, True)]
    switches = [
        device("switch", name, copies=copies, reduces=reduces)
        for name, (copies, reduces) in zip("st", rng.choices(able, k=2), strict=True)
    ]
    pairs = [(name, "s") for name in names] + [("s", "t")]
    pairs += [(name, "t") for name in names if rng.random() < 0.6]
    links = tuple(
        Link(*ends, rng.choice([5.0, 12.5, 25.0, 50.0]), rng.choice([0.0, 0.7, 5.0]))
        for pair in pairs
        for ends in (pair, pair[::-1])
    )
    limits = []
    for k in range(rng.randint(1, 2) if limited else 0):
        some = rng.sample(links, rng.randint(2, 4))
        most = rng.uniform(0.5, 0.9) * sum(link.bandwidth for link in some)
        limits.append(SharedLimit(f"bus{k}", tuple(link.ends for link in some), most))
    gpus = tuple(device("gpu", name) for name in names)
    return Topology("random", (*gpus, *switches), links, tuple(limits))


def asked(seed: int) -> Problem:
    """A collective on a random cluster; every third has limits."""
    rng = random.Random(seed)
    topology = cluster(rng, limited=seed % 3 == 0)
    make = rng.choice([all_gather, all_to_all, reduce_scatter, all_reduce])
    return Problem(topology, make(len(topology.ranks), MB, chunks=rng.randint(1, 2)))


def check(problem: Problem, plan: Schedule) -> Timeline:
    """Verify a plan and its timeline, here once more and in other words."""
    verify(problem, plan)
    timeline = simulate(problem, plan)
    verify_timeline(problem, timeline)
    slack = 1e-9 * timeline.makespan
    every, link = timeline.transfers, problem.topology.link
    for each, before in zip(every, timeline.after, strict=True):
        own = link(each.src, each.dst)
        assert each.nbytes <= own.bandwidth * 1e3 * (each.sent - each.start + slack)
        assert each.end == pytest.approx(each.sent + own.alpha, abs=slack)
        stores = problem.topology.device(each.src).stores
        for source in (every[place] for place in before):
            alpha = link(source.src, source.dst).alpha
            assert each.start >= (source.end if stores else source.start + alpha) - slack
            assert each.sent >= source.end - slack
    return timeline


@pytest.mark.parametrize("seed", range(150))
def test_list_schedules_obey(seed):
    problem = asked(seed)
    try:
        result = solve(problem, "list", options={"passes": 4}, time_limit=5)
    except Infeasible:
        pytest.skip("no plan under these limits")

    timeline = check(problem, result.plan)

    assert timeline.makespan == pytest.approx(result.makespan)
    assert result.makespan >= result.bounds[0].makespan * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(150))
def test_greedy_plans_over_hyper_edges_obey(seed):
    """On the coarsest and the finest epochs; turned round where they add up."""
    problem = asked(seed)
    for part, reverse_time in parts(problem):
        size = part.collective.chunk_size
        for tau in durations(part.topology, size, by="auto")[:: 2 + seed % 2]:
            hops = hyper_edges(EpochGrid(part.topology, size, tau, reverse_time=reverse_time))
            try:
                sends = greedy(hops, demand(part), through=True, patience=0.0)
            except Infeasible:
                pytest.skip("limits let no way through")
            plan = schedule(sends, hops, demand(part))
            if reverse_time:
                turned = Problem(part.topology.reversed(), part.collective.reversed())
                check(turned, backwards(part, plan))
            else:
                check(part, plan)


def test_a_plan_that_names_terms_has_no_reversal():
    problem, plan = on_a_line()
    with pytest.raises(ProblemError, match="has no reversal in time; reverse one that adds up no"):
        backwards(problem, plan)
