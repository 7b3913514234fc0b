"""Right programs pass with all that is said of them; each way to break one is found and named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ccl.errors import CclError, ProblemError
from interchange import execution as room
from interchange.execution import execute
from interchange.programs import Slot, Step, ThreadBlock
from tests.interchange.execution.programs import (
    RIGHT,
    Builder,
    chain,
    changed,
    direct_all_to_all,
    gathered_all_reduce,
    ring_all_gather,
    ring_all_gather_in_two,
    ring_all_reduce,
    ring_reduce_scatter,
    with_steps,
)


def only(execution, kind):
    """Return the first finding, which is of this kind."""
    assert not execution.ok
    assert execution.findings[0].kind == kind, execution.findings
    return execution.findings[0]


def said(program, kind, *words, **settings):
    """Say that a program is wrong in a manner whose sentence has all these words."""
    finding = only(execute(program, **settings), kind)
    assert [each for each in words if each not in finding.sentence] == [], finding.sentence
    return finding


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_program_passes_in_every_order(name):
    program = RIGHT[name]()
    execution = execute(program)

    assert execution.check() is execution
    assert execution.findings == ()
    assert execution.interleavings == 100 * (program.in_place + program.out_of_place)
    assert len(execution.manners) == program.in_place + program.out_of_place


def test_the_same_seed_gives_the_same_execution():
    assert execute(ring_all_reduce(), seed=3) == execute(ring_all_reduce(), seed=3)


def test_messages_are_counted():
    """In a ring of 4 each rank sends 3 shards of an all-gather, and 6 messages of an all-reduce."""
    assert execute(ring_all_gather()).messages == 12
    assert execute(ring_all_reduce()).messages == 24


def test_float32_sums_deviate_by_their_rounding_at_most():
    """Each of n - 1 additions of positive numbers rounds by half of 2^-23 at most, and some do."""
    deviation = execute(ring_all_reduce(8)).deviation

    assert 0 < deviation <= 7 * 2**-24
    assert execute(direct_all_to_all()).deviation is None


# What a program says of itself


def test_a_program_that_nobody_may_call_is_refused():
    said(ring_all_gather(out_of_place=False), "call", "neither in place nor out of place")


def test_buffers_must_be_as_long_as_the_collective_has_them():
    """4 chunks a loop over 4 ranks are 1 of input for an all-gather."""
    program = ring_all_gather(sizes=[(1, 4), (1, 4), (2, 4), (1, 4)])
    finding = said(program, "size", "rank 2 has 2 chunks of input", "has 1")

    assert (finding.rank, finding.block, finding.step) == (2, None, None)


def test_chunks_a_loop_must_divide_among_the_ranks():
    said(replace(ring_all_gather(), chunks_per_loop=6), "size", "6 chunks", "multiple of 4")


def test_a_root_must_be_a_rank():
    said(replace(chain("broadcast"), root=4), "size", "rank 4", "from 0 to 3")


def test_in_place_the_shorter_buffer_may_be_left_out():
    """The own shard is in the output already; out of place an all-gather needs its input."""
    made = Builder(3, "all-gather", 3, sizes=[(0, 3)] * 3, in_place=True, out_of_place=False)
    for rank in range(3):
        for other in {0, 1, 2} - {rank}:
            made.step(rank, "s", f"o{rank}", to=other, of=other)
            made.step(rank, "r", None, f"o{other}", to=other, of=other)

    assert execute(made.program()).ok
    said(replace(made.program(), out_of_place=True), "size", "rank 0 has 0 chunks of input")


def test_more_chunks_than_memory_are_refused_before_any_is_made():
    with pytest.raises(ProblemError, match="1,000,000,0"):
        execute(ring_all_gather(scratch=250_000_000))


@pytest.mark.parametrize("settings", [{"interleavings": 0}, {"slots": 0}])
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(ProblemError, match="1 or more"):
        execute(ring_all_gather(), **settings)


# Steps


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"src": Slot("input", 1)}, ["input 1", "rank 2 has 1 chunk of it"]),
        ({"src": Slot("scratch", 0)}, ["scratch 0", "has 0 chunks"]),
        ({"src": Slot("input", -1)}, ["input -1"]),
        ({"src": None}, ["is s and has no source"]),
        ({"count": 2}, ["input 0 to 1"]),
        ({"count": 0}, ["0 chunks; give 1 or more"]),
        ({"operation": "d"}, ["is 'd'", "rrcs"]),
    ],
)
def test_a_step_out_of_its_buffers_is_named(changes, words):
    """Step 1 of each block sends the only chunk of the input."""
    program = changed(ring_all_gather(), 2, 0, 1, **changes)
    finding = said(program, "slot", "rank 2, thread block 0, step 1", *words)

    assert (finding.rank, finding.block, finding.step) == (2, 0, 1)


@pytest.mark.parametrize("after", [(1, 0), (0, 5), (-1, 0), (0, -1)])
def test_a_wait_for_a_step_that_is_not_there_is_named(after):
    """A rank has one block of 5 steps."""
    program = changed(ring_all_gather(), 1, 0, 2, after=after)

    said(program, "after", "rank 1, thread block 0, step 2", "not there")


def test_every_misplaced_step_is_told_up_to_twenty():
    program = ring_all_gather(4)
    for rank in range(4):
        program = changed(program, rank, 0, 1, src=Slot("input", 7))

    assert [each.rank for each in execute(program).findings] == [0, 1, 2, 3]


def test_partly_overlapping_source_and_destination_are_refused():
    """Chunks 0 to 1 are copied to 1 to 2: whether the second is the old one is anybody's guess."""
    made = Builder(2, "custom", 3, sizes=[(3, 3)] * 2, scratch=3)
    made.step(0, "cpy", "i0", "s0", count=3)
    made.step(0, "cpy", "s0", "s1", count=2)

    said(made.program(), "overlap", "rank 0, thread block 0, step 1", "2 chunks", "scratch 1")


