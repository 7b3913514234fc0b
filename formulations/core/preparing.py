"""Compilation of the searches, once: in a process of its own, announced, outside every limit.

The searches (`formulations.engines.kernels`) are compiled by numba when a machine first calls them,
which takes a minute and more, and are cached beside their sources or in ``NUMBA_CACHE_DIR``.
The first call of one begins a process that compiles all of them and belongs to nobody: it goes on
when the solve that began it is ended, and a second solve waits for the same one. Meanwhile `clock`
stands still, so that no limit counts the waiting, and listeners get a report every half second.

What cannot wait may call the searches as they are written (`interpreted`), some hundred times as
slow, which is quick enough for a first plan of a small problem.
"""

import contextlib
import hashlib
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import psutil

PREPARING = "preparing the search, once"
"""The report meanwhile."""

WITHOUT = "TOPOLOOM_COMPILES_HERE"
"""Environment variable of the process that compiles; set, calls compile where they are made."""

REPORT_EVERY, LOOK = 0.5, 0.05
"""Seconds between two tellings, and between two looks whether it is done."""

TURNS = 2
"""Processes that are begun until a solve compiles for itself."""

_SOURCES = Path(__file__).parents[1] / "engines" / "kernels"

_APART = """
import os, subprocess, sys
getattr(os, "nice", abs)(5)
child = subprocess.Popen(
    [sys.executable, "-m", "formulations.solving.compile_kernels"],
    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    start_new_session=True,
)
print(child.pid)
"""
"""Begins the process and ends, so that the process is below nobody who might be ended."""


@dataclass
class _State:
    """What this process knows."""

    ready: bool = False
    here: bool = bool(os.environ.get(WITHOUT))
    waited: float = 0.0
    since: float | None = None
    reported: float = 0.0
    process: psutil.Process | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)
    listeners: list[Callable[[str], None]] = field(default_factory=list)


_STATE = _State()

_INTERPRETED: ContextVar[bool] = ContextVar("interpreted", default=False)


def clock() -> float:
    """Return the seconds of `time.perf_counter`, less those that were spent preparing."""
    since = _STATE.since
    now = time.perf_counter() if since is None else since
    return now - _STATE.waited


@contextmanager
def listening(report: Callable[[str], None]) -> Iterator[None]:
    """Call `report`, inside the block, while the searches are being prepared."""
    _STATE.listeners.append(report)
    try:
        yield
    finally:
        _STATE.listeners.remove(report)


@contextmanager
def interpreted(wanted: bool = True) -> Iterator[None]:
    """Call the searches as they are written, inside the block, where they are not compiled yet.

    With `wanted` false, wait there until they are compiled, inside another such block too.
    """
    token = _INTERPRETED.set(wanted and not ready())
    try:
        yield
    finally:
        _INTERPRETED.reset(token)


def interpreting() -> bool:
    """Return whether the searches are called as they are written."""
    return _INTERPRETED.get()


def ready() -> bool:
    """Return whether the searches are compiled."""
    if not _STATE.ready and not _STATE.here:
        _STATE.ready = _stamp().exists()
    return _STATE.ready or _STATE.here


def wait() -> None:
    """Wait until the searches are compiled; begin it where nobody has.

    Where no process can be begun or none comes to its end, the searches are compiled here, as they
    are called, and `compiling` stops the clock.
    """
    if ready():
        return
    with _STATE.lock:
        if ready():
            return
        _STATE.since = time.perf_counter()
        try:
            _STATE.here = not any(_prepared_elsewhere() for _ in range(TURNS))
        finally:
            _STATE.waited += time.perf_counter() - _STATE.since
            _STATE.since = None


@contextmanager
def compiling() -> Iterator[None]:
    """Stop the clock for a call that may compile."""
    with _STATE.lock:
        outer = _STATE.since
        if outer is None:
            _STATE.since = time.perf_counter()
            if not ready() or _STATE.here:
                _report_progress()
        try:
            yield
        finally:
            if outer is None and _STATE.since is not None:
                _STATE.waited += time.perf_counter() - _STATE.since
                _STATE.since = None


def prepare_searches() -> None:
    """Let a process that belongs to nobody compile the searches, unless one does or has."""
    if ready() or at_work() or (_STATE.process is not None and _alive(_STATE.process)):
        return
    _STATE.process = None
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        begun = subprocess.run(
            [sys.executable, "-c", _APART],
            capture_output=True,
            check=True,
            stdin=subprocess.DEVNULL,
            env=environment,
        )
        _STATE.process = psutil.Process(int(begun.stdout))
    except (OSError, subprocess.SubprocessError, ValueError, psutil.Error):
        logging.getLogger("topoloom").debug("no process can be begun to compile", exc_info=True)


def excused(begun: float) -> float:
    """Return how many seconds since `begun`, on the clock of `time.time`, went into preparing."""
    with contextlib.suppress(OSError):
        return max(0.0, _stamp().stat().st_mtime - begun)
    return time.time() - begun if at_work() else 0.0


@contextmanager
def alone() -> Iterator[bool]:
    """Return whether this process is the one that prepares; it is until the block ends."""
    path = _file("lock")
    mine = f"{os.getpid()} {psutil.Process().create_time()}"
    if at_work():
        yield False
        return
    path.unlink(missing_ok=True)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="ascii") as file:
            file.write(mine)
    except FileExistsError:
        yield False
        return
    try:
        yield True
    finally:
        path.unlink(missing_ok=True)


def at_work() -> bool:
    """Return whether a process of this machine is preparing."""
    try:
        pid, created = _file("lock").read_text("ascii").split()
        return psutil.Process(int(pid)).create_time() == float(created)
    except (OSError, ValueError, psutil.Error):
        return False


def anew() -> bool:
    """Note that these sources are being compiled; return whether it is for the first time."""
    path = _file("begun")
    first = not path.exists()
    path.touch()
    return first


def done() -> None:
    """Note that all is compiled."""
    _stamp().touch()


def _prepared_elsewhere() -> bool:
    """Wait for a process that prepares, begun here or by others; return whether it was done."""
    prepare_searches()
    while not ready():
        alive = _STATE.process is not None and _alive(_STATE.process)
        if not alive and not at_work():
            return ready()
        _report_progress()
        time.sleep(LOOK)
    return True


def _report_progress() -> None:
    now = time.perf_counter()
    if now - _STATE.reported < REPORT_EVERY:
        return
    if not _STATE.listeners and not _STATE.reported:
        logging.getLogger("topoloom").warning(PREPARING)
    _STATE.reported = now
    for report in tuple(_STATE.listeners):
        report(PREPARING)


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _stamp() -> Path:
    return _file("ready")


def _file(name: str) -> Path:
    return _folder() / f"topoloom-{_key()}.{name}"


@cache
def _folder() -> Path:
    """Return where numba keeps what it compiles, or else a folder of the user."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        return Path(given)
    beside = _SOURCES / "__pycache__"
    with contextlib.suppress(OSError):
        beside.mkdir(exist_ok=True)
    return beside if os.access(beside, os.W_OK) else Path.home() / ".cache" / "topoloom"


@cache
def _key() -> str:
    """Return a key of the sources, versions and processors that need other code."""
    import numba  # noqa: PLC0415  only its callers need it
    from numba.core.codegen import get_host_cpu_features  # noqa: PLC0415

    # numba has no types.
    processor = str(get_host_cpu_features())  # type: ignore[no-untyped-call]
    parts = [str(_SOURCES), sys.version, numba.__version__, processor]
    found = hashlib.sha256("\n".join(parts).encode())
    for path in sorted(_SOURCES.glob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()[:16]
