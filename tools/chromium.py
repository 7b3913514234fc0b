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
            msg = f"CHROMIUM names {named}, which is no program here"
            raise FileNotFoundError(msg)
        return found
    return _on_path() or _from_playwright() or _from_debian() or _install()


def _on_path() -> str | None:
    """Return the machine's own Chromium or Chrome."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def _from_debian() -> str | None:
    """Install Debian's package; None where that is not ours to do or does not work."""
    if not shutil.which("apt-get") or os.name != "posix" or os.geteuid() != 0:
        return None
    for command in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
        done = subprocess.run(
            ["apt-get", "-qq", *command],
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            check=False,
        )
        if done.returncode:
            return None
    return _on_path()


def _install() -> str:
    """Let Playwright download its Chromium."""
    with_libraries = ["--with-deps"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    subprocess.run(
        [sys.executable, "-m", "playwright", "install", *with_libraries, "chromium"],
        stdout=sys.stderr,
        check=True,
    )
    found = _from_playwright()
    if found is None:
        msg = "Playwright has installed a Chromium but does not find it"
        raise FileNotFoundError(msg)
    return found


def _from_playwright() -> str | None:
    """Return the Chromium that Playwright has downloaded, if it has."""
    with sync_playwright() as playwright:
        path = Path(playwright.chromium.executable_path)
    return str(path) if path.exists() else None


if __name__ == "__main__":
    print(chromium())
