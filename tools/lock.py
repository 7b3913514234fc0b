"""Pin what pip would install today for Topoloom, its tests and its build, one name==version a line.

The file holds no address, so it serves whichever index the machine is set up for. Beside it the
sha256 of every file that this machine would install is kept, which `tools/audit.py` compares.
``--hashes`` keeps the pins and writes those sums alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.audit import LOCK, ROOT, plain, write_hashes

OLDEST_PYTHON = "3.11.0"
"""Debian 12 has 3.11.2, and some packages ask for a later 3.11."""

HEADER = """\
# The versions that CI ran, made by `make lock`; the Makefile uses them as constraints.
"""


def pins(report: dict[str, Any]) -> list[str]:
    """Return the sorted pins of what an installation report of pip lists."""
    found = [entry["metadata"] for entry in report["install"]]
    return sorted(f"{plain(each['name'])}=={_public(each['version'])}" for each in found)


def _public(version: str) -> str:
    """Return a version without what tells one build of it from another."""
    return version.partition("+")[0]


def resolve(*, pinned: bool = False) -> dict[str, Any]:
    """Ask pip what it would install into an empty environment.

    Parameters
    ----------
    pinned
        Whether the pins that are there hold.

    Raises
    ------
    RuntimeError
        If this Python is not of the oldest kind, whose requirements pip would then not see.
    subprocess.CalledProcessError
        If the requirements contradict one another.
    """
    if not OLDEST_PYTHON.startswith(f"{sys.version_info[0]}.{sys.version_info[1]}."):
        msg = f"the lock is made with Python {OLDEST_PYTHON[:-2]}, this is {sys.version.split()[0]}"
        raise RuntimeError(msg)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    project, build = settings["project"], settings["build-system"]["requires"]
    extras = [each for listed in project["optional-dependencies"].values() for each in listed]
    wanted = [*project["dependencies"], *extras, *build]
    command = ["install", "--dry-run", "--ignore-installed", "--quiet", "--report", "-"]
    # Wheels alone, so that nobody needs a compiler, and such as the oldest Python takes.
    command += ["--only-binary=:all:", f"--python-version={OLDEST_PYTHON}"]
    # Older releases of pip want a target beside that; nothing is written there.
    command += ["--target=nowhere"]
    command += ["-c", str(LOCK)] if pinned else []
    done = subprocess.run(
        [sys.executable, "-m", "pip", *command, "editables", *wanted],
        stdout=subprocess.PIPE,
        check=True,
    )
    report: dict[str, Any] = json.loads(done.stdout)
    return report


if __name__ == "__main__":
    found = resolve(pinned="--hashes" in sys.argv[1:])
    LOCK.write_text(HEADER + "\n".join(pins(found)) + "\n", "utf-8")
    write_hashes(found)
