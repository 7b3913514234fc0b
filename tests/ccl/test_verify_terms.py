"""Sends that name the contributions they carry: what the verifier lets through, and what not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ccl.collective import all_gather, all_reduce
from ccl.errors import ProblemError, ScheduleError
from ccl.plans import Schedule, Send, choose_values, share_values
from ccl.problem import Problem
from ccl.topology import Topology, device, duplex
from ccl.verify import verify
from tests.ccl.clusters import MB, gpus, line, mesh, star
from tests.ccl.judging import accepted, named, refused, summed
from tests.ccl.undirected import planned, question


def test_sends_are_in_order_and_differ_by_their_terms():
    plain = Send(0, 0, "g0", "g1")
    one, other = replace(plain, terms=frozenset({0, 3})), replace(plain, terms=frozenset({1}))
    assert plain != one != other
    assert len({plain, one, other, replace(one)}) == 3
    assert sorted([other, one, plain]) == [plain, one, other]
    assert one <= other
    assert other > plain
    assert one >= replace(one)
    assert str(one) == "chunk 0 (ranks 0, 3) g0->g1"
    with pytest.raises(TypeError):
        assert plain < "g0"


def test_terms_of_no_rank_are_refused_where_a_schedule_is_made():
    with pytest.raises(ProblemError, match="has terms of no rank; name one or more"):
        Schedule((named(0, "g0", "g1"),), 20.0, 1)


def test_values_are_chosen_largest_first_and_then_earliest():
    assert choose_values([1, 2, 3, 4], 7, adds=True) == [2, 3]
    assert choose_values([1, 2, 3, 4], 3, adds=False) == [2]
    assert choose_values([1, 2, 4], 3, adds=False) is None
    assert choose_values([1, 6, 3], None, adds=True) == [0, 1]
    assert choose_values([1, 3], None, adds=False) == [1]
    assert choose_values([], None, adds=True) is None
    assert choose_values([3, 6], 7, adds=True) is None


def test_what_passes_is_shared_as_it_came():
    def shared(came, terms, copies=False, adds=False):
        return share_values(came, terms, copies=copies, adds=adds)

    assert shared([1, 2], [2, 1]) == [[1], [0]]
    assert shared([1, 2], [2, None]) == [[1], [0]]
    assert shared([1, 2], [3]) is None
    assert shared([1, 2], [1]) is None
    assert shared([1, 2], [1, 1]) is None
    assert shared([1, 2], [3], adds=True) == [[0, 1]]
    assert shared([1, 2, 4], [2, None], adds=True) == [[1], [0, 2]]
    assert shared([1, 2], [1, 2, 2], copies=True) == [[0], [1], [1]]
    assert shared([1], [1, None], copies=True) == [[0], [0]]
    assert shared([1, 2, 4], [3, 6], copies=True, adds=True) == [[0, 1], [1, 2]]
    assert shared([1, 2], [1], copies=True, adds=True) is None
    assert shared([1, 2], [None, None], copies=True, adds=True) == [[0, 1], [0, 1]]


def test_two_neighbours_swap_what_they_have_at_once():
    """Each sends its own alone: in a line g1 passes on g0's to g2 and g2's to g0."""
    trees = [[(0, 1), (1, 2)]] * 3
    problem = question(line(3), trees, 3 * MB)
    schedule = planned(problem, trees)
    verify(problem, schedule)
    for place, send in enumerate(schedule.sends):
        if len(send.terms) < 2:
            continue
        worse = replace(send, terms=send.terms - {min(send.terms)})
        sends = (*schedule.sends[:place], worse, *schedule.sends[place + 1 :])
        with pytest.raises(ScheduleError, match="is not in g"):
            verify(problem, replace(schedule, sends=sends))


def test_what_is_held_twice_over_is_not_added_twice():
    """g1 has g0's contribution alone and in a sum: its own and that sum are all, each once."""
    problem = summed(mesh(4), range(4), [1])
    sends = named(0, "g0", "g1", 0), named(0, "g0", "g2", 0), named(0, "g3", "g2", 3)
    assert accepted(problem, *sends, named(1, "g2", "g1", 0, 2, 3), horizon=2)


def test_without_terms_all_that_can_be_added_is_sent():
    problem = summed(mesh(4), range(4), [3])
    sends = named(0, "g0", "g1", 0), named(0, "g2", "g1", 2)
    assert accepted(problem, *sends, Send(1, 0, "g1", "g3"), horizon=2)


