"""Steps and rounds: least steps and instances by hand, by enumeration, in words."""

import random
from dataclasses import replace
from itertools import combinations, pairwise, product

import pytest

from ccl.collective import Chunk, custom, make_collective
from ccl.errors import Infeasible, LimitReached, ProblemError
from ccl.problem import Problem
from ccl.result import Stop
from ccl.topology import Link, Topology, device, duplex
from ccl.verify import verify
from formulations import formulation, solve
from formulations.engines.cp_sat.search import Effort
from formulations.engines.list_scheduling.search import Side
from formulations.engines.list_scheduling.timed import in_epochs, transfers_of
from formulations.engines.sccl.client import Decided, Solver, on_time
from formulations.engines.sccl.instance import Instance, capacities
from formulations.engines.sccl.search import named
from gallery import open_cluster


@pytest.fixture(scope="module")
def solver():
    with Solver() as opened:
        yield opened


def asked(cluster: str, kind: str, *, size: float = 1e6, chunks: int = 1) -> Problem:
    topology = open_cluster(cluster)
    return Problem(topology, make_collective(kind, len(topology.ranks), size, chunks=chunks))


def instance(problem: Problem, steps: int, rounds: int, **options):
    wanted = {"mode": "instance", "steps": steps, "rounds": rounds, **options}
    return solve(problem, "sccl", options=wanted)


def steps(problem: Problem, **options) -> int:
    """Return the least number of steps, proved."""
    result = solve(problem, "sccl", options=options)
    assert result.stop in (Stop.MODEL_OPTIMAL, Stop.PROVED)
    assert any("fewer are proved impossible" in line for line in result.log)
    return int(next(line for line in result.log if "of one round each" in line).split()[0])


# By hand


@pytest.mark.parametrize(
    ("cluster", "kind", "chunks", "least"),
    [
        # The farthest shard comes over 2 links; 3 shards over 2 links a round take 2 rounds.
        ("ring:gpus=4", "all-gather", 1, 2),
        # 6 chunks over 2 links a round take 3.
        ("ring:gpus=4", "all-gather", 2, 3),
        # The opposite corner is 3 links away; 7 shards over 3 links a round take 3 as well.
        ("hypercube:dimension=3", "all-gather", 1, 3),
        # One way over the switch to everyone, but 3 shards come in over one link.
        ("star:gpus=4", "all-gather", 1, 3),
        # Who has it doubles in each step: 1, 2, 4 of 4.
        ("star:gpus=4", "broadcast", 1, 2),
        # The switch copies.
        ("star:gpus=4,copies=true", "broadcast", 1, 1),
        # From the far end over 2 links, and 2 shards over the last.
        ("line:gpus=3", "gather", 1, 2),
        # 12 pairs, of which 4 are two links apart: 16 crossings of 8 links.
        ("ring:gpus=4", "all-to-all", 1, 2),
        # The mirror of the all-gather.
        ("ring:gpus=4", "reduce-scatter", 2, 3),
        # Who has added up halves in each step.
        ("star:gpus=4", "reduce", 1, 2),
    ],
)
def test_the_least_steps_are_those_counted_by_hand(cluster, kind, chunks, least):
    assert steps(asked(cluster, kind, chunks=chunks)) == least


def test_the_cost_is_steps_times_latency_and_rounds_times_bytes():
    """Ring of 4, shards of 0.25 MB in 2 chunks of 2.5 µs at 50 GB/s: 2 * 0.7 + 3 * 2.5 µs.

    Without a barrier the replay may be shorter, never longer.
    """
    result = instance(asked("ring:gpus=4", "all-gather", chunks=2), 2, 3)

    assert result.closed_form.expression == "2 α + 3 m/8 β"
    assert result.closed_form.makespan == pytest.approx(2 * 0.7 + 3 * 2.5)
    assert result.closed_form.in_steps <= result.closed_form.makespan * (1 + 1e-9)
    assert result.makespan <= result.closed_form.makespan * (1 + 1e-9)


def test_an_all_reduce_takes_the_steps_of_both_of_its_halves():
    """Ring of 4: 2 steps of 0.7 + 5 µs to add up, 2 to spread, all of them on busy links."""
    result = solve(asked("ring:gpus=4", "all-reduce"), "sccl")

    assert result.makespan == pytest.approx(4 * (0.7 + 5.0))


