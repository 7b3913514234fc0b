"""XML read without trust: no entities, nothing fetched, and size, depth and number bounded.

The parser is defusedxml's, which refuses declarations of entities and references to anything
outside the text; a document type alone is let through, since hwloc writes one. What is kept is a
tree of plain elements that know their lines.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from ccl.errors import FormatError

MOST_BYTES = 64 * 2**20
MOST_ELEMENTS = 2_000_000
MOST_DEPTH = 64

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}
_TEXT = str.maketrans(_ESCAPES)
_ATTRIBUTE = str.maketrans({**_ESCAPES, '"': "&quot;", "\n": "&#10;", "\t": "&#9;"})
NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Signs that no XML may contain, by its definition (section 2.2)."""


@dataclass(slots=True)
class Element:
    """An element: its name, attributes, children, line and the text that is directly in it.

    White space beside children is dropped. As no entity is expanded, all `content` together is
    never longer than the file.
    """

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Element] = field(default_factory=list)
    line: int = 0
    content: str = ""

    def each(self, *tags: str) -> Iterator[Element]:
        """Yield the children with one of some names."""
        return (child for child in self.children if child.tag in tags)

    def everywhere(self, *tags: str) -> Iterator[Element]:
        """Yield this element and those below it that have one of some names, in order."""
        if self.tag in tags:
            yield self
        for child in self.children:
            yield from child.everywhere(*tags)

    def text(self, name: str, default: str | None = None) -> str:
        """Return an attribute.

        Raises
        ------
        FormatError
            If it is not there and has no default.
        """
        found = self.attributes.get(name, default)
        if found is None:
            raise FormatError(f"line {self.line}: <{self.tag}> has no {name}; add it")
        return found

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an attribute that is a whole number, decimal or with 0x hexadecimal.

        Raises
        ------
        FormatError
            If it is malformed, or is not there and has no default.
        """
        word = self.text(name, None if default is None else str(default))
        try:
            number = int(word.strip(), 16 if word.strip().lower().startswith("0x") else 10)
        except ValueError:
            raise FormatError(self._wrong(name, word, "a whole number")) from None
        if abs(number) > 2**63:
            raise FormatError(self._wrong(name, word, "a number below 2^63"))
        return number

    def number(self, name: str, default: float | None = None) -> float:
        """Return an attribute that is a finite number; errors as `integer`."""
        word = self.text(name, None if default is None else repr(default))
        try:
            number = float(word)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise FormatError(self._wrong(name, word, "a finite number"))
        return number

    def _wrong(self, name: str, word: str, wanted: str) -> str:
        shown = word if len(word) <= 40 else word[:37] + "..."
        return f'line {self.line}: <{self.tag} {name}="{shown}"> is not {wanted}'


def parse_xml(
    content: bytes, *, most_bytes: int = MOST_BYTES, most_elements: int = MOST_ELEMENTS
) -> Element:
    """Return the root of a text.

    Raises
    ------
    FormatError
        If it is not XML, declares entities, or is too large or nested too deep.
    """
    if len(content) > most_bytes:
        raise FormatError(f"it has {len(content):,} bytes; XML is read up to {most_bytes:,} bytes")
    builder = _Builder(most_elements)
    parser = DefusedXMLParser(target=builder, forbid_dtd=False, forbid_entities=True)
    builder.parser = parser.parser
    try:
        parser.feed(content)
        parser.close()
    except ParseError as error:
        line, column = error.position
        raise FormatError(
            f"line {line}, column {column + 1}: it is not XML ({str(error).partition(':')[0]})"
        ) from None
    except DefusedXmlException:
        raise FormatError(
            "it declares entities or asks for other files; take its <!DOCTYPE ...> out"
        ) from None
    except (ValueError, LookupError) as error:  # an encoding that is unknown or wrong
        raise FormatError(f"it is not XML text ({error}); save it as UTF-8") from None
    if builder.root is None:
        raise FormatError("it is not XML, because it has no element")
    return builder.root


def begins_with(content: bytes, *tags: str) -> bool:
    """Say whether a text looks like XML whose first element has one of some names."""
    head = content[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()
    while head.startswith((b"<?", b"<!")):
        stop = b"-->" if head.startswith(b"<!--") else b">"
        _, found, head = head.partition(stop)
        if not found:
            return False
        head = head.lstrip()
    for tag in tags:
        start = b"<" + tag.encode()
        if head.startswith(start) and head[len(start) : len(start) + 1] in b" \t\r\n/>":
            return True
    return False


def xml_text(root: Element) -> str:
    """Return an element as the text of a file, two spaces for each level.

    The content of an element that has children is not written.

    Raises
    ------
    FormatError
        If a text has a sign that XML cannot hold, such as a control sign.
    """
    lines: list[str] = []
    _write(root, "", lines)
    text = "\n".join(lines) + "\n"
    wrong = NO_XML.search(text)
    if wrong is not None:
        near = text[max(0, wrong.start() - 20) : wrong.end() + 20]
        raise FormatError(
            f"XML cannot hold the sign U+{ord(wrong[0]):04X} of {near!r}; change the name"
        )
    return text


def _write(element: Element, indent: str, lines: list[str]) -> None:
    words = [
        element.tag,
        *(f'{key}="{value.translate(_ATTRIBUTE)}"' for key, value in element.attributes.items()),
    ]
    if not element.children:
        text = element.content.translate(_TEXT)
        end = f">{text}</{element.tag}>" if text else "/>"
        lines.append(f"{indent}<{' '.join(words)}{end}")
        return
    lines.append(f"{indent}<{' '.join(words)}>")
    for child in element.children:
        _write(child, indent + "  ", lines)
    lines.append(f"{indent}</{element.tag}>")


class _Builder:
    """Builds the tree for the parser, and stops it where it is too much."""

    def __init__(self, most_elements: int) -> None:
        self.left = most_elements
        self.most = most_elements
        self.open: list[Element] = []
        self.root: Element | None = None
        self.texts: list[list[str]] = []
        self.parser: Any = None

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        line = self.parser.CurrentLineNumber
        self.left -= 1
        if self.left < 0:
            raise FormatError(
                f"line {line}: it has more than {self.most:,} elements; that is too many"
            )
        if len(self.open) >= MOST_DEPTH:
            raise FormatError(
                f"line {line}: it is nested more than {MOST_DEPTH} deep; that is too deep"
            )
        made = Element(tag, dict(attributes), [], line)
        if self.open:
            self.open[-1].children.append(made)
        elif self.root is None:
            self.root = made
        self.open.append(made)
        self.texts.append([])

    def end(self, _tag: str) -> None:
        done = self.open.pop()
        text = "".join(self.texts.pop())
        if text and not (done.children and text.isspace()):
            done.content = text

    def data(self, text: str) -> None:
        self.texts[-1].append(text)

    def close(self) -> None:
        """Leave the tree as it is."""
