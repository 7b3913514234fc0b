"""Documents of ``topoloom/1`` as files, and in links: ``http://127.0.0.1:8050/#t=...``.

A link has a cluster and its question as its fragment. Browsers keep fragments to themselves, so
that a link shows nothing to whoever carries it. The text is a document without a plan, beside how
it is to be solved, as JSON, compressed by zlib (RFC 1950) in the alphabet for addresses of base 64
(RFC 4648, section 5). What is read is bounded twice: by the length of the text, and by what it
unpacks to before all of it is unpacked.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from msgspec import Meta, Struct

from ccl.errors import FormatError, ProblemError
from ccl.result import Stop
from ccl.serialization import documents
from ccl.serialization.documents import Document, document_from_json, document_to_json
from ccl.serialization.text import decode_json
from interchange.formats import format as formats
from interchange.formats.format import Imported, Reader, Report, Request, Writer, Written, one_file

HOME = "http://127.0.0.1:8050/"
"""Where ``topoloom design`` serves the designer unless told otherwise."""

NAME = "the link"
"""With which errors begin where it has no other name."""

MOST_LETTERS = 20_000
"""Of a fragment; longer links are cut by what they pass through."""

MOST_BYTES = 1_000_000
"""That a fragment unpacks to."""

_FORMAT = re.compile(rb'"format"\s*:\s*"topoloom/')
_ADDRESS = re.compile(rb"\s*(?:https?:/{1,2}[!-~]{0,2000})?#t=[\w-]")
_ALPHABET = re.compile(r"[A-Za-z0-9_-]+")
_BEGIN = "#t="
_VIEW = re.compile(r"&view=[\w-]+$")
"""Which view of the designer was open, where the link is from the address bar."""


class Solving(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a problem is to be solved, as `formulations.solve` takes it.

    Parameters
    ----------
    formulation
        Its name.
    options
        Of the formulation, as plain JSON values; a sketch is among them.
    time_limit
        Seconds, or None.
    gap
        To the bound that is good enough, as a share, or None.
    """

    formulation: Annotated[str, Meta(min_length=1, max_length=100)]
    options: Annotated[Mapping[str, Any], Meta(max_length=100)] = {}
    time_limit: Annotated[float, Meta(gt=0)] | None = None
    gap: Annotated[float, Meta(ge=0)] | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """What is said, by the names of `formulations.solve`."""
        told = {name: value for name, value in self.options.items() if value is not None}
        limits = {"time_limit": self.time_limit, "gap": self.gap}
        return {
            "formulation": self.formulation,
            **({"options": told} if told else {}),
            **{name: value for name, value in limits.items() if value is not None},
        }

    def __str__(self) -> str:
        told = [self.formulation]
        told += [f"{name}={value}" for name, value in self.options.items() if value is not None]
        told += [f"{self.time_limit:g} s"] if self.time_limit is not None else []
        told += [f"a gap of {self.gap:.3g}"] if self.gap is not None else []
        return ", ".join(told)


@dataclass(frozen=True)
class Share:
    """What a link carries.

    Parameters
    ----------
    document
        A topology or a problem with its drawing.
    solving
        How it is to be solved, or None where nobody has said.
    """

    document: Document
    solving: Solving | None = None

    @classmethod
    def of(cls, content: Document) -> Share:
        """Return what a link carries of a document: of a result also how it was solved."""
        result = content.result
        if result is None or result.stop is Stop.READ:  # no formulation found what was read
            return cls(content)
        return cls(content, Solving(formulation=result.formulation, options=result.options))


class TooLarge(FormatError):
    """A cluster that no link holds; a file does."""


class ShareJson(Struct, forbid_unknown_fields=True):
    """What is compressed."""

    document: dict[str, Any]
    solving: Solving | None = None


def link_of(share: Share, *, at: str = HOME) -> str:
    """Return the link that opens a cluster in the designer at an address.

    Raises
    ------
    TooLarge
        If it is longer than `MOST_LETTERS`.
    """
    return f"{at.partition('#')[0]}{_BEGIN}{fragment_of(share)}"


def fragment_of(share: Share) -> str:
    """Return what stands behind ``#t=``; a plan is left out.

    Raises
    ------
    TooLarge
        If it is longer than `MOST_LETTERS`, or unpacks to more than `MOST_BYTES`.
    """
    kept = replace(share.document, plan=None, result=None)
    value: dict[str, Any] = {"document": document_to_json(kept)}
    if share.solving is not None:
        value["solving"] = share.solving.arguments
    # In ASCII, since a name may hold half a sign, which UTF-8 has not.
    plain = json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    packed = base64.urlsafe_b64encode(zlib.compress(plain, 9)).rstrip(b"=").decode()
    if len(packed) > MOST_LETTERS or len(plain) > MOST_BYTES:
        topology = kept.topology
        raise TooLarge(
            f"{topology} has {len(topology.links):,} links and needs a link of {len(packed):,} "
            f"letters, and those up to {MOST_LETTERS:,} are passed on whole; share it as a file"
        )
    return packed


