"""A process that reads what others wrote, for the server: ``python -m designer.server.reader``.

It is begun before anybody asks, with all that reads already there. It answers one call after the
other: its input and output carry pickles, each behind its length in bytes.
"""

import logging
import os
import pickle
import signal
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import IO, Any

LENGTH = struct.Struct("!Q")

GRACE = 5.0
"""Seconds after which it ends itself where nobody has ended it at its limit."""

ROOMS = (
    "designer.views.draw.files",
    "designer.views.draw.import_card",
    "designer.views.draw.sharing",
    "designer.views.draw.sketch_callbacks",
)
"""Where the functions lie that are called."""

log = logging.getLogger(__name__)

Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


def send(to: IO[bytes], content: bytes) -> None:
    """Write a message."""
    to.write(LENGTH.pack(len(content)))
    to.write(content)
    to.flush()


def hear(source: IO[bytes], most: int | None = None) -> bytes | None:
    """Return the next message, None where there is none or it was cut off.

    Parameters
    ----------
    source
        Where it comes from.
    most
        Bytes that it may have.

    Raises
    ------
    OverflowError
        If it has more.
    """
    head = source.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (many,) = LENGTH.unpack(head)
    if most is not None and many > most:
        raise OverflowError(many)
    content = source.read(many)
    return content if len(content) == many else None


def main() -> None:
    """Answer calls until the input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what others print is no answer
    _get_ready()
    send(answers, b"")
    while (asked := hear(sys.stdin.buffer)) is not None:
        seconds, call = pickle.loads(asked)  # of the server, which began this process
        with _at_most(seconds + GRACE):
            send(answers, _answer(*call))


def _get_ready() -> None:
    """Load what the first call would load."""
    for each in ROOMS:
        import_module(each)
    shapes = import_module("designer.server.questions")
    shapes.settle()


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """End the process, whatever it computes, when a block takes longer; not on Windows."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    signal.setitimer(signal.ITIMER_REAL, seconds)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)


def _answer(function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> bytes:
    """Call a function and return what came of it."""
    from ccl.errors import CclError  # noqa: PLC0415  loaded by now

    try:
        return pickle.dumps(("done", function(*args, **named)))
    except CclError as error:
        return pickle.dumps(("refused", str(error)))
    except MemoryError:
        return pickle.dumps(("much", ""))
    except Exception as error:
        log.exception("reading failed")
        return pickle.dumps(("bug", type(error).__name__))


if __name__ == "__main__":
    main()
