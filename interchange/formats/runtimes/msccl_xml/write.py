"""Programs as MSCCL XML: the attributes that any of the public executors asks for.

A send names where its peer puts what it sends, and a receipt where its peer has it from: nobody
runs by that, but checkers compare the two ends. What a step has nothing for is written as the
compilers of MSCCL write it (``srcbuf="i" srcoff="-1"``, ``dstbuf="o" dstoff="-1"``): the
executors' parsers ask for the attributes and look at the buffers' names (microsoft/msccl,
src/graph/topo.cc; ROCm/rccl, src/misc/msccl/msccl_parser.cc). They read neither a declaration of
XML nor line breaks between attributes, and skip what they do not know, which is why ``root`` may
stand there.
"""

from __future__ import annotations

import re
from collections import defaultdict

from ccl.errors import FormatError
from interchange.formats.runtimes.msccl_xml.names import BUFFERS, ROOTED, SUMS, collective_name
from interchange.formats.xml import Element, xml_text
from interchange.programs import Program, RankProgram, Slot, Step, ThreadBlock
from interchange.programs.lint import Executor
from interchange.programs.program import READS, RECEIVES, SENDS, WRITES

_Place = tuple[int, int, int]
"""Rank, thread block and step."""

_Ends = defaultdict[tuple[int, int, int], list[tuple[_Place, Step]]]
"""Of each connection (from, to, channel) the steps at one end, in order."""

_LETTERS = {buffer: letter for letter, buffer in BUFFERS.items()}

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML may contain, by its definition (section 2.2)."""


def program_to_xml(program: Program, executor: Executor = "msccl") -> str:
    """Return a program as the text of a file for one of the executors, which differ in names.

    Raises
    ------
    FormatError
        If its name has characters that XML does not allow.
    """
    wrong = _NO_XML.search(program.name)
    if wrong is not None:
        msg = f"the program's name has the character {wrong[0]!r}, which XML cannot say; rename it"
        raise FormatError(msg)
    peers = _Peers(program)
    gpus = [_gpu(number, rank, peers) for number, rank in enumerate(program.ranks)]
    return xml_text(Element("algo", _algo(program, executor), gpus))


def _algo(program: Program, executor: Executor) -> dict[str, str]:
    kind = program.collective
    told: dict[str, object] = {
        "name": program.name,
        "proto": program.protocol,
        "nchannels": program.channels,
        "nchunksperloop": program.chunks_per_loop,
        "ngpus": len(program.ranks),
        "coll": collective_name(kind, executor),
        "inplace": int(program.in_place),
        "outofplace": int(program.out_of_place),
        "minBytes": program.smallest,
        "maxBytes": program.largest,
    }
    if kind in SUMS:
        told["redop"] = "sum"
    if kind in ROOTED or program.root:
        told["root"] = program.root
    return _texts(told)


class _Peers:
    """What the other end of a message does: the k-th send is taken by the k-th receipt."""

    def __init__(self, program: Program) -> None:
        ends: tuple[_Ends, _Ends] = (defaultdict(list), defaultdict(list))
        for rank, number, block in program.blocks():
            there = rank, block.send, block.channel
            here = block.receive, rank, block.channel
            for place, step in enumerate(block.steps):
                for does, key, end in ((SENDS, there, ends[0]), (RECEIVES, here, ends[1])):
                    if step.operation in does:
                        end[key].append(((rank, number, place), step))
        self._dst: dict[_Place, Slot | None] = {}
        self._src: dict[_Place, Slot | None] = {}
        for key, sent in ends[0].items():
            for (sender, one), (receiver, other) in zip(sent, ends[1][key], strict=False):
                self._dst[sender] = _used(other.dst, other, WRITES)
                self._src[receiver] = _used(one.src, one, READS)

    def src(self, place: _Place, step: Step) -> Slot | None:
        """Return what a step reads, or where its peer has what it receives from."""
        return _used(step.src, step, READS) or self._src.get(place)

    def dst(self, place: _Place, step: Step) -> Slot | None:
        """Return what a step writes, or where its peer puts what it sends."""
        return _used(step.dst, step, WRITES) or self._dst.get(place)


def _used(slot: Slot | None, step: Step, operations: frozenset[str]) -> Slot | None:
    return slot if step.operation in operations else None


def _gpu(number: int, rank: RankProgram, peers: _Peers) -> Element:
    awaited = {step.after for block in rank.blocks for step in block.steps}
    told = {
        "id": number,
        "i_chunks": rank.input,
        "o_chunks": rank.output,
        "s_chunks": rank.scratch,
    }
    blocks = [
        _block((number, place), block, awaited, peers=peers)
        for place, block in enumerate(rank.blocks)
    ]
    return Element("gpu", _texts(told), blocks)


def _block(
    where: tuple[int, int],
    block: ThreadBlock,
    awaited: set[tuple[int, int] | None],
    *,
    peers: _Peers,
) -> Element:
    number = where[1]
    told = {"id": number, "send": block.send, "recv": block.receive, "chan": block.channel}
    steps = [
        Element("step", _step((*where, place), step, peers, awaited=(number, place) in awaited))
        for place, step in enumerate(block.steps)
    ]
    return Element("tb", _texts(told), steps)


def _step(where: _Place, step: Step, peers: _Peers, *, awaited: bool) -> dict[str, str]:
    src, dst = peers.src(where, step), peers.dst(where, step)
    block, place = step.after or (-1, -1)
    told: dict[str, object] = {
        "s": where[2],
        "type": step.operation,
        "srcbuf": _letter(src, "i"),
        "srcoff": -1 if src is None else src.index,
        "dstbuf": _letter(dst, "o"),
        "dstoff": -1 if dst is None else dst.index,
        "cnt": 0 if step.operation == "nop" else step.count,
        "depid": block,
        "deps": place,
        "hasdep": int(awaited),
    }
    return _texts(told)


def _letter(slot: Slot | None, unused: str) -> str:
    return unused if slot is None else _LETTERS[slot.buffer]


def _texts(told: dict[str, object] | dict[str, int]) -> dict[str, str]:
    return {name: str(value) for name, value in told.items()}
