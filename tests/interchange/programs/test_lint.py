"""Every limit of an executor is named when it is broken, and only then."""

from dataclasses import replace

import pytest
from hypothesis import given

from ccl.errors import ProblemError
from interchange.programs import Program, RankProgram, Slot, Step, ThreadBlock
from interchange.programs.lint import EXECUTORS, lint
from tests.interchange.programs.programs import gathered, programs, summed

OWN = Step("cpy", Slot("input", 0), Slot("output", 0))


def severe(program: Program, executor: str = "msccl") -> list[str]:
    return [each.sentence for each in lint(program, executor) if each.severe]


def mild(program: Program, executor: str = "msccl") -> list[str]:
    return [each.sentence for each in lint(program, executor) if not each.severe]


def alone(*blocks: ThreadBlock, scratch: int = 0) -> Program:
    """A program of one rank, whose own chunk is all there is."""
    return Program("alone", "all-gather", (RankProgram(1, 1, scratch, blocks),), 1)


def local(*steps: Step, channel: int = 0) -> ThreadBlock:
    return ThreadBlock(-1, -1, channel, steps)


@pytest.mark.parametrize("executor", sorted(EXECUTORS))
@pytest.mark.parametrize("program", [gathered(4), summed(4), alone(local(OWN))])
def test_what_is_right_gets_no_complaint(program, executor):
    assert lint(program, executor) == ()


def test_an_executor_that_is_none_is_refused():
    with pytest.raises(ProblemError, match="no executor is called 'nccl'; there are msccl"):
        lint(gathered(), "nccl")


@pytest.mark.parametrize(("executor", "most"), [("msccl", 256), ("azure", 64), ("rccl", 64)])
def test_steps_of_a_thread_block(executor, most):
    assert severe(alone(local(*[OWN] * most)), executor) == []
    (told,) = severe(alone(local(*[OWN] * (most + 1))), executor)
    assert f"rank 0, thread block 0 has {most + 1} steps" in told
    assert f"takes {most};" in told


@pytest.mark.parametrize(("executor", "most"), [("msccl", 216), ("azure", 1024), ("rccl", 64)])
def test_thread_blocks_of_a_rank(executor, most):
    assert severe(alone(*[local(OWN)] * (most - 1)), executor) == []
    assert any(
        f"has {most + 1} thread blocks" in told
        for told in severe(alone(*[local(OWN)] * (most + 1)), executor)
    )


@pytest.mark.parametrize(("executor", "most"), [("msccl", 32), ("azure", 32), ("rccl", 128)])
def test_channels(executor, most):
    assert severe(alone(local(OWN, channel=most - 1)), executor) == []
    told = severe(alone(local(OWN, channel=most)), executor)
    assert any(f"has {most + 1} channels" in each for each in told)
    assert any(f"is on channel {most} and" in each for each in told)


def test_thread_blocks_of_a_channel():
    """A rank that sends to 33 others over one channel, and they to it."""
    n = 34
    hub = RankProgram(
        1,
        n,
        0,
        tuple(ThreadBlock(peer, -1, 0, (Step("s", Slot("input", 0)),)) for peer in range(1, n)),
    )
    others = [
        RankProgram(1, n, 0, (ThreadBlock(-1, 0, 0, (Step("r", None, Slot("output", 0)),)),))
    ] * (n - 1)
    told = severe(Program("hub", "all-gather", (hub, *others), n))

    assert len(told) == 1
    assert "rank 0 has 33 thread blocks that send on channel 0 and executors take 32" in told[0]


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (Step("cpy", Slot("input", 0), Slot("output", 1)), "uses output 1; rank 0 has 1 chunk"),
        (Step("cpy", Slot("input", 0), Slot("scratch", 0)), "uses scratch 0; rank 0 has 0 chunks"),
        (Step("cpy", Slot("input", 0), Slot("output", 0), 2), "input 0 to 1; rank 0 has 1 chunk"),
        (Step("cpy", Slot("input", 0), Slot("output", 0), 72), "moves 72 chunks; executors take 1"),
        (Step("cpy", Slot("input", 0), Slot("output", 0), 0), "is cpy of 0 chunks; give 1 or more"),
        (Step("cpy", Slot("input", 0)), "has no destination"),
        (Step("cpy", None, Slot("output", 0)), "has no source"),
        (Step("s", Slot("input", 0)), "its thread block sends to nobody"),
        (Step("r", None, Slot("output", 0)), "its thread block receives from nobody"),
        (replace(OWN, after=(1, 0)), "waits for thread block 1, step 0, which is not there"),
        (replace(OWN, after=(0, 0)), "its own and no earlier"),
        (replace(OWN, after=(-1, 0)), "which is not there"),
    ],
)
def test_a_step_by_itself(step, told):
    complaint = next(each for each in lint(alone(local(step))) if told in each.sentence)

    assert complaint.severe
    assert (complaint.rank, complaint.block, complaint.step) == (0, 0, 0)
    assert complaint.sentence.startswith("rank 0, thread block 0, step 0")