def test_what_is_not_held_yet_is_refused_in_a_sentence():
    problem = summed(mesh(3), range(3), [2])
    found = refused(problem, named(0, "g0", "g1", 0), named(0, "g1", "g2", 0, 1))
    assert found.where == "g1"
    assert "g1 does not hold the contribution of rank 0 (g0) to chunk 0 (ranks 0, 1)" in str(found)
    assert "send it later" in str(found)


def test_what_is_in_a_larger_sum_alone_cannot_be_named():
    problem = summed(mesh(4), range(4), [3])
    sends = named(0, "g0", "g1", 0), named(1, "g1", "g2", 0, 1), named(2, "g2", "g3", 0, 2)
    found = refused(problem, *sends)
    assert "g2 holds rank 2 and ranks 0, 1 of chunk 0" in str(found)
    assert "none add up to chunk 0 (ranks 0, 2) g2->g3; name ranks whose sums" in str(found)


def test_values_that_overlap_make_up_nothing_at_a_destination():
    problem = summed(mesh(3), range(3), [2])
    sends = (
        named(0, "g0", "g1", 0),
        named(0, "g2", "g1", 2),
        named(0, "g1", "g0", 1),
        named(1, "g1", "g2", 1, 2),
        named(1, "g0", "g2", 0, 1),
    )
    found = refused(problem, *sends)
    assert "do not make up the sum of all" in str(found)


def test_the_same_value_is_received_once():
    problem = summed(mesh(2), range(2), [1])
    sends = named(0, "g0", "g1", 0), named(1, "g0", "g1", 0)
    assert "a second time" in str(refused(problem, *sends))


def test_terms_are_of_ranks_that_contribute_to_a_sum():
    problem = summed(mesh(3), [0, 1], [2])
    found = refused(problem, named(0, "g0", "g2", 0, 2))
    assert "rank 2 contributes nothing to it; its terms are of 0 and 1" in str(found)
    gather = Problem(mesh(3), all_gather(3, 3 * MB))
    found = refused(gather, named(0, "g0", "g2", 0))
    assert "the chunk is not reduced; leave out the terms" in str(found)
    assert "-1 contributes nothing" in str(refused(problem, named(0, "g0", "g2", -1)))


def with_memory(**able):
    """Return three GPUs joined to a memory m, which may not add or copy."""
    memory = replace(device("memory", "m"), **able)
    links = [link for r in range(3) for link in duplex(f"g{r}", "m", bandwidth=50.0)]
    return Topology("memory", (*gpus(3), memory), tuple(links))


def test_a_memory_passes_on_values_as_they_came():
    """What cannot add keeps several values, where without terms it may have one alone."""
    problem = summed(with_memory(), range(3), [2])
    into = named(0, "g0", "m", 0), named(0, "g1", "m", 1)
    out = named(1, "m", "g2", 0), named(2, "m", "g2", 1)
    assert not problem.topology.device("m").reduces
    assert accepted(problem, *into, *out, horizon=3)
    plain = [replace(send, terms=None) for send in (*into, *out)]
    assert "cannot reduce and receives" in str(refused(problem, *plain))
    both = refused(problem, *into, named(1, "m", "g2", 0, 1))
    assert "m cannot reduce and holds rank 0 and rank 1 of chunk 0" in str(both)
    rest = refused(problem, *into, Send(1, 0, "m", "g2"))
    assert "name in the terms of chunk 0 m->g2 what came as one" in str(rest)


def test_what_cannot_copy_loses_what_it_sends():
    problem = summed(with_memory(copies=False), range(2), [0, 1, 2])
    into = named(0, "g0", "m", 0), named(0, "g1", "m", 1)
    out = named(1, "m", "g1", 0), named(1, "m", "g0", 1)
    again = refused(problem, *into, *out, named(2, "m", "g2", 1))
    assert "m does not hold" in str(again)
    found = refused(problem, *into, *out)
    assert "the contribution of g0 to chunk 0 is not in g2" in str(found)


def test_a_destination_that_cannot_add_needs_the_sum_as_one_value():
    devices = (*gpus(2), replace(device("gpu", "g2"), reduces=False))
    problem = summed(replace(mesh(3), devices=devices), [0, 1], [2])
    apart = named(0, "g0", "g2", 0), named(0, "g1", "g2", 1)
    assert "do not make up the sum of all" in str(refused(problem, *apart))
    assert accepted(problem, named(0, "g0", "g1", 0), named(1, "g1", "g2", 0, 1), horizon=2)


def stopping(**able):
    """Return four GPUs round a switch."""
    return star(4, **able)


