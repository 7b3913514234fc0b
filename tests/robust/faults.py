"""Kill -9 of solvers, servers and workers, at random, a hundred times: ``make faults``.

A third of the kills each:

* solver: a visitor solves, the solver's process is killed; the page must be told so in a sentence,
  or keep the best plan that was found, and the next solve must work;
* server: killed while it solves; its solvers must end with it, and when it is back on the same port
  the visitor's page must go on with its drawing: its old solve is gone, the next one works;
* worker: of a sweep, or the whole sweep; every row that was there stays, the same command goes on,
  and at the end the rows are those of a sweep that nobody has disturbed.

Prints counts and ``passed``, or what was wrong.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

from formulations.campaigns.sweeps.rows import CLOCKED, Row
from formulations.campaigns.sweeps.store import read_rows
from tests.robust.visitor import ROOT, Json, Refused, Server, Visitor, drawings, free_port

BEGINS = 15.0
"""Seconds in which a solver's process must be there."""

ENDS = 10.0
"""Seconds in which the solvers of a server that was killed must be gone."""


SPEC = """
clusters:
  - open: ring
    vary: {gpus: [4, 5, 6, 8]}
  - open: star
    vary: {gpus: [4, 6, 8]}
  - dgx-1v
collectives: [all-gather, all-to-all, all-reduce]
sizes: 1KB..1GB x2
formulations: [list, ring, orbit-trees]
retries: 40
time_limit: 30
"""
"""Some fifteen hundred tasks of a few hundredths of a second."""

WHOLE = 0.2
"""Share of the kills of a sweep that end all of it."""

SWEEP = "import sys; from designer.cli import main; main(['sweep', *sys.argv[1:]])"