# Connections


def test_a_peer_must_be_another_rank():
    for peer, words in ((4, "others go from 0 to 3"), (2, "that is itself"), (-2, "others go")):
        program = ring_all_gather()
        rank = program.ranks[2]
        block = replace(rank.blocks[0], send=peer)
        ranks = list(program.ranks)
        ranks[2] = replace(rank, blocks=(block,))
        said(replace(program, ranks=tuple(ranks)), "connection", f"sends to rank {peer}", words)


def test_a_send_without_a_peer_is_named():
    made = Builder(2, "custom", 1, sizes=[(1, 1)] * 2)
    made.step(1, "s", "i0")

    said(made.program(), "connection", "rank 1, thread block 0, step 0 is s", "sends to nobody")


def test_two_blocks_on_one_end_of_a_connection_are_named():
    """Their messages would come in any order."""
    program = ring_all_gather()
    rank = program.ranks[1]
    first = rank.blocks[0]
    second = ThreadBlock(first.send, -1, 0, (Step("s", Slot("input", 0)),))
    ranks = list(program.ranks)
    ranks[1] = replace(rank, blocks=(first, second))
    program = replace(program, ranks=tuple(ranks))

    said(program, "connection", "rank 1, thread block 1, step 0", "so does", "thread block 0")


def test_a_missing_receive_is_named():
    """Rank 0's last step takes the third message of rank 3."""
    program = with_steps(ring_all_gather(), 0, 0, lambda steps: steps[:-1])
    finding = said(program, "unmatched", "sends message 3 from rank 3 to rank 0", "nobody receives")

    assert (finding.rank, finding.block, finding.step) == (3, 0, 3)


def test_a_missing_send_is_named():
    program = with_steps(ring_all_gather(), 3, 0, lambda steps: [steps[0], *steps[2:]])
    finding = said(program, "unmatched", "receives message 3 from rank 3 to rank 0", "nobody sends")

    assert (finding.rank, finding.block, finding.step) == (0, 0, 4)


