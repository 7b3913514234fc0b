"""Plans of formulations that know no windows, under windows."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from ccl.collective import all_gather, all_to_all, make_collective
from ccl.errors import ProblemError, SolveError
from ccl.plans import Schedule
from ccl.problem import Problem, Window
from ccl.simulate import simulate
from ccl.verify import verify, verify_timeline
from formulations import formulation, solve
from formulations.solving import windows
from formulations.solving.windows import slowed_for_ever, under_windows
from gallery import open_cluster
from tests.ccl.clusters import MB, line, ring
from tests.formulations.test_random_clusters import _topology

QUICK = ("list", "tacos", "direct", "ring", "tree", "pairwise", "recursive-doubling")

HALVED = (Window((("g0", "g1"),), 0, 50, 0.5),)


def windowed(rng: random.Random, *, dead: bool) -> Problem | None:
    """A problem drawn by chance, with windows of some of its links."""
    size = 10 ** rng.uniform(3, 9)
    topology = _topology(rng, size)
    kind = rng.choice(("all-gather", "all-to-all", "broadcast", "reduce-scatter", "all-reduce"))
    try:
        problem = Problem(topology, make_collective(kind, len(topology.ranks), size))
    except ProblemError:
        return None
    long = size / min(link.bandwidth for link in topology.links) * 1e-3
    windows = []
    for link in rng.sample(topology.links, min(len(topology.links), rng.randint(1, 4))):
        begin = rng.choice((0.0, rng.uniform(0, long)))
        share = rng.choice((0.1, 0.5, 0.5, 0.9, *((0.0,) if dead else ())))
        windows.append(Window((link.ends,), begin, begin + rng.uniform(0.01, 2) * long, share))
    return replace(problem, windows=tuple(windows))


@pytest.mark.parametrize("seed", range(60))
def test_windows_are_never_worse_than_links_slowed_for_ever(seed):
    """Whatever plan it is: each link has as much bandwidth at all times, and mostly more."""
    rng = random.Random(seed)
    problem = windowed(rng, dead=False)
    if problem is None or problem.topology.limits:
        return
    slow = Problem(slowed_for_ever(problem), problem.collective)
    name = rng.choice(QUICK)
    if formulation(name).why_not(slow) is not None:
        name = "list"
    if formulation(name).why_not(slow) is not None:
        return
    found = solve(slow, name)

    plan = under_windows(problem, found.plan)

    stores = {each.name: each.stores for each in problem.topology.devices}
    if not all(stores[send.dst] for send in found.plan.sends):
        return  # what a switch takes has to leave it in a certain epoch
    assert plan is not None
    timeline = simulate(problem, plan)
    verify_timeline(problem, timeline)
    assert timeline.makespan <= found.makespan * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.cover(16)
def test_what_a_formulation_answers_under_windows_is_verified(seed):
    """Links may be dead for a time, and limits may bind: there is a plan all the same."""
    rng = random.Random(1000 + seed)
    problem = windowed(rng, dead=True)
    if problem is None or formulation("list").why_not(problem) is not None:
        return
    free = replace(problem, windows=())
    try:
        alone = solve(free, "list").makespan
    except SolveError:
        return

    found = solve(problem, "list")

    verify(problem, found.plan)
    verify_timeline(problem, found.timeline)
    assert found.problem == problem
    assert alone <= found.makespan * (1 + 1e-9) or found.bounds[0].makespan <= found.makespan


@pytest.mark.parametrize("name", ["list", "tacos", "direct", "ring", "auto"])
def test_formulations_that_know_no_windows_take_them(name):
    """With the first link halved for 50 µs, all are as quick as with it halved for ever."""
    gathered = all_gather(8, MB)
    problem = Problem(open_cluster("dgx-1v"), gathered, HALVED)
    slow = Problem(slowed_for_ever(problem), gathered)

    found = solve(problem, name, options={"effort": "quick"} if name == "auto" else None)

    assert found.makespan <= solve(slow, name).makespan * (1 + 1e-9) or name == "auto"
    if name in {"tacos", "auto"}:
        assert found.makespan <= 10.7 * (1 + 1e-9)


def test_a_plan_that_fits_stays_as_it_is():
    """The window ends long after the plan, of a link that it does not use."""
    problem = Problem(line(3), all_gather(3, 3 * MB))
    plan = solve(problem, "direct").plan
    later = replace(problem, windows=(Window((("g1", "g0"),), 1e6, 2e6, 0.5),))

    assert under_windows(later, plan) == plan


def test_a_link_that_is_dead_for_a_time_is_waited_for():
    """Its first transmission of 20 µs begins when the window of 100 µs is over."""
    problem = Problem(line(2), all_to_all(2, 2 * MB))
    plan = solve(problem, "direct").plan
    dead = replace(problem, windows=(Window((("g0", "g1"),), 0, 100, 0.0),))

    assert [link.ends for link in slowed_for_ever(dead).links] == [("g1", "g0")]
    found = under_windows(dead, plan)
    assert isinstance(found, Schedule)
    assert simulate(dead, found).makespan == pytest.approx(120)
    assert solve(dead, "list").makespan == pytest.approx(120)


@pytest.mark.parametrize("name", ["list", "direct", "auto"])
def test_a_link_that_is_dead_for_long_is_gone_around(name):
    """Four shards of 1 MB at 50 GB/s: the other way around takes 60 or 80 us, the window 1 ms."""
    dead = (Window((("g0", "g1"),), 0, 1e3, 0.0),)
    topology = open_cluster("ring:gpus=4,bandwidth=50,alpha=0")
    problem = Problem(topology, all_gather(4, 4 * MB), dead)

    assert solve(problem, name).makespan <= 80 * (1 + 1e-9)


def test_auto_tries_constructions_under_windows_too(monkeypatch):
    """What is slower without windows may be quicker under them."""
    seen = []
    answer = windows.answer

    def answered(chosen, run, options):
        seen.append(chosen.name)
        return answer(chosen, run, options)

    monkeypatch.setattr(windows, "answer", answered)
    topology = open_cluster("ring:gpus=4")
    proved = solve(Problem(topology, all_gather(4, MB), HALVED), options={"effort": "quick"})
    assert proved.status == "optimal"
    assert "bruck" not in seen

    later = (Window((("g0", "g1"),), 5, 50, 0.5),)
    open_yet = Problem(topology, all_gather(4, 4 * MB), later)
    assert solve(open_yet, options={"effort": "quick"}).status != "optimal"
    assert {"list", "direct", "bruck"} <= set(seen)


def test_a_ring_goes_on_at_full_rate_after_the_window():
    """Of three steps of 20 µs the first takes 40 over the halved link; the others do not."""
    problem = Problem(ring(4), all_gather(4, 4 * MB))
    plan = solve(problem, "ring").plan
    halved = replace(problem, windows=(Window((("g0", "g1"),), 0, 40, 0.5),))

    found = under_windows(halved, plan)

    assert simulate(halved, found).makespan <= 80 * (1 + 1e-9)
