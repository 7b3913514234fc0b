"""Ask the server ten thousand hostile things: ``make fuzz-server``.

A real server on loopback gets broken HTTP, wrong names, paths to elsewhere, lengths that lie,
bodies that never end, bad JSON, and the questions of every callback with other shapes and values,
files for every reader among them. No answer may be a failure of the server's (5xx), tell of a
traceback or of a path; no callback may report a bug on what users give it; no file of elsewhere may
be opened; after every hundred a good question has to be answered in time; and memory stays where it
was after the first third. The same seed asks the same. Prints counts and ``passed``, or what was
found.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.robust.hostile import Answer, Page, Told
from tests.robust.visitor import free_port

ROOT = Path(__file__).resolve().parents[2]

SERVE = """
import os, sys, tempfile
from pathlib import Path
port, report, root = int(sys.argv[1]), open(sys.argv[2], "a", buffering=1), sys.argv[3]
FOLDERS = tuple(str(Path(each).resolve()) for each in (
    root, sys.prefix, sys.base_prefix, tempfile.gettempdir(), "/proc", "/sys", "/dev", "/usr/lib",
    "/usr/share", "/etc/mime.types", "/etc/hosts", "/etc/localtime", "/lib", "/lib64",
))
listening = []
def watch(event, given):
    if not listening or event != "open" or not isinstance(given[0], (str, bytes)):
        return
    place = os.path.realpath(os.fsdecode(given[0]))
    if not place.startswith(FOLDERS):
        report.write(place + "\\n")
sys.addaudithook(watch)
from designer.app import serve
serve(None, host="127.0.0.1", port=port, open_browser=False, ready=listening.append)
"""
"""The server, with a watch over the files that it opens once it listens."""

EVERY = 100
"""Requests after which a good question has to be answered."""

PATIENCE = 20.0
"""Seconds in which a good question has to be answered, on a machine that does other things too."""

GROWTH = 96 * 2**20
"""Bytes by which the server may be larger at the end than after the first third."""

AT_ONCE = 4
GIVEN_KINDS = ("values", "files", "links")
"""Where a callback may not say that it has a bug: all of it is what users give. What the server has
put on the page itself and somebody forged may lead to that, in one sentence."""

BAD_WORDS = (
    b"Traceback",
    b'File "',
    b"site-packages",
    *(str(each).encode() for each in (ROOT, Path.home(), sys.prefix)),
)


@dataclass
class Tally:
    """What was asked, what was answered, and what was wrong."""

    kinds: Counter[str] = field(default_factory=Counter)
    answers: Counter[tuple[str, str]] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    slowest: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, kind: str, what: str, answer: Answer) -> None:
        """Count an answer, and keep it where it is wrong."""
        trouble = wrong(kind, answer)
        with self.lock:
            self.kinds[kind] += 1
            self.answers[kind, answer.short] += 1
            if trouble:
                self.findings.append(f"{kind}: {trouble}: {what[:300]}")


def wrong(kind: str, answer: Answer) -> str:
    """Return what is wrong with an answer to a request of a kind, or nothing."""
    if answer.status >= 500 and answer.status != 501:
        return f"status {answer.status} {answer.content[:200]!r}"
    if kind in GIVEN_KINDS and b"is a bug in Topoloom" in answer.content:
        return f"a bug, {answer.content[answer.content.index(b'is a bug') :][:120]!r}"
    words = [each for each in BAD_WORDS if each in answer.content] if answer.status >= 400 else []
    return f"it tells {words}" if words else ""


class Server:
    """A designer of its own, its words kept in a file."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.opened = folder / "opened"
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", SERVE, str(self.port), str(self.opened), str(ROOT)],
                cwd=ROOT,
                stdout=log,
                stderr=log,
            )

    def memory(self) -> int:
        """Bytes that it holds, its solvers not counted."""
        return int(psutil.Process(self.process.pid).memory_info().rss)


def fuzz(page: Page, server: Server, *, many: int, chance: random.Random) -> tuple[Tally, int]:
    """Send so many requests; return what came of them and the bytes after the first third."""
    tally, told = Tally(), Told(page, chance)
    after_warm = 0

    def send(one: tuple[str, str, Callable[[], Answer]]) -> None:
        kind, what, ask = one
        tally.take(kind, what, ask())

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for begin in range(0, many, EVERY):
            batch = [next(told.requests) for _ in range(min(EVERY, many - begin))]
            list(pool.map(send, batch))
            began = time.monotonic()
            good = page.good()
            took = time.monotonic() - began
            tally.slowest = max(tally.slowest, took)
            if server.process.poll() is not None:
                tally.findings.append(f"the server ended with {server.process.returncode}")
                break
            if good or took > PATIENCE:
                tally.findings.append(f"a good question after {took:.1f} s: {good or 'too late'}")
            if begin <= many // 3:
                after_warm = server.memory()
    return tally, after_warm


def report(tally: Tally, *, warm: int, end: int, seconds: float) -> None:
    """Print what was asked and answered."""
    for kind in sorted(tally.kinds):
        answers = {what: n for (of, what), n in tally.answers.items() if of == kind}
        told = ", ".join(f"{what} {n:,}" for what, n in sorted(answers.items()))
        print(f"{kind:14}{tally.kinds[kind]:7,}   {told}")
    print(
        f"{sum(tally.kinds.values()):,} requests in {seconds:.0f} s, "
        f"slowest good question {tally.slowest:.2f} s, "
        f"memory {warm / 2**20:.0f} MiB after a third, {end / 2**20:.0f} MiB at the end"
    )


def main() -> int:
    """Print what was answered; 1 if anything was found."""
    asked = argparse.ArgumentParser(description="Ask the server hostile things.")
    asked.add_argument("--requests", type=int, default=10_000)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--keep", type=Path, help="folder for what was found and the server's log")
    given = asked.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        try:
            page = Page(server.port)
            page.open()
            tally, warm = fuzz(page, server, many=given.requests, chance=random.Random(given.seed))
            end = server.memory() if server.process.poll() is None else 0
            if end - warm > GROWTH:
                tally.findings.append(f"memory grew by {(end - warm) / 2**20:.0f} MiB")
            server.process.terminate()
            if server.process.wait(30) != 0:
                tally.findings.append(f"it ended with {server.process.returncode} when asked to")
        finally:
            server.process.kill()
        opened = sorted(set(server.opened.read_text().splitlines()))
        tally.findings += [f"opened {each}" for each in opened]
        log = server.log.read_text(errors="replace")
    report(tally, warm=warm, end=end, seconds=time.monotonic() - began)
    for finding, many in Counter(each[:400] for each in tally.findings).most_common(20):
        print(f"{many} x {finding}")
    if given.keep is not None:
        given.keep.mkdir(parents=True, exist_ok=True)
        (given.keep / "findings.json").write_text(json.dumps(tally.findings, indent=1), "utf-8")
        (given.keep / "log").write_text(log, "utf-8")
    print(f"{log.count('Traceback'):,} tracebacks in its log, {len(tally.findings):,} findings")
    print("failed" if tally.findings else "passed")
    return 1 if tally.findings else 0


if __name__ == "__main__":
    sys.exit(main())
