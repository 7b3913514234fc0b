"""A process that ends the server where it cannot: ``python -m designer.server.watchdog``.

As long as a thread computes without giving back Python's interpreter, no handler of a signal runs.
The system writes the number of every signal into a pipe all the same (`signal.set_wakeup_fd`). At
its other end this process waits: a while after the first signal, a moment after the second.
"""

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress

import psutil

MOMENT = 0.5
"""Seconds in which the server may end itself after the second signal."""

ENDINGS = (signal.SIGINT, signal.SIGTERM)


class Watchdog:
    """Watches this process until it ends; made in its main thread.

    Parameters
    ----------
    seconds
        That it may take to end after the first signal.
    """

    def __init__(self, seconds: float) -> None:
        told, self._tell = os.pipe()
        os.set_blocking(self._tell, False)
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(os.getpid()), str(seconds)],
            stdin=told,
            start_new_session=True,  # the terminal's Ctrl+C is not meant for it
        )
        os.close(told)
        self._before = signal.set_wakeup_fd(self._tell, warn_on_full_buffer=False)

    def leave(self) -> None:
        """Watch no more."""
        signal.set_wakeup_fd(self._before)
        os.close(self._tell)
        self._process.wait()


def watch(server: int, seconds: float) -> None:
    """Wait for signals from the standard input, and end the server where it stays."""
    until: float | None = None
    while True:
        left = None if until is None else max(0.0, until - time.monotonic())
        if not select.select([0], [], [], left)[0]:
            break
        told = os.read(0, 100)
        if not told:  # the server has ended
            return
        for _ in filter(ENDINGS.__contains__, told):
            wait = seconds if until is None else MOMENT
            until = min(until or float("inf"), time.monotonic() + wait)
    if os.getppid() == server:  # else its number may be another's by now
        end(server)


def end(server: int) -> None:
    """End a process and all below it but this one."""
    with suppress(psutil.Error):
        top = psutil.Process(server)
        below = top.children(recursive=True)
        top.kill()
        for each in below:
            if each.pid != os.getpid():
                with suppress(psutil.Error):
                    each.kill()


if __name__ == "__main__":
    for number in ENDINGS:
        signal.signal(number, signal.SIG_IGN)
    watch(int(sys.argv[1]), float(sys.argv[2]))
