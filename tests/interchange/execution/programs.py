"""Programs written by hand for the interpreter: a small builder and the usual algorithms."""

from __future__ import annotations

from dataclasses import replace

from interchange.programs import Program, RankProgram, Slot, Step, ThreadBlock


def slot(name):
    """Return the place that ``i3``, ``o3`` or ``s3`` means."""
    buffers = {"i": "input", "o": "output", "s": "scratch"}
    return Slot(buffers[name[0]], int(name[1:]))


class Builder:
    """Takes steps of thread blocks, which are told apart by their peers and channel."""

    def __init__(self, ranks, collective, chunks, **settings):
        self.ranks, self.collective, self.chunks, self.settings = (
            ranks,
            collective,
            chunks,
            settings,
        )
        self.blocks: list[dict] = [{} for _ in range(ranks)]
        self.sizes = settings.pop("sizes", None) or self._sizes()
        self.scratch = settings.pop("scratch", 0)

    def _sizes(self):
        short = self.chunks // self.ranks
        kind = self.collective
        given = short if kind in ("all-gather", "gather") else self.chunks
        taken = short if kind in ("reduce-scatter", "scatter") else self.chunks
        return [(given, taken)] * self.ranks

    def step(self, rank, operation, src=None, dst=None, *, to=-1, of=-1, channel=0, **more):
        """Add a step; return ``(block, step)`` for others to wait for."""
        steps = self.blocks[rank].setdefault((to, of, channel), [])
        places = {"src": src and slot(src), "dst": dst and slot(dst)}
        steps.append(Step(operation, **places, **more))
        return list(self.blocks[rank]).index((to, of, channel)), len(steps) - 1

    def program(self):
        """Return what was built."""
        ranks = tuple(
            RankProgram(
                given,
                taken,
                self.scratch,
                tuple(
                    ThreadBlock(to, of, channel, tuple(steps))
                    for (to, of, channel), steps in blocks.items()
                ),
            )
            for (given, taken), blocks in zip(self.sizes, self.blocks, strict=True)
        )
        return Program(self.collective, self.collective, ranks, self.chunks, **self.settings)


def ring_all_gather(ranks=4, *, shard=1, **settings):
    """One block a rank: send the own shard, pass on what comes, `shard` chunks a message."""
    made = Builder(ranks, "all-gather", ranks * shard, **settings)
    for rank in range(ranks):
        ends = {"to": (rank + 1) % ranks, "of": (rank - 1) % ranks}
        made.step(rank, "cpy", "i0", f"o{rank * shard}", count=shard, **ends)
        made.step(rank, "s", "i0", count=shard, **ends)
        for hop in range(1, ranks):
            at = f"o{(rank - hop) % ranks * shard}"
            made.step(rank, "rcs" if hop < ranks - 1 else "r", None, at, count=shard, **ends)
    return made.program()


def ring_all_gather_in_two(ranks=4, **settings):
    """A block of each rank sends and another receives; what is passed on waits for its receipt."""
    made = Builder(ranks, "all-gather", ranks, **settings)
    came = {}
    for rank in range(ranks):
        made.step(rank, "cpy", "i0", f"o{rank}")
        for hop in range(1, ranks):
            came[rank, hop] = made.step(
                rank, "r", None, f"o{(rank - hop) % ranks}", of=(rank - 1) % ranks
            )
        for hop in range(ranks - 1):
            after = came[rank, hop] if hop else None
            at = "i0" if not hop else f"o{(rank - hop) % ranks}"
            made.step(rank, "s", at, to=(rank + 1) % ranks, after=after)
    return made.program()


