"""Child process of ours, spoken to in lines of JSON, and what it may take.

`Child` is the parent's end. The process dies with its parent: it ends when the pipe that its
requests come through is closed, whoever closes it. The functions from `leave` on are the child's
end of the pipe: answers on an output of their own, and an end with the parent's.

`ResourceLimits` is what a process of ours and its children may take, and who ends it when it takes
more, so that it dies alone. Two walls stand around its memory. A thread adds up what the whole tree
of processes holds, several times a second, and ends it where that is too much: on every system. On
Linux the kernel as well refuses each of them more writable memory than that and `RESERVE` beside,
for what grows faster than the thread looks. Writable (RLIMIT_DATA) and not the address space
(RLIMIT_AS), of which threads and compilers reserve several times what they touch: a solve of
0.27 GB has 0.31 GB of the one and 0.80 GB of the other, on two cores.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

import psutil

import ccl.errors
from ccl.errors import CclError, ProblemError, SolveError
from formulations.core import preparing

if TYPE_CHECKING:
    from formulations.core.run import Progress

SHARE = 0.8
"""Of the machine's memory, what all solves together may take."""

LEAST = 1e9
"""Bytes that a solve may always take: loading solvers takes a third of it."""

RESERVE = 1e9
"""Bytes that the kernel grants beyond the limit: stacks of threads, buffers not yet touched."""

OVERRUN = 2.0
"""How often its time limit a solve may take before it is ended, and `PATIENCE` seconds on top."""

PATIENCE = 10.0
"""Seconds: building a model and replaying a plan are not stopped by a limit."""

FAR, NEAR = 0.5, 0.1
"""Seconds between two looks, far from the limit and in its upper half."""

SAID = (
    "MemoryError",
    "bad_alloc",
    "Cannot allocate memory",
    "Unable to allocate",
    "failed to map segment",
)
"""What processes write when they are refused memory."""

