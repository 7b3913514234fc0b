"""Plans whose sends name what they carry become programs: values in scratch, added to each sum."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from ccl.collective import all_reduce, reduce_scatter
from ccl.errors import ProblemError
from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.serialization.documents import document
from ccl.topology import Topology, device, duplex
from ccl.verify import verify
from interchange.execution import execute
from interchange.formats.catalogue import writer
from interchange.programs.lowering import Options, lower
from interchange.programs.lowering.hops import OWN, hops_of, messages_of
from interchange.programs.one_sided import lower_one_sided
from tests.ccl.clusters import MB, gpus, mesh, star
from tests.ccl.judging import named
from tests.ccl.test_simulate_terms import trees_on_clusters
from tests.ccl.undirected import on_a_line, planned, question
from tests.interchange.programs.running import check


def operations(program, rank):
    """Return the operations of all thread blocks of a rank, sorted."""
    blocks = program.ranks[rank].blocks
    return sorted(step.operation for block in blocks for step in block.steps)


def exchange(ranks, *, pieces=1):
    """Every rank sends its own contribution to every other, at once."""
    problem = Problem(mesh(ranks), all_reduce(ranks, ranks * pieces * MB, chunks=pieces))
    chunks = len(problem.collective.chunks)
    sends = [
        named(number, f"g{u}", f"g{v}", u, chunk=number)
        for number in range(chunks)
        for u in range(ranks)
        for v in range(ranks)
        if u != v
    ]
    plan = Schedule(tuple(sends), 20.0, chunks)
    verify(problem, plan)
    return problem, plan


def test_what_is_only_added_up_is_added_as_it_comes():
    """Three sums of three at each rank: two arrivals each, and one copy of what is its own."""
    problem, plan = exchange(3)
    program = lower(problem, plan)

    check(program)
    assert program.in_place
    found = operations(program, 0)
    assert found.count("rrc") == 6
    assert found.count("s") == 6
    assert "re" not in found
    assert "r" not in found


def test_what_is_used_twice_is_kept_apart_and_added_to_each():
    """On a line g1 passes on and adds up what each neighbour sends: two values for three sums."""
    problem, plan = on_a_line()
    program = lower(problem, plan)

    check(program)
    middle = operations(program, 1)
    assert middle.count("r") == 6
    assert middle.count("re") == 12
    assert "re" not in operations(program, 0)
    assert program.ranks[0].scratch <= 3
    assert program.ranks[1].scratch <= 15


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(trees_on_clusters())
def test_undirected_trees_do_the_all_reduce(drawn):
    topology, pieces = drawn
    problem = question(topology, pieces, 1e5 * len(pieces))
    program = lower(problem, planned(problem, pieces))

    check(program, seeds=2)
    assert execute(program).ok


def test_several_instances_and_few_blocks_do_it_too():
    problem, plan = exchange(4, pieces=2)

    check(lower(problem, plan, Options(instances=2)))
    check(lower(problem, plan, Options(steps=16)))
    check(lower(problem, plan, Options(blocks=2)))


def test_sends_without_terms_take_what_adds_up():
    problem, plan = on_a_line()
    mixed = tuple(replace(send, terms=None) if send.src == "g0" else send for send in plan.sends)
    partly = replace(plan, sends=mixed)
    verify(problem, partly)

    check(lower(problem, partly))


def test_values_come_through_memories_that_cannot_add():
    """m keeps what g0 and g1 send apart, and hands each on."""
    memory = device("memory", "m")
    links = [link for r in range(3) for link in duplex(f"g{r}", "m", bandwidth=50.0)]
    topology = Topology("memory", (*gpus(3), memory), tuple(links))
    problem = Problem(topology, reduce_scatter(3, 3 * MB))
    sends = []
    for chunk in range(3):
        for turn, rank in enumerate(rank for rank in range(3) if rank != chunk):
            epoch = 2 * chunk + turn
            sends += [
                named(epoch, f"g{rank}", "m", rank, chunk=chunk),
                named(epoch + 1, "m", f"g{chunk}", rank, chunk=chunk),
            ]
    plan = Schedule(tuple(sends), 20.0, 7)
    verify(problem, plan)

    program = lower(problem, plan)
    check(program)
    assert execute(program).ok


def test_a_sum_on_the_path_comes_as_its_parts():
    """The switch adds what g0, g1 and g2 send to g3, which passes the sum of all back to each."""
    problem = Problem(star(4, copies=True, reduces=True), all_reduce(4, 4 * MB))
    sends = []
    for chunk in range(4):
        others = [rank for rank in range(4) if rank != chunk]
        up = [named(2 * chunk, f"g{u}", f"g{chunk}", u, via=("s",), chunk=chunk) for u in others]
        down = [
            named(2 * chunk + 1, f"g{chunk}", f"g{v}", 0, 1, 2, 3, via=("s",), chunk=chunk)
            for v in others
        ]
        sends += [*up, *down]
    plan = Schedule(tuple(sends), 20.0, 8)
    verify(problem, plan)

    check(lower(problem, plan))


def test_programs_of_puts_keep_one_value_and_say_so():
    problem, plan = on_a_line()
    with pytest.raises(ProblemError, match="one place for a chunk at a rank; choose MSCCL XML"):
        lower_one_sided(problem, plan)


def test_traces_wait_for_the_values_that_are_sent():
    """g1 sends g2 what g0 sent it and its own: after that receipt, not after that of g2's."""
    problem, plan = on_a_line()
    hops = hops_of(problem, plan, most_pieces=1)
    messages = messages_of(problem, hops)
    first = [each for each in messages.messages if each.part == 0]
    came = {each.named.value: each.src for each in first}
    found = {
        (each.src, each.dst): [came[value] for value in each.named.taken - {OWN}] for each in first
    }
    assert found == {(0, 1): [], (2, 1): [], (1, 0): [2], (1, 2): [0]}
    assert not any(each.early for each in messages.messages)
    written = writer("chakra").write(document(problem, plan=plan), writer("chakra").options())
    assert len(written.files) > 1


def test_xml_of_a_plan_with_terms_is_written():
    problem, plan = on_a_line()
    written = writer("msccl-xml").write(document(problem, plan=plan), writer("msccl-xml").options())
    assert b'type="re"' in written.content
