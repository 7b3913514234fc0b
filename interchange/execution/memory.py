"""Buffers of all ranks as cells, and what a collective promises of them.

With n ranks and L chunks a loop, in chunks (the layout of NCCL's collectives):

==============  =======  =======  ===============================================
kind            input    output   chunk of rank r's output
==============  =======  =======  ===============================================
all-gather      k = L/n  L        s k + i: chunk i of rank s
reduce-scatter  L        k = L/n  i: sum of all ranks' chunks r k + i
all-reduce      L        L        i: sum of all ranks' chunks i
all-to-all      L        L        s k + i: chunk r k + i of rank s, k = L/n
broadcast       L        L        i: the root's chunk i; only the root has an input
reduce          L        L        of the root i: sum of all ranks' chunks i
gather          k = L/n  L        of the root s k + i: chunk i of rank s
scatter         L        k = L/n  i: the root's chunk r k + i; only the root has an input
==============  =======  =======  ===============================================
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from ccl.collective import CollectiveKind
from interchange.execution.finding import Finding
from interchange.programs import Buffer, Program, Slot

SHORT_INPUT = frozenset({"all-gather", "gather"})
SHORT_OUTPUT = frozenset({"reduce-scatter", "scatter"})
SHARDED = SHORT_INPUT | SHORT_OUTPUT | {"all-to-all"}
SUMS = frozenset({"reduce-scatter", "all-reduce", "reduce"})
INPUT_OF_ROOT = frozenset({"broadcast", "scatter"})
OUTPUT_OF_ROOT = frozenset({"reduce", "gather"})


@dataclass(frozen=True, slots=True)
class Promise:
    """What a collective gives and takes, in chunks a rank.

    Parameters
    ----------
    kind
        Of the collective.
    ranks, root
        How many there are, and which is the root.
    input, output
        Chunks of a rank's buffers, where it has them.
    """

    kind: CollectiveKind
    ranks: int
    root: int
    input: int
    output: int

    @property
    def shard(self) -> int:
        """Chunks of one rank's part."""
        return max(self.input, self.output) // self.ranks

    def has_input(self, rank: int) -> bool:
        """Whether the rank's input holds anything."""
        return self.kind not in INPUT_OF_ROOT or rank == self.root

    def has_output(self, rank: int) -> bool:
        """Whether the rank's output must hold anything at the end."""
        return self.kind not in OUTPUT_OF_ROOT or rank == self.root

    def sources(self, rank: int, chunk: int) -> list[tuple[int, int]]:
        """Return the rank and chunk of each input that a chunk of an output is the sum of."""
        everyone = range(self.ranks)
        if self.kind in SUMS:
            own = rank * self.shard + chunk if self.kind == "reduce-scatter" else chunk
            return [(each, own) for each in everyone]
        if self.kind == "broadcast":
            return [(self.root, chunk)]
        if self.kind == "scatter":
            return [(self.root, rank * self.shard + chunk)]
        src, own = divmod(chunk, self.shard)
        return [(src, rank * self.shard + own if self.kind == "all-to-all" else own)]


def promise(program: Program) -> Promise | Finding:
    """Return what a program must keep, or why there is no telling; None of a custom collective."""
    ranks, whole, kind = len(program.ranks), program.chunks_per_loop, program.collective
    if not 0 <= program.root < ranks:
        words = f"the root is rank {program.root}; ranks go from 0 to {ranks - 1}"
        return Finding("size", words)
    if kind == "custom":
        longest = max(max(each.input, each.output) for each in program.ranks)
        return Promise(kind, ranks, program.root, longest, longest)
    if whole < 1 or (kind in SHARDED and whole % ranks):
        words = f"{kind} over {ranks} ranks has {whole} chunks a loop; give a multiple of {ranks}"
        return Finding("size", words)
    shard = whole // ranks
    given = shard if kind in SHORT_INPUT else whole
    taken = shard if kind in SHORT_OUTPUT else whole
    return Promise(kind, ranks, program.root, given, taken)


def wrong_sizes(program: Program, promised: Promise) -> Iterator[Finding]:
    """Yield the ranks whose buffers are not as long as the collective has them.

    A buffer may have no chunk where the collective gives a rank none, and in place, where it is
    a part of the other one.
    """
    if program.collective == "custom":
        return
    for rank, each in enumerate(program.ranks):
        spare_input = not promised.has_input(rank) or not program.out_of_place
        spare_output = not promised.has_output(rank) or not program.out_of_place
        spare_input &= promised.input <= promised.output or not promised.has_input(rank)
        spare_output &= promised.output <= promised.input or not promised.has_output(rank)
        for buffer, has, needs, spare in (
            ("input", each.input, promised.input, spare_input),
            ("output", each.output, promised.output, spare_output),
        ):
            if has != needs and not (spare and has == 0):
                words = (
                    f"rank {rank} has {has} chunks of {buffer}; {promised.kind} of "
                    f"{program.chunks_per_loop} chunks a loop over {promised.ranks} ranks "
                    f"has {needs}"
                )
                yield Finding("size", words, rank)


class Memory:
    """Where each rank's buffers lie among the cells.

    Parameters
    ----------
    program
        Whose buffers they are.
    promised
        Of its collective.
    in_place
        Whether input and output overlap: the shorter is the part of the longer that holds the
        rank's own shard.
    """

    def __init__(self, program: Program, promised: Promise, *, in_place: bool) -> None:
        self.in_place = in_place
        self._bases: list[dict[str, int]] = []
        self._sizes: list[dict[str, int]] = []
        cells = 0
        for rank, each in enumerate(program.ranks):
            sizes = {"input": each.input, "output": each.output, "scratch": each.scratch}
            if promised.kind != "custom":
                sizes["input"] = max(each.input, promised.input * promised.has_input(rank))
                sizes["output"] = max(each.output, promised.output * promised.has_output(rank))
            bases = {"input": cells, "output": cells + sizes["input"]}
            if in_place:
                own = rank * promised.shard
                bases["input"] = cells + own * (promised.kind in SHORT_INPUT)
                bases["output"] = cells + own * (promised.kind in SHORT_OUTPUT)
            cells = max(bases["input"] + sizes["input"], bases["output"] + sizes["output"])
            bases["scratch"] = cells
            cells += each.scratch
            self._bases.append(bases)
            self._sizes.append(sizes)
        self.cells = cells

    @cached_property
    def _starts(self) -> list[int]:
        return [min(bases.values()) for bases in self._bases]

    def cell(self, rank: int, slot: Slot) -> int:
        """Return the cell of a slot."""
        return self._bases[rank][slot.buffer] + slot.index

    def range(self, rank: int, buffer: Buffer) -> range:
        """Return the cells of a buffer."""
        base = self._bases[rank][buffer]
        return range(base, base + self._sizes[rank][buffer])

    def rank(self, cell: int) -> int:
        """Return the rank in whose buffers a cell lies."""
        return bisect_right(self._starts, cell) - 1

    def name(self, cell: int) -> str:
        """Return how a cell is called: ``rank 3's output 4 (input 0)``."""
        rank = self.rank(cell)
        found = []
        for buffer in ("output", "input", "scratch"):
            base = self._bases[rank][buffer]
            if base <= cell < base + self._sizes[rank][buffer]:
                found.append(f"{buffer} {cell - base}")
        also = f" ({', '.join(found[1:])})" if found[1:] else ""
        return f"rank {rank}'s {found[0]}{also}" if found else f"a gap of rank {rank}'s buffers"
