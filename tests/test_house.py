"""The house holds together: what is said twice agrees, and the rules that no linter knows."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import ccl
import widgets

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("ccl", "interchange", "formulations", "gallery", "widgets", "designer", "benchmarks")
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = SETTINGS["project"]

CONDA_NAMES = {
    "ortools-python": "ortools",
    "playwright-python": "playwright",
    "python-igraph": "igraph",
}
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
    said: dict[str, object] = {}
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
    said: dict[str, object] = {}
    for line in listed:
        requirement = Requirement(line)
        name = CONDA_NAMES.get(requirement.name, requirement.name)
        said[canonicalize_name(name)] = requirement.specifier

    assert str(said.pop("python")) == PROJECT["requires-python"]
    del said["pip"], said["nodejs"]
    assert said == said_by_pyproject()


def test_what_is_imported_is_declared():
    """A package that only comes along with another may stay away tomorrow."""
    modules = {
        "pillow": "PIL",
        "protobuf": "google",
        "pyyaml": "yaml",
        "pytest-xdist": "xdist",
        "pyzmq": "zmq",
    }
    names = {*said_by_pyproject(), *optional()}
    declared = {modules.get(name, name.replace("-", "_")) for name in names}
    known = declared | set(sys.stdlib_module_names) | {*PACKAGES, "tests", "tools"}
    found = {
        f"{named(path)} imports {name}"
        for path in [*MODULES, *tracked("tests/*.py", "tools/*.py")]
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for name in imported(node)
        if name.partition(".")[0] not in known
    }

    assert found == set()


def optional():
    """Return the names of the extras that people may install beside."""
    extras = PROJECT["optional-dependencies"]
    return {
        canonicalize_name(Requirement(line).name)
        for extra, lines in extras.items()
        if extra != "test"
        for line in lines
    }


def imported(node):
    """Return the full names of the modules that an import statement names."""
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    if isinstance(node, ast.ImportFrom) and not node.level:
        return [node.module]
    return []


def test_the_version_stands_in_one_place():
    """hatchling reads it from ccl/__init__.py; Dash asks widgets for it."""
    place = SETTINGS["tool"]["hatch"]["version"]["path"]
    line = f'__version__ = "{ccl.__version__}"'
    pinned = [named(path) for path in MODULES if line in path.read_text("utf-8")]

    assert pinned == [place]
    assert metadata.version("topoloom") == ccl.__version__ == widgets.__version__
    assert ccl.__version__ in (ROOT / "CHANGELOG.md").read_text("utf-8")


def pins():
    """Return name and version of each line of the lock; some systems have another version."""
    text = (ROOT / "requirements.lock").read_text("utf-8")
    return set(re.findall(r"^([a-z0-9-]+)==([\w.]+)", text, re.MULTILINE))


def closure(names):
    """Return everything installed that `names` need, as Linux resolves it."""
    linux = {"sys_platform": "linux", "platform_system": "Linux"}
    found: dict[str, str] = {}
    waiting = [(Requirement(name), "") for name in names]
    seen: set[tuple[str, str]] = set()
    while waiting:
        requirement, extra = waiting.pop()
        name = canonicalize_name(requirement.name)
        if requirement.marker and not requirement.marker.evaluate({**linux, "extra": extra}):
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

    assert runs.items() <= pins()


def test_the_lock_holds_no_address():
    """An address would tie it to one machine's index."""
    text = (ROOT / "requirements.lock").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    pin = r"[a-z0-9-]+==[0-9][\w.]*( ; .+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?"

    assert [line for line in lines if not re.fullmatch(pin, line)] == []


def test_the_notices_name_what_the_bundle_carries():
    """package.json pins the two libraries whose licences ask to be carried along."""
    carried = json.loads((ROOT / "widgets/js/package.json").read_text("utf-8"))["dependencies"]
    notices = (ROOT / "THIRD_PARTY.md").read_text("utf-8").lower().replace(".js", "")

    assert [name for name, pin in carried.items() if f"{name} {pin}" not in notices] == []


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


def test_a_module_is_one_idea():
    """At most 600 lines, and its functions at most 40."""
    texts = {named(path): path.read_text("utf-8") for path in MODULES}
    long = {name: text.count("\n") for name, text in texts.items() if text.count("\n") > 600}
    for name, text in texts.items():
        for each in functions(text):
            if (many := own_lines(each)) > 40:
                long[f"{name}: {each.name}"] = many

    assert long == {}


def functions(text):
    """Return every function of a module, those inside others too."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]


def lines(node):
    """Count the lines of a function or a statement."""
    return node.end_lineno - node.lineno + 1


def own_lines(function):
    """Count the lines of a function, its docstring and the functions inside it left out."""
    docstring = lines(function.body[0]) if ast.get_docstring(function) is not None else 0
    nested = [node for node in function.body if isinstance(node, ast.FunctionDef)]
    return lines(function) - docstring - sum(map(lines, nested))


# What an import brings along

HEAVY = {
    "ccl": ("cvxpy", "highspy", "scipy", "networkx", "igraph", "dash", "anywidget", "plotly"),
    "formulations.bounds": ("cvxpy", "highspy", "networkx", "matplotlib"),
    "gallery": ("cvxpy", "highspy", "scipy", "dash", "anywidget", "plotly", "matplotlib"),
    "formulations": ("cvxpy", "highspy", "dash", "anywidget", "plotly", "matplotlib"),
    "widgets": ("cvxpy", "highspy", "dash", "anywidget", "plotly", "matplotlib"),
    "designer": ("cvxpy", "highspy", "dash", "anywidget", "plotly", "matplotlib"),
    "designer.app": ("matplotlib",),
}


@pytest.mark.parametrize("package", HEAVY)
def test_a_package_is_imported_without_its_heavier_siblings(package):
    """A viewer or a gallery must load without a solver, a command line without a screen.

    Print is loaded by the first picture, which no start of the designer and no solve waits for.
    """
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


# What CI refuses

SKIPS = """
import pytest

def test_skips():
    pytest.skip("for no reason")

@pytest.mark.xfail
def test_fails_as_expected():
    assert False

def test_passes():
    pass
"""


@pytest.mark.parametrize(
    ("ci", "counts"), [("", "1 passed, 1 skipped"), ("1", "1 failed, 1 passed")]
)
def test_a_skip_fails_in_ci_unless_it_is_announced(ci, counts, tmp_path):
    """An expected failure is not a skip."""
    (tmp_path / "conftest.py").write_text((ROOT / "tests/conftest.py").read_text("utf-8"), "utf-8")
    (tmp_path / "test_skips.py").write_text(SKIPS, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert f"{counts}, 1 xfailed" in done.stdout
    assert done.returncode == bool(ci)
