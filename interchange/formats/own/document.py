"""Documents of format ``topoloom/1`` as one of the formats."""

import re

from ccl.serialization.conditions import Document, document, document_text, parse_document
from interchange.formats.format import (
    Imported,
    Reader,
    Report,
    Request,
    Writer,
    Written,
    one_file,
    replayed,
)

_NAMED = re.compile(rb'"format"\s*:\s*"topoloom/')


def recognises(content: bytes) -> bool:
    """Say whether a text names our format near its beginning."""
    return content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and bool(
        _NAMED.search(content[:4096])
    )


def read(content: bytes, request: Request) -> Imported:
    """Read a document; nothing is assumed and nothing left out."""
    found = parse_document(content, name=request.name)
    topology = found.topology
    told = f"a {found.kind} document: {len(topology.devices)} devices, {len(topology.links)} links"
    return Imported(found, Report(taken=(told,)))


def write(content: Document) -> Written:
    """Write all that a document holds."""
    return one_file(document_text(content), ending="json")


def write_schedule(content: Document) -> Written:
    """Write the plan with its problem, without the bounds and the log of a result."""
    problem, plan, _ = replayed(content)
    lost = ("bounds, log and options of the result",) if content.result is not None else ()
    text = document_text(document(problem, plan=plan, positions=content.positions))
    return one_file(text, ending="json", lost=lost)


READER = Reader("topoloom", "Topoloom document", ("json",), recognises, read)

WRITERS = (
    Writer("topoloom", "Topoloom document", "json", "topology", write),
    Writer("schedule", "Topoloom plan, alone", "json", "plan", write_schedule),
)
