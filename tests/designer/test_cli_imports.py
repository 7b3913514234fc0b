"""Commands load what they need and no more: a list of clusters needs no solver and no screen."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"cvxpy", "highspy", "dash", "anywidget"}


@pytest.mark.parametrize(
    "code",
    [
        "import designer.cli.entry",
        "import formulations; formulations.available()",
        "import formulations.jobs.solve_job",
    ],
    ids=["the command line", "all formulations", "a solve in a child process"],
)
def test_neither_solver_nor_screen_is_loaded(code):
    """The solver belongs in the child process, where it takes seconds to load."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert HEAVY & set(done.stdout.split()) == set()
