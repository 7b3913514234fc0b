"""Saving what a view shows: by the ending of a file's name, told options by name.

`save` knows no view; a view that can be saved is a `Saving`, which says what it holds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ccl.errors import FormatError
from ccl.formats import catalogue
from ccl.formats.documents import Document, document
from ccl.formats.format import Writer
from ccl.formats.text import write_bytes
from ccl.options import make_options, option_fields
from ccl.problem import Problem
from ccl.result import Result
from ccl.topology import Topology
from widgets.writers import WRITERS

Content = Topology | Problem | Result | Document
"""What can be saved."""

_OWN = {"json": "topoloom", "py": "python"}
"""Endings of formats that are no pictures."""


class Saving:
    """A view with `save` and `html`; its class says in `_held` what they write."""

    def _held(self) -> Content:
        """Return what is shown, with its positions."""
        raise NotImplementedError

    def save(self, path: str | Path, **options: Any) -> Path:
        """Write what is shown into a file, in the format of its ending; see `widgets.saving.save`.

        >>> player.save("step-3.svg", style="paper", epoch=3)  # doctest: +SKIP
        """
        return save(self._held(), path, **options)

    def html(self, **options: Any) -> str:
        """Return a page of its own that shows the same from disk; see `widgets.saving.html`."""
        return html(self._held(), **options)


def save(content: Content, path: str | Path, **options: Any) -> Path:
    """Write a cluster or a plan into a file, in the format of its ending.

    Parameters
    ----------
    content
        What is written; a document brings positions of its own.
    path
        Its ending is ``html``, ``svg``, ``png``, ``gif``, ``webm``, ``json`` or ``py``.
    **options
        Those of the format (`widgets.pictures.options`): ``style="paper"``, ``width=640`` pixels,
        ``time=12.5`` µs or ``epoch=3``.

    Returns
    -------
        Where it is.

    Raises
    ------
    FormatError
        If nothing is written with such an ending, or the format cannot say what is there.
    ProblemError
        If the format has no such option, or a value is out of range.
    """
    file = Path(path)
    writer = writer_for(file)
    write_bytes(file, written(content, writer, options))
    return file


def html(content: Content, **options: Any) -> str:
    """Return a page that shows a cluster and plays its plan, opened from disk; errors as `save`.

    Parameters
    ----------
    content
        As for `save`.
    **options
        Of the page: ``theme="light"``.
    """
    return written(content, writer_for(Path("page.html")), options).decode()


def written(content: Content, writer: Writer, options: dict[str, Any]) -> bytes:
    """Return what a writer makes of something, told options by name."""
    known = [row.name for row in option_fields(writer.options)]
    strange = next((name for name in options if name not in known), None)
    if strange is not None:
        msg = f"{writer.title} has no option {strange!r}; there are {', '.join(known) or 'none'}"
        raise FormatError(msg)
    found = content if isinstance(content, Document) else document(content)
    return writer.write(found, make_options(writer.options, options)).content


def writer_for(path: Path) -> Writer:
    """Return the writer for the ending of a file's name.

    Raises
    ------
    FormatError
        If there is none; it lists those that there are.
    """
    ending = path.suffix.lower().removeprefix(".")
    if ending in _OWN:
        return catalogue.writer(_OWN[ending])
    for each in WRITERS:
        if each.ending == ending:
            return each
    endings = ", ".join(f".{each}" for each in (*(one.ending for one in WRITERS), *_OWN))
    msg = f"{path} is in no format that is written here; end its name with one of {endings}"
    raise FormatError(msg)
