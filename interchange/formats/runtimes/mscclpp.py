"""MSCCL++ execution plans: programs of puts, signals and waits as the executor loads them.

A plan is written as the program that `interchange.programs.puts` makes of it. A file is read as
such a program (`puts_from_json`), which is executed (`interchange.execution.puts`) and not drawn.

The executor knows no root; ``root`` stands in the file beside what it reads, for who reads it
back. Sizes of buffers are never 0 chunks, also where a rank has nothing in them, because it
divides by them.

Sources of the format: microsoft/mscclpp, src/core/executor/execution_plan.cc and docs/dsl.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ccl.errors import FormatError, ProblemError
from ccl.serialization.documents import Document
from ccl.serialization.text import laid_out
from interchange.formats.format import Writer, Written, one_file, replayed
from interchange.formats.runtimes._mscclpp_read import read_puts
from interchange.formats.runtimes._mscclpp_write import ALIGNMENT, puts_to_json
from interchange.programs import puts
from interchange.programs.puts import PutProgram, lower_puts

__all__ = ["WRITER", "Options", "puts_from_json", "puts_to_text", "recognises"]

MANY_BLOCKS = 64
"""Thread blocks of a rank up to which nothing is said; an H100 has 132 places for them."""


@dataclass(frozen=True, kw_only=True)
class Options(puts.Options):
    """How a plan becomes a file."""


class _Looked(msgspec.Struct, frozen=True):
    """What tells a plan of MSCCL++ from other JSON."""

    collective: str
    inplace: bool
    gpus: list[msgspec.Raw]


def recognises(content: bytes) -> bool:
    """Say whether content is an execution plan."""
    if b'"threadblocks"' not in content:
        return False
    try:
        msgspec.json.decode(content.removeprefix(b"\xef\xbb\xbf"), type=_Looked)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


def puts_from_json(content: bytes, name: str = "plan") -> PutProgram:
    """Read the program of a file called `name`.

    Raises
    ------
    FormatError
        If it is none, with the place, or does what is not executed here.
    """
    return read_puts(content, name=name)


def puts_to_text(program: PutProgram) -> str:
    """Return a program as the text of a file."""
    return f"{laid_out(puts_to_json(program))}\n"


def _write(content: Document, options: Options) -> Written:
    problem, plan, _ = replayed(content)
    try:
        program = lower_puts(problem, plan, options)
    except ProblemError as error:
        raise FormatError(str(error)) from None
    return one_file(puts_to_text(program), ending="json", lost=_lost(program))


def _lost(program: PutProgram) -> tuple[str, ...]:
    """Say what the format cannot carry and what the executor asks for."""
    first = program.ranks[0]
    step = ALIGNMENT * max(first.input, first.output)
    lost = [*program.notes, f"sizes that are no multiple of {step:,} bytes: the executor refuses"]
    most = max(len(rank.blocks) for rank in program.ranks)
    if most > MANY_BLOCKS:
        lost.append(
            f"{most:,} thread blocks of a rank wait for one another: the GPU must have room for "
            "all of them at once; ask for fewer pieces"
        )
    return tuple(lost)


WRITER = Writer(
    name="mscclpp",
    title="MSCCL++ execution plan",
    ending="json",
    needs="plan",
    write=_write,
    options=Options,
)
