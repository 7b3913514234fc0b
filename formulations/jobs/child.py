"""Another Python process of ours, spoken to in lines of JSON.

It dies with the one who asks: it ends when the pipe that its requests come through is closed,
whoever closes it. What it may take is limited (`formulations.jobs.resource_limits`), so that it
dies alone.

The child's end of the pipe: answers on an output of their own, and an end with the parent's.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, NoReturn

from formulations.jobs.resource_limits import ResourceLimits, end_tree, needed, refused


class Child:
    """A process; iterate over it for its answers, until it ends.

    Parameters
    ----------
    module
        What it runs: it reads requests from its input and writes answers, an object each line.
    memory
        Bytes that it and its own children may take together; None leaves it to who began this
        process.
    """

    def __init__(self, module: str, memory: float | None = None) -> None:
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  closed by `close`
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
        )
        self._walls = None if memory is None else ResourceLimits(self._process, memory)

    def ask(self, request: Mapping[str, Any]) -> None:
        """Write a request; one that nobody reads any more is lost."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it is still there."""
        return self._process.poll() is None

    @property
    def closed(self) -> bool:
        """Whether nothing can be read of it any more."""
        return self._stderr.closed

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield its answers; a line that its end has cut off is none."""
        assert self._process.stdout is not None
        if self._process.stdout.closed:
            return
        for line in self._process.stdout:
            if not line.endswith(b"\n"):
                return
            yield json.loads(line)

    def kill(self) -> None:
        """End it and its children now, and wait until it has."""
        end_tree(self._process)
        self._process.wait()

    def wait(self) -> None:
        """Wait for its end."""
        self._process.wait()

    def errors(self) -> list[str]:
        """Return the lines that it has written on what went wrong."""
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="replace").strip().splitlines()

    @property
    def starved(self) -> bool:
        """Whether it ended because it took more memory than it may have; waits for its end."""
        code = self._process.wait()
        return refused(self.errors()) or (self._walls is not None and self._walls.meant(code))

    def last_words(self, what: str) -> str:
        """Wait for its end and say why `what` ended without a result."""
        code, lines = self._process.wait(), self.errors()
        if self.starved:
            return needed(what, None if self._walls is None else self._walls.memory)
        if code < 0:
            return f"{what} was ended by signal {-code}"
        return f"{what} ended without a result: {lines[-1] if lines else f'exit code {code}'}"

    def close(self) -> None:
        """Give back its pipes."""
        if self._walls is not None:
            self._walls.leave()
        for pipe in (self._process.stdin, self._process.stdout, self._stderr):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


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
