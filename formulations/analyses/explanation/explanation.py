"""A formulation explained: its mathematics, and what it comes to on a problem before solving it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ccl.errors import CclError
from ccl.options import make_options
from ccl.problem import Problem
from ccl.result import ModelSize
from formulations.analyses.explanation.mathematics import markdown
from formulations.core.model_classes import Speed, speed_of
from formulations.core.registry import Formulation, formulation


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