_GROUPS = Path("/sys/fs/cgroup")
_FILES = {
    "": ("memory.max", "memory.current", "inactive_file"),
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
"""Control groups of either version -> where they say their limit, their use and its cache."""


def memory_each(solves: int = 1) -> float:
    """Return the bytes that each of several solves at once may take on this machine.

    An equal part of `SHARE` of its memory, or of what a container leaves of it; of what is
    available now, if that is less; never below `LEAST`.
    """
    machine = psutil.virtual_memory()
    whole, free = float(machine.total), float(machine.available)
    for limit, taken in _groups():
        whole, free = min(whole, limit), min(free, limit - taken)
    return max(LEAST, SHARE * min(whole / solves, free))


def patience(time_limit: float | None) -> float | None:
    """Return the seconds after which a solve is ended that does not stop at its limit."""
    return None if time_limit is None else OVERRUN * time_limit + PATIENCE


class Watch:
    """Acts when something takes longer than it may; what was spent preparing is excused.

    Parameters
    ----------
    seconds
        That it may take, or None for ever.
    late
        What is called then, from a thread.
    """

    def __init__(self, seconds: float | None, late: Callable[[], None]) -> None:
        self._late = late
        self._begun = time.time()
        self._excused = 0.0
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._over = False
        if seconds is not None:
            self._wait(seconds)

    def cancel(self) -> None:
        """Wait no longer."""
        with self._lock:
            self._over = True
            if self._timer is not None:
                self._timer.cancel()

    def _wait(self, seconds: float) -> None:
        with self._lock:
            if not self._over:
                self._timer = threading.Timer(seconds, self._ring)
                self._timer.daemon = True
                self._timer.start()

    def _ring(self) -> None:
        excused = preparing.excused(self._begun)
        more, self._excused = excused - self._excused, excused
        if more > 0:
            self._wait(more)
        else:
            self._late()


class ResourceLimits:
    """The walls around a process, until it ends.

    Parameters
    ----------
    process
        Just begun.
    memory
        Bytes that it and its children may take together.

    Raises
    ------
    ProblemError
        If that is nothing.
    """

    def __init__(self, process: subprocess.Popen[bytes], memory: float) -> None:
        self.memory = memory
        self.most = 0.0
        """Bytes that the tree was seen to hold at most."""
        self.broken = False
        """Whether the process was ended because it took too much."""
        self._process = process
        self._left = threading.Event()
        _first_to_go(process.pid)
        _refuse_more(process.pid, int(memory + RESERVE))
        self._thread = threading.Thread(
            target=self._look, daemon=True, name=f"memory of {process.pid}"
        )
        self._thread.start()

    def leave(self) -> None:
        """Look no more; the process has ended."""
        self._left.set()

    def meant(self, code: int) -> bool:
        """Return whether an end with this exit code, without words, was for want of memory."""
        ended = code in {-signal.SIGABRT, -signal.SIGKILL, -signal.SIGSEGV, -signal.SIGBUS}
        return self.broken or (ended and self.most > SHARE * self.memory)

    def _look(self) -> None:
        pause = NEAR
        while not self._left.wait(pause) and self._process.poll() is None:
            held = sum(memory_of(each) for each in tree(self._process.pid))
            self.most = max(self.most, held)
            if held > self.memory:
                self.broken = True
                end_tree(self._process)
                return
            pause = NEAR if 2 * held > self.memory else FAR


def checked(memory: float | None) -> float:
    """Return the limit that is given, or else the usual one.

    Raises
    ------
    ProblemError
        If it leaves nothing to take.
    """
    if memory is None:
        return memory_each()
    if not memory > 0:
        raise ProblemError(
            f"the memory that a solve may take is {memory:g} bytes; give more than 0, such as 4e9"
        )
    return memory


def needed(what: str, memory: float | None) -> str:
    """Return the message that a process needed more memory than it may have."""
    limit = "it may have" if memory is None else f"the {memory / 1e9:.3g} GB it may have"
    return (
        f"{what} needed more memory than {limit}; use longer epochs or fewer chunks, or raise the "
        "limit with --memory"
    )


def refused(lines: Sequence[str]) -> bool:
    """Return whether the last lines that a process wrote say that it was refused memory."""
    return any(word in line for line in lines[-3:] for word in SAID)


def tree(pid: int) -> list[psutil.Process]:
    """Return a process and all below it, those that are still there."""
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []


def end_tree(process: subprocess.Popen[bytes]) -> None:
    """End a process and all below it now."""
    if process.poll() is not None:
        return
    below = tree(process.pid)[1:]
    process.kill()
    for each in below:
        with contextlib.suppress(psutil.Error):
            each.kill()


def memory_of(process: psutil.Process) -> float:
    """Return the bytes that a process has in memory, none if it is not there any more."""
    try:
        return float(process.memory_info().rss)
    except psutil.Error:
        return 0.0


def _first_to_go(pid: int) -> None:
    """Make Linux end the child and not its parent where the machine has no memory left."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/oom_score_adj").write_text("500", "ascii")


def _refuse_more(pid: int, limit: int) -> None:
    """Let the kernel refuse it, and every child that it will have, more writable memory."""
    if sys.platform == "linux":
        import resource  # noqa: PLC0415  Windows has none

        with contextlib.suppress(OSError):
            _, hard = resource.prlimit(pid, resource.RLIMIT_DATA)
            most = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.prlimit(pid, resource.RLIMIT_DATA, (most, hard))


def _groups() -> Iterator[tuple[float, float]]:
    """Yield the limit and use, in bytes, of each control group that this process is in."""
    try:
        lines = Path("/proc/self/cgroup").read_text("ascii").splitlines()
    except OSError:
        return
    for line in lines:
        _, names, path = line.split(":", 2)
        if names in {"", "memory"}:
            root = _GROUPS / names
            inside = root / path.lstrip("/")
            # In a container the path may be the host's, and its own group the root that it sees.
            above = [each for each in inside.parents if each.is_relative_to(root)]
            for folder in {root, inside, *above}:
                with contextlib.suppress(OSError, ValueError):
                    yield _group(folder, *_FILES[names])


def _group(folder: Path, limit: str, use: str, cache: str) -> tuple[float, float]:
    """Return the limit of a control group and its use, less what the kernel gives back at need."""
    rows = (line.split() for line in (folder / "memory.stat").read_text("ascii").splitlines())
    kept = next((float(row[1]) for row in rows if row[0] == cache), 0.0)
    allowed, taken = (float((folder / name).read_text("ascii")) for name in (limit, use))
    return allowed, taken - kept


_Begun = tuple[subprocess.Popen[bytes], IO[bytes]]

_AHEAD: dict[str, _Begun] = {}
"""Processes that nobody has taken over yet."""


def _begun(module: str) -> _Begun:
    """Begin a process, with a file for what it writes on what went wrong."""
    stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  closed by `Child.close`
    command = [sys.executable, "-m", module]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=stderr), stderr


@contextmanager
def begun_ahead(module: str) -> Iterator[None]:
    """Begin a process that the first `Child` of a module inside the block takes over.

    It loads what it needs while this process still finds out what it is to be sent.
    """
    _AHEAD[module] = _begun(module)
    try:
        yield
    finally:
        if module in _AHEAD:
            process, stderr = _AHEAD.pop(module)
            with process, stderr:
                end_tree(process)


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
        ahead = module in _AHEAD
        self._process, self._stderr = _AHEAD.pop(module) if ahead else _begun(module)
        self._walls = None if memory is None else ResourceLimits(self._process, memory)

    def ask(self, request: Mapping[str, Any]) -> None:
        """Write a request; one that nobody reads any more is lost."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError, ValueError):  # its end, or ours
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
        """Yield its answers; a line that its end has cut off is dropped."""
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


def progress_event(news: Progress, result: Any) -> dict[str, Any]:
    """Return the event of a progress, with what its result has become on the way."""
    return {
        "event": "progress",
        "seconds": news.seconds,
        "incumbent": news.incumbent,
        "bound": news.bound,
        "message": news.message,
        "result": result,
    }


def error_event(error: CclError) -> dict[str, Any]:
    """Return the event of an error."""
    return {"event": "error", "kind": type(error).__name__, "message": str(error)}


def error_in(event: Mapping[str, Any]) -> CclError:
    """Return the error that `error_event` has written."""
    kind: type[CclError] = getattr(ccl.errors, event["kind"], SolveError)
    return kind(event["message"])


class Speaker:
    """Writes events in lines, not too many of those that carry no plan."""

    def __init__(self, answers: IO[bytes]) -> None:
        self.answers = answers
        self.last, self.said = 0.0, ""

    def report(self, news: Progress, result: Any) -> None:
        """Report a progress, with what its result has become on the way."""
        now = time.monotonic()
        if result is None and news.message == self.said and now - self.last < PAUSE:
            return
        self.last, self.said = now, news.message
        self.line(progress_event(news, result))

    def line(self, event: Mapping[str, Any]) -> None:
        """Write one line."""
        self.answers.write(json.dumps(event).encode() + b"\n")
        self.answers.flush()


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


def answer_one(study: Callable[[dict[str, Any]], Iterable[Mapping[str, Any]]]) -> NoReturn:
    """Answer one request with all that a study yields, a line each as it comes, and end.

    The body of a child process that its parent may end at any time, so it is all that handles an
    interrupt: a terminal sends Ctrl-C to both.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
        request = json.loads(requests.readline())
        threading.Thread(target=until_abandoned, args=(requests,), daemon=True).start()
        for event in study(request):
            answers.write(json.dumps(event).encode() + b"\n")
            answers.flush()

    leave(serve)


def own_answers() -> IO[bytes]:
    """Return the output of this process for answers alone.

    What others write there goes to its errors from now on: HiGHS prints some warnings whatever its
    options, and a line of them among the answers would be malformed.
    """
    sys.stdout.flush()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def lines_of(requests: IO[bytes], idle: float | None = None) -> Iterator[bytes]:
    """Yield lines until none comes for `idle` seconds; end the process when the pipe is closed."""
    waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def listen() -> None:
        for line in requests:
            waiting.put(line)
        os._exit(3)

    threading.Thread(target=listen, daemon=True).start()
    with contextlib.suppress(queue.Empty):
        while True:
            yield waiting.get(timeout=idle)


def until_abandoned(
    requests: IO[bytes], hear: Callable[[dict[str, Any]], None] = lambda _line: None
) -> None:
    """Hear what is still said, and end the process when nobody holds the pipe's other end."""
    for line in requests:
        hear(json.loads(line))
    os._exit(3)
