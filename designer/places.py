"""Where solves run: in child processes of the server, or on workers through a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from designer.jobs.solving import Jobs, Limits
from designer.views.catalog.answering import answering
from formulations import start

if TYPE_CHECKING:
    from formulations.campaigns.catalog import Catalog


def jobs_at(
    queue: str | None, limits: Limits | None = None, *, catalog: Catalog | None = None
) -> Jobs:
    """Return where the pages of a server solve.

    Parameters
    ----------
    queue
        URL of the Redis through which workers are reached, or None to solve on this machine.
    limits
        What solves of this machine may take; workers have limits of their own.
    catalog
        What answers what was solved before and keeps what is solved, None without one.

    Raises
    ------
    ProblemError
        If no Redis answers there.
    """
    if queue is None:
        return Jobs(answering(start, catalog), limits)
    from designer.queue.sent import Queue, QueuedJobs  # noqa: PLC0415  Celery and Redis: an extra

    return QueuedJobs(Queue(queue), catalog)