def ring_all_reduce(ranks=4, *, pieces=1, **settings):
    """Reduce-scatter and all-gather around the ring in one block a rank and channel, in place too.

    Chunk c begins at rank c, is added up on its way to rank c - 1, where it is whole, and is
    carried on from there; `rrcs` adds, keeps and sends on at once.
    """
    made = Builder(ranks, "all-reduce", ranks * pieces, **settings)
    for channel in range(pieces):
        for rank in range(ranks):
            ends = {"to": (rank + 1) % ranks, "of": (rank - 1) % ranks, "channel": channel}

            def at(hop, rank=rank, channel=channel):
                return (rank - hop) % ranks * pieces + channel

            made.step(rank, "s", f"i{at(0)}", **ends)
            for hop in range(1, ranks - 1):
                made.step(rank, "rrs", f"i{at(hop)}", **ends)
            made.step(rank, "rrcs", f"i{at(ranks - 1)}", f"o{at(ranks - 1)}", **ends)
            for hop in range(ranks, 2 * ranks - 2):
                made.step(rank, "rcs", None, f"o{at(hop)}", **ends)
            made.step(rank, "r", None, f"o{at(2 * ranks - 2)}", **ends)
    return made.program()


def ring_reduce_scatter(ranks=4, **settings):
    """Chunk c begins at rank c + 1 and is whole at rank c."""
    made = Builder(ranks, "reduce-scatter", ranks, **settings)
    for rank in range(ranks):
        ends = {"to": (rank + 1) % ranks, "of": (rank - 1) % ranks}
        made.step(rank, "s", f"i{(rank - 1) % ranks}", **ends)
        for hop in range(2, ranks):
            made.step(rank, "rrs", f"i{(rank - hop) % ranks}", **ends)
        made.step(rank, "rrc", f"i{rank}", "o0", **ends)
    return made.program()


def direct_all_to_all(ranks=4, *, shard=1, channels=1, **settings):
    """A block for each pair that sends and receives; the own shard is copied."""
    made = Builder(ranks, "all-to-all", ranks * shard, **settings)
    for rank in range(ranks):
        made.step(rank, "cpy", f"i{rank * shard}", f"o{rank * shard}", count=shard)
        for other in range(ranks):
            if other != rank:
                for part in range(shard):
                    at = other * shard + part
                    ends = {"to": other, "of": other, "channel": part % channels}
                    made.step(rank, "s", f"i{at}", **ends)
                    made.step(rank, "r", None, f"o{at}", **ends)
    return made.program()


def gathered_all_reduce(ranks=4, **settings):
    """Everybody sends everything to everybody's scratch, who adds it up in one block.

    The block that adds waits for each receipt by a step that does nothing.
    """
    made = Builder(ranks, "all-reduce", 2, scratch=2 * ranks, **settings)
    for rank in range(ranks):
        others = [other for other in range(ranks) if other != rank]
        came = []
        for other in others:
            made.step(rank, "s", "i0", to=other, of=other, count=2)
            came.append(made.step(rank, "r", None, f"s{2 * other}", to=other, of=other, count=2))
        made.step(rank, "cpy", "i0", "o0", count=2)
        for after, other in zip(came, others, strict=True):
            made.step(rank, "nop", after=after)
            made.step(rank, "re", f"s{2 * other}", "o0", count=2)
    return made.program()


def halving_doubling(ranks=4, **settings):
    """Recursive halving and doubling of an all-reduce of a power of two ranks, in scratch.

    The ranks of step d differ in bit d; half of what is left is sent, the other half added up.
    """
    made = Builder(ranks, "all-reduce", ranks, scratch=ranks, **settings)
    bits = [1 << bit for bit in reversed(range(ranks.bit_length() - 1))]
    for rank in range(ranks):
        done = made.step(rank, "cpy", "i0", "o0", count=ranks)
        low, size = 0, ranks
        for bit in bits:
            size //= 2
            keep = low + size * bool(rank & bit)
            give = low + size * (not rank & bit)
            ends = {"to": rank ^ bit, "of": rank ^ bit}
            made.step(rank, "s", f"o{give}", count=size, after=done, **ends)
            done = made.step(rank, "rrc", f"o{keep}", f"o{keep}", count=size, **ends)
            low = keep
        for bit in reversed(bits):
            ends = {"to": rank ^ bit, "of": rank ^ bit}
            made.step(rank, "s", f"o{low}", count=size, after=done, **ends)
            other = low ^ bit if size == 1 else (low + size if not rank & bit else low - size)
            done = made.step(rank, "r", None, f"o{other}", count=size, **ends)
            low, size = min(low, other), 2 * size
    return made.program()


