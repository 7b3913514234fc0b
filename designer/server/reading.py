"""What others wrote is read by a process of its own, which may take so much time and memory.

A reader waits for work, with all that it needs already loaded, so that a small file takes no longer
than here. One that takes too long or too much is ended, and another one is there for the next.
"""

from __future__ import annotations

import contextlib
import pickle
import subprocess
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psutil

from ccl.errors import FormatError
from designer.server.reader import Call, hear, send
from formulations import ResourceLimits, end_tree

SECONDS = 30.0
"""That a small file may take."""

PER_BYTE = 1e-6
"""Seconds more for each byte: a file of 40 MB has 70."""

MEMORY = 2 * 2**30
"""Bytes that reading one may take."""

MOST_ANSWER = 256 * 2**20
"""Bytes of what is read; no page holds as many."""

START = 120.0
"""Seconds that a reader may take to load what it needs, on a machine that does other things."""

AT_ONCE = 4
"""Readers that work at once; other calls wait."""

EACH = 2
"""Of these, for one session."""

WAITING = 8
"""Calls of one session that work or wait; more are refused."""

SLOW = 1.0
"""Seconds of a call after which another reader gets ready, so that the next call finds one."""

READY = 2
"""Readers that are kept while nobody asks."""

TIRED = 512 * 2**20
"""Bytes that a reader may hold when it has nothing to do."""

ENDS = "the server ends and reads nothing more"


class Apart:
    """Calls functions in processes of their own, so that no file takes the server with it.

    Parameters
    ----------
    seconds, memory
        What a call may take; time grows with the size of the file.
    """

    def __init__(self, seconds: float = SECONDS, memory: float = MEMORY) -> None:
        self._seconds, self._memory = seconds, memory
        self._turn = threading.Condition()
        self._asked: Counter[str] = Counter()
        self._working: Counter[str] = Counter()
        self._idle: list[Reader] = []
        self._all: list[Reader] = []
        # A function of the list alone, so that it does not keep this from being given up.
        self.close = weakref.finalize(self, _close, self._all)

    def warm(self) -> None:
        """Let a reader get ready for the next call."""
        with self._turn:
            if not self._idle and len(self._all) < AT_ONCE and self.close.alive:
                self._idle.append(self._begun())

    def call(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        nbytes: int = 0,
        session: str = "",
        **named: Any,
    ) -> Any:
        """Return what a function of a module returns, called elsewhere.

        Parameters
        ----------
        name
            Of what is read; errors begin with it.
        function, args, named
            What is called.
        nbytes
            Size of what is read.
        session
            Whose it is.

        Raises
        ------
        FormatError
            If it takes too long or too much, and for a `CclError` that it raises.
        """
        seconds = self._seconds + nbytes * PER_BYTE
        with self._place(name, session):
            with self._turn:
                reader = self._idle.pop() if self._idle else self._begun()
            spare = threading.Timer(SLOW, self.warm)
            spare.daemon = True
            spare.start()
            try:
                answer = reader.call((function, args, named), seconds, memory=self._memory)
            finally:
                spare.cancel()
                self._give_back(reader)
        return _result(name, answer)

    @contextmanager
    def _place(self, name: str, session: str) -> Iterator[None]:
        """Wait for a turn."""
        with self._turn:
            if self._asked[session] >= WAITING:
                raise FormatError(
                    f"{name} waits for other files that are being read; try again when they are"
                )
            self._asked[session] += 1
            self._turn.wait_for(
                lambda: self._working.total() < AT_ONCE and self._working[session] < EACH
            )
            self._working[session] += 1
        try:
            yield
        finally:
            with self._turn:
                for each in (self._asked, self._working):
                    each[session] -= 1
                    each += Counter()  # what is 0 goes
                self._turn.notify_all()

    def _give_back(self, reader: Reader) -> None:
        """Keep a reader for the next call, or another one in its place."""
        with self._turn:
            fit = reader.fit and len(self._idle) < READY and self.close.alive
            if fit:
                self._idle.append(reader)
            elif reader in self._all:
                self._all.remove(reader)
        if not fit:
            reader.close()
        self.warm()

    def _begun(self) -> Reader:
        if not self.close.alive:
            raise FormatError(ENDS)
        self._all.append(Reader())
        return self._all[-1]


class Reader:
    """A process that reads."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "designer.server.reader"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._ready = False
        self._late = False
        self._calling = threading.Lock()

    @property
    def fit(self) -> bool:
        """Whether it is there and holds little."""
        if self._process.poll() is not None:
            return False
        with contextlib.suppress(psutil.Error):
            return bool(psutil.Process(self._process.pid).memory_info().rss < TIRED)
        return False

    def call(self, what: Call, seconds: float, *, memory: float) -> tuple[str, Any]:
        """Return what came of a call: a word, and what belongs to it."""
        with self._calling:
            return self._call(what, seconds, memory)

    def _call(self, what: Call, seconds: float, memory: float) -> tuple[str, Any]:
        assert self._process.stdin is not None
        if self._process.stdin.closed:
            return "refused", ENDS
        if not self._ready:
            self._hear(START)
        walls = ResourceLimits(self._process, memory)
        try:
            with contextlib.suppress(BrokenPipeError):
                send(self._process.stdin, pickle.dumps((seconds, what)))
            answer = self._hear(seconds)
            if answer is not None:
                found: tuple[str, Any] = pickle.loads(answer)  # of our own process
                return found
        except OverflowError:
            end_tree(self._process)
            self._process.wait()
            return "large", ""
        finally:
            walls.leave()
        code = self._process.wait()
        if self._late:
            return "late", f"{seconds:.3g}"
        return ("much", "") if walls.meant(code) else ("bug", f"it ended with {code}")

    def close(self) -> None:
        """End it; a call that it answers ends with it."""
        end_tree(self._process)
        with self._calling:
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()

    def _hear(self, seconds: float) -> bytes | None:
        """Return its next message; end it where none comes in time."""
        assert self._process.stdout is not None
        timer = threading.Timer(seconds, self._overrun)
        timer.daemon = True
        timer.start()
        try:
            found = hear(self._process.stdout, MOST_ANSWER)
        finally:
            timer.cancel()
        self._ready = True
        return found

    def _overrun(self) -> None:
        self._late = True
        end_tree(self._process)


def _result(name: str, answer: tuple[str, Any]) -> Any:
    """Return what a call has returned, or say why there is nothing."""
    what, value = answer
    if what == "done":
        return value
    if what == "bug":
        raise RuntimeError(f"reading {name}: {value}")
    gibibytes = f"{MEMORY / 2**30:g} GiB"
    told = {
        "late": f"{name} takes more than {value} s to be read; open a smaller part of it",
        "much": f"{name} takes more than {gibibytes} to be read; open a smaller part of it",
        "large": f"{name} holds more than a page can show; open a smaller part of it",
    }
    raise FormatError(told.get(what, value))


def _close(readers: list[Reader]) -> None:
    while readers:
        readers.pop().close()
