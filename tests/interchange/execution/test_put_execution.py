"""Programs of puts written by hand: what is right is said so, the rest is found in words."""

from dataclasses import replace

import pytest

from ccl.errors import CclError, ProblemError
from interchange.execution.one_sided import execute_one_sided
from interchange.programs.one_sided import Cells, Channel, Op, PutProgram, PutRank

NOP = Op("nop")


def here(buffer, index=0, count=1):
    return Cells(buffer, index, count)


def there(rank, buffer, index=0, count=1):
    return Cells(buffer, index, count, rank)


def signal(channel=0, kind="memory"):
    return Op("signal", kind=kind, channels=(channel,))


def wait(channel=0, kind="memory"):
    return Op("wait", kind=kind, channels=(channel,))


def rank(*blocks, sizes=(1, 2, 0), channels=(), semaphores=()):
    given, taken, scratch = sizes
    made = tuple(map(tuple, blocks))
    return PutRank(given, taken, scratch, tuple(channels), tuple(semaphores), made)


def pair(first, second, *, kind="memory", collective="all-gather", **told):
    """Return two ranks, one block each, with a channel between them."""
    return PutProgram(
        "pair",
        collective,
        (
            rank(first, channels=[Channel(kind, 1)], **told),
            rank(second, channels=[Channel(kind, 0)], **told),
        ),
    )


def gathered(number, *, kind="memory", ready=True):
    """Return the block of a rank of two: copy, say that it is called, put, signal, wait."""
    other = 1 - number
    put = Op(
        "put",
        (here("input"),),
        (there(other, "output", number),),
        kind,
        (0,) if kind == "port" else (),
    )
    return [
        *([signal(0, kind), wait(0, kind)] if ready else []),
        Op("copy", (here("input"),), (here("output", number),)),
        NOP,
        put,
        NOP,
        signal(0, kind),
        *([Op("flush", kind="port", channels=(0,))] if kind == "port" else []),
        wait(0, kind),
    ]


def kinds(program, **told):
    return {each.kind for each in execute_one_sided(program, **told).findings}


@pytest.mark.parametrize("kind", ["memory", "port"])
def test_a_pair_gathers(kind):
    """Right but for the meeting between the first wait and the put, which is then added."""
    blocks = [gathered(0, kind=kind), gathered(1, kind=kind)]
    for block in blocks:
        block.insert(2, NOP)
    execution = execute_one_sided(pair(*blocks, kind=kind))
    assert execution.check().interleavings == 100
    assert execution.deviation is None


def test_a_call_that_meets_the_one_before_is_found():
    """Without saying that they are called, a fast rank puts while the other's caller reads."""
    program = pair(gathered(0, ready=False), gathered(1, ready=False))
    execution = execute_one_sided(program)
    assert {each.kind for each in execution.findings} == {"again"}
    assert "called twice" in execution.findings[0].sentence
    assert any("the caller of rank" in each.sentence for each in execution.findings)
    with pytest.raises(CclError, match="program pair: called twice"):
        execution.check()


def test_threads_that_do_not_meet_before_a_signal_are_found():
    """The signal may overtake the put, so the caller of rank 1 may read too early."""
    blocks = [gathered(0), gathered(1)]
    for block in blocks:
        block.insert(2, NOP)
    del blocks[0][6]
    assert blocks[0][5].name == "put"
    execution = execute_one_sided(pair(*blocks))
    assert {each.kind for each in execution.findings} == {"again"}
    assert any("output 0" in each.sentence for each in execution.findings)


def test_a_source_written_before_a_port_channel_has_read_it_is_found():
    """Rank 0 puts from scratch and writes it again; a flush between makes that right."""
    port = {"kind": "port", "channels": (0,)}
    fill = Op("copy", (here("input"),), (here("scratch"),))
    put = Op("put", (here("scratch"),), (there(1, "scratch"),), **port)
    flush = Op("flush", **port)

    def program(*between):
        first = [wait(0, "port"), fill, NOP, put, *between, fill, NOP, signal(0, "port"), flush]
        second = [
            signal(0, "port"),
            wait(0, "port"),
            NOP,
            Op("copy", (here("scratch"),), (here("output"),)),
        ]
        return pair(first, second, kind="port", collective="custom", sizes=(1, 1, 1))

    assert kinds(program()) == {"hazard"}
    assert kinds(program(flush, NOP)) == set()


def test_two_that_wait_for_each_other_stand_still():
    program = pair([wait(), NOP, signal()], [wait(), NOP, signal()], collective="custom")
    (finding,) = execute_one_sided(program).findings
    assert finding.kind == "deadlock"
    assert "rank 0, thread block 0, step 0 waits for signal 1 from rank 1" in finding.sentence


def test_signals_left_over_are_told():
    program = pair([signal(), signal()], [wait()], collective="custom")
    (finding,) = execute_one_sided(program).findings
    assert finding.kind == "unmatched"
    assert "rank 1 waits 1 times on channel 0 and rank 0 signals 2 times" in finding.sentence