def test_counts_of_both_ends_must_agree():
    program = changed(direct_all_to_all(3, shard=2), 1, 1, 1, count=2, dst=Slot("output", 0))

    said(
        program,
        "count",
        "rank 1, thread block 1, step 1 receives 2 chunks in message 1 from rank 0 to rank 1",
        "rank 0, thread block 1, step 0 sends 1 chunk",
    )


# Waiting


def test_a_cycle_of_receives_is_a_deadlock_told_in_words():
    """Both ranks receive before they send."""
    made = Builder(2, "all-to-all", 2)
    for rank in range(2):
        made.step(rank, "r", None, f"o{1 - rank}", to=1 - rank, of=1 - rank)
        made.step(rank, "s", f"i{1 - rank}", to=1 - rank, of=1 - rank)
    execution = execute(made.program())

    assert only(execution, "deadlock").sentence == (
        "deadlock: rank 0, thread block 0, step 0 waits for message 1 from rank 1 over channel 0, "
        "which is up to rank 1, thread block 0, step 1, itself behind step 0; "
        "rank 1, thread block 0, step 0 waits for message 1 from rank 0 over channel 0, "
        "which is up to rank 0, thread block 0, step 1, itself behind step 0"
    )
    assert execution.slots_needed is None


def test_a_step_that_waits_for_itself_is_a_deadlock():
    said(
        changed(ring_all_gather(), 2, 0, 1, after=(0, 1)),
        "deadlock",
        "rank 2, thread block 0, step 1 waits for thread block 0, step 1",
    )


def test_a_cycle_of_waits_between_two_blocks_is_a_deadlock():
    made = Builder(1, "custom", 1, sizes=[(1, 1)], scratch=2)
    made.step(0, "cpy", "i0", "s0", after=(1, 0))
    made.step(0, "cpy", "i0", "s1", channel=1, after=(0, 0))
    said(made.program(), "deadlock", "step 0 waits for thread block 1, step 0", "block 0, step 0")


@pytest.mark.parametrize(("ahead", "needed"), [(1, 1), (2, 2), (5, 5)])
def test_as_many_messages_must_fit_as_are_sent_ahead(ahead, needed):
    """Both ranks send `ahead` messages before they take the first; fewer slots stop both."""
    made = Builder(2, "all-to-all", 2 * ahead, protocol="LL")
    for rank in range(2):
        ends = {"to": 1 - rank, "of": 1 - rank}
        for chunk in range(ahead):
            made.step(rank, "s", f"i{(1 - rank) * ahead + chunk}", **ends)
        for chunk in range(ahead):
            made.step(rank, "r", None, f"o{(1 - rank) * ahead + chunk}", **ends)
            made.step(rank, "cpy", f"i{rank * ahead + chunk}", f"o{rank * ahead + chunk}")
    program = made.program()

    assert execute(program).check().slots_needed == needed
    assert execute(program, slots=needed).ok
    if needed > 1:
        finding = said(program, "deadlock", "room in the connection", slots=needed - 1)
        assert finding.sentence.startswith(f"with {needed - 1} messages to a connection")


def test_protocol_simple_holds_two_messages():
    """MSCCL_CHUNKSTEPS is half of NCCL_STEPS; under LL a message takes one of the 8."""
    made = Builder(2, "custom", 9, sizes=[(9, 9)] * 2)
    for rank in range(2):
        for chunk in range(9):
            made.step(rank, "s", f"i{chunk}", to=1 - rank, of=1 - rank)
        for chunk in range(9):
            made.step(rank, "r", None, f"o{chunk}", to=1 - rank, of=1 - rank)
    nine = made.program()
    eight, two = (
        replace(
            nine,
            ranks=tuple(
                replace(
                    rank,
                    blocks=tuple(
                        replace(block, steps=block.steps[:many] + block.steps[9 : 9 + many])
                        for block in rank.blocks
                    ),
                )
                for rank in nine.ranks
            ),
        )
        for many in (8, 2)
    )

    assert [execute(replace(each, protocol="LL")).ok for each in (two, eight, nine)] == [1, 1, 0]
    assert [execute(each).ok for each in (two, eight)] == [True, False]