def chain(kind, ranks=4, *, root=0, **settings):
    """Broadcast, reduce, gather and scatter along a chain of ranks from the root or to it."""
    shard = 2
    whole = shard * ranks if kind in ("gather", "scatter") else 2
    made = Builder(ranks, kind, whole, root=root, scratch=whole, **settings)
    way = [(root + hop) % ranks for hop in range(ranks)]
    for hop, rank in enumerate(way):
        before = way[hop - 1] if hop else -1
        behind = way[hop + 1] if hop + 1 < ranks else -1
        {"broadcast": _broadcast, "reduce": _reduce, "gather": _gather, "scatter": _scatter}[kind](
            made, way, rank, before, behind
        )
    return made.program()


def _broadcast(made, way, rank, before, behind):
    if before == -1:
        made.step(rank, "s", "i0", to=behind, count=2)
        made.step(rank, "cpy", "i0", "o0", to=behind, count=2)
    else:
        kind = "r" if behind == -1 else "rcs"
        made.step(rank, kind, None, "o0", to=behind, of=before, count=2)


def _reduce(made, way, rank, before, behind):
    if behind == -1:
        made.step(rank, "s", "i0", to=before, count=2)
    elif before != -1:
        made.step(rank, "rrs", "i0", to=before, of=behind, count=2)
    else:
        made.step(rank, "rrc", "i0", "o0", of=behind, count=2)


def _gather(made, way, rank, before, behind):
    passed = way[way.index(rank) + 1 :]
    if before == -1:
        made.step(rank, "cpy", "i0", f"o{2 * rank}", of=behind, count=2)
        for other in passed:
            made.step(rank, "r", None, f"o{2 * other}", of=behind, count=2)
        return
    made.step(rank, "s", "i0", to=before, of=behind, count=2)
    for other in passed:
        made.step(rank, "rcs", None, f"s{2 * other}", to=before, of=behind, count=2)


def _scatter(made, way, rank, before, behind):
    passed = way[way.index(rank) + 1 :]
    if before == -1:
        made.step(rank, "cpy", f"i{2 * rank}", "o0", to=behind, count=2)
        for other in passed:
            made.step(rank, "s", f"i{2 * other}", to=behind, count=2)
        return
    made.step(rank, "r", None, "o0", to=behind, of=before, count=2)
    for other in passed:
        made.step(rank, "rcs", None, f"s{2 * other}", to=behind, of=before, count=2)


RIGHT = {
    "ring all-gather": ring_all_gather,
    "ring all-gather of 3 chunks a message": lambda: ring_all_gather(3, shard=3),
    "ring all-gather, called either way": lambda: ring_all_gather(in_place=True),
    "ring all-gather in two blocks": ring_all_gather_in_two,
    "ring all-reduce": lambda: ring_all_reduce(in_place=True),
    "ring all-reduce over 2 channels": lambda: ring_all_reduce(3, pieces=2),
    "ring reduce-scatter": lambda: ring_reduce_scatter(in_place=True),
    "all-to-all": direct_all_to_all,
    "all-to-all of 4 chunks over 2 channels": lambda: direct_all_to_all(3, shard=4, channels=2),
    "all-reduce by scratch": gathered_all_reduce,
    "halving and doubling": lambda: halving_doubling(4),
    "halving and doubling of 8": lambda: halving_doubling(8),
    "broadcast": lambda: chain("broadcast", root=2, in_place=True),
    "reduce": lambda: chain("reduce", root=1, in_place=True),
    "gather": lambda: chain("gather", root=3, in_place=True),
    "scatter": lambda: chain("scatter", root=1, in_place=True),
}
"""Programs that are right, by name."""


def changed(program, rank, block, number, **changes):
    """Return a program with one step changed."""
    return with_steps(
        program,
        rank,
        block,
        lambda steps: [
            replace(step, **changes) if at == number else step for at, step in enumerate(steps)
        ],
    )


def with_steps(program, rank, block, edit):
    """Return a program in which the steps of a block are what `edit` makes of them."""
    ranks = list(program.ranks)
    blocks = list(ranks[rank].blocks)
    blocks[block] = replace(blocks[block], steps=tuple(edit(list(blocks[block].steps))))
    ranks[rank] = replace(ranks[rank], blocks=tuple(blocks))
    return replace(program, ranks=tuple(ranks))