@pytest.mark.parametrize(
    ("cluster", "kind", "chunks", "few"),
    [
        # Two steps away.
        ("ring:gpus=4", "all-gather", 1, (1, 5)),
        # 6 chunks over 2 links a round.
        ("ring:gpus=4", "all-gather", 2, (2, 2)),
        # The root's link carries 2 of the 3 copies.
        ("star:gpus=4", "broadcast", 1, (1, 2)),
        # No step has less than a round.
        ("star:gpus=4", "all-gather", 1, (4, 3)),
    ],
)
def test_too_few_steps_or_rounds_are_proved_impossible(cluster, kind, chunks, few):
    with pytest.raises(Infeasible, match=f"no plan in {named(*few)}: proved, as "):
        instance(asked(cluster, kind, chunks=chunks), *few)


def test_the_root_of_a_star_sends_its_copies_in_three_rounds():
    """What the test above has too few of."""
    result = instance(asked("star:gpus=4", "broadcast"), 1, 3)

    assert {send.src for send in result.plan.sends} == {"g0"}


def test_impossible_is_told_apart_from_not_decided():
    """A root sends 4 chunks into a switch, one a round, to 7 others in 4 steps of 6 rounds.

    No bound refutes it, and the search takes more than a minute; a tenth of a second is not enough.
    """
    hard = asked("star:gpus=8", "broadcast", chunks=4)

    with pytest.raises(
        LimitReached, match=r"not decided .* 4 steps of 6 rounds together: its 0.1 s"
    ):
        instance(hard, 4, 6, seconds=0.1)


def test_an_undecided_step_is_told_beside_the_plan():
    hard = asked("star:gpus=8", "broadcast", chunks=4)

    result = solve(hard, "sccl", options={"seconds": 0.1})

    assert result.stop is Stop.EFFORT
    assert any("are enough is not decided" in line for line in result.log)


def test_a_step_of_several_rounds_carries_fractions_of_a_round():
    """Links of 75 and 50 GB/s: 1.5 chunks a round, 3 in two, 1 in one.

    Of 3 chunks on the faster link and none else, 2 rounds are enough and 1 is not.
    """
    links = (*duplex("g0", "g1", bandwidth=75.0), *duplex("g1", "g2", bandwidth=50.0))
    topology = Topology("two", tuple(device("gpu", f"g{i}") for i in range(3)), links)
    problem = Problem(topology, custom(3, [Chunk(1e6, (0,), (1,))] * 3))

    assert instance(problem, 1, 2).makespan == pytest.approx(3 * 1e6 / 75e3)
    with pytest.raises(Infeasible, match="3 chunks have to leave g0 over links of 3/2 chunks"):
        instance(problem, 1, 1)


@pytest.mark.parametrize("copies", [True, False])
def test_a_transmission_is_shared_where_all_its_ways_part_at_copying_switches(copies):
    """g0 -> s0 -> s1, from there to g1 and g2: one transmission if s1 copies, else two."""
    ends = (("g0", "s0"), ("s0", "s1"), ("s1", "g1"), ("s1", "g2"))
    devices = (
        *(device("gpu", f"g{i}") for i in range(3)),
        device("switch", "s0", copies=True),
        device("switch", "s1", copies=copies),
    )
    links = tuple(link for pair in ends for link in duplex(*pair, bandwidth=50.0))
    topology = Topology("two switches", devices, links)
    problem = Problem(topology, make_collective("broadcast", 3, 1e6))

    if copies:
        assert instance(problem, 1, 1).makespan == pytest.approx(20.0)
        return
    with pytest.raises(Infeasible, match="no plan in 1 step of 1 round: proved"):
        instance(problem, 1, 1)
    assert instance(problem, 1, 2).makespan == pytest.approx(40.0)


def test_the_same_seed_finds_the_same_plan():
    """Searched, not listed: 2 steps of 3 rounds together."""
    problem = asked("dgx-1v", "all-gather", chunks=2)

    first, second = (instance(problem, 2, 3, seed=7) for _ in range(2))

    assert first.plan == second.plan


def test_without_symmetry_the_answer_is_the_same():
    problem = asked("dgx-1v", "all-gather", chunks=2)

    plain = instance(problem, 2, 3, symmetry=False)

    assert plain.closed_form.expression == "2 α + 3 m/16 β"


def test_a_front_of_one_chunk_count_keeps_the_shortest_plan():
    """Star of 4: one step of 3 rounds; nothing has fewer rounds, as 3 shards come in one by one."""
    result = solve(asked("star:gpus=4", "all-gather"), "sccl", options={"mode": "pareto"})

    assert "1 step of 3 rounds: found" in result.log
    assert sum("found" in line for line in result.log) == 1


