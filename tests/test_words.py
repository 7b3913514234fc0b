"""Public names are the field's terms: words of our own that were replaced do not come back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.test_house import MODULES, ROOT

FIELD_TERMS = {
    "anatomy": "estimate, model size",
    "asked": "request",
    "closer": "client",
    "failing": "failures",
    "holdings": "catalog view",
    "kept": "store",
    "laying": "tree embedding",
    "losing": "failures",
    "loss": "failure",
    "lagging": "stragglers",
    "merits": "weighted objectives",
    "mirror": "reverse time",
    "peel": "arborescence extraction",
    "phrases": "templates",
    "puts": "one-sided",
    "puzzle": "instance",
    "restarts": "multistart",
    "sale": "offers, capacity expansion",
    "shown": "view model",
    "stretches": "interval overlay",
    "tell": "report",
    "told": "described",
    "walls": "resource limits",
    "watches": "job registry",
    "way": "path, route",
    "ways": "paths, routes",
    "wish": "demand, request",
}
"""Word of before -> what it is called."""


def public_names(path: Path) -> Iterator[str]:
    """Yield the name of a module and of what stands in it for others, methods among them."""
    yield path.stem if path.stem != "__init__" else path.parent.name
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from (each.name for each in node.body if isinstance(each, ast.FunctionDef))
        if isinstance(node, ast.Assign):
            yield from (each.id for each in node.targets if isinstance(each, ast.Name))


def words(name: str) -> set[str]:
    """Return the words of a name in small letters; one-way and both ways are plain English."""
    plain = re.sub(r"(?i)(one|both)_ways?", "", name)
    return {each.lower() for each in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", plain)}


def test_no_public_name_has_a_word_that_the_field_does_not_use():
    found = [
        f"{path.relative_to(ROOT)}: {name} ({word} is {FIELD_TERMS[word]})"
        for path in MODULES
        for name in public_names(path)
        if not name.startswith("_")
        for word in sorted(words(name) & FIELD_TERMS.keys())
    ]

    assert found == []
