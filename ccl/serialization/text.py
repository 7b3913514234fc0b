"""Files of JSON, YAML and CSV: read with the place of what is wrong, written whole or not at all.

YAML is read as people write it (`yaml_in`): plain values, nothing that grows without end, and one
error.

Tables are CSV (RFC 4180) that no spreadsheet takes for formulas (`csv_text`). A spreadsheet
computes what begins with one of a few signs, and a name of a file of others may begin so. Such a
text gets an apostrophe before it, which spreadsheets do not show; numbers stay numbers.
"""

import csv
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec
import yaml

from ccl.bound import BoundKind
from ccl.collective import COLLECTIVES
from ccl.errors import FormatError

MOST_BYTES = 512 * 2**20
"""Of a file that is read; results of a million sends have less."""

COLUMNS = 120
"""What fits in a line stays in one line, so that a link or a send is one."""

Integer = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""A whole number in a file: Python reads thousands of digits, and no float can be made of them."""

_BYTE = re.compile(r"(?:JSON is malformed: )?(?P<what>.*) \(byte (?P<at>\d+)\)")
_INDEX = re.compile(r"\[\d+\]")
_NOT_FINITE = re.compile(rb"-?(NaN|Infinity)")
_TYPES = re.compile(r"(expected|got) `([^`]+)`")
_WORDS = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}

_RIGHT = {
    "devices[].kind": "there are gpu, switch, memory and nic",
    "collective.kind": f"there are {', '.join(COLLECTIVES)}",
    "bounds[].kind": f"there are {', '.join(get_args(BoundKind))}",
    "plan.plan": "there are schedule, forest and flow",
    "witness.witness": "there are cut and path",
    "switches": "there are all, uc-min and uc-max",
    "intranode_sketch.strategy": "there are switch, minmax, maxmin and none",
    "internode_sketch.strategy": "there are relay, fully-connected and none",
    "kind": "there are topology, problem, plan and result",
}
"""What would be right at the end of a place; the first that fits counts."""


def read_bytes(path: str | Path) -> bytes:
    """Read a file, and no more of it than `MOST_BYTES`.

    Raises
    ------
    FormatError
        If it cannot be read or is too large.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise FormatError(f"{path} cannot be read: {_reason(error)}") from None
    if len(content) > MOST_BYTES:
        raise FormatError(
            f"{path} has more than {MOST_BYTES:,} bytes; files are read up to that size"
        )
    return content


