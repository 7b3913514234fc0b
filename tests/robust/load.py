"""Fifty sessions that draw and solve for five minutes: ``make load``.

Each visitor draws clusters of its own, asks for bounds and the best rate, solves, watches, now and
then cancels, reloads, or asks for the solve of somebody else. What comes back is compared with what
was drawn: the best rate with a closed form, the schedule, verified again, with the drawing by name
and bandwidth. At the end the server's memory must be what it was after the warm-up, no solver may
be left, and it must stop when asked. Prints counts and ``passed``, or what was wrong.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ccl.errors import CclError
from ccl.serialization.topoloom import result_from_json, topology_from_json
from tests.robust.visitor import Json, Server, Visitor, drawings, free_port

WARM = 0.3
"""Share of the time after which memory is what later memory is compared with."""

GROWTH = 0.15
"""Share by which the server's memory may be larger at the end."""

PATIENCE = 240.0
"""Seconds that a solve may wait in line and take; it is asked for two."""

METHODS = ("auto", "list", "ring", "te-ccl-milp")


@dataclass
class Tally:
    """What all visitors have seen."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    keys: list[tuple[str, str]] = field(default_factory=list)
    slowest: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, what: str, seconds: float = 0.0) -> None:
        """Count one of a kind, and how long it took."""
        with self.lock:
            self.counts[what] += 1
            self.slowest[what] = max(self.slowest[what], round(1000 * seconds))

    def fail(self, what: str) -> None:
        """Keep what went wrong."""
        with self.lock:
            self.wrong.append(what)


class Session:
    """One visitor with its drawings, until the time is over.

    Parameters
    ----------
    name
        Of the visitor, in its drawings.
    port
        Of the server.
    chance
        What it does.
    tally
        Where it counts.
    """

    def __init__(self, name: str, port: int, *, chance: random.Random, tally: Tally) -> None:
        self.name, self.chance, self.tally = name, chance, tally
        self.port = port
        self.visitor = Visitor(port)

    def run(self, end: float) -> None:
        """Draw and solve until then; whatever goes wrong is kept."""
        try:
            self._timed("pages opened", self.visitor.open)
            for topology, algbw in drawings(self.chance, self.name):
                if time.monotonic() > end:
                    break
                self._one(topology, algbw)
        except Exception as error:  # noqa: BLE001  a finding, whatever it is
            self.tally.fail(f"{self.name}: {type(error).__name__}: {error}")
        finally:
            self.visitor.close()

    def _one(self, topology: Json, algbw: float) -> None:
        """Draw one cluster, ask about it and solve it."""
        size = f"{self.chance.randrange(1, 64)}MB"
        request = {"collective": "all-gather", "size": size, "chunks": 1, "root": 0}
        request |= {"formulation": self.chance.choice(METHODS), "time_limit": 2}
        told = self._timed("drawings assessed", self.visitor.assessed, topology, request)
        if told["trouble"]:
            self.tally.fail(f"{self.name}: {topology['name']} has trouble: {told['trouble']}")
        best = self._timed("best rates", self.visitor.followed, topology, request)
        if abs(best.get("algbw", 0.0) / algbw - 1) > 1e-9:
            self.tally.fail(f"{self.name}: algbw {best}, and {algbw} GB/s are right")
        self._solve(topology, request)
        if self.chance.random() < 0.1:
            self.visitor.close()
            self.visitor = Visitor(self.port)
            self._timed("pages opened", self.visitor.open)
        time.sleep(self.chance.random())

    def _solve(self, topology: Json, request: Json) -> None:
        key = self._timed("solves asked for", self.visitor.solve, topology, request)
        if key is None:
            self.tally.count("of these refused, as the queue is full")
            return
        self._pry(key)
        cancelled = self.chance.random() < 0.15
        if cancelled:
            time.sleep(self.chance.random())
            self._timed("solves cancelled", self.visitor.cancel, key)
        found = self.visitor.watch(key, seconds=PATIENCE)
        document = found.get("result", {}).get("data")
        if document is not None:
            self._compare(topology, document)
        elif not cancelled:
            self.tally.fail(f"{self.name}: a solve ended without a plan: {str(found)[:300]}")

    def _compare(self, topology: Json, document: Json) -> None:
        """Look whether a result is of what was drawn, and verify it."""
        try:
            result = result_from_json(document)
        except CclError as error:
            self.tally.fail(f"{self.name}: a result is none: {error}")
            return
        if result.problem.topology != topology_from_json(topology):
            self.tally.fail(f"{self.name}: asked for {topology['name']}, got {result.problem}")
        self.tally.count("schedules verified, of what was drawn")

    def _pry(self, key: str) -> None:
        """Ask for the solve of somebody else, who must not notice, and see nothing."""
        with self.tally.lock:
            others = [other for who, other in self.tally.keys[-50:] if who != self.name]
            self.tally.keys.append((self.name, key))
        if not others:
            return
        found = self.visitor.beat(self.chance.choice(others))
        self.tally.count("solves of others asked for")
        if {"result", "scene", "canvas", "summary"} & set(found):
            self.tally.fail(f"{self.name}: saw the solve of somebody else: {str(found)[:200]}")

    def _timed(self, what: str, call: Any, *arguments: Any) -> Any:
        begin = time.monotonic()
        found = call(*arguments)
        self.tally.count(what, time.monotonic() - begin)
        return found


def crowd(port: int, *, sessions: int, seconds: float, seed: int, tally: Tally) -> list[Any]:
    """Let sessions begin, and return their threads."""
    end = time.monotonic() + seconds
    threads = []
    for number in range(sessions):
        chance = random.Random(seed * 1000 + number)
        session = Session(f"visitor {number}", port, chance=chance, tally=tally)
        threads.append(threading.Thread(target=session.run, args=(end,), daemon=True))
        threads[-1].start()
        time.sleep(0.05)
    return threads


def watched(server: Server, threads: list[Any], *, seconds: float) -> list[tuple[float, int]]:
    """Return rows of (seconds, bytes) of the server while the sessions go on."""
    begin, rows = time.monotonic(), []
    while (
        any(each.is_alive() for each in threads) and time.monotonic() < begin + seconds + PATIENCE
    ):
        rows.append((time.monotonic() - begin, server.memory()))
        time.sleep(1.0)
    return rows


def grown(rows: list[tuple[float, int]], seconds: float) -> tuple[int, int]:
    """Return the largest memory of the time after the warm-up's first third, and of the last."""
    early = [taken for at, taken in rows if WARM * seconds <= at < (WARM + 0.2) * seconds]
    late = [taken for at, taken in rows if at >= 0.8 * seconds]
    return max(early, default=0), max(late, default=0)


def main() -> int:
    """Run it as the command line says; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    tally, server = Tally(), Server(free_port())
    try:
        server.wait()
        threads = crowd(
            server.port,
            sessions=asked.sessions,
            seconds=asked.seconds,
            seed=asked.seed,
            tally=tally,
        )
        rows = watched(server, threads, seconds=asked.seconds)
        if any(each.is_alive() for each in threads):
            tally.fail("a session does not end")
        early, late = grown(rows, asked.seconds)
        if late > early * (1 + GROWTH):
            tally.fail(f"the server's memory grew from {early / 1e6:.0f} to {late / 1e6:.0f} MB")
        time.sleep(2.0)
        if server.solvers():
            tally.fail(f"{len(server.solvers())} solvers are left")
        status = server.stop()
        if status:
            tally.fail(f"the server ended with {status} when it was asked to")
    finally:
        server.kill()
    print(f"{asked.sessions} sessions, {asked.seconds:g} s, seed {asked.seed}")
    for what, many in sorted(tally.counts.items()):
        slowest = (
            f", the slowest in {tally.slowest[what] / 1000:.1f} s" if tally.slowest[what] else ""
        )
        print(f"{many:8,} {what}{slowest}")
    print(f"memory of the server: {early / 1e6:.0f} MB, then {late / 1e6:.0f} MB")
    print(
        "\n".join(tally.wrong[:20]) + f"\n{len(tally.wrong)} findings" if tally.wrong else "passed"
    )
    return int(bool(tally.wrong))


if __name__ == "__main__":
    sys.exit(main())
