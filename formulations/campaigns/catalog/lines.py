"""Plans of a catalog as JSON lines, to be carried elsewhere: a result of ``topoloom/1`` each."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import msgspec

from ccl.errors import CclError, FormatError
from ccl.serialization.topoloom import result_from_json, result_to_json, shaped
from formulations.campaigns.catalog.catalog import Catalog
from formulations.campaigns.catalog.tuner import Entry

FORMAT = "topoloom-catalog/1"

MOST_BYTES = 256_000_000
"""Of a line; a longer one is no plan of ours."""


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    format: Literal["topoloom-catalog/1"]
    version: str
    given: float | None
    result: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Read:
    """What reading lines has come to.

    Parameters
    ----------
    stored, known
        Plans that are new or better than those that were there, and others.
    refused
        Why lines were not taken, a sentence each.
    """

    stored: int
    known: int
    refused: tuple[str, ...]


def write_lines(catalog: Catalog, path: Path, entries: Iterable[Entry]) -> int:
    """Write plans, each verified once more; return how many.

    Raises
    ------
    FormatError
        If the file cannot be written.
    """
    many = 0
    try:
        with path.open("w", encoding="utf-8", newline="\n") as file:
            for entry in entries:
                result = catalog.load(entry)
                if result is None:
                    continue
                value = {
                    "format": FORMAT,
                    "version": entry.version,
                    "given": entry.given,
                    # Its last sentence is about the catalog that it comes from.
                    "result": result_to_json(result) | {"log": list(result.log[:-1])},
                }
                file.write(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")
                many += 1
    except OSError as error:
        raise FormatError(f"{path} cannot be written: {error.strerror}") from error
    return many


def read_lines(catalog: Catalog, path: Path) -> Read:
    """Keep the plans of a file, each verified and replayed first.

    A malformed line, or one whose plan does not verify, is reported and the others are stored.

    Raises
    ------
    FormatError
        If the file cannot be read.
    """
    stored, known, refused = 0, 0, []
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(_lines(file), start=1):
                try:
                    new = _keep(catalog, line)
                except CclError as error:
                    refused.append(f"{path.name}, line {number}: {error}")
                else:
                    stored, known = stored + new, known + (not new)
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is no text'}"
        ) from error
    return Read(stored, known, tuple(refused))


def _lines(file: IO[str]) -> Iterator[str]:
    while line := file.readline(MOST_BYTES):
        yield line


def _keep(catalog: Catalog, line: str) -> bool:
    try:
        value = msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise FormatError(f"it is no JSON: {error}") from error
    read = shaped(value, _Line, "line")
    result = result_from_json(read.result)
    return catalog.keep_all([result], time_limit=read.given, version=read.version) == 1