def sums(*ops, semaphores=()):
    """Return a rank alone that reduces its input of two chunks to its output."""
    return PutProgram("alone", "custom", (rank(*ops, sizes=(2, 2, 2), semaphores=semaphores),))


def test_semaphores_order_thread_blocks_and_count_from_their_first_value():
    copy = Op("copy", (here("input"),), (here("scratch"),))
    take = Op("copy", (here("scratch"),), (here("output"),))
    release, acquire = (Op(f"sem_{name}", semaphores=(0,)) for name in ("release", "acquire"))

    def program(value):
        return sums([copy, NOP, release], [acquire, NOP, take], semaphores=(value,))

    assert kinds(program(0)) == set()
    assert "hazard" in kinds(program(1))
    assert kinds(sums([copy, NOP, release], [take], semaphores=(0,))) == {"unmatched"}
    two = sums([copy, NOP, release, release], [acquire, NOP, take], [acquire], semaphores=(0,))
    assert kinds(two) == {"connection"}


def test_a_barrier_orders_thread_blocks():
    copy = Op("copy", (here("input"),), (here("scratch"),))
    take = Op("copy", (here("scratch"),), (here("output"),))
    barrier = Op("barrier", barrier=3, blocks=2)

    assert kinds(sums([copy, barrier], [barrier, take])) == set()
    assert kinds(sums([copy, barrier], [barrier, take, barrier])) == {"connection"}
    alone = Op("barrier", blocks=1)
    assert kinds(sums([copy, alone, take])) == set()
    assert "hazard" in kinds(sums([copy, take]))


def test_sums_from_and_to_others_are_made():
    """Rank 0 adds rank 1's chunks to its own: one read there and put back there, one fetched first.

    ``rres`` reads, sums, keeps and puts; ``get`` fetches, ``res`` sums, keeps and puts.
    """
    memory = {"kind": "memory"}
    rres = Op(
        "rres",
        (here("input", 0), there(1, "input", 0)),
        (here("output", 0), there(1, "output", 0)),
        **memory,
    )
    get = Op("get", (there(1, "input", 1),), (here("scratch", 0),), **memory)
    res = Op(
        "res",
        (here("input", 1), here("scratch", 0)),
        (here("output", 1), there(1, "output", 1)),
        **memory,
    )
    first = [wait(), NOP, rres, get, NOP, res, NOP, signal()]
    program = pair(first, [signal(), wait()], collective="all-reduce", sizes=(2, 2, 1))
    execution = execute_one_sided(program).check()
    assert 0 < execution.deviation < 1e-6
    swapped = [*first[:3], get, res, NOP, signal()]
    wrong = pair(swapped, [signal(), wait()], collective="all-reduce", sizes=(2, 2, 1))
    assert "hazard" in kinds(wrong)


@pytest.mark.parametrize(
    ("op", "words"),
    [
        (Op("copy", (here("input", 1),), (here("output"),)), "there are 1 chunks of it"),
        (Op("put", (here("input"),), (there(5, "output"),), "memory"), "memory of rank 5"),
        (Op("put", (here("input"),), (here("output"),), "memory"), "which the executor has not"),
        (Op("copy", (here("input"),), (here("output", 0, 2),)), "all must be as many"),
        (wait(1), "uses memory channel 1, which is not there"),
        (wait(0, "port"), "uses port channel 0, which is not there"),
        (Op("flush", kind="memory", channels=(0,)), "which only port channels have"),
        (Op("sem_acquire", semaphores=(2,)), "semaphore 2, which is not there"),
    ],
)
def test_what_is_not_there_is_told(op, words):
    (finding, *_) = execute_one_sided(pair([op], [], collective="custom")).findings
    assert finding.sentence.startswith("rank 0, thread block 0, step 0 ")
    assert words in finding.sentence


def test_a_channel_is_waited_on_by_one_block():
    ranks = (
        rank([wait()], [wait()], channels=[Channel("memory", 1)]),
        rank([signal(), signal()], channels=[Channel("memory", 0)]),
    )
    (finding,) = execute_one_sided(PutProgram("p", "custom", ranks)).findings
    assert "waits on channel 0, and so does" in finding.sentence


def test_limits_of_the_executor_are_told():
    program = sums([NOP] * 65)
    (finding,) = execute_one_sided(program).findings
    assert "has 65 operations; the executor takes 64" in finding.sentence


def test_what_cannot_be_run_is_refused():
    program = sums([NOP])
    with pytest.raises(ProblemError, match="0 interleavings"):
        execute_one_sided(program, interleavings=0)
    large = replace(program.ranks[0], scratch=10**8)
    with pytest.raises(ProblemError, match="at most 8,000,000 in all"):
        execute_one_sided(replace(program, ranks=(large,)))
    with pytest.raises(ProblemError, match="no rank"):
        PutProgram("none", "custom", ())
