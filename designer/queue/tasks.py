"""The one task of Celery: a solve, by its key and its request.

It is acknowledged when it has ended, so that one whose worker is gone comes to another. A worker
that gets one which another still has, or which has ended, leaves it alone: `Bench.work` of
`designer.queue.working`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from celery import Celery

NAME = "topoloom.solve"
QUEUE = "topoloom"

VISIBLE = 60
"""Seconds after which Celery gives an unacknowledged task to another worker."""


def make_app(url: str, work: Callable[[str, Mapping[str, Any]], None] | None = None) -> Celery:
    """Return Celery's application.

    Parameters
    ----------
    url
        Of the Redis that it goes through.
    work
        What a worker does with the key and request of a solve; a server has none.
    """
    app = Celery("topoloom", broker=url, set_as_current=False)
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        result_serializer="json",
        task_ignore_result=True,
        task_store_errors_even_if_ignored=False,
        task_default_queue=QUEUE,
        task_acks_late=True,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_enable_remote_control=False,
        broker_connection_retry_on_startup=True,
        broker_connection_timeout=5,
        broker_transport_options={"visibility_timeout": VISIBLE, "socket_timeout": 15},
        task_publish_retry=False,
    )
    if work is not None:
        app.task(name=NAME)(work)
    return app