# In words


def test_what_rounds_cannot_count_is_refused_in_words():
    links = (*duplex("g0", "g1", bandwidth=50.0), *duplex("g1", "g2", bandwidth=37.1234567))
    odd = Topology("odd", tuple(device("gpu", f"g{i}") for i in range(3)), links)
    slow = replace(odd, links=(links[0], replace(links[1], bandwidth=0.01), *links[2:]))
    unequal = Problem(
        open_cluster("line:gpus=3"), custom(3, [Chunk(1e6, (0,), (2,)), Chunk(2e6, (1,), (2,))])
    )
    why_not = formulation("sccl").why_not

    assert "make bandwidths rounder" in why_not(Problem(odd, make_collective("gather", 3, 1e6)))
    assert "more than 1000 chunks in a round" in why_not(
        Problem(slow, make_collective("gather", 3, 1e6))
    )
    assert "1e+06 to 2e+06 bytes" in why_not(unequal)
    assert "limit memory bus" in why_not(asked("thesis-2.3", "all-gather"))


def test_where_no_way_leads_is_said():
    names = ("g0", "g1", "g2")
    links = (Link("g0", "g1", 50.0), Link("g1", "g0", 50.0), Link("g2", "g0", 50.0))
    topology = Topology("cut", tuple(device("gpu", name) for name in names), links)

    with pytest.raises((Infeasible, ProblemError), match="g2"):
        solve(Problem(topology, make_collective("broadcast", 3, 1e6)), "sccl")


# By enumeration


def drawn(seed: int) -> Problem:
    """Three or four GPUs on links of 1 or 2 chunks a round, three chunks for one or several."""
    chance = random.Random(seed)
    names = [f"g{i}" for i in range(chance.choice((3, 4)))]
    ring = [*pairwise(names), (names[-1], names[0])]
    more = [(a, b) for a in names for b in names if a != b and chance.random() < 0.3]
    links = [Link(src, dst, chance.choice((25.0, 50.0)), 0.5) for src, dst in {*ring, *more}]
    links.sort(key=lambda link: link.ends)
    chunks = []
    for _ in range(3):
        ranks = chance.sample(range(len(names)), len(names))
        chunks.append(Chunk(1e6, (ranks[0],), tuple(ranks[1 : chance.randint(2, len(names))])))
    topology = Topology("drawn", tuple(device("gpu", name) for name in names), tuple(links))
    return Problem(topology, custom(len(names), chunks))


def enumerated(problem: Problem) -> int:
    """Try all that can be sent, step after step; links send all they can."""
    topology, chunks = problem.topology, problem.collective.chunks
    rank = {name: number for number, name in enumerate(topology.ranks)}
    slowest = min(link.bandwidth for link in topology.links)
    links = [
        (rank[link.src], rank[link.dst], round(link.bandwidth / slowest)) for link in topology.links
    ]
    wanted = {(c, v) for c, chunk in enumerate(chunks) for v in chunk.destinations}
    now = {frozenset((c, v) for c, chunk in enumerate(chunks) for v in chunk.holders)}
    for step in range(1, 20):
        following = set()
        for held in now:
            choices = []
            for src, dst, room in links:
                able = [c for c, v in held if v == src and (c, dst) not in held]
                choices.append(
                    [[(c, dst) for c in some] for some in combinations(able, min(room, len(able)))]
                )
            following |= {held.union(*some) for some in product(*choices)}
        if any(wanted <= held for held in following):
            return step
        now = following
    raise AssertionError


@pytest.mark.parametrize("seed", range(20))
def test_least_steps_are_those_of_enumeration(seed, solver):
    """Neither bounds nor list scheduling are asked: the program alone says yes and no."""
    problem = drawn(seed)
    side = Side(transfers_of(problem.topology), problem.collective)
    puzzle = Instance(side.task(), capacities(problem.topology))
    least = enumerated(problem)

    enough = solver.decide(puzzle, least, least, effort=Effort(seconds=20))
    few = [solver.decide(puzzle, each, each, effort=Effort(seconds=20)) for each in range(1, least)]

    assert enough.decided is Decided.FOUND
    verify(problem, in_epochs(problem, side.transfers, on_time(puzzle.task, enough.plan)))
    assert all(each.decided is Decided.IMPOSSIBLE for each in few)
