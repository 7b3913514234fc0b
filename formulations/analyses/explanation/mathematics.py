"""The docstring of a formulation as Markdown: paragraphs, lists, formulas set apart.

The convention of these docstrings: lines that are indented by four or more, beyond the text of
the list item in which they lie, are formulas whose columns mean something; lists begin with ``*``
or ``1.``; a few words and a colon at the beginning of a paragraph say what it is about, and so
does a short line without a full stop that stands alone; names in backticks, variables with their
indices and what stands between two spaces on either side are code. All else is text, in which
nothing may be taken for markup.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_ITEM = re.compile(r"(\*|\d+\.) +(?=\S)")
_LABEL = re.compile(
    r"(?:[A-Z][\w'*-]*(?: (?!is |are |become )[\w'()*-]+){0,4}:"
    r"|(?:Decisions?|Rate|Trees|Trees packed|Few trees|Switches)\.) "
)
_AGAIN = re.compile(r"(?:Source|Decisions?|Master|Variables|Constants|Solution):? ")
"""What begins a paragraph of its own even where no empty line is before it."""
_CODE = re.compile(
    r"\*\*(?P<strong>[^*]+)\*\*|(?<!\S)\*(?P<stressed>[\w-]+)\*|``(?P<double>[^`]+)``|`(?P<single>[^`]+)`|(?P<indexed>\b[A-Za-z]\w*\[[^\[\]]*\])"
    r"|(?<=  )(?P<formula>\S(?:(?!(?!floor)[a-z]{4})\S| (?! ))*?)(?P<after>[.,;:]?)(?=  |$)"
)
_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~$])")
_FORMULA = 4
_LONE = 40
"""Characters of a line that may be a heading."""


@dataclass
class _Block:
    """Lines that belong together, and the column in which their text begins."""

    kind: str
    column: int
    mark: str = ""
    lines: list[str] = field(default_factory=list)


def markdown(words: str) -> str:
    """Return a docstring as Markdown."""
    shown = [_shown(each) for each in _blocks(words)]
    return "\n\n".join(shown) + "\n"


def lead(words: str) -> str:
    """Return what a docstring says first, as one line of plain text."""
    return " ".join(_blocks(words)[0].lines).replace("``", "").replace("`", "")


def _blocks(words: str) -> list[_Block]:
    """Part a docstring into texts, list items and formulas."""
    found: list[_Block] = []
    column, fresh = 0, True
    for line in words.strip("\n").split("\n"):
        if not line.strip():
            fresh = True
            continue
        indent = len(line) - len(line.lstrip())
        item = _ITEM.match(line.lstrip())
        if item and indent < _FORMULA and (fresh or column):
            column = indent + len(item[0])
            found.append(_Block("item", indent, item[1], [line[column:]]))
        elif indent >= column + _FORMULA:
            _add_formula(found, line, column=column, fresh=fresh)
        else:
            column = column if indent >= column else 0
            new = fresh or found[-1].kind == "formula" or bool(_AGAIN.match(line))
            if new:
                found.append(_Block("text", column))
            found[-1].lines.append(line.strip())
        fresh = False
    return found


def _add_formula(found: list[_Block], line: str, *, column: int, fresh: bool) -> None:
    """Add a line to the formula before it, over an empty line too."""
    if not found or found[-1].kind != "formula":
        found.append(_Block("formula", column))
    elif fresh:
        found[-1].lines.append("")
    found[-1].lines.append(line)


def _shown(block: _Block) -> str:
    if block.kind == "formula":
        return _fenced(block.lines, " " * block.column)
    # Two spaces set formulas in a text apart, so those at the ends of lines are kept.
    said = " ".join(block.lines)
    inner = " " * (block.column + len(block.mark) + 1) if block.mark else " " * block.column
    label = _LABEL.match(said)
    if len(block.lines) == 1 and len(said) <= _LONE and not block.mark and said[-1].isalnum():
        return f"#### {_inline(said)}"
    text = _inline(said)
    if label:
        text = f"**{_inline(label[0].strip())}** {_inline(said[len(label[0]) :])}"
    return f"{block.mark} {text}" if block.mark else inner + text


def _fenced(lines: list[str], before: str) -> str:
    least = min(len(line) - len(line.lstrip()) for line in lines if line)
    body = [before + _signs(line[least:]) if line else "" for line in lines]
    # Named, lest a page colours it as the language that it takes it for.
    return "\n".join([f"{before}```text", *body, f"{before}```"])


def _signs(line: str) -> str:
    """Write ≤ and ≥, and keep what follows in its column."""
    for plain, sign in (("<=", "≤"), (">=", "≥")):
        while plain in line:
            head, tail = line.split(plain, 1)
            gap = re.search(r" {3,}", tail)
            tail = tail if gap is None else tail[: gap.start()] + " " + tail[gap.start() :]
            line = head + sign + tail
    return line


def _inline(said: str) -> str:
    """Return a text with its names as code and everything else as it is written."""
    parts: list[str] = []
    last = 0
    for match in _CODE.finditer(said):
        parts += [_escaped(said[last : match.start()]), _set_apart(match)]
        last = match.end()
    return re.sub(r" {2,}", " ", "".join([*parts, _escaped(said[last:])]))


def _set_apart(match: re.Match[str]) -> str:
    """Return a name or a formula as code, and stressed words stressed."""
    if match["strong"] or match["stressed"]:
        return f"**{match['strong']}**" if match["strong"] else f"*{match['stressed']}*"
    code = match["double"] or match["single"] or match["indexed"] or match["formula"]
    return f"`{_signs(code)}`" + (match["after"] or "")


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", _signs(text))
