"""Where solves run: in child processes of the server, or on workers through a queue."""

from __future__ import annotations

from designer.solves.line import Limits
from designer.solves.solving import Jobs
from formulations import start


def jobs_at(queue: str | None, limits: Limits | None = None) -> Jobs:
    """Return where the pages of a server solve.

    Parameters
    ----------
    queue
        URL of the Redis through which workers are reached, or None to solve on this machine.
    limits
        What solves of this machine may take; workers have limits of their own.

    Raises
    ------
    ProblemError
        If no Redis answers there.
    """
    if queue is None:
        return Jobs(start, limits)
    from designer.queue.sent import Queue, QueuedJobs  # noqa: PLC0415  Celery and Redis: an extra

    return QueuedJobs(Queue(queue))