def test_what_hangs_with_large_buffers_is_a_remark():
    """A step of 3 full chunks is 3 messages, of which 2 fit, and every rank sends first."""
    (remark,) = execute(ring_all_gather(3, shard=3)).check().remarks

    assert remark.kind == "room"
    assert "large buffers hang" in remark.sentence
    assert (remark.rank, remark.block, remark.step) == (0, 0, 1)
    assert execute(ring_all_gather(3, shard=2)).check().remarks == ()


# Order


def test_a_dropped_wait_is_a_hazard_even_if_every_order_tried_is_right():
    """What is passed on is sent by one block and received by another; nothing else orders them."""
    program = ring_all_gather_in_two()
    assert program.ranks[1].blocks[2].steps[1].after == (1, 0)
    execution = execute(changed(program, 1, 2, 1, after=None), interleavings=1)

    reads = "rank 1, thread block 2, step 1 reads "
    writes = "rank 1, thread block 1, step 0 writes "
    end = " it, and nothing says which comes first"
    assert only(execution, "hazard").sentence in {
        f"{writes}rank 1's output 0 and {reads.strip()}{end}",
        f"{reads}rank 1's output 0 and {writes.strip()}{end}",
    }


def test_a_dropped_wait_gives_wrong_bytes_in_some_order():
    program = changed(ring_all_gather_in_two(), 1, 2, 1, after=None)
    found = {each.kind: each.sentence for each in execute(program).findings}

    assert "in interleaving" in found["result"] or "writes it last" in found["result"]


def test_scratch_that_is_used_again_too_early_is_a_hazard():
    """The second message into scratch 2 must wait until the first has been added up."""
    program = gathered_all_reduce(2)
    adds = program.ranks[0].blocks[1].steps
    assert [step.operation for step in adds] == ["cpy", "nop", "re"]
    again = with_steps(program, 0, 0, lambda steps: [*steps, replace(steps[1], count=2)])
    again = with_steps(again, 1, 0, lambda steps: [*steps, steps[0]])
    sentence = said(again, "hazard", "rank 0's scratch 2", "writes", "reads").sentence
    waits = changed(again, 0, 0, 2, after=(1, 2))

    assert "thread block 0, step 2" in sentence
    assert execute(waits).ok


def test_a_hazard_of_overlapping_buffers_is_found_in_place_only():
    """Of each pair one block sends input k while another receives output k, in place the same."""
    made = Builder(3, "all-to-all", 3, in_place=True)
    for rank in range(3):
        made.step(rank, "cpy", f"i{rank}", f"o{rank}")
        for other in {0, 1, 2} - {rank}:
            made.step(rank, "s", f"i{other}", to=other)
            made.step(rank, "r", None, f"o{other}", of=other)
    finding = said(made.program(), "hazard", "'s output", "(input ")

    assert finding.sentence.startswith("in place, rank ")
    assert execute(replace(made.program(), in_place=False)).ok


def test_a_copy_onto_itself_disturbs_nobody():
    """In place the own shard is where it should be, and other blocks read it meanwhile."""
    assert execute(ring_all_gather_in_two(in_place=True)).ok


def test_reading_scratch_that_nothing_wrote_is_named():
    program = changed(gathered_all_reduce(2), 0, 1, 2, src=Slot("scratch", 0))

    said(program, "unwritten", "rank 0, thread block 1, step 2 reads rank 0's scratch 0")


def test_a_rank_that_is_not_the_root_has_nothing_to_send_in_a_broadcast():
    program = with_steps(
        chain("broadcast"),
        2,
        0,
        lambda steps: [steps[0], Step("cpy", Slot("input", 0), Slot("scratch", 0))],
    )

    said(program, "unwritten", "rank 2's input 0")


def test_swapped_steps_are_found():
    """The copy comes before the sum is whole."""
    program = with_steps(gathered_all_reduce(2), 0, 1, lambda steps: [steps[1], steps[2], steps[0]])

    said(program, "unwritten", "rank 0, thread block 1, step 1 reads rank 0's output 0")