def test_offsets_have_sixteen_bits():
    step = Step("cpy", Slot("input", 0), Slot("scratch", 2**15))
    told = severe(alone(local(step), scratch=2**15 + 1))

    assert len(told) == 1
    assert "uses chunk 32768 and executors count up to 32767" in told[0]


def test_thread_blocks_that_are_waited_for_have_eight_bits():
    blocks = [local(OWN)] * 129
    assert severe(alone(*blocks, local(replace(OWN, after=(127, 0))))) == []
    (told,) = severe(alone(*blocks, local(replace(OWN, after=(128, 0)))))
    assert "executors know those up to 127" in told


def test_nops_come_before_a_step_that_waits():
    nop = Step("nop", after=(1, 0))
    waits = replace(OWN, after=(1, 0))
    other = local(OWN)

    assert lint(alone(local(nop, waits), other)) == ()
    assert "follows a nop and waits for nothing" in severe(alone(local(nop, OWN), other))[0]
    assert "a nop that waits for nothing" in severe(alone(local(Step("nop"), waits), other))[0]
    assert "ends with a nop" in mild(alone(local(OWN, nop), other))[0]
    assert (
        "a nop, which executors never call done"
        in (severe(alone(local(nop, waits), other, local(replace(OWN, after=(0, 0)))))[0])
    )


def test_reductions_that_are_fused():
    """17 in a row into one chunk; a step that another waits for, or that waits, begins anew."""
    adds = [Step("re", Slot("scratch", i), Slot("output", 0)) for i in range(17)]

    def told(*steps: Step) -> list[str]:
        return [each.sentence for each in lint(alone(local(*steps), local(OWN), scratch=18))]

    assert told(*adds[:16]) == []
    assert "is the 17th in a row into one chunk and executors take 16" in told(*adds)[0]
    assert told(*adds[:16], replace(adds[16], after=(1, 0))) == []
    wide = RankProgram(2, 2, 2, (local(adds[0], replace(adds[0], count=2)),))
    assert "with one count" in severe(Program("wide", "all-reduce", (wide,), 2))[0]


def test_a_reduction_that_is_waited_for_ends_its_run():
    """Executors publish that it is done, so what follows is another reduction."""
    first = Step("re", Slot("scratch", 0), Slot("output", 0))
    other = replace(first, count=2, dst=Slot("output", 0))
    waits = local(Step("cpy", Slot("input", 0), Slot("scratch", 1), after=(0, 0)))
    rank = RankProgram(2, 2, 2, (local(first, other), waits))

    assert severe(Program("wide", "all-reduce", (rank,), 2)) == []