@dataclass
class Tally:
    """What the kills have led to."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def long_solve(chance: random.Random, who: str) -> tuple[Json, Json]:
    """Return a drawing and a question that keeps a solver busy for a while."""
    topology, _ = next(drawings(chance, who))
    request = {"collective": "all-to-all", "size": "8MB", "chunks": 3, "root": 0}
    return topology, request | {"formulation": "te-ccl-milp", "time_limit": 20}


def short_solve(chance: random.Random, who: str) -> tuple[Json, Json]:
    """Return a drawing and a question that is answered at once."""
    topology, _ = next(drawings(chance, who))
    request = {"collective": "all-gather", "size": "8MB", "chunks": 1, "root": 0}
    return topology, request | {"formulation": "list", "time_limit": 20}


def goes_on(visitor: Visitor, chance: random.Random, who: str) -> str | None:
    """Draw and solve; return what is wrong with the answer, or None."""
    topology, request = short_solve(chance, who)
    if visitor.assessed(topology, request)["trouble"]:
        return "the drawing has trouble"
    key = visitor.solve(topology, request)
    if key is None:
        return "the next solve was not taken"
    found = visitor.watch(key, every=0.1)
    document = found.get("result", {}).get("data")
    if document is None or document["problem"]["topology"]["name"] != topology["name"]:
        return f"the next solve brought no result: {str(found)[:200]}"
    return None


def begun(server: Server, visitor: Visitor, key: str) -> list[psutil.Process]:
    """Wait until a solve has a process, and return the processes."""
    end = time.monotonic() + BEGINS
    while time.monotonic() < end:
        found = server.solvers()
        if found:
            return found
        time.sleep(0.02)
    visitor.cancel(key)
    return []


def kill_solver(server: Server, visitor: Visitor, *, chance: random.Random, tally: Tally) -> None:
    """Kill the solver of one solve."""
    topology, request = long_solve(chance, "solver")
    key = visitor.solve(topology, request)
    processes = [] if key is None else begun(server, visitor, key)
    if key is None or not processes:
        tally.wrong.append("a solve did not begin")
        return
    time.sleep(2.5 * chance.random())
    _kill(chance.choice(processes))
    tally.counts["solvers killed"] += 1
    found = visitor.watch(key, every=0.1, seconds=60.0)
    told = "told by a sentence" if found.get("fault", {}).get("children") else "a plan was kept"
    if told == "a plan was kept" and not found.get("result", {}).get("data"):
        tally.wrong.append(f"after its solver the page was told nothing: {str(found)[:200]}")
    tally.counts[told] += 1
    wrong = goes_on(visitor, chance, "after a solver")
    if wrong:
        tally.wrong.append(f"after a solver was killed, {wrong}")


def kill_server(server: Server, visitor: Visitor, *, chance: random.Random, tally: Tally) -> Server:
    """Kill the server while it solves, and return the next one on its port."""
    topology, request = long_solve(chance, "server")
    key = visitor.solve(topology, request)
    processes = [] if key is None else begun(server, visitor, key)
    time.sleep(1.5 * chance.random())
    processes += server.solvers()
    server.kill()
    tally.counts["servers killed"] += 1
    _, left = psutil.wait_procs(set(processes), timeout=ENDS)
    if left:
        tally.wrong.append(f"{len(left)} solvers outlive their server by {ENDS:g} s")
    again = Server(server.port)
    again.wait()
    visitor.close()
    found = visitor.beat(key) if key else {}
    if set(found) & {"result", "canvas"} or found.get("job", {}).get("data"):
        tally.wrong.append(f"a solve of a server that is gone is told of: {str(found)[:200]}")
    wrong = goes_on(visitor, chance, "after a server")
    if wrong:
        tally.wrong.append(f"after a server was killed, {wrong}")
    tally.counts["pages that went on"] += not wrong
    return again


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return


def through_pages(kills: int, *, chance: random.Random, tally: Tally) -> None:
    """Kill solvers and servers below one page, in turn."""
    server = Server(free_port())
    try:
        server.wait()
        visitor = Visitor(server.port)
        visitor.open()
        for number in range(kills):
            if number % 2:
                server = kill_server(server, visitor, chance=chance, tally=tally)
            else:
                kill_solver(server, visitor, chance=chance, tally=tally)
        visitor.close()
        status = server.stop()
        if status:
            tally.wrong.append(f"the server ended with {status} when it was asked to")
    except (OSError, Refused, TimeoutError) as error:
        tally.wrong.append(f"the page was left alone: {type(error).__name__}: {error}")
    finally:
        server.kill()


class Sweep:
    """``topoloom sweep`` in a session of processes of its own.

    Parameters
    ----------
    folder
        Where its rows are; the spec lies beside it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        spec = folder.with_suffix(".yaml")
        spec.write_text(SPEC, "utf-8")
        self.process = subprocess.Popen(
            [sys.executable, "-c", SWEEP, str(spec), "--into", str(folder)],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    @property
    def over(self) -> bool:
        """Whether it has ended by itself."""
        return self.process.poll() is not None

    def processes(self) -> list[psutil.Process]:
        """Return its workers and their solvers."""
        with suppress(psutil.NoSuchProcess):
            return list(psutil.Process(self.process.pid).children(recursive=True))
        return []

    def kill(self) -> list[psutil.Process]:
        """End it with no chance to clean up; return those that should end by themselves."""
        below = self.processes()
        self.process.kill()
        self.process.wait()
        return below

    def rows(self) -> dict[str, Row]:
        """Return the rows that are safe, by task; none before the first."""
        there = any(self.folder.glob("rows-*.parquet"))
        return {each.task: each for each in read_rows(self.folder)} if there else {}


def through_sweeps(kills: int, *, chance: random.Random, tally: Tally) -> None:
    """Kill workers, solvers and the whole of a sweep until it is done; compare its rows."""
    with tempfile.TemporaryDirectory() as place:
        calm = Sweep(Path(place) / "calm")
        calm.process.wait()
        run = Sweep(Path(place) / "stormy")
        safe: dict[str, Row] = {}
        while tally.counts["of a sweep killed"] < kills and not run.over:
            time.sleep(0.3 + 2.0 * chance.random())
            run = _one_kill(run, safe, chance=chance, tally=tally)
            now = run.rows()
            tally.wrong += [f"row {task} was safe and is lost" for task in set(safe) - set(now)]
            safe = now
        run.process.wait()
        _same(calm.rows(), run.rows(), tally)


def _one_kill(run: Sweep, safe: dict[str, Row], *, chance: random.Random, tally: Tally) -> Sweep:
    """Kill one process of a sweep, or all of it; return the sweep that goes on."""
    whole = chance.random() < WHOLE and bool(safe)
    below = [] if whole else run.processes()
    if not whole and not below:
        return run
    tally.counts["of a sweep killed"] += 1
    if not whole:
        tally.counts["workers and their solvers killed"] += 1
        _kill(chance.choice(below))
        return run
    tally.counts["sweeps killed"] += 1
    _, left = psutil.wait_procs(run.kill(), timeout=ENDS)
    if left:
        tally.wrong.append(f"{len(left)} processes outlive their sweep by {ENDS:g} s")
    return Sweep(run.folder)


def _same(calm: dict[str, Row], stormy: dict[str, Row], tally: Tally) -> None:
    """Compare the rows of two sweeps, times left out."""
    tally.counts["rows of the sweep"] = len(stormy)
    if set(calm) != set(stormy):
        tally.wrong.append(f"there are {len(stormy)} rows, and {len(calm)} without kills")
    for task in set(calm) & set(stormy):
        one, other = (
            {name: value for name, value in asdict(row).items() if name not in CLOCKED}
            for row in (calm[task], stormy[task])
        )
        if one != other:
            tally.wrong.append(f"a row has become {other}, and it was {one}")


def main() -> int:
    """Run it as the command line says; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    chance, tally = random.Random(asked.seed), Tally()
    third = asked.kills // 3
    through_sweeps(third, chance=chance, tally=tally)
    through_pages(asked.kills - third, chance=chance, tally=tally)
    for what, many in sorted(tally.counts.items()):
        print(f"{many:6,} {what}")
    print(
        "\n".join(tally.wrong[:20]) + f"\n{len(tally.wrong)} findings" if tally.wrong else "passed"
    )
    return int(bool(tally.wrong))


if __name__ == "__main__":
    sys.exit(main())
