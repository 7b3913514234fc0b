"""A formulation explained: its mathematics, and what it comes to on a problem before solving it.

The docstring of a formulation as Markdown: paragraphs, lists, formulas set apart.

The convention of these docstrings: lines that are indented by four or more, beyond the text of
the list item in which they lie, are formulas whose columns mean something; lists begin with ``*``
or ``1.``; a few words and a colon at the beginning of a paragraph say what it is about, and so
does a short line without a full stop that stands alone; names in backticks, variables with their
indices and what stands between two spaces on either side are code. All else is text, in which
nothing may be taken for markup.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ccl.errors import CclError
from ccl.options import make_options
from ccl.problem import Problem
from ccl.result import ModelSize
from formulations.core.registry import Formulation, Speed, formulation, speed_of

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


@dataclass(frozen=True)
class Rows:
    """A group of constraints.

    Parameters
    ----------
    name
        As the model calls it.
    words
        What each of them says.
    many
        Rows on the problem, or None where nobody knows.
    """

    name: str
    words: str
    many: int | None = None


@dataclass(frozen=True)
class Explanation:
    """What a formulation says.

    Parameters
    ----------
    name, title, reference
        As in `formulations.available`.
    collectives
        Kinds that it takes.
    mathematics
        Markdown: sets, variables, constraints, objective, and where they are from.
    problem
        What it was asked about, or None.
    refusal
        Why it does not take the problem, in words, or None.
    size
        Of the model before it is built; None where there is no model or nobody knows, which `note`
        says.
    speed
        How long such a model takes, in words; None where there is no size.
    groups
        The constraints by what they say; `many` of them add up to the size's constraints.
    note
        Which of several models `size` is about, what was assumed, or why there is none.
    """

    name: str
    title: str
    reference: str
    collectives: tuple[str, ...]
    mathematics: str
    problem: Problem | None = None
    refusal: str | None = None
    size: ModelSize | None = None
    speed: Speed | None = None
    groups: tuple[Rows, ...] = ()
    note: str = ""

    def __str__(self) -> str:
        """Return the facts in lines, then the mathematics."""
        lines = [f"{self.title} ({self.name})", self.reference]
        lines.append(f"solves {', '.join(self.collectives)}")
        if self.problem is not None:
            lines += ["", *self.facts]
        return "\n".join([*lines, "", self.mathematics])

    @property
    def facts(self) -> list[str]:
        """What it comes to on the problem, in sentences."""
        if self.problem is None:
            return []
        if self.refusal is not None:
            return [f"it cannot take this: {self.refusal}"]
        if self.size is None:
            return [self.note]
        size = self.size
        told = [size_words(size)]
        told += [f"takes {self.speed.words}"] if self.speed is not None else []
        told += [self.note] if self.note else []
        return told + [
            f"{each.many:,} x {each.name}: {each.words}" for each in self.groups if each.many
        ]

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Return the rich display of a notebook: Markdown, with the facts first."""
        return {"text/plain": str(self), "text/markdown": self.markdown}

    @property
    def markdown(self) -> str:
        """All of it as Markdown."""
        parts = [f"### {self.title}", self.reference]
        facts = self.facts
        if facts:
            many = sum(bool(each.many) for each in self.groups) if self.size else 0
            parts += ["\n".join(f"- {each}" for each in facts[: len(facts) - many])]
        if self.size is not None and self.groups:
            rows = [f"| {e.name} | {e.words} | {e.many:,} |" for e in self.groups if e.many]
            parts.append("\n".join(["| constraints | each says | rows |", "|---|---|--:|", *rows]))
        return "\n\n".join([*parts, self.mathematics])


def size_words(size: ModelSize) -> str:
    """Tell a size and the memory that it is estimated to take."""
    return (
        f"{size.variables:,} variables, {size.constraints:,} constraints, "
        f"{size.nonzeros:,} nonzeros, about {size.memory / 1e6:,.3g} MB of memory"
    )


def explain(
    name: str, problem: Problem | None = None, *, options: Mapping[str, Any] | None = None
) -> Explanation:
    """Explain a formulation, and what it comes to on a problem without solving it.

    Parameters
    ----------
    name
        One of `formulations.available`.
    problem
        What it would be asked, or None.
    options
        Its options by name.

    Raises
    ------
    ProblemError
        If there is no such formulation, or an option is wrong.
    """
    found = formulation(name)
    made = make_options(found.options, options or {})
    refusal = None if problem is None else found.why_not(problem)
    anatomy, note = None, ""
    if problem is not None and refusal is None:
        anatomy, note = _counted(found, problem, made)
    counts = {} if anatomy is None else anatomy.rows
    size = None if anatomy is None else anatomy.size
    return Explanation(
        name=found.name,
        title=found.title,
        reference=found.reference,
        collectives=tuple(sorted(found.collectives)),
        mathematics=markdown(found.mathematics),
        problem=problem,
        refusal=refusal,
        size=size,
        speed=None if size is None else speed_of(found.model, size),
        groups=tuple(
            Rows(each, words, None if anatomy is None else counts.get(each, 0))
            for each, words in found.groups.items()
        ),
        note=note,
    )


def _counted(found: Formulation, problem: Problem, options: Any) -> tuple[Any, str]:
    """Return the anatomy of a model, if there is one that can be counted, and what to say of it."""
    if found.anatomy is None:
        return None, NONE[found.model]
    try:
        anatomy = found.anatomy(problem, options)
    except CclError as error:
        return None, str(error)
    if anatomy is None:
        return None, "nothing has to be chosen here, so no model is built"
    return anatomy, anatomy.note


NONE: dict[str, str] = {
    "none": "it constructs its plan, and there is no model to solve",
    "several": "it tries several formulations, some of which build no model",
    "lp": "it has a linear program, whose size nobody knows before it is built",
    "milp": "it has an integer program, whose size nobody knows before it is built",
    "columns": "it has a linear program that grows while it is solved",
    "cp": "it has a constraint program, whose size only its solver knows",
}
"""What is said where no size is known, by the kind of model."""
