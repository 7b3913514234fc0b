"""MSCCL XML as programs, with what a file leaves unsaid.

What is wrong in a file is refused with its line: numbers with gaps, references to what is not
there, a rank that sends to itself, steps of unknown types, a step waited for that does not say so.
What executors ignore is named and left out. What MSCCL XML calls things differs by executor
(`collective_name`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

from ccl.collective import CHUNK_LIMIT, CollectiveKind
from ccl.errors import FormatError
from interchange import programs as ir
from interchange.formats.format import Remarks, Report
from interchange.formats.xml import Element, parse_xml
from interchange.programs.lint import Executor

COLLECTIVES: dict[str, CollectiveKind] = {
    "allgather": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "reducescatter": "reduce-scatter",
    "allreduce": "all-reduce",
    "alltoall": "all-to-all",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
    "custom": "custom",
}
"""Values of ``coll``; of the two names of a reduce-scatter each executor takes one."""

BUFFERS: dict[str, ir.Buffer] = {"i": "input", "o": "output", "s": "scratch"}
"""Values of ``srcbuf`` and ``dstbuf``."""

ROOTED: frozenset[CollectiveKind] = frozenset({"broadcast", "reduce", "gather", "scatter"})

SUMS: frozenset[CollectiveKind] = frozenset({"all-reduce", "reduce-scatter", "reduce"})


def collective_name(kind: CollectiveKind, executor: Executor) -> str:
    """Return how an executor calls a collective, known to it or not."""
    names = [name for name, each in COLLECTIVES.items() if each == kind]
    return names[0] if executor == "msccl" else names[-1]


MOST_CHANNEL = 1023
"""Highest channel that is read; no executor has more than 128."""

LARGEST = 1 << 27
"""Bytes up to which microsoft/msccl uses a file that does not say."""

_WINDOW = ("minBytes", "maxBytes")
_PLACES = ("inplace", "outofplace")
_KNOWN = frozenset(
    {"name", "proto", "nchannels", "nchunksperloop", "ngpus", "coll", "redop", "root"}
).union(_PLACES, _WINDOW)


@dataclass
class _Notes(Remarks):
    """What a file does not say or says in vain, collected while it is read."""

    counts: Counter[str] = field(default_factory=Counter)


def read_program(
    content: bytes, *, name: str, root: int | None = None
) -> tuple[ir.Program, Report]:
    """Read the content of a file called `name`.

    Parameters
    ----------
    root
        Rank of the root, which most files do not say, or None.

    Raises
    ------
    FormatError
        At the first thing that is wrong, with its line.
    """
    try:
        algo = parse_xml(content)
        if algo.tag != "algo":
            raise FormatError(
                f"line {algo.line}: the first element is <{algo.tag[:40]}>; MSCCL XML has <algo>"
            )
        notes = _Notes()
        program = _program(algo, notes, name=name, root=root)
    except FormatError as error:
        raise FormatError(f"{name}: {error}") from None
    return program, _report(program, notes)


def _report(program: ir.Program, notes: _Notes) -> Report:
    blocks = sum(len(rank.blocks) for rank in program.ranks)
    counts = notes.counts
    left_out, assumed = notes.left_out, notes.assumed
    if counts["copy"]:
        left_out.append(f"{counts['copy']} <copy> rows, which executors ignore, are left out")
    if counts["unawaited"]:
        left_out.append(f"hasdep of {counts['unawaited']} steps that no step waits for")
    if counts["cnt"]:
        assumed.append(f"{counts['cnt']} steps without cnt move 1 chunk each")
    if counts["chan"]:
        assumed.append(f"{counts['chan']} thread blocks without channel and peers are on channel 0")
    notes.taken.append(
        f"a program of {program.collective} for {len(program.ranks)} ranks: {blocks:,} thread "
        f"blocks and {program.steps:,} steps on {program.channels} channels, {program.protocol}, "
        f"{program.chunks_per_loop:,} chunks"
    )
    return notes.report()


def _program(algo: Element, notes: _Notes, *, name: str, root: int | None) -> ir.Program:
    collective = COLLECTIVES.get(algo.text("coll"))
    if collective is None:
        known = ", ".join(COLLECTIVES)
        raise FormatError(
            f"line {algo.line}: coll is {_short(algo.text('coll'))}; there are {known}"
        )
    gpus = _numbered(list(algo.each("gpu")), "gpu")
    if algo.integer("ngpus") != len(gpus):
        raise FormatError(
            f"line {algo.line}: ngpus is {algo.integer('ngpus')} and there are {len(gpus)} <gpu>; "
            "give one for each rank"
        )
    ranks = tuple(_rank(gpu, notes, ranks=len(gpus)) for gpu in gpus)
    inplace = _flag(algo, "inplace", notes, default=False)
    smallest, largest = _window(algo, notes)
    if root is None and collective in ROOTED and "root" not in algo.attributes:
        root = _root(collective, ranks, notes)
    program = ir.Program(
        name=algo.text("name", name),
        collective=collective,
        ranks=ranks,
        chunks_per_loop=_bounded(algo, "nchunksperloop", least=1, most=CHUNK_LIMIT),
        protocol=_protocol(algo, notes),
        in_place=inplace,
        out_of_place=_flag(algo, "outofplace", notes, default=not inplace),
        smallest=smallest,
        largest=largest,
        root=algo.integer("root", 0) if root is None else root,
    )
    if not 0 <= program.root < len(ranks):
        raise FormatError(
            f"line {algo.line}: the root is {program.root}; ranks go from 0 to {len(ranks) - 1}"
        )
    _look_over(algo, program, notes)
    return program


def _root(kind: CollectiveKind, ranks: Sequence[ir.RankProgram], notes: _Notes) -> int:
    """Return the only rank that receives nothing, or sends nothing where all go to the root."""
    gathers = kind in ("reduce", "gather")
    idle = [
        number
        for number, rank in enumerate(ranks)
        if not any(
            step.operation in (ir.SENDS if gathers else ir.RECEIVES)
            for block in rank.blocks
            for step in block.steps
        )
    ]
    if len(idle) == 1:
        what = "sends" if gathers else "receives"
        notes.assumed.append(f"the root is rank {idle[0]}, which alone {what} nothing")
        return idle[0]
    notes.assumed.append("the root is rank 0")
    return 0


def _look_over(algo: Element, program: ir.Program, notes: _Notes) -> None:
    """Compare what the file says of itself, and name what is not kept."""
    channels = algo.integer("nchannels", program.channels)
    if channels < program.channels:
        raise FormatError(
            f"line {algo.line}: nchannels is {channels} and channel {program.channels - 1} is "
            f"used; give {program.channels}"
        )
    if channels > program.channels:
        notes.left_out.append(f"nchannels {channels}, of which {program.channels} are used")
    redop = algo.text("redop", "sum")
    if redop not in ("sum", "nop"):
        notes.left_out.append(f"redop {_short(redop)}: contributions are added up")
    unknown = sorted(set(algo.attributes) - _KNOWN)
    if unknown:
        notes.left_out.append(f"attributes of <algo>: {', '.join(map(_short, unknown[:5]))}")


def _protocol(algo: Element, notes: _Notes) -> ir.Protocol:
    if "proto" not in algo.attributes:
        notes.assumed.append("the protocol is Simple")
        return "Simple"
    told = algo.text("proto")
    if told not in ir.PROTOCOLS:
        raise FormatError(
            f"line {algo.line}: proto is {_short(told)}; there are {', '.join(ir.PROTOCOLS)}"
        )
    return told


def _window(algo: Element, notes: _Notes) -> tuple[int, int]:
    smallest = _bounded(algo, "minBytes", least=0, most=2**63, default=0)
    largest = _bounded(algo, "maxBytes", least=0, most=2**63, default=max(LARGEST, smallest))
    missing = [name for name in _WINDOW if name not in algo.attributes]
    if missing:
        notes.assumed.append(
            f"{' and '.join(missing)} are missing: it is for {smallest:,} to {largest:,} bytes"
        )
    return smallest, largest


def _flag(algo: Element, key: str, notes: _Notes, *, default: bool) -> bool:
    if key not in algo.attributes:
        notes.assumed.append(f"{key} is {int(default)}, which the file does not say")
        return default
    told = algo.text(key).strip()
    if told not in ("0", "1"):
        raise FormatError(f"line {algo.line}: {key} is {_short(told)}; give 0 or 1")
    return told == "1"


def _numbered(elements: Sequence[Element], what: str) -> list[Element]:
    """Return elements by their id, which go from 0 without a gap."""
    numbers: dict[int, Element] = {}
    for each in elements:
        number = each.integer("id")
        if number in numbers or not 0 <= number < len(elements):
            found = "used twice" if number in numbers else "out of order"
            raise FormatError(
                f"line {each.line}: the id of <{what}> is {number}, {found}; the {len(elements)} "
                f"here are 0 to {len(elements) - 1}, without a gap"
            )
        numbers[number] = each
    if not numbers:
        raise FormatError(f"there is no <{what}>; a program has one for each rank")
    return [numbers[number] for number in range(len(elements))]


def _rank(gpu: Element, notes: _Notes, *, ranks: int) -> ir.RankProgram:
    notes.counts["copy"] += sum(1 for _ in gpu.each("copy"))
    found = list(gpu.each("tb"))
    tbs = _numbered(found, "tb") if found else []
    number = gpu.integer("id")
    blocks = tuple(_block(tb, notes, rank=number, ranks=ranks) for tb in tbs)
    _check_waits(tbs, blocks, notes)
    sizes = [
        _bounded(gpu, key, least=0, most=CHUNK_LIMIT)
        for key in ("i_chunks", "o_chunks", "s_chunks")
    ]
    return ir.RankProgram(sizes[0], sizes[1], sizes[2], blocks)


def _block(tb: Element, notes: _Notes, *, rank: int, ranks: int) -> ir.ThreadBlock:
    send, receive = tb.integer("send"), tb.integer("recv")
    for key, peer in (("send", send), ("recv", receive)):
        if peer == rank or not -1 <= peer < ranks:
            wrong = "itself" if peer == rank else "not there"
            raise FormatError(
                f"line {tb.line}: {key} of a thread block of rank {rank} is {peer}, which is "
                f"{wrong}; give another of the {ranks} ranks, or -1"
            )
    channel = tb.integer("chan")
    if channel == -1 and send == receive == -1:
        notes.counts["chan"] += 1
        channel = 0
    if not 0 <= channel <= MOST_CHANNEL:
        raise FormatError(
            f"line {tb.line}: chan is {channel}; channels go from 0 to {MOST_CHANNEL}"
        )
    steps = []
    for place, element in enumerate(tb.each("step")):
        if element.integer("s") != place:
            raise FormatError(
                f"line {element.line}: the step is number {element.integer('s')} and in place "
                f"{place}; steps are numbered 0, 1, 2 and so on"
            )
        steps.append(_step(element, notes))
    return ir.ThreadBlock(send, receive, channel, tuple(steps))


def _step(element: Element, notes: _Notes) -> ir.Step:
    told = element.text("type")
    if told == "ra":
        raise FormatError(
            f"line {element.line}: type ra adds a residual, which no collective here has; take the "
            "step out"
        )
    if told not in ir.OPERATIONS:
        known = ", ".join(get_args(ir.Operation))
        raise FormatError(f"line {element.line}: type is {_short(told)}; there are {known}")
    operation: ir.Operation = told
    if operation == "nop":
        return ir.Step("nop", after=_after(element))
    if "cnt" not in element.attributes:
        notes.counts["cnt"] += 1
    return ir.Step(
        operation,
        _slot(element, "src") if operation in ir.READS else None,
        _slot(element, "dst") if operation in ir.WRITES else None,
        _bounded(element, "cnt", least=1, most=CHUNK_LIMIT, default=1),
        _after(element),
    )


def _slot(element: Element, end: str) -> ir.Slot:
    letter = element.text(f"{end}buf")
    if letter not in BUFFERS:
        raise FormatError(
            f"line {element.line}: {end}buf is {_short(letter)}; there are i, o and s"
        )
    return ir.Slot(BUFFERS[letter], _bounded(element, f"{end}off", least=0, most=CHUNK_LIMIT))


def _after(element: Element) -> tuple[int, int] | None:
    block, step = element.integer("depid", -1), element.integer("deps", -1)
    if (block < 0) != (step < 0):
        raise FormatError(
            f"line {element.line}: depid is {block} and deps {step}; give a thread block and its "
            "step, or -1 for both"
        )
    return None if block < 0 else (block, step)


def _check_waits(tbs: Sequence[Element], blocks: Sequence[ir.ThreadBlock], notes: _Notes) -> None:
    """Refuse steps that wait for what is not there, comes later, or does not say it is done."""
    rows = [list(tb.each("step")) for tb in tbs]
    awaited: set[tuple[int, int]] = set()
    for number, block in enumerate(blocks):
        for place, step in enumerate(block.steps):
            if step.after is not None:
                _check_wait(rows[number][place], step.after, rows, own=(number, place))
                awaited.add(step.after)
    for number, steps in enumerate(rows):
        for place, row in enumerate(steps):
            told = row.integer("hasdep", int((number, place) in awaited))
            notes.counts["unawaited"] += told == 1 and (number, place) not in awaited
            if told not in (0, 1):
                raise FormatError(f"line {row.line}: hasdep is {told}; give 0 or 1")


def _check_wait(
    row: Element, after: tuple[int, int], rows: Sequence[Sequence[Element]], *, own: tuple[int, int]
) -> None:
    block, place = after
    what = f"line {row.line}: the step waits for step {place} of thread block {block}"
    if block >= len(rows) or place >= len(rows[block]):
        have = f"{len(rows[block])} steps" if block < len(rows) else f"{len(rows)} thread blocks"
        raise FormatError(f"{what}, and there are {have}; give one that is there")
    if block == own[0] and place >= own[1]:
        raise FormatError(f"{what}, its own, which comes no earlier; give an earlier step")
    if rows[block][place].integer("hasdep", 1) == 0:
        raise FormatError(
            f"{what}, whose hasdep is 0 (line {rows[block][place].line}): an executor waits for "
            "ever; make it 1"
        )


def _bounded(
    element: Element, key: str, *, least: int, most: int, default: int | None = None
) -> int:
    number = element.integer(key, default)
    if not least <= number <= most:
        raise FormatError(f"line {element.line}: {key} is {number}; give {least} to {most:,}")
    return number


def _short(word: str) -> str:
    return word if len(word) <= 40 else word[:37] + "..."


def given_root(settings: Mapping[str, str], name: str) -> int | None:
    """Return the rank that the setting ``root`` names, or None.

    Raises
    ------
    FormatError
        If it is no rank.
    """
    told = settings.get("root")
    if told is None:
        return None
    try:
        return int(told)
    except ValueError:
        raise FormatError(
            f"{name}: the setting root is {_short(told)!r}; give the number of a rank"
        ) from None
