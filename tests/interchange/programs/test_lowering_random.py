"""Random plans for random clusters become programs that are right, are read as written, lift back.

Clusters have one-way rings of 2 to 5 GPUs with anything hung on: links of all speeds, switches that
copy or add, devices that store without either, limits, hosts. Plans are trees and parts of chunks
laid by a planner that shares nothing with what is tried; options are whatever a user may ask for.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, given, seed, settings
from hypothesis import strategies as st

from ccl.collective import make_collective
from ccl.errors import ProblemError, ScheduleError
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.serialization.documents import Document
from ccl.simulate import simulate
from ccl.topology import Link, SharedLimit, Topology, device
from ccl.verify import verify
from interchange.execution import execute
from interchange.formats.catalogue import reader
from interchange.formats.format import Request
from interchange.formats.runtimes.msccl_xml import program_from_xml, program_to_xml
from interchange.programs import Program
from interchange.programs.lint import EXECUTORS, lint
from interchange.programs.lowering import Options, lower
from tests.ccl.clusters import gpus
from tests.ccl.planner import Planner, Task, split, spread
from tests.interchange.formats.strategies import SCHEDULED, planned

OPTIONS = st.builds(
    Options,
    instances=st.integers(1, 3),
    steps=st.sampled_from([8, 9, 16, 64, 256]),
    blocks=st.sampled_from([1, 2, 3, 7, 31, 127]),
    pieces=st.sampled_from([1, 2, 3, 5, 16, 128]),
    in_place=st.booleans(),
    protocol=st.sampled_from(["Simple", "LL", "LL128"]),
)
LONG = 64
"""Steps of a thread block from which on so small a program needs few channels."""
UNKNOWN = ("gather", "scatter")
"""What no executor does right, which a lint says of whatever does it."""


def cluster(rng: random.Random) -> Topology:
    """A ring and random links, with up to three devices that are no GPU joined to some."""
    count = rng.randint(2, 5)
    names = [f"g{rank}" for rank in range(count)]
    pairs = {(names[r], names[(r + 1) % count]) for r in range(count)}
    pairs |= {(a, b) for a in names for b in names if a != b and rng.random() < 0.3}
    others = []
    for name in ("x", "y", "z")[: rng.randint(0, 3)]:
        able = {can: rng.choice([None, False, True]) for can in ("stores", "copies", "reduces")}
        others.append(device(rng.choice(["switch", "memory", "nic"]), name, **able))
        plugged = (*names, "x", "y")[: count + len(others) - 1]
        pairs |= {
            ends for each in plugged if rng.random() < 0.6 for ends in ((each, name), (name, each))
        }
    latencies = rng.choice([(0.0,), (0.7,), (0.0, 0.7, 30.0), (0.0, 500.0)])
    links = tuple(
        Link(*ends, rng.choice([10.0, 25.0, 50.0]), rng.choice(latencies)) for ends in sorted(pairs)
    )
    limits = []
    if rng.random() < 0.2:
        some = rng.sample(links, min(len(links), 3))
        bandwidth = rng.uniform(0.4, 0.9) * sum(link.bandwidth for link in some)
        limits.append(SharedLimit("bus", tuple(link.ends for link in some), bandwidth))
    devices = [*gpus(count), *others]
    rng.shuffle(devices)
    return Topology("random", tuple(devices), links, tuple(limits))


def stopping(problem: Problem, rng: random.Random) -> list[Task]:
    """Send every chunk along a random tree whose ways stop wherever something is stored."""
    topology = problem.topology
    stops = {each.name for each in topology.devices if each.stores}
    tasks: list[Task] = []
    ways = sorted(_ways(topology, stops))
    for number, chunk in enumerate(problem.collective.chunks):
        ends = [topology.ranks[rank] for rank in chunk.destinations]
        root = rng.choice(ends) if chunk.reduced else topology.ranks[chunk.holders[0]]
        after: tuple[int, ...] = ()
        if chunk.reduced:
            inside, grown = {root}, []
            while not inside >= {*topology.ranks}:
                way = rng.choice([w for w in ways if w[-1] in inside and w[0] not in inside])
                inside.add(way[0])
                grown.append(way)
            came: dict[str, tuple[int, ...]] = {}
            for src, *via, dst in reversed(grown):
                if src in topology.rank or src in came:
                    send = Send(0, number, src, dst, tuple(via))
                    tasks.append(Task(send, came.get(src, ())))
                    came[dst] = (*came.get(dst, ()), len(tasks) - 1)
            after = came[root]
        reached = {root: after}
        while not reached.keys() >= {*ends}:
            src, *via, dst = rng.choice(
                [w for w in ways if w[0] in reached and w[-1] not in reached]
            )
            tasks.append(Task(Send(0, number, src, dst, tuple(via)), reached[src]))
            reached[dst] = (len(tasks) - 1,)
    return tasks


def _ways(topology: Topology, stops: set[str]) -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    routes: list[tuple[str, ...]] = [(name,) for name in stops]
    while routes:
        route = routes.pop()
        for link in topology.links_out[route[-1]]:
            if link.dst in stops and link.dst != route[0]:
                found.add((*route, link.dst))
            elif link.dst not in {*stops, *route}:
                routes.append((*route, link.dst))
    return found


def instance(number: int) -> tuple[Problem, Schedule]:
    """Make a problem and a verified schedule of it, or give the number up."""
    rng = random.Random(number)
    topology = cluster(rng)
    ranks, kind = len(topology.ranks), rng.choice(SCHEDULED)
    size = rng.choice([ranks * 1e6, ranks * 64.0, 1e5])
    collective = make_collective(
        kind, ranks, size, chunks=rng.randint(1, 3), root=rng.randrange(ranks)
    )
    problem = Problem(topology, collective)
    least = max(collective.chunk_size * 1e-3 / 25.0, *(link.alpha for link in topology.links))
    planner = Planner(problem, least * rng.choice([0.3, 1.0, 2.0]))
    alone = all(len(each.destinations) == 1 and not each.reduced for each in collective.chunks)
    if any(each.stores and each.kind != "gpu" for each in topology.devices):
        tasks = stopping(problem, rng)
    else:
        plan = split if alone and rng.random() < 0.7 else spread
        tasks = plan(problem, rng, through=rng.random() < 0.5)
    assume(all(planner.fits_alone(task) for task in tasks))
    schedule = planner.plan(tasks)
    try:
        verify(problem, schedule)
    except ScheduleError:  # what cannot copy or add was asked to
        assume(condition=False)
    return problem, schedule


def lowered(problem: Problem, schedule: Schedule, options: Options) -> Program:
    """Make the program; plans of more steps than were asked for are passed over."""
    try:
        return lower(problem, schedule, options)
    except ProblemError as error:
        if "steps" in str(error) or "no messages between ranks" in str(error):
            assume(condition=False)
        raise


def check(program: Program, options: Options, *, number: int) -> None:
    """Check that it is within what was asked, clean, right in any order, and read as written."""
    assert all(len(block.steps) <= options.steps for _, _, block in program.blocks())
    most = max(len(each.blocks) for each in program.ranks)
    assert (most > options.blocks) == any("limit of" in note for note in program.notes)
    for executor in EXECUTORS:
        severe = [each.sentence for each in lint(program, executor) if each.severe]
        if program.collective not in UNKNOWN and options.steps >= LONG:
            assert severe == []
        assert program_from_xml(program_to_xml(program, executor).encode()) == program
    done = execute(program, interleavings=6, seed=number, keep_input=True).check()
    assert done.interleavings == 6 * (1 + program.in_place)


@seed(1)
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9), OPTIONS)
def test_random_schedules_become_programs_that_are_right_and_read_as_written(number, options):
    problem, schedule = instance(number)

    check(lowered(problem, schedule, options), options, number=number)


@seed(2)
@settings(max_examples=25, deadline=None)
@given(planned(), OPTIONS)
def test_odd_names_and_speeds_change_nothing(content: Document, options):
    assert content.problem is not None
    assert isinstance(content.plan, Schedule)

    check(lowered(content.problem, content.plan, options), options, number=0)


@seed(3)
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**9), OPTIONS)
def test_programs_lift_back_to_verified_schedules_or_say_why_not(number, options):
    """What the report says of the makespan is what replaying the schedule takes, to 4 digits."""
    problem, schedule = instance(number)
    program = lowered(problem, schedule, options)
    asked = Request(
        name="x", topology=problem.topology, settings={"size": f"{problem.collective.size:.0f}"}
    )

    imported = reader("msccl-xml").read(program_to_xml(program).encode(), asked)

    lifted = imported.document
    if lifted.plan is None:
        assert imported.report.left_out[-1].startswith("there is no plan: ")
    else:
        verify(lifted.problem, lifted.plan)
        makespan = simulate(lifted.problem, lifted.plan).makespan
        assert f" in {makespan:.4g} µs, " in imported.report.taken[-1]
        assert lifted.problem.collective.kind == problem.collective.kind


@pytest.mark.parametrize("kind", ["switch", "memory", "gpu"])
def test_what_cannot_copy_hands_each_contribution_on_once(kind):
    """g0's goes over x to g2 in round 1, while g1's is on its way to x, and follows in round 2.

    As x holds nothing of g0's any more, the second send carries g1's alone, and g2 adds two
    different ones to its own. A GPU x has a contribution of its own, which goes first.
    """
    able = {} if kind == "gpu" else {"stores": True, "reduces": False}
    devices = (*gpus(3), device(kind, "x", copies=False, **able))
    links = tuple(Link(*ends, 50.0) for ends in (("g0", "x"), ("g1", "x"), ("x", "g2")))
    back = tuple(Link("g2", name, 50.0) for name in ("g0", "g1", "x"))
    topology = Topology("star of one that cannot copy", devices, (*links, *back))
    ranks = len(topology.ranks)
    problem = Problem(topology, make_collective("reduce", ranks, 1e6, root=2))
    first = [Send(0, 0, "x", "g2")] if kind == "gpu" else []
    rounds = [(0, "g0", "x"), (1, "x", "g2"), (1, "g1", "x"), (2, "x", "g2")]
    sends = (*first, *(Send(epoch, 0, src, dst) for epoch, src, dst in rounds))
    schedule = Schedule(sends, 20.0, 3)
    verify(problem, schedule)

    program = lower(problem, schedule)

    execute(program).check()
