"""All formats: found in the rooms beside this module, and the right reader for a file."""

import pkgutil
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import TypeVar

from ccl.errors import FormatError
from ccl.serialization.text import read_bytes
from interchange.formats.format import Imported, Reader, Request, Writer

Format = TypeVar("Format", Reader, Writer)

ROOMS = ("machines", "synthesizers", "simulators", "graphs", "runtimes", "own")


@cache
def readers() -> tuple[Reader, ...]:
    """Return all readers, by name."""
    found = [each for module in _modules() for each in _of(module, "READER")]
    return tuple(sorted(found, key=lambda each: each.name))


@cache
def writers() -> tuple[Writer, ...]:
    """Return all writers, by name."""
    found = [each for module in _modules() for each in _of(module, "WRITER")]
    return tuple(sorted(found, key=lambda each: each.name))


def reader(name: str) -> Reader:
    """Return the reader called `name`.

    Raises
    ------
    FormatError
        If there is none.
    """
    return _called(name, readers(), "read")


def writer(name: str) -> Writer:
    """Return the writer called `name`; errors as `reader`."""
    return _called(name, writers(), "written")


def _called(name: str, those: tuple[Format, ...], done: str) -> Format:
    for each in those:
        if each.name == name:
            return each
    known = ", ".join(each.name for each in those)
    raise FormatError(f"no format called {name!r} is {done}; there are {known}")


def read_file(
    path: str, *, request: Request | None = None, format_name: str | None = None
) -> Imported:
    """Read a file of any format.

    Parameters
    ----------
    path
        Of the file.
    request
        What is known beside it; its name is the path.
    format_name
        Name of the reader, or None to recognise it from the content.

    Raises
    ------
    Question
        If only the user knows what is right.
    FormatError
        If it cannot be read, or is of no format that is known.
    ProblemError
        If it has the shape of its format and means nothing.
    """
    beside = replace(request or Request(), name=path)
    return read_content(read_bytes(path), beside, format_name=format_name)


def read_content(content: bytes, request: Request, *, format_name: str | None = None) -> Imported:
    """Read content; errors as `read_file`."""
    if format_name is not None:
        return reader(format_name).read(content, request)
    fitting = recognised(content)
    if fitting is None:
        titles = ", ".join(each.title for each in readers())
        raise FormatError(f"{request.name} is of no format that is read here; there are {titles}")
    return fitting.read(content, request)


def recognised(content: bytes) -> Reader | None:
    """Return the first reader that recognises content as its own."""
    return next((each for each in readers() if each.recognises(content)), None)


def _modules() -> list[object]:
    found: list[object] = []
    for room in ROOMS:
        package = import_module(f"interchange.formats.{room}")
        found += [
            import_module(f"{package.__name__}.{each.name}")
            for each in pkgutil.iter_modules(package.__path__)
        ]
    return found


def _of(module: object, what: str) -> list:  # type: ignore[type-arg]
    """Return what a module calls READER and READERS, or WRITER and WRITERS."""
    one = getattr(module, what, None)
    return [*([] if one is None else [one]), *getattr(module, f"{what}S", ())]
