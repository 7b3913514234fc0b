"""What the commands on programs are given: a runtime's file, or a plan that becomes a program."""

from __future__ import annotations

from pathlib import Path

from ccl.errors import FormatError
from ccl.serialization.text import read_bytes
from interchange.formats.catalogue import read_content
from interchange.formats.format import Asked, replayed
from interchange.formats.runtimes import msccl_xml, mscclpp
from interchange.programs import Program
from interchange.programs.lowering import lower
from interchange.programs.puts import PutProgram


def program_in(file: Path) -> Program:
    """Return the program in a file or of the plan in it.

    Raises
    ------
    FormatError
        If the file has neither.
    """
    content, name = read_bytes(file), str(file)
    if msccl_xml.READER.recognises(content):
        # As a program alone: what is wrong with it need not be a plan of anything.
        return msccl_xml.program_from_xml(content, name)
    if mscclpp.recognises(content):
        msg = f"{file} is an execution plan of MSCCL++, which `topoloom execute` takes alone"
        raise FormatError(msg)
    imported = read_content(content, Asked(name=name))
    if imported.program is not None:
        return imported.program
    if imported.document.plan is None:
        msg = f"{file} has no program and no plan; give MSCCL XML, a result or a plan"
        raise FormatError(msg)
    problem, plan, _ = replayed(imported.document)
    return lower(problem, plan)


def any_program_in(file: Path) -> Program | PutProgram:
    """Return the program in a file, of puts as well; errors as `program_in`."""
    content = read_bytes(file)
    if mscclpp.recognises(content):
        return mscclpp.puts_from_json(content, str(file))
    return program_in(file)
