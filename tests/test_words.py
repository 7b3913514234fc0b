"""Public names are the field's terms: words of our own that were replaced do not come back."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from functools import cache
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
    "room": "capacity, residual",
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
    "wishes": "demands, requests",
}
"""Word of before -> what it is called."""

CLEAN = ("ccl", "designer", "formulations", "gallery", "interchange", "widgets")
"""Packages whose fields, parameters and texts are held to the words as well."""

STAYS = {
    "ccl.explain.difference.Delivery.way": "JSON of `topoloom explain --json`",
    "designer.cli.failures.failures.losing": "flag --losing",
    "designer.cli.failures.stragglers.lagging": "flag --lagging",
    "designer.server.questions.Overlays.ways": "paths that a browser has stored",
    "designer.server.questions.StoredResult.asked": "results that a browser has stored",
    "formulations.analyses.failures.study.failures.losing": "flag --losing",
    "formulations.analyses.failures.study.Study.__init__.losing": "flag --losing",
    "formulations.analyses.failures.study.stragglers.lagging": "flag --lagging",
    "formulations.analyses.failures.study.LagStudy.__init__.lagging": "flag --lagging",
    "formulations.campaigns.catalog.tuner.Entry.kept": "column of the catalog",
}
"""Field or parameter -> what users have that names it."""

TEXTS_STAY = {'designer/shell/ids.py: "ways"': "paths that a browser has stored"}
"""Module and text -> what users have that it names."""

PHRASES = {
    r"\b(is|are|was|were|be|been) told\b": "report, describe",
    r"\btells?\b.*\bapart\b": "distinguish",
    r"\b(is|are|was|were|be|been) asked\b": "request, solve, call",
    r"\basked for\b": "requested",
    r"(?<!both )\bways\b": "paths, directions, methods",
    r"\b[Ww]hat (becomes )?of the\b": "say of what",
    r"\b(it|that|which|range|spec) is none\b": "malformed, invalid, missing",
    r"\bto be had\b": "available",
    r"\bwish(es)?\b": "demand, request",
    r"\b[Ww]hat (a|the|is) \w+ (is|are) worth\b": "sensitivity, price",
}
"""What docstrings, comments and messages do not say -> what they say instead."""

SCREENS = ("designer/views", "designer/shell", "designer/assets", "widgets")
"""Folders whose texts users read on a screen."""

ONE_WORD = {
    r"\bLatency (\(alpha\)|of (a|the) link\b)": "Alpha",
    r"\ba latency of zero\b": "an alpha of zero",
    r"\b[Cc]lass(es)? of links\b": "kind of links",
    r"\"Count\"|\[\"count\", ": "Parallel links",
}
"""Second words for what has one on all screens -> that one."""

ANY_PHRASE = re.compile("|".join(PHRASES))


@cache
def tree(path: Path) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(path.read_text("utf-8"))


def public_names(path: Path) -> Iterator[str]:
    """Yield the name of a module and of what stands in it for others, methods among them."""
    yield path.stem if path.stem != "__init__" else path.parent.name
    for node in tree(path).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from (each.name for each in node.body if isinstance(each, ast.FunctionDef))
        if isinstance(node, ast.Assign):
            yield from (each.id for each in node.targets if isinstance(each, ast.Name))


def fields(path: Path) -> Iterator[str]:
    """Yield the dotted names of public fields and of parameters of public functions."""
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    inside = [(module, node) for node in tree(path).body]
    for owner, node in inside:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            inside += [(f"{owner}.{node.name}", each) for each in node.body]
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield f"{owner}.{node.target.id}"
        if isinstance(node, ast.FunctionDef) and not re.match("_(?!_init__)", node.name):
            every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            yield from (f"{owner}.{node.name}.{each.arg}" for each in every)


def sentences(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of texts and comments with their numbers, of a module that has a phrase."""
    # To look through its lines takes a hundredth of reading its tokens.
    if not any(map(ANY_PHRASE.search, path.read_text("utf-8").splitlines())):
        return
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type in (tokenize.STRING, tokenize.COMMENT):
                yield from enumerate(token.string.splitlines(), token.start[0])


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


def test_no_public_field_or_parameter_has_a_word_that_the_field_does_not_use():
    """What users have on disk or type stays: each exception says where, and is still there."""
    every = [
        name
        for path in MODULES
        if path.relative_to(ROOT).parts[0] in CLEAN
        for name in fields(path)
        if words(name.rpartition(".")[2]) & FIELD_TERMS.keys()
        and not name.rpartition(".")[2].startswith("_")
    ]

    assert sorted(every) == sorted(STAYS)


def test_texts_are_plain_english():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text.strip()} (say {PHRASES[phrase]})"
        for path in MODULES
        if path.relative_to(ROOT).parts[0] in CLEAN
        for line, text in sentences(path)
        if ANY_PHRASE.search(text)
        if f"{path.relative_to(ROOT)}: {text.strip()}" not in TEXTS_STAY
        for phrase in PHRASES
        if re.search(phrase, text)
    ]

    assert found == []


def test_screens_have_one_word_for_one_thing():
    files = [
        path
        for folder in SCREENS
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in {".py", ".js"} and not {"node_modules", "static"} & {*path.parts}
    ]
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()} (say {ONE_WORD[phrase]})"
        for path in files
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        for phrase in ONE_WORD
        if re.search(phrase, line)
    ]

    assert len(files) > 100
    assert found == []
