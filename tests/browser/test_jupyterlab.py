"""The widget in a real JupyterLab: kernel, canvas, keyboard, an edit that arrives in Python."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "gallery" / "notebooks" / "first_light.ipynb"
MINUTE = 60_000

pytestmark = [pytest.mark.browser, pytest.mark.notebook]


def _quiet_settings(home: Path) -> dict[str, str]:
    """Make settings in which the Lab asks nothing, and return the environment that has them."""
    # Dash brings along a source extension; the Lab would offer to build it.
    page = home / "config" / "labconfig" / "page_config.json"
    page.parent.mkdir(parents=True)
    page.write_text(json.dumps({"buildCheck": False}), encoding="utf-8")
    news = (
        home
        / "settings"
        / "@jupyterlab"
        / "apputils-extension"
        / "notification.jupyterlab-settings"
    )
    news.parent.mkdir(parents=True)
    news.write_text(json.dumps({"fetchNews": "false", "checkForUpdates": False}), encoding="utf-8")
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
    }


def _wait_for(url: str) -> None:
    for _ in range(300):
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"JupyterLab did not answer at {url} within 30 s")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[str]:
    """Start a JupyterLab in an empty folder with a copy of the notebook; return its address."""
    work = tmp_path / "work"
    work.mkdir()
    shutil.copy(NOTEBOOK, work)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1"),
        *(f"--port={port}", f"--ServerApp.root_dir={work}", "--IdentityProvider.token="),
        *("--ServerApp.password=", "--LabApp.expose_app_in_browser=True"),
    ]
    with (tmp_path / "lab.log").open("wb") as log:
        server = subprocess.Popen(
            command,
            env=_quiet_settings(tmp_path),
            stdout=log,
            stderr=log,
            start_new_session=True,  # so that its kernels end with it
        )
        url = f"http://127.0.0.1:{port}"
        try:
            _wait_for(f"{url}/api")
            yield url
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait(20)


def test_the_notebook_draws_solves_and_hears_of_edits(
    lab: str, page: Page, drive: Callable[[Page], Any]
) -> None:
    page.goto(f"{lab}/lab/tree/{NOTEBOOK.name}?reset")
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=MINUTE)
    # Cells that are run before the kernel answers stay as they are.
    expect(page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible(timeout=MINUTE)
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells') }")
    outputs = page.locator(".jp-OutputArea-output")
    expect(outputs.filter(has_text="8 devices")).to_be_visible(timeout=MINUTE)
    expect(outputs.filter(has_text="no plan takes less than")).to_be_visible()
    assert page.locator(".jp-Dialog").count() == 0

    canvas = drive(page)
    cells = page.locator(".jp-Notebook .jp-Cell")
    count = cells.count()
    canvas.keys("b", "a", "d", "d", "ArrowRight")
    assert cells.count() == count, "letters for the canvas reached the notebook"
    assert canvas.ask("c.clock.time") > 0
    assert canvas.ask("c.canvas.theme") == "light"

    canvas.keys("g")
    cells.last.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    expect(outputs.filter(has_text="9 devices")).to_be_visible(timeout=MINUTE)
    assert canvas.ask("c.stale") is True
