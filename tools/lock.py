"""Pin what pip would install today for Topoloom, its tests and its build, one name==version a line.

The file holds no address, so it serves whichever index the machine is set up for.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
HEADER = """\
# The versions that CI ran, made by `make lock`; the Makefile uses them as constraints.
"""


def pins(report: dict[str, Any]) -> list[str]:
    """Return the sorted pins of what an installation report of pip lists."""
    found = [entry["metadata"] for entry in report["install"]]
    return sorted(f"{each['name'].lower().replace('_', '-')}=={each['version']}" for each in found)


def resolve() -> dict[str, Any]:
    """Ask pip what it would install into an empty environment.

    Raises
    ------
    subprocess.CalledProcessError
        If the requirements contradict one another.
    """
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    project, build = settings["project"], settings["build-system"]["requires"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["test"], *build]
    command = ["install", "--dry-run", "--ignore-installed", "--quiet", "--report", "-"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *command, "editables", *wanted],
        stdout=subprocess.PIPE,
        check=True,
    )
    report: dict[str, Any] = json.loads(done.stdout)
    return report


if __name__ == "__main__":
    LOCK.write_text(HEADER + "\n".join(pins(resolve())) + "\n", "utf-8")
