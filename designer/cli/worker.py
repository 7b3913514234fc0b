"""``topoloom worker``: solves what a server sends through a queue."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated

import typer

from ccl import text
from ccl.errors import SolverMissing
from designer.cli.asked import MemoryOption, SolvesOption, memory_in
from designer.cli.show import remark
from designer.jobs.line import Limits
from formulations import memory_each

URL = "redis://127.0.0.1:6379/0"
"""A Redis of this machine, as an example."""


def worker(
    queue: Annotated[
        str,
        typer.Option("--queue", metavar="URL", help=f"The Redis to take solves from, as {URL}."),
    ],
    solves: SolvesOption = None,
    memory: MemoryOption = None,
) -> None:
    """Solve what `topoloom design --queue` sends, until Ctrl-C."""
    installed()
    from designer.queue.broker import connect, place  # noqa: PLC0415  an extra
    from designer.queue.worker import run_worker  # noqa: PLC0415

    many = solves or Limits().solves
    each = memory_in(memory) or memory_each(many)
    connect(queue).close()
    remark(
        f"takes {text.count(many, 'solve')} at once from {place(queue)}, each up to "
        f"{each / 1e9:.3g} GB of memory; Ctrl-C gives them back and ends it"
    )
    run_worker(queue, solves=many, memory=each)


def installed() -> None:
    """Refuse a queue where what it needs is not installed.

    Raises
    ------
    SolverMissing
        If Celery or its client of Redis is not there.
    """
    missing = [name for name in ("celery", "redis") if find_spec(name) is None]
    if missing:
        msg = f"a queue needs {' and '.join(missing)}; install with: pip install topoloom[queue]"
        raise SolverMissing(msg)
