"""Saving what a view shows: by the ending of a file's name, told options by name.

`save` knows no view; a view that can be saved is a `Saving`, which says what it holds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ccl.errors import FormatError
from ccl.problem import Problem
from ccl.result import Result
from ccl.serialization.documents import Document, document
from ccl.serialization.text import write_bytes
from ccl.topology import Topology
from formulations.analyses.comparison import Comparison
from interchange.formats import catalogue
from interchange.formats.format import Writer
from interchange.formats.own.fragment import HOME, Share, link_of
from widgets.pages.comparison_files import comparison_file, told
from widgets.pages.writers import WRITERS

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
        """Write what is shown into a file, in the format of its ending; see `save`.

        >>> player.save("step-3.svg", style="paper", epoch=3)  # doctest: +SKIP
        """
        return save(self._held(), path, **options)

    def link(self, *, at: str = HOME) -> str:
        """Return a link that opens it in the designer; see `widgets.pages.saving.link`."""
        return link(self._held(), at=at)

    def html(self, **options: Any) -> str:
        """Return a page of its own that shows the same from disk; see `html`."""
        return html(self._held(), **options)


def save(content: Content | Comparison, path: str | Path, **options: Any) -> Path:
    """Write a cluster, a plan or a comparison into a file, in the format of its ending.

    Parameters
    ----------
    content
        What is written; a document brings positions of its own.
    path
        Its ending is ``html``, ``svg``, ``png``, ``gif``, ``webm``, ``json`` or ``py``; of a
        comparison one of the first three or ``json``.
    **options
        Those of the format (`widgets.pictures.options`): ``style="paper"``, ``width=640`` pixels or
        in print ``column=85`` mm and ``points=8``, ``time=12.5`` µs or ``epoch=3``; of a page
        ``theme="dark"``.

    Returns
    -------
        Where it is.

    Raises
    ------
    FormatError
        If nothing is written with such an ending, or the format cannot say what is there.
    ProblemError
        If a value of an option is out of range.
    """
    file = Path(path)
    write_bytes(file, _made(content, file, options))
    return file


def html(content: Content | Comparison, **options: Any) -> str:
    """Return a page that shows the same from disk; errors as `save`.

    Parameters
    ----------
    content
        As for `save`.
    **options
        Of the page: ``theme="light"``.
    """
    return _made(content, Path("page.html"), options).decode()


def link(content: Content, *, at: str = HOME) -> str:
    """Return a link that opens a cluster and what is asked of it in the designer.

    Parameters
    ----------
    content
        What is shared; a plan is left out.
    at
        Address of the designer.

    Raises
    ------
    TooLarge
        If no link holds it; a file does.
    """
    found = content if isinstance(content, Document) else document(content)
    return link_of(Share.of(found), at=at)


def _made(content: Content | Comparison, path: Path, options: dict[str, Any]) -> bytes:
    """Return the content of a file."""
    if isinstance(content, Comparison):
        return comparison_file(content, path.suffix.lower().removeprefix("."), options)
    writer = writer_for(path)
    found = content if isinstance(content, Document) else document(content)
    return writer.write(found, told(writer.options, options, writer.title)).content


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