# Results


def test_a_wrong_index_is_named_with_what_should_be_there():
    """Rank 1 sends rank 0 what is for rank 2."""
    program = changed(direct_all_to_all(3), 1, 1, 0, src=Slot("input", 2))
    finding = said(program, "result")

    assert finding.sentence == (
        "rank 0's output 1 should hold chunk 0 of rank 1's input and holds chunk 2 of rank 1's "
        "input; thread block 1, step 1 writes it last"
    )
    assert (finding.rank, finding.block, finding.step) == (0, 1, 1)


def test_a_contribution_that_is_missing_or_there_twice_is_named():
    """Rank 1 passes rank 2's sum on, which is to come back to rank 2, without adding its own."""
    program = ring_reduce_scatter()
    index = 1  # step 1 of each block adds its own chunk to what has come from the starting rank
    own = program.ranks[1].blocks[0].steps[index].src.index
    without = changed(program, 1, 0, index, operation="rcs", src=None, dst=Slot("output", 0))
    said(without, "result", f"the sum of chunk {own} of all 4 inputs", "lacks that of rank 1")

    twice = gathered_all_reduce(3)
    twice = with_steps(twice, 2, 2, lambda steps: [*steps, steps[-1]])
    said(twice, "result", "rank 2's output 0", "has that of rank 1 twice")


def test_an_output_that_nothing_writes_is_named():
    program = with_steps(direct_all_to_all(3), 2, 0, lambda steps: [Step("nop")])

    said(program, "result", "rank 2's output 2", "is left as it was", "no step writes it")


def test_a_sum_of_the_wrong_chunks_is_named():
    program = changed(ring_reduce_scatter(), 1, 0, 1, src=Slot("input", 1))

    said(program, "result", "holds another sum")


def test_orders_of_a_custom_program_must_agree():
    """Two blocks write one chunk; nothing is promised, but orders differ."""
    made = Builder(2, "custom", 2, sizes=[(2, 2)] * 2)
    made.step(0, "cpy", "i0", "o0")
    made.step(0, "cpy", "i1", "o0", channel=1)
    found = {each.kind for each in execute(made.program()).findings}

    assert found == {"hazard", "result"}
    right = with_steps(made.program(), 0, 1, lambda steps: [replace(steps[0], after=(0, 0))])
    assert [each.kind for each in execute(right).check().remarks] == ["custom"]


def test_an_input_that_is_written_out_of_place_is_a_remark_or_a_finding():
    program = with_steps(
        direct_all_to_all(3),
        1,
        0,
        lambda steps: [*steps, Step("cpy", Slot("input", 0), Slot("input", 1))],
    )
    (remark,) = execute(program).check().remarks

    assert (remark.kind, remark.rank, remark.block, remark.step) == ("input", 1, 0, 1)
    said(program, "input", "rank 1, thread block 0, step 1 writes the input", keep_input=True)


def test_whether_too_many_chunks_hang_is_left_open(monkeypatch):
    """3 ranks move their own shard of 3 chunks with 4 steps, so 36 in all."""
    program = ring_all_gather(3, shard=3)
    monkeypatch.setattr(room, "MOST_MESSAGES", 36)
    (tried,) = execute(program).check().remarks
    monkeypatch.setattr(room, "MOST_MESSAGES", 35)
    (left_open,) = execute(program).check().remarks

    assert "large buffers hang" in tried.sentence
    assert "is open: it moves 36 chunks" in left_open.sentence


@pytest.mark.alone
def test_a_16_gpu_all_to_all_takes_less_than_a_second():
    """496 steps, 100 interleavings."""
    program = direct_all_to_all(16)

    assert program.steps == 496
    assert execute(program).check().seconds < 1


def test_check_raises_the_first_sentence():
    with pytest.raises(CclError, match="program all-gather: rank 2 has 2 chunks of input"):
        execute(ring_all_gather(sizes=[(1, 4), (1, 4), (2, 4), (1, 4)])).check()
