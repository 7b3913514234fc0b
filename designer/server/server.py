"""Waitress with bounds: threads, connections, headers, bodies, and the time that each may take.

What waitress leaves open is closed here: a client that sends a byte now and then, or does not read
its answer, is let go after a while, and what is wrong with a request is said in a sentence.
"""

import ctypes
import gc
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import psutil
from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.server import TcpWSGIServer
from waitress.task import ErrorTask, ThreadedTaskDispatcher

from designer.server.guard import MOST_BODY, TOO_LARGE, Application
from designer.server.watchdog import Watchdog

THREADS = 12
"""Questions that are answered at once; a page asks some six."""

CONNECTIONS = 200
"""Of all browsers; one keeps six."""

MOST_HEADER = 32 * 2**10
"""Bytes of a request's headers."""

PATIENCE = 60.0
"""Seconds in which a request has to be sent, and in which some of an answer has to be taken."""

IDLE = 120
"""Seconds that a connection without a question stays open."""

GRACE = 2.0
"""Seconds in which what is being answered may end when the server stops."""

LAST = 5.0
"""Seconds after which the process ends whatever still runs in it."""

M_ARENA_MAX = -8
"""As in malloc.h."""

_WRONG = {
    400: "This is not HTTP as it should be.",
    413: TOO_LARGE,
    431: f"The headers of this request have more than {MOST_HEADER // 2**10} KiB.",
    501: "Bodies come plain or in chunks.",
}

log = logging.getLogger(__name__)


class _Refusal(ErrorTask):  # type: ignore[misc]  # waitress ships no types
    """What is answered to a malformed request."""

    def execute(self) -> None:
        """Write one sentence."""
        found = self.request.error
        content = f"{_WRONG.get(found.code, found.reason + '.')}\n".encode()
        self.status = f"{found.code} {found.reason}"
        self.response_headers.append(("Content-Type", "text/plain; charset=utf-8"))
        self.response_headers.append(("X-Content-Type-Options", "nosniff"))
        self.set_close_on_finish()
        self.content_length = len(content)
        self.write(content)


class _Channel(HTTPChannel):  # type: ignore[misc]  # waitress ships no types
    """A connection that knows since when a request is on its way."""

    error_task_class = _Refusal
    begun: float | None = None

    def received(self, data: bytes) -> bool:
        """Take what has come."""
        taken: bool = super().received(data)
        if self.request is None:
            self.begun = None
        elif self.begun is None:
            self.begun = time.time()
        return taken

    def stale(self, now: float) -> bool:
        """Whether its client is too slow to be waited for."""
        sending = self.begun is not None and now - self.begun > PATIENCE
        taking = bool(self.total_outbufs_len) and now - self.last_activity > PATIENCE
        return sending or taking


class Server(TcpWSGIServer):  # type: ignore[misc]  # waitress ships no types
    """A server on a socket, which listens as soon as it is made.

    Parameters
    ----------
    application
        What answers.
    on
        Bound, and not listening yet.
    """

    channel_class = _Channel

    def __init__(self, application: Application, on: socket.socket) -> None:
        settings = Adjustments(
            sockets=[on],
            threads=THREADS,
            connection_limit=CONNECTIONS,
            backlog=64,
            channel_timeout=IDLE,
            cleanup_interval=5,
            max_request_header_size=MOST_HEADER,
            max_request_body_size=MOST_BODY,
            ident="",
            log_socket_errors=False,
            asyncore_use_poll=True,
        )
        self.stopping = False
        super().__init__(
            application,
            _sock=on,
            adj=settings,
            bind_socket=False,
            sockinfo=(on.family, on.type, on.proto, on.getsockname()),
        )

    def maintenance(self, now: float) -> None:
        """Let those go who are idle or too slow."""
        super().maintenance(now)
        for channel in list(self.active_channels.values()):
            if channel.stale(now):
                channel.will_close = True
                with suppress(OSError):  # it wakes the loop, which closes it
                    channel.socket.shutdown(socket.SHUT_RDWR)

    def run(self) -> None:
        """Answer until `stop`."""
        while not self.stopping:
            wasyncore.loop(timeout=1, use_poll=True, map=self._map, count=1)

    def stop(self) -> None:
        """End `run` soon; may be called from a signal's handler."""
        self.stopping = True
        self.pull_trigger()

    def end(self) -> bool:
        """Take no more connections, let what is being answered end, and close; whether all did."""
        self.accepting = False
        self.del_channel()
        self.socket.close()
        until = time.monotonic() + GRACE
        while self._busy() and time.monotonic() < until:
            wasyncore.loop(timeout=0.1, use_poll=True, map=self._map, count=1)
        dispatcher: ThreadedTaskDispatcher = self.task_dispatcher
        dispatcher.shutdown(timeout=0.5)
        wasyncore.close_all(self._map)
        return not dispatcher.threads

    def _busy(self) -> bool:
        return any(
            each.requests or each.total_outbufs_len for each in self.active_channels.values()
        )


def run(application: Application, on: socket.socket, *, ready: Callable[[], Any]) -> bool:
    """Serve until the process gets a signal to end; whether nothing is left running.

    Parameters
    ----------
    application
        What answers.
    on
        Bound, and not listening yet.
    ready
        Called when it listens.
    """
    logging.getLogger("waitress").setLevel(logging.ERROR)
    _few_arenas()
    server = Server(application, on)
    with _signals(server):
        ready()
        server.run()
        return server.end()


@contextmanager
def _signals(server: Server) -> Iterator[None]:
    """End the server at the first signal and the process at the second, or when it takes long."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def told(_number: int, _frame: FrameType | None) -> None:
        if server.stopping:
            _leave()
        late = threading.Timer(LAST, _leave)
        late.daemon = True
        late.start()
        server.stop()

    before = {each: signal.signal(each, told) for each in (signal.SIGINT, signal.SIGTERM)}
    # Windows has no such pipe, and ends a process without asking it.
    watchdog = None if os.name == "nt" else Watchdog(LAST + 1)
    try:
        yield
    finally:
        if server.stopping:  # it watches the rest of the way as well
            # The interpreter's last search for garbage takes seconds, in which no timer runs.
            gc.freeze()
        else:
            if watchdog is not None:
                watchdog.leave()
            for each, handler in before.items():
                signal.signal(each, handler)


def _few_arenas() -> None:
    """Let threads share the memory that they give back; else each keeps its own, and it grows."""
    with suppress(OSError, AttributeError):  # where the C library is not GNU's
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 2)


def _leave() -> None:
    """End the process now, and those that it has begun."""
    for each in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            each.kill()
    os._exit(1)
