"""Every format that is written, by name: those of `interchange.formats`, pictures, pages.

Written from a document alone, for the command line and the screen.
"""

from __future__ import annotations

import difflib
import io
import zipfile
from collections.abc import Mapping
from functools import cache

from ccl.errors import FormatError
from ccl.options import typed
from ccl.serialization.conditions import Document, Kind
from interchange.formats import catalogue
from interchange.formats.format import Report, Writer, Written
from widgets.pages.writers import WRITERS

KINDS: tuple[Kind, ...] = ("topology", "problem", "plan", "result")


@cache
def writers() -> tuple[Writer, ...]:
    """Return all writers by name: those of formats, and pictures and pages."""
    return tuple(sorted((*catalogue.writers(), *WRITERS), key=lambda each: each.name))


def writer(name: str) -> Writer:
    """Return the writer called `name`.

    Raises
    ------
    FormatError
        If there is none.
    """
    found = {each.name: each for each in writers()}
    if name not in found:
        close = difflib.get_close_matches(name, found, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(close)}" if close else f"there are {', '.join(found)}"
        msg = f"no format called {name!r} is written; {hint}"
        raise FormatError(msg)
    return found[name]


def fitting(kind: Kind) -> tuple[Writer, ...]:
    """Return the writers that a document of a kind is enough for."""
    return tuple(each for each in writers() if KINDS.index(each.needs) <= KINDS.index(kind))


def write(content: Document, name: str, settings: Mapping[str, str]) -> Written:
    """Write a document in a format, told options as typed.

    Raises
    ------
    CclError
        If there is no such format or option, or it cannot say what the document holds.
    """
    found = writer(name)
    if KINDS.index(found.needs) > KINDS.index(content.kind):
        what = {"problem": "a problem or a plan", "plan": "a plan", "result": "a result"}
        msg = (
            f"a {content.kind} document is not enough for {found.title}, which needs "
            f"{what[found.needs]}; solve it first"
        )
        raise FormatError(msg)
    return found.write(content, typed(found.options, settings))


def zipped(written: Written) -> bytes:
    """Return several files as one archive."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, each in written.files.items():
            archive.writestr(zipfile.ZipInfo(name), each)
    return content.getvalue()


def sentences(report: Report) -> list[str]:
    """Return a report as sentences that say which kind each is."""
    return [
        *(f"taken: {each}" for each in report.taken),
        *(f"assumed: {each}" for each in report.assumed),
        *(f"left out: {each}" for each in report.left_out),
    ]