def test_sends_and_receives_of_a_connection():
    program = gathered(2)
    ring, own = program.ranks[0].blocks
    without = replace(program.ranks[0], blocks=(replace(ring, steps=ring.steps[1:]), own))
    (told,) = severe(replace(program, ranks=(without, program.ranks[1])))
    assert told == (
        "rank 1, thread block 0, step 1 receives message 1 from rank 0 to rank 1 over channel 0, "
        "and nobody sends it"
    )
    twice = replace(program.ranks[0], blocks=(ring, own, replace(ring, receive=-1)))
    assert any(
        "sends from rank 0 to rank 1 over channel 0, and so does rank 0, thread block 0" in each
        for each in severe(replace(program, ranks=(twice, program.ranks[1])))
    )
    wide = gathered(2, 2)
    steps = (replace(wide.ranks[0].blocks[0].steps[0], count=1), wide.ranks[0].blocks[0].steps[1])
    narrow = replace(wide.ranks[0].blocks[0], steps=steps)
    short = replace(wide.ranks[0], blocks=(narrow, wide.ranks[0].blocks[1]))
    (told,) = severe(replace(wide, ranks=(short, wide.ranks[1])))
    assert told == (
        "rank 1, thread block 0, step 1 receives 2 chunks in message 1 from rank 0 to rank 1 over "
        "channel 0, and rank 0, thread block 0, step 0 sends 1 chunk"
    )


def test_nobody_sends_to_itself():
    block = ThreadBlock(0, 3, 0, (Step("s", Slot("input", 0)),))
    told = severe(alone(block))

    assert any("sends to rank 0; that is itself" in each for each in told)
    assert any("receives from rank 3; others go from 0 to 0" in each for each in told)


@pytest.mark.parametrize(
    ("changes", "executor", "told"),
    [
        ({"name": "x" * 64}, "msccl", "the name has 64 characters and 63 fit"),
        ({"name": 'a "b"'}, "rccl", "the name has quotes"),
        ({"smallest": 2, "largest": 1}, "msccl", "it is for 2 to 1 bytes"),
        ({"smallest": -1}, "azure", "it is for -1 to"),
        ({"collective": "custom"}, "rccl", "ROCm/rccl knows no custom"),
        ({"collective": "gather"}, "msccl", "microsoft/msccl knows no gather"),
        ({"in_place": False, "out_of_place": False}, "msccl", "neither for calls in place nor"),
        ({"chunks_per_loop": 0}, "msccl", "it has 0 chunks per loop"),
        ({"chunks_per_loop": 4}, "msccl", "all-gather over 3 ranks has 4 chunks a loop"),
        ({"chunks_per_loop": 6}, "msccl", "has i_chunks 1 and 6 chunks per loop of a all-gather"),
    ],
)
def test_what_a_program_says_of_itself(changes, executor, told):
    complaints = severe(replace(gathered(3), **changes), executor)

    assert any(told in each for each in complaints), complaints


def test_in_place_and_out_of_place():
    both = replace(gathered(3), in_place=True)
    assert "reads inplace alone" in mild(both)[0]
    assert mild(both, "rccl") == []
    exchange = Program("x", "all-to-all", (RankProgram(1, 1, 0, (local(OWN),)),), 1, in_place=True)
    assert any("has no call in place" in told for told in mild(exchange))
    assert "has no call in place" in severe(replace(exchange, out_of_place=False))[0]


def test_elements_of_a_file():
    """Of microsoft/msccl: 1 algo, 1 gpu, 16 thread blocks and 16 x 255 steps are 4,098 > 4,095."""
    full = alone(*[local(*[OWN] * 255)] * 16)
    assert severe(full) == [
        "rank 0 has 4098 elements of XML to read and parsers keep 4095; use fewer chunks or pieces"
    ]
    assert severe(alone(*[local(*[OWN] * 254)] * 16)) == []


def test_many_alike_are_counted():
    """Of ten steps that are wrong in the same way three are told, and a fourth with the rest."""
    wrong = Step("cpy", Slot("input", 0), Slot("output", 5))
    told = severe(alone(local(*[wrong] * 10)))

    assert len(told) == 4
    assert told[-1].endswith("(and 6 more alike)")


@given(programs())
def test_any_program_is_looked_over(program):
    for executor in EXECUTORS:
        for complaint in lint(program, executor):
            assert complaint.sentence
            assert "\n" not in complaint.sentence