def write_text(path: str | Path, text: str) -> None:
    """Write a text as `write_bytes` does."""
    write_bytes(path, text.encode())


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file whole or not at all.

    Raises
    ------
    FormatError
        If it cannot be written; a file that was there stays as it was.
    """
    try:
        target = Path(path)
        if target.exists() and not target.is_file():
            target.write_bytes(content)  # a pipe or a terminal has no half
        else:
            _replace(target.resolve(), content)
    except (OSError, ValueError) as error:
        raise FormatError(f"{path} cannot be written: {_reason(error)}") from None


def decode_json(content: bytes | str, shape: Any) -> Any:
    """Read JSON text of a shape that msgspec knows.

    Raises
    ------
    FormatError
        If it is not UTF-8 or not JSON, with line and column, or not of the shape, with the place.
    """
    data = content if isinstance(content, bytes) else content.encode(errors="surrogatepass")
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        data.decode()
        return msgspec.json.decode(data, type=shape)
    except UnicodeDecodeError as error:
        raise FormatError(
            f"{_place(data, error.start)}: it is not UTF-8 text; save it as UTF-8"
        ) from None
    except msgspec.ValidationError as error:
        raise FormatError(describe_misfit(error)) from None
    except msgspec.DecodeError as error:
        raise FormatError(_malformed(data, str(error))) from None
    except RecursionError:
        raise FormatError("it is nested too deep; a document has ten levels at most") from None


def describe_misfit(error: msgspec.ValidationError) -> str:
    """Describe where a value is not of its shape and what would be right."""
    wrong, _, place = str(error).partition(" - at `$")
    place = place.rstrip("`").lstrip(".")
    wrong = _TYPES.sub(_in_words, wrong[:1].lower() + wrong[1:])
    named = _INDEX.sub("[]", place)
    right = next((f"; {message}" for end, message in _RIGHT.items() if named.endswith(end)), "")
    return f"at {place or 'the top'}: {wrong}{right if 'invalid' in wrong else ''}"


def _in_words(types: re.Match[str]) -> str:
    named = [_WORDS.get(each, each) for each in types[2].split(" | ")]
    return f"{types[1]} {' or '.join(named)}"


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def laid_out(value: Any, indent: str = "") -> str:
    """Write JSON with one line for what fits in a line."""
    line = _ENCODER.encode(value)
    if not isinstance(value, (dict, list)) or len(indent) + len(line) <= COLUMNS:
        return line
    deeper = indent + " "
    if isinstance(value, dict):
        rows = [f"{json.dumps(key)}: {laid_out(each, deeper)}" for key, each in value.items()]
        ends = "{}"
    else:
        rows = [laid_out(each, deeper) for each in value]
        ends = "[]"
    return f"{ends[0]}\n{deeper}" + f",\n{deeper}".join(rows) + f"\n{indent}{ends[1]}"


def _replace(target: Path, content: bytes) -> None:
    # Beside the target, because a rename is atomic only within one file system.
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, part)
        part.replace(target)
    finally:
        with suppress(OSError):
            part.unlink()


def _malformed(data: bytes, message: str) -> str:
    found = _BYTE.fullmatch(message)
    if found is None:
        return f"{_place(data, len(data))}: it is not JSON, because it ends too early"
    at = int(found["at"]) - (found["what"] == "trailing characters")  # it is past the first
    begin = at - 1 if data[at - 1 : at] == b"-" else at
    word = _NOT_FINITE.match(data, begin)
    if word is not None:
        return f"{_place(data, begin)}: {word[0].decode()} is no number; give a finite one"
    return f"{_place(data, at)}: it is not JSON ({found['what']})"


def _place(data: bytes, byte: int) -> str:
    before = data[:byte]
    column = len(before[before.rfind(b"\n") + 1 :].decode(errors="replace")) + 1
    line = before.count(b"\n") + 1
    return f"line {line}, column {column}"


def _reason(error: OSError | ValueError) -> str:
    message = error.strerror if isinstance(error, OSError) else None
    return (message or str(error)).lower()


MOST_YAML_BYTES = 1_000_000
"""Bytes of a file that somebody wrote by hand; one with more holds something else."""


def yaml_in(content: bytes, *, name: str) -> Any:
    """Return the plain values of a YAML file.

    Parameters
    ----------
    content
        YAML.
    name
        What the sentences of errors begin with.

    Raises
    ------
    FormatError
        If it is too large, has an alias or is no YAML.
    """
    if len(content) > MOST_YAML_BYTES:
        raise FormatError(
            f"{name} has {len(content):,} bytes; files like it have {MOST_YAML_BYTES:,} at most"
        )
    try:
        text = content.decode("utf-8-sig")
        # An alias may stand for something that grows without end, and nobody needs one here.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.SafeLoader)):
            raise FormatError(f"{name} has an alias (*); write its value out")
        return yaml.safe_load(text)
    except UnicodeDecodeError:
        raise FormatError(f"{name} is not UTF-8 text; save it as UTF-8") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise FormatError(f"{name} is not YAML: {' '.join(str(error).split())}") from None


_FORMULA = re.compile(r"\s*[=+\-@\t\r\n\uff0b\uff0d\uff1d\uff20]")
"""White space before a sign is skipped by some; the last four are wide forms that others take."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def csv_text(
    rows: Iterable[Iterable[object]], *, delimiter: str = ",", line_end: str = "\n"
) -> str:
    """Return rows as a table; texts that would be formulas are made plain."""
    lines: list[str] = []
    # Only what may end a line is quoted, and a cell may have either sign in it.
    writer = csv.writer(_Lines(lines.append), delimiter=delimiter, lineterminator="\r\n")
    writer.writerows(map(_plain, row) for row in rows)
    return "".join(f"{line[:-2]}{line_end}" for line in lines)


@dataclass(frozen=True)
class _Lines:
    """A file that takes lines."""

    write: Callable[[str], None]


def _plain(cell: object) -> object:
    """Return a cell as it is, or with an apostrophe."""
    if isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell
