"""Print the path of a Chromium for the browser tests; install one where there is none.

In this order: ``$CHROMIUM``, the machine's own, Debian's package when we are root, Playwright's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
PLAYWRIGHT = (sys.executable, "-m", "playwright")


def chromium() -> str:
    """Return the path of a Chromium, after installing it if need be.

    Raises
    ------
    FileNotFoundError
        If ``$CHROMIUM`` names nothing that is there.
    subprocess.CalledProcessError
        If there was none and it could not be installed.
    """
    named = os.environ.get("CHROMIUM")
    if named:
        found = shutil.which(named)
        if found is None:
            raise FileNotFoundError(f"CHROMIUM names {named}, which is no program here")
        return found
    return _on_path() or _from_debian() or _from_playwright()


def _on_path() -> str | None:
    """Return the machine's own Chromium or Chrome."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def _from_debian() -> str | None:
    """Install Debian's package; None where that is not ours to do or does not work."""
    return _on_path() if _apt("chromium") else None


def _from_playwright() -> str:
    """Return Playwright's own Chromium, downloaded if it is not there yet."""
    with sync_playwright() as playwright:
        path = Path(playwright.chromium.executable_path)
    if not path.exists():
        libraries = ["--with-deps"] if _is_root() else []
        command = [*PLAYWRIGHT, "install", *libraries, "chromium"]
        subprocess.run(command, stdout=sys.stderr, check=True)
    return str(path)


def _driver_runs() -> bool:
    """Say whether the Node that Playwright brings finds its libraries."""
    return not subprocess.run(
        [*PLAYWRIGHT, "--version"], capture_output=True, check=False
    ).returncode


def _apt(package: str) -> bool:
    """Install a package of Debian, if that is ours to do; say whether it worked."""
    if not (_is_root() and shutil.which("apt-get")):
        return False
    print(f"installing {package} with apt", file=sys.stderr)
    commands = (["update"], ["install", "-y", "--no-install-recommends", package])
    return not any(
        subprocess.run(
            ["apt-get", "-qq", *command],
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            check=False,
        ).returncode
        for command in commands
    )


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


if __name__ == "__main__":
    if not _driver_runs():
        _apt("libatomic1")  # the one library that a small Debian lacks for it
    print(chromium())