def is_link(text: str) -> bool:
    """Say whether a text is a link, or the fragment of one with its ``#t=``."""
    return bool(_ADDRESS.match(text[:4000].encode(errors="replace")))


def share_of(link: str, *, name: str = NAME) -> Share:
    """Read a link, its fragment, or what stands behind ``#t=``.

    Raises
    ------
    FormatError
        If it was cut or changed on its way, or is too large, or not of this shape.
    ProblemError
        If it has the shape and what it holds means nothing.
    """
    try:
        return _share(_plain(link))
    except (FormatError, ProblemError) as error:
        raise type(error)(f"{name}: {error}") from None


def _plain(link: str) -> bytes:
    """Return what a link holds, unpacked no further than it may be."""
    # No letter of the rest is an equals sign.
    text = _VIEW.sub("", link.strip()).rpartition("t=")[2]
    if len(text) > MOST_LETTERS:
        raise FormatError(f"it has {len(text):,} letters, and {MOST_LETTERS:,} at most are read")
    if not _ALPHABET.fullmatch(text):
        wrong = next((each for each in text if not _ALPHABET.fullmatch(each)), "")
        has = f"has {wrong!r} in it, which no link has" if wrong else "holds nothing"
        raise FormatError(f"it {has}; copy it again, whole")
    unpacking = zlib.decompressobj()
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        plain = unpacking.decompress(packed, MOST_BYTES + 1)
    except (binascii.Error, zlib.error):
        raise FormatError("it was cut or changed on its way; copy it again, whole") from None
    if len(plain) > MOST_BYTES:
        raise FormatError(
            f"it unpacks to more than {MOST_BYTES:,} bytes, which no link does; share a file"
        )
    if not unpacking.eof or unpacking.unused_data:
        raise FormatError("it was cut or changed on its way; copy it again, whole")
    return plain


def _share(plain: bytes) -> Share:
    shape = decode_json(plain, ShareJson)
    found = document_from_json(shape.document)
    if found.plan is not None:
        raise FormatError(
            f"it holds a {found.kind}, and a link holds a topology or a problem; share a file"
        )
    return Share(found, shape.solving)


def recognises(content: bytes) -> bool:
    """Say whether a file holds a link and nothing before it."""
    return bool(_ADDRESS.match(content[:4000]))


def read(content: bytes, request: Request) -> Imported:
    """Read a link that was saved as a file."""
    if len(content) > 2 * MOST_LETTERS:
        raise FormatError(f"it has {len(content):,} bytes, and no link has that many")
    share = share_of(content.decode(errors="replace"), name=request.name)
    found = share.document
    told = f"{found.kind} of a link: {found.topology}, {len(found.topology.links):,} links"
    left = () if share.solving is None else (f"how it is solved: {share.solving}",)
    return Imported(found, Report(taken=(told,), left_out=left))


def write(content: Document) -> Written:
    """Write the link alone, for a message or a page."""
    lost = ("the plan; it is solved again",) if content.plan is not None else ()
    return one_file(link_of(Share.of(content)) + "\n", ending="txt", lost=lost)


def _names_format(content: bytes) -> bool:
    """Say whether a text names our format near its beginning."""
    return content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and bool(
        _FORMAT.search(content[:4096])
    )


def _read_document(content: bytes, request: Request) -> Imported:
    """Read a document; nothing is assumed and nothing left out."""
    found = documents.parse_document(content, name=request.name)
    topology = found.topology
    told = f"a {found.kind} document: {len(topology.devices)} devices, {len(topology.links)} links"
    return Imported(found, Report(taken=(told,)))


def _write_document(content: Document) -> Written:
    """Write all that a document holds."""
    return one_file(documents.document_text(content), ending="json")


def _write_schedule(content: Document) -> Written:
    """Write the plan with its problem, without the bounds and the log of a result."""
    problem, plan, _ = formats.replayed(content)
    lost = ("bounds, log and options of the result",) if content.result is not None else ()
    text = documents.document_text(
        documents.document(
            problem, plan=plan, positions=content.positions, annotations=content.annotations
        )
    )
    return one_file(text, ending="json", lost=lost)


READERS = (
    Reader("topoloom", "Topoloom document", ("json",), _names_format, _read_document),
    Reader("link", "Topoloom link", ("txt", "url"), recognises, read),
)
WRITERS = (
    Writer("topoloom", "Topoloom document", "json", "topology", _write_document, annotated=True),
    Writer("schedule", "Topoloom plan, alone", "json", "plan", _write_schedule, annotated=True),
    Writer("link", "Topoloom link", "txt", "topology", write, annotated=True),
)
