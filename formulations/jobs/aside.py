"""Methods that are tried in a process of their own, on another core, while others go on here."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ccl.errors import CclError
from ccl.result import Result

if TYPE_CHECKING:
    from formulations.core.run import Run

PAUSE = 0.2
"""Seconds between two looks at what there is."""


class Aside:
    """A solve of the same problem in a child process; its better plans come by `news`.

    Parameters
    ----------
    run
        Whose problem, limits and solver it has.
    options
        Of the portfolio: which methods it tries.
    """

    def __init__(self, run: Run, options: Mapping[str, Any]) -> None:
        from formulations.jobs.solve_job import SolveJob  # noqa: PLC0415  a child that solves imports this

        self._found: queue.SimpleQueue[Result] = queue.SimpleQueue()
        self._job = SolveJob(
            run.problem,
            run.formulation,
            options=options,
            time_limit=run.left,
            gap=run.gap,
            solver=run.solver,
        )
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        """Pass on what is found; a method that finds nothing here is no error of the others."""
        with contextlib.suppress(CclError):
            for news in self._job:
                if news.result is not None:
                    self._found.put(news.result)
            self._found.put(self._job.result())

    def news(self) -> Iterator[Result]:
        """Yield what has been found since the last time."""
        with contextlib.suppress(queue.Empty):
            while True:
                yield self._found.get_nowait()

    @property
    def ended(self) -> bool:
        """Whether it has come to its end and all that it has found was heard of."""
        return not self._thread.is_alive() and self._found.empty()

    def wait(self) -> bool:
        """Wait a little; return whether it still goes on or has news."""
        self._thread.join(PAUSE)
        return not self.ended

    def close(self) -> None:
        """End it; what it has just found may still be looked at for a moment."""
        self._job.cancel()
        self._thread.join(PAUSE)
