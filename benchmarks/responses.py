"""What a person at the page waits for: live answers after a change.

``whatif`` has what a person waits for who moves a slider, on every cluster: the changed cluster and
its problem are made anew, then the bounds that need no solver, the best steady state with what
proves it, and its tied cuts. Each class of links gets a quarter more and a fifth less bandwidth,
and all latencies are doubled; every change is timed once, since nobody asks the same twice.
Clusters have their default size. Seconds on the wall's clock; loading CVXPY, once in a process, is
left out.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, cast

import typer

from benchmarks.measuring import output, said, table
from ccl.collective import Collective, CollectiveKind, make_collective
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.topology import Topology
from formulations.analyses.best_rate import optimum
from formulations.analyses.sensitivity.cutting_planes import Classes, classes_of
from formulations.bounds import quick_bounds
from gallery import catalog, open_cluster

KINDS = "all-gather,all-reduce,all-to-all"
TARGET = 0.3
"""Seconds that an answer may take, to be called live."""

FACTORS = (1.25, 0.8)
SIZE = 1e9
WARM_UP = "dgx-1v"

MOST_CLASSES = 6
"""Classes of links that are changed."""


@dataclass(frozen=True)
class Answer:
    """Processor seconds of the parts of one answer, and what proved the rate."""

    making: float
    bounding: float
    proving: float
    proved_by: str

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.making + self.bounding + self.proving

    @property
    def where(self) -> str:
        """The part that takes longest."""
        parts = {
            "making the cluster": self.making,
            "bounds": self.bounding,
            f"the optimum, proved by {self.proved_by}": self.proving,
        }
        return max(parts, key=lambda part: parts[part])


def whatif(
    clusters: Annotated[str, typer.Option(help="Names with arguments, ; between them.")] = "",
    collectives: Annotated[str, typer.Option(help="Kinds, with commas between them.")] = KINDS,
) -> None:
    """Print the median and the longest of the live answers of every cluster, in processor ms."""
    kinds = [cast(CollectiveKind, kind) for kind in collectives.split(",")]
    names = clusters.split(";") if clusters else [each.name for each in catalog()]
    console = output()
    for kind in kinds:
        list(_answers(open_cluster(WARM_UP), kind))
    made = table(
        "live answers after a change",
        ("cluster", "GPUs", "links", *(f"{kind} ms: median, max" for kind in kinds)),
    )
    above, every = [], []
    for name in names:
        topology = open_cluster(name)
        cells = []
        for kind in kinds:
            found = list(_answers(topology, kind))
            cells.append(_cell(found))
            every += found
            above += [(name, kind, each) for each in _slowest(found) if each.seconds > TARGET]
        made.add_row(name, str(len(topology.ranks)), str(len(topology.links)), *cells)
    console.print(made)
    seconds = [each.seconds for each in every]
    console.print(
        f"{len(every)} answers: median {statistics.median(seconds) * 1e3:.0f} ms, longest "
        f"{max(seconds) * 1e3:.0f} ms; all within {TARGET:g} s: {said(not above)}"
    )
    for name, kind, each in above:
        console.print(f"{name} {kind}: {each.seconds:.2f} s, most of it for {each.where}")


def _answers(topology: Topology, kind: CollectiveKind) -> Iterator[Answer]:
    """Yield the answers after each change; none where the collective cannot run."""
    collective = make_collective(kind, len(topology.ranks), SIZE)
    try:
        Problem(topology, collective)
    except ProblemError:
        return
    classes = classes_of(topology)
    for number in range(min(classes.many, MOST_CLASSES)):
        for factor in FACTORS:
            yield _answer(classes, collective, number=number, factor=factor)
    yield _answer(classes, collective, number=0, factor=1.0)


def _answer(classes: Classes, collective: Collective, *, number: int, factor: float) -> Answer:
    """Return the seconds after a class has `factor` times its bandwidth; 1.0: slower latencies."""
    begin = time.process_time()
    changed = classes.scaled([factor if k == number else 1.0 for k in range(classes.many)])
    if factor == 1.0:
        links = tuple(replace(each, alpha=2 * each.alpha) for each in changed.links)
        changed = replace(changed, links=links)
    problem = Problem(changed, collective)
    made = time.process_time()
    quick_bounds(problem)
    bounded = time.process_time()
    found = optimum(problem)
    proved = time.process_time()
    words = "cuts" if found.cuts else found.proved_by.split(" at ")[0].split(" (")[0]
    return Answer(made - begin, bounded - made, proved - bounded, words)


def _cell(found: list[Answer]) -> str:
    if not found:
        return "cannot run"
    seconds = [each.seconds * 1e3 for each in found]
    return f"{statistics.median(seconds):.0f}, {max(seconds):.0f}"


def _slowest(found: list[Answer]) -> list[Answer]:
    return sorted(found, key=lambda each: -each.seconds)[:1]
