"""The child's end of the pipe: answers on an output of their own, and an end with the parent's."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from typing import IO, NoReturn

PAUSE = 0.1
"""Seconds between two lines that carry no plan."""


def leave(serve: Callable[[IO[bytes], IO[bytes]], None]) -> NoReturn:
    """Serve and end the process, with the error as its last words if there was one.

    Not by returning: Python aborts, over those words, when it ends while `until_abandoned` reads.
    """
    try:
        serve(sys.stdin.buffer, own_answers())
    finally:
        failed = sys.exc_info()[0] is not None
        if failed:
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(int(failed))


def own_answers() -> IO[bytes]:
    """Return the output of this process for answers alone.

    What others write there goes to its errors from now on: HiGHS prints some warnings whatever it
    is told, and a line of them among the answers would be none.
    """
    sys.stdout.flush()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def until_abandoned(requests: IO[bytes]) -> None:
    """End the process when nobody holds the other end of the pipe any more."""
    requests.read()
    os._exit(3)
