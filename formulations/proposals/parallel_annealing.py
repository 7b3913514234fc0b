"""Annealing on several cores: this process in turns, and child processes all the time.

The children shorten distances. This process does so too and, in turns, where cables differ in what
they cost, makes time multiplied by costs less.

A child reads one request, and writes a line for each better network, no more than a few a second.
It dies with this process (`formulations.jobs.child`).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from formulations.jobs.child import Child
from formulations.proposals.rewiring import Annealing, Pairs

MODULE = "formulations.proposals"

TURN = 0.25
"""Seconds between two lines of a child."""


def anneal(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each better network as a line, until nobody listens; the body of a child process."""
    annealing = Annealing(request["gpus"], request["degree"], seed=request["seed"])
    said = math.inf
    while True:
        annealing.advance(seconds=TURN)
        if annealing.total < said:
            said = annealing.total
            yield {"total": said, "pairs": annealing.pairs}


class Annealers:
    """Several annealings of networks of one size.

    Parameters
    ----------
    gpus, degree
        Of the networks.
    seed
        Of the first; the others have those that follow.
    cores
        How many there are.
    costs
        Of a cable between any two GPUs, where they differ.
    """

    def __init__(
        self, gpus: int, degree: int, *, seed: int, cores: int, costs: np.ndarray | None = None
    ) -> None:
        self._own = Annealing(gpus, degree, seed=seed)
        self._cheap = None if costs is None else Annealing(gpus, degree, seed=seed, costs=costs)
        self._received: list[tuple[float, Pairs]] = []
        self._children = [Child(MODULE) for _ in range(cores - 1)]
        self._threads = [
            threading.Thread(target=self._listen, args=(each,), daemon=True)
            for each in self._children
        ]
        for number, child in enumerate(self._children, start=1):
            child.ask({"gpus": gpus, "degree": degree, "seed": seed + number})
            self._threads[number - 1].start()

    def _listen(self, child: Child) -> None:
        for line in child:
            self._received.append((line["total"], [(a, b) for a, b in line["pairs"]]))

    def advance(self, seconds: float) -> None:
        """Go on here for a time; the children always do."""
        own = [each for each in (self._own, self._cheap) if each is not None]
        for each in own:
            each.advance(seconds=seconds / len(own))

    def best(self) -> tuple[float, Pairs]:
        """Return the least sum of distances so far, and the links of its network."""
        return min([(self._own.total, self._own.pairs), *self._received], key=lambda each: each[0])

    @property
    def cheap(self) -> Pairs | None:
        """Links of the network whose time multiplied by costs is least, None if none were given."""
        return None if self._cheap is None else self._cheap.pairs

    def close(self) -> None:
        """End the children, if they are still there; what they found stays."""
        for child, thread in zip(self._children, self._threads, strict=True):
            child.kill()
            thread.join()
            child.close()
        self._children, self._threads = [], []


@contextmanager
def annealers(
    gpus: int, degree: int, *, seed: int, cores: int, costs: np.ndarray | None = None
) -> Iterator[Annealers]:
    """Anneal inside the block."""
    found = Annealers(gpus, degree, seed=seed, cores=cores, costs=costs)
    try:
        yield found
    finally:
        found.close()
