"""Install packages into this environment with uv, as `requirements.lock` pins them, or pin them.

``python tools/packages.py install ARGUMENTS`` hands them to ``uv pip install`` with the lock as
constraints: whatever it names gets its version, and a file whose sha256 it does not list is
refused. ``python tools/packages.py lock`` pins the newest set that pyproject.toml allows, for every
system and every Python it serves.

uv takes seconds where pip takes minutes. It looks where pip is set up to look on this machine; the
lock itself holds no address. PyTorch is an extra and is not locked: of its builds each machine has
another one.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
LOCKED_EXTRAS = ("test", "video")
BUILDING = ("editables", "uv")
"""What installing Topoloom itself takes beside what pyproject.toml says."""

_HEADER = "# Versions and sha256 of every file that may be installed, made by `make lock`.\n"


def pip_settings(told: str) -> dict[str, str]:
    """Return setting -> value of what ``pip config list`` prints; an environment comes last."""
    rows = (line.partition("=") for line in told.splitlines())
    return {key.rpartition(".")[2]: str(ast.literal_eval(value)) for key, _, value in rows if value}


def places(settings: dict[str, str]) -> list[str]:
    """Return the options that let uv look where pip with these settings does."""
    options = ["--index-strategy=unsafe-best-match"]  # as pip: the best of what all of them have
    if "index-url" in settings:
        options += ["--default-index", settings["index-url"]]
    for setting, option in (("extra-index-url", "--index"), ("find-links", "--find-links")):
        options += [part for each in settings.get(setting, "").split() for part in (option, each)]
    return options


def locked(name: str, lock: str) -> str:
    """Return the lines of a lock about one package."""
    found = re.search(rf"^{re.escape(name)}==.*(?:\n +.*)*", lock, re.MULTILINE)
    if found is None:
        raise LookupError(f"{name} is not in {LOCK.name}")
    return found[0]


def uv() -> str:
    """Return uv of this environment, which pip installs the first time, as it is locked."""
    program = Path(sys.executable).with_name("uv")
    if not program.exists():
        with tempfile.TemporaryDirectory() as folder:
            wanted = Path(folder) / "uv.txt"
            wanted.write_text(locked("uv", LOCK.read_text("utf-8")), "utf-8")
            command = ["install", "-qq", "--disable-pip-version-check", "--require-hashes"]
            pip(*command, "--no-deps", "-r", str(wanted))
    return str(program)


def pip(*arguments: str) -> str:
    """Run this environment's pip and return what it prints."""
    command = [sys.executable, "-m", "pip", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def install(arguments: list[str]) -> int:
    """Install what the arguments of ``uv pip install`` name; return its exit code."""
    settings = pip_settings(pip("config", "list"))
    environment = {**os.environ, "SKIP_JUPYTER_BUILDER": "1"}
    if "cert" in settings:
        environment.setdefault("SSL_CERT_FILE", settings["cert"])
    command = [uv(), "pip", "install", "--quiet", "--compile-bytecode"]
    command += ["--python", sys.executable, "-c", str(LOCK)]
    done = subprocess.run([*command, *places(settings), *arguments], env=environment, check=False)
    return done.returncode


def lock() -> int:
    """Pin everything anew; return the exit code of uv."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    building = "\n".join([*wanted["build-system"]["requires"], *BUILDING])
    command = [uv(), "pip", "compile", "--quiet", "--upgrade", "--universal", "--generate-hashes"]
    command += ["--python-version", wanted["project"]["requires-python"].strip(">=")]
    command += ["--no-annotate", "--no-header", "--no-emit-index-url", "--no-emit-find-links"]
    command += [part for each in LOCKED_EXTRAS for part in ("--extra", each)]
    command += [*places(pip_settings(pip("config", "list"))), "pyproject.toml", "-"]
    done = subprocess.run(
        command, input=building, stdout=subprocess.PIPE, text=True, check=False, cwd=ROOT
    )
    if done.returncode == 0:
        LOCK.write_text(_HEADER + done.stdout, "utf-8")
    return done.returncode


if __name__ == "__main__":
    asked, *rest = sys.argv[1:] or ["help"]
    if asked not in {"install", "lock"}:
        sys.exit(__doc__)
    sys.exit(install(rest) if asked == "install" else lock())