def test_a_switch_passes_values_on_epoch_by_epoch():
    """g0 and g1 send over s to g2 and g3: each leaves as what it came."""
    problem = summed(stopping(), [0, 1], [2, 3])
    into = named(0, "g0", "s", 0), named(0, "g1", "s", 1)
    out = named(1, "s", "g3", 0), named(1, "s", "g2", 1)
    found = refused(problem, *into, *out)
    assert "the contribution of g0 to chunk 0 is not in g2" in str(found)
    sums = named(1, "s", "g3", 0), named(1, "s", "g2", 0, 1)
    found = refused(problem, *into, *sums)
    assert "what came to s of chunk 0 for this epoch, rank 0 and rank 1, is not what" in str(found)
    assert "rank 0 and ranks 0, 1; both must agree" in str(found)
    able = summed(stopping(copies=True, reduces=True), [0, 1], [2])
    assert accepted(able, *into, *sums, horizon=2)
    adds = summed(stopping(reduces=True), [0, 1], [2])
    assert "both must agree" in str(refused(adds, *into, *sums))
    assert accepted(adds, *into, named(1, "s", "g2", 0, 1), horizon=2)


def test_a_multicast_is_of_sends_with_the_same_terms():
    """Two epochs of 20 µs hold what crosses g0 -> s once; four sends apart need four."""
    problem = summed(stopping(copies=True), [0, 1], [0, 1, 2, 3])
    first = named(0, "g1", "g0", 1, via=("s",))
    one = [named(1, "g0", f"g{i}", 0, via=("s",)) for i in (1, 2, 3)]
    other = [named(2, "g0", f"g{i}", 1, via=("s",)) for i in (2, 3)]
    assert accepted(problem, first, *one, *other, horizon=3)
    mixed = [replace(send, epoch=1) for send in other]
    found = refused(problem, first, *one, *mixed, horizon=4)
    assert "does not leave in time" in str(found)


def test_a_sum_on_the_path_is_of_sends_with_no_rank_in_common():
    problem = summed(stopping(reduces=True), range(4), [3])
    sends = [named(0, f"g{i}", "g3", i, via=("s",)) for i in range(3)]
    assert accepted(problem, *sends, horizon=1)
    before = named(0, "g0", "g1", 0, via=("s",))
    both = named(1, "g1", "g3", 0, 1, via=("s",)), named(1, "g0", "g3", 0, via=("s",))
    found = refused(problem, before, *both, horizon=3)
    assert "only 1 fit" in str(found)


def test_a_sum_on_the_path_with_nothing_named_still_adds_once():
    problem = summed(stopping(reduces=True), range(4), [3])
    before = named(0, "g0", "g1", 0, via=("s",))
    plain = [Send(1, 0, f"g{i}", "g3", ("s",)) for i in (0, 1)]
    assert "adds the contribution of rank 0 (g0)" in str(refused(problem, before, *plain))


def limited(count):
    """Return a line of three whose middle has room for so many chunks."""
    middle = replace(device("gpu", "g1"), buffer_bytes=count * MB)
    whole = line(3)
    return replace(whole, devices=(whole.devices[0], middle, whole.devices[2]))


def test_a_buffer_holds_each_value_that_is_sent_apart():
    """g1 needs its own, what g0 and what g2 has, each for another sum: three, and not one."""
    swap = (
        named(0, "g0", "g1", 0),
        named(0, "g2", "g1", 2),
        named(1, "g1", "g0", 1, 2),
        named(1, "g1", "g2", 0, 1),
    )
    assert accepted(summed(limited(3), range(3), range(3)), *swap, horizon=2)
    found = refused(summed(limited(2), range(3), range(3)), *swap)
    assert "g1 keeps 3e+06 bytes with chunk 0" in str(found)


def test_values_that_only_make_up_one_sum_take_the_space_of_one():
    into = named(0, "g0", "g1", 0), named(0, "g2", "g1", 2)
    problem = summed(limited(1), range(3), [0])
    assert accepted(problem, *into, named(1, "g1", "g0", 0, 1, 2), horizon=2)
    assert accepted(summed(limited(1), range(3), [1]), *into, horizon=2)


def test_chunks_without_terms_are_judged_as_before():
    """Only chunk 0 is named; in chunk 1 what is added up must not come in two sums."""
    problem = Problem(mesh(2), all_reduce(2, 2 * MB))
    swap = named(0, "g0", "g1", 0), named(0, "g1", "g0", 1)
    plain = Send(1, 1, "g0", "g1"), Send(2, 1, "g1", "g0")
    assert accepted(problem, *swap, *plain, horizon=3)
    at_once = replace(plain[1], epoch=1)
    assert accepted(problem, *swap, plain[0], at_once, horizon=3)


def test_links_must_exist_for_named_sends_too():
    problem = summed(line(3), [0, 1], [0])
    assert "has no link g0->g2" in str(refused(problem, named(0, "g0", "g2", 0)))
