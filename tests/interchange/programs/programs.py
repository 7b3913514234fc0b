"""Programs for tests: random ones, and small ones whose result is known."""

from hypothesis import strategies as st

from ccl.collective import COLLECTIVES
from interchange.programs import (
    BUFFERS,
    OPERATIONS,
    PROTOCOLS,
    READS,
    WRITES,
    Program,
    RankProgram,
    Slot,
    Step,
    ThreadBlock,
)

NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"], include_characters="\n\t\r"))
SLOTS = st.builds(Slot, st.sampled_from(BUFFERS), st.integers(0, 99))


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Any program whose references exist: what XML must carry, whether or not it makes sense."""
    ranks = draw(st.integers(1, 3))
    return Program(
        name=draw(NAMES),
        collective=draw(st.sampled_from(COLLECTIVES)),
        ranks=tuple(draw(_rank(rank, ranks)) for rank in range(ranks)),
        chunks_per_loop=draw(st.integers(1, 99)),
        protocol=draw(st.sampled_from(PROTOCOLS)),
        in_place=draw(st.booleans()),
        out_of_place=draw(st.booleans()),
        smallest=draw(st.integers(0, 2**62)),
        largest=draw(st.integers(0, 2**62)),
        root=draw(st.integers(0, ranks - 1)),
    )


@st.composite
def _rank(draw: st.DrawFn, rank: int, ranks: int) -> RankProgram:
    many = draw(st.lists(st.integers(0, 4), max_size=3))
    peers = st.sampled_from([-1, *(each for each in range(ranks) if each != rank)])
    blocks = []
    for number, steps in enumerate(many):
        earlier = [(b, s) for b, count in enumerate(many) for s in range(count)]
        made = []
        for turn in range(steps):
            fitting = [place for place in earlier if place[0] != number or place[1] < turn]
            made.append(draw(_step(fitting)))
        blocks.append(ThreadBlock(draw(peers), draw(peers), draw(st.integers(0, 40)), tuple(made)))
    sizes = [draw(st.integers(0, 99)) for _ in range(3)]
    return RankProgram(sizes[0], sizes[1], sizes[2], tuple(blocks))


@st.composite
def _step(draw: st.DrawFn, fitting: list[tuple[int, int]]) -> Step:
    operation = draw(st.sampled_from(OPERATIONS))
    after = draw(st.none() | st.sampled_from(fitting)) if fitting else None
    if operation == "nop":
        return Step("nop", after=after)
    return Step(
        operation,
        draw(SLOTS) if operation in READS else None,
        draw(SLOTS) if operation in WRITES else None,
        draw(st.integers(1, 99)),
        after,
    )


def gathered(ranks: int = 3, count: int = 1) -> Program:
    """An all-gather around a ring: each rank sends its shard on, and what it receives but last."""
    made = []
    for rank in range(ranks):
        steps = [Step("s", Slot("input", 0), count=count)]
        for turn in range(1, ranks):
            place = Slot("output", (rank - turn) % ranks * count)
            steps.append(Step("rcs" if turn < ranks - 1 else "r", None, place, count))
        ring = ThreadBlock((rank + 1) % ranks, (rank - 1) % ranks, 0, tuple(steps))
        own = Step("cpy", Slot("input", 0), Slot("output", rank * count), count)
        made.append(RankProgram(count, ranks * count, 0, (ring, ThreadBlock(-1, -1, 0, (own,)))))
    return Program("ring", "all-gather", tuple(made), ranks * count)


def summed(ranks: int = 4) -> Program:
    """An all-reduce around a ring in place: sums go round once, and the whole sum once more."""
    made = []
    for rank in range(ranks):
        steps = [Step("s", Slot("input", rank))]
        for turn in range(1, 2 * ranks - 1):
            place = Slot("input", (rank - turn) % ranks)
            if turn < ranks - 1:
                steps.append(Step("rrs", place))
            elif turn == ranks - 1:
                steps.append(Step("rrcs", place, place))
            else:
                steps.append(Step("rcs" if turn < 2 * ranks - 2 else "r", None, place))
        ring = ThreadBlock((rank + 1) % ranks, (rank - 1) % ranks, 0, tuple(steps))
        made.append(RankProgram(ranks, ranks, 0, (ring,)))
    return Program(
        "sums", "all-reduce", tuple(made), ranks, in_place=True, out_of_place=False, largest=1 << 20
    )
