"""Whatever the schedule: the verifier lets it through, and its replay obeys and is no later."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccl.collective import Chunk, all_gather, all_reduce, all_to_all, custom, reduce_scatter
from ccl.problem import Problem
from ccl.simulate import simulate
from ccl.topology import Link, SharedLimit, Topology, device
from ccl.verify import verify, verify_timeline
from tests.ccl.clusters import MB, gpus
from tests.ccl.planner import Planner, Task, split, spread

SIZES = (0.3 * MB, MB, 2.5 * MB)


def cluster(rng: random.Random, *, limited: bool) -> Topology:
    """A ring of GPUs with random chords and two switches, all of different speeds."""
    count = rng.randint(2, 5)
    names = [f"g{rank}" for rank in range(count)]
    pairs = {(names[r], names[(r + 1) % count]) for r in range(count)}
    pairs |= {(a, b) for a in names for b in names if a != b and rng.random() < 0.3}
    switches = []
    for switch in ("s", "t"):
        copies, reduces = rng.choice([(False, False), (True, False), (False, True), (True, True)])
        switches.append(device("switch", switch, copies=copies, reduces=reduces))
        plugged = [name for name in names if rng.random() < 0.6]
        pairs |= {ends for name in plugged for ends in ((name, switch), (switch, name))}
    pairs |= {("s", "t"), ("t", "s")}
    links = tuple(
        Link(*ends, rng.choice([10.0, 25.0, 50.0]), rng.choice([0.0, 0.7, 30.0]))
        for ends in sorted(pairs)
    )
    limits = []
    for k in range(rng.randint(1, 2) if limited else 0):
        some = rng.sample(links, rng.randint(2, min(4, len(links))))
        bandwidth = rng.uniform(0.4, 0.9) * sum(link.bandwidth for link in some)
        limits.append(SharedLimit(f"bus{k}", tuple(link.ends for link in some), bandwidth))
    return Topology("random", (*gpus(count), *switches), links, tuple(limits))


def collective(rng: random.Random, ranks: int, *, sizes: tuple[float, ...]):
    kind = rng.choice(["all-gather", "all-to-all", "reduce-scatter", "all-reduce", "custom"])
    if kind == "custom":
        return custom(ranks, [single(rng, ranks, sizes) for _ in range(rng.randint(1, 6))])
    make = {
        "all-gather": all_gather,
        "all-to-all": all_to_all,
        "reduce-scatter": reduce_scatter,
        "all-reduce": all_reduce,
    }[kind]
    return make(ranks, ranks * sizes[0], chunks=rng.randint(1, 2))


def single(rng: random.Random, ranks: int, sizes: tuple[float, ...]) -> Chunk:
    src, dst = rng.sample(range(ranks), 2)
    return Chunk(rng.choice(sizes), (src,), (dst,))


def instance(seed: int, *, limited: bool) -> tuple[Problem, list[Task], float]:
    """A problem, ways for all of its chunks, and an epoch duration that is coarse or fine."""
    rng = random.Random(seed)
    topology = cluster(rng, limited=limited)
    sizes = (MB,) if limited else SIZES
    problem = Problem(topology, collective(rng, len(topology.ranks), sizes=sizes))
    single_ends = all(
        len(chunk.destinations) == 1 and not chunk.reduced for chunk in problem.collective.chunks
    )
    through = rng.random() < 0.5
    plan = split if single_ends and rng.random() < 0.7 else spread
    epoch_duration = rng.choice([7.0, 20.0, 45.0, 130.0])
    tasks = plan(problem, rng, through=through)
    planner = Planner(problem, epoch_duration)
    if not all(planner.fits_alone(task) for task in tasks):
        # A way may cross a limit so often that a chunk alone is too much for it.
        tasks = plan(problem, rng, through=False)
    return problem, tasks, epoch_duration


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**9))
def test_no_send_is_replayed_later_than_it_is_scheduled(seed):
    problem, tasks, epoch_duration = instance(seed, limited=False)
    planner = Planner(problem, epoch_duration)
    schedule = planner.plan(tasks)

    verify(problem, schedule)
    timeline = simulate(problem, schedule)

    verify_timeline(problem, timeline)
    assert timeline.makespan <= schedule.duration * (1 + 1e-9)
    assert len(timeline.transfers) == sum(len(those) for those in planner.starts.values())
    for ends, scheduled in planner.starts.items():
        replayed = [t.start for t in timeline.transfers if (t.src, t.dst) == ends]
        for early, late in zip(replayed, scheduled, strict=True):
            assert early <= late + 1e-6


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9))
def test_shared_limits_never_make_the_replay_late(seed):
    """A send over several links counts from the epoch on in which its first byte comes to a link,
    and may so be late by what it has not got of that."""
    problem, tasks, epoch_duration = instance(seed, limited=True)
    schedule = Planner(problem, epoch_duration).plan(tasks)

    verify(problem, schedule)
    timeline = simulate(problem, schedule)

    verify_timeline(problem, timeline)
    late = epoch_duration if any(send.via for send in schedule.sends) else 0.0
    assert timeline.makespan <= schedule.duration * (1 + 1e-9) + late


@pytest.mark.parametrize("seed", range(20))
def test_the_replay_is_the_same_every_time(seed):
    problem, tasks, epoch_duration = instance(seed, limited=bool(seed % 2))
    schedule = Planner(problem, epoch_duration).plan(tasks)

    assert simulate(problem, schedule) == simulate(problem, schedule)
