"""The house holds together: what is said twice agrees, and the rules that no linter knows."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import ccl
import widgets

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("ccl", "formulations", "gallery", "widgets", "designer", "benchmarks")
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = SETTINGS["project"]

CONDA_NAMES = {"python-igraph": "igraph", "playwright-python": "playwright"}
"""conda-forge's name -> the package index's, where they differ."""

MODULES = sorted(
    path
    for package in PACKAGES
    for path in (ROOT / package).rglob("*.py")
    if "node_modules" not in path.parts
)


def tracked(*patterns):
    """Return the files that git tracks, the binary ones left out."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    files = [ROOT / name for name in listed.split("\0") if name]
    return [path for path in files if path.is_file() and b"\0" not in path.read_bytes()[:8000]]


def named(path):
    """Return the path as seen from the root."""
    return path.relative_to(ROOT).as_posix()


# What is said twice


def said_by_pyproject():
    """Return name -> bounds of what is installed, extras followed one step."""
    wanted = [
        *PROJECT["dependencies"],
        *PROJECT["optional-dependencies"]["test"],
        *(each for each in SETTINGS["build-system"]["requires"] if "nodejs" not in each),
    ]
    said = {}
    for line in wanted:
        requirement = Requirement(line)
        said[canonicalize_name(requirement.name)] = requirement.specifier
        for extra in requirement.extras:
            for inner in map(Requirement, metadata.requires(requirement.name) or []):
                if inner.marker and f'extra == "{extra}"' in str(inner.marker):
                    said.setdefault(canonicalize_name(inner.name), inner.specifier)
    return said


def test_environment_yml_says_what_pyproject_toml_says():
    """conda-forge has Python, pip and Node as packages too; those are its own."""
    listed = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))["dependencies"]
    said = {}
    for line in listed:
        requirement = Requirement(line)
        name = CONDA_NAMES.get(requirement.name, requirement.name)
        said[canonicalize_name(name)] = requirement.specifier

    assert str(said.pop("python")) == PROJECT["requires-python"]
    del said["pip"], said["nodejs"]
    assert said == said_by_pyproject()


def test_the_version_stands_in_one_place():
    """hatchling reads it from ccl/__init__.py; Dash asks widgets for it."""
    place = SETTINGS["tool"]["hatch"]["version"]["path"]
    line = f'__version__ = "{ccl.__version__}"'
    pinned = [named(path) for path in MODULES if line in path.read_text("utf-8")]

    assert pinned == [place]
    assert metadata.version("topoloom") == ccl.__version__ == widgets.__version__
    assert ccl.__version__ in (ROOT / "CHANGELOG.md").read_text("utf-8")


def pins():
    """Return name -> version of the lock file."""
    lines = (ROOT / "requirements.lock").read_text("utf-8").splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


def closure(names):
    """Return everything installed that `names` need, as Linux resolves it."""
    environment = {**default_environment(), "sys_platform": "linux", "platform_system": "Linux"}
    found: dict[str, str] = {}
    waiting = [(Requirement(name), "") for name in names]
    seen = set()
    while waiting:
        requirement, extra = waiting.pop()
        name = canonicalize_name(requirement.name)
        if requirement.marker and not requirement.marker.evaluate({**environment, "extra": extra}):
            continue
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue  # the Node wheel where the machine has a Node
        for inner in {"", *requirement.extras} - {e for n, e in seen if n == name}:
            seen.add((name, inner))
            waiting += [(Requirement(line), inner) for line in metadata.requires(name) or []]
    return found


def test_the_lock_pins_exactly_what_runs_here():
    """`make lock` writes it anew after a change of pyproject.toml."""
    runs = closure(["topoloom[test]", *SETTINGS["build-system"]["requires"]])
    del runs["topoloom"]

    assert runs.items() <= pins().items()


def test_every_line_of_the_lock_is_a_name_and_a_version():
    """An address would tie it to one machine's index."""
    lines = (ROOT / "requirements.lock").read_text("utf-8").splitlines()
    pinned = [line for line in lines if not line.startswith("#")]

    assert len(pinned) > 100
    assert [line for line in pinned if not re.fullmatch(r"[a-z0-9.-]+==[0-9][\w.]*", line)] == []
    assert pinned == sorted(pinned)


# What is tracked


def test_no_tracked_file_names_a_registry_or_a_path_of_one_machine():
    """Registries are the machine's setting; paths are for a temporary folder to know."""
    # In pieces, or this file would be found.
    hosts = "|".join(
        rf"{name}\.(?:org|com)" for name in ("pypi", "pythonhosted", "npmjs", "yarnpkg")
    )
    folders = r"(?<![\w.}/])/(?:work|root|home|Users)/"
    pattern = re.compile(rf"\b(?:{hosts})\b|{folders}")
    found = [
        f"{named(path)}: {hit.group()}"
        for path in tracked()
        for hit in pattern.finditer(path.read_text("utf-8"))
    ]

    assert found == []


def test_the_bundle_is_built_and_never_tracked():
    """It is other people's code for the most part, and the same bytes come out of any build."""
    assert tracked("widgets/static/canvas.js", "*node_modules*") == []
    assert (ROOT / "widgets/static/canvas.js").stat().st_size > 100_000


def test_the_readme_gives_the_two_commands():
    readme = (ROOT / "README.md").read_text("utf-8")

    assert "make run" in readme
    assert "make test" in readme


# How modules are built


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_a_module_is_one_idea(path):
    """At most 400 lines, functions of at most 40, two arguments by position in public ones."""
    text = path.read_text("utf-8")
    functions = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    long = {each.name: length(each) for each in functions if length(each) > 40}
    positional = {each.name: by_position(each) for each in functions if by_position(each) > 2}

    assert text.count("\n") <= 400
    assert long == {}
    assert positional == {}


def length(function):
    """Return the lines of a function, its docstring and decorators left out."""
    first = function.body[0]
    has_docstring = ast.get_docstring(function) is not None
    docstring = first.end_lineno - first.lineno + 1 if has_docstring else 0
    return function.end_lineno - function.lineno + 1 - docstring


def by_position(function):
    """Count the arguments by position of a public function; Dash calls the decorated ones."""
    if function.decorator_list or function.name.startswith("_"):
        return 0
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    return len([name for name in names if name not in ("self", "cls")])


# What an import brings along

HEAVY = {
    "ccl": ("cvxpy", "highspy", "scipy", "networkx", "igraph", "dash", "anywidget", "plotly"),
    "gallery": ("cvxpy", "highspy", "scipy", "dash", "anywidget", "plotly"),
    "formulations": ("cvxpy", "highspy", "dash", "anywidget", "plotly"),
    "widgets": ("cvxpy", "highspy", "dash", "anywidget", "plotly"),
    "designer": ("cvxpy", "highspy", "dash", "anywidget", "plotly"),
}


@pytest.mark.parametrize("package", HEAVY)
def test_a_package_is_imported_without_its_heavier_siblings(package):
    """A viewer or a gallery must load without a solver, a command line without a screen."""
    code = f"import {package}, sys; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()

    assert package in loaded
    assert set(HEAVY[package]) & set(loaded) == set()
