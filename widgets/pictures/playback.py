"""What a scene looks like at a time: what every device holds, which chunks are on their way.

A scene is what `widgets.shown.scene.scene` makes for the canvas; levels and flights are found as
its player does (`widgets/js/src/{buffers,player}.js`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from widgets.pictures.colors import origin_color


@dataclass(frozen=True, slots=True)
class Flight:
    """A transfer that is on its way.

    Parameters
    ----------
    chunk
        Number of the chunk.
    src, dst
        Ends of the link.
    way
        Share of the time between start and arrival that has gone by.
    fraction
        Share of the chunk that is carried.
    """

    chunk: int
    src: str
    dst: str
    way: float
    fraction: float


class Playback:
    """A scene that can be asked for any time; going on costs only what arrived since.

    Parameters
    ----------
    scene
        As `widgets.shown.scene.scene` makes it.
    """

    def __init__(self, scene: Mapping[str, Any]) -> None:
        self.title: str = scene["title"]
        self.makespan: float = scene["makespan"]
        self.step: float = scene["epoch_duration"]
        self.epochs: int = scene["epochs"]
        self.transfers: list[list[Any]] = scene["transfers"]
        self.starts = np.array([each[3] for each in self.transfers], dtype=float)
        self.ends = np.array([each[4] for each in self.transfers], dtype=float)
        self.chunks = len(scene["chunks"])
        origins = sorted({each["origin"] for each in scene["chunks"]})
        place = {origin: index for index, origin in enumerate(origins)}
        self.origins: list[int] = origins
        self.origin_of = [place[each["origin"]] for each in scene["chunks"]]
        self.colors = [origin_color(index, len(origins)) for index in range(len(origins))]
        self.chunk_colors = [self.colors[index] for index in self.origin_of]
        self.names = [each["name"] for each in scene["topology"]["devices"] if _is_gpu(each)]
        self._start = _start_levels(scene)
        self._arrivals = sorted(
            (each for each in _arrivals(scene) if each[1] in self._start), key=lambda each: each[0]
        )
        self._rewind()

    def epoch_at(self, time: float) -> int:
        """Return the epoch that a time in µs lies in; the end of the last one belongs to it."""
        return max(0, min(self.epochs - 1, int(time / self.step + 1e-6)))

    def levels(self, time: float) -> Mapping[str, list[float]]:
        """Return the share of each chunk that each device has at a time in µs.

        Of a chunk that is reduced it is the share of the contributions that are in.
        """
        until = time * (1 + 1e-9) + 1e-9
        if self._next and self._arrivals[self._next - 1][0] > until:
            self._rewind()
        while self._next < len(self._arrivals) and self._arrivals[self._next][0] <= until:
            _, device, chunk, level = self._arrivals[self._next]
            self._next += 1
            self._levels[device][chunk] = max(self._levels[device][chunk], level)
        return self._levels

    def flights(self, time: float) -> list[Flight]:
        """Return what is on its way at a time in µs."""
        found = []
        for row in np.flatnonzero((self.starts <= time) & (time < self.ends)):
            chunk, src, dst, start, end, fraction = self.transfers[row]
            way = (time - start) / max(1e-9, end - start)
            found.append(Flight(chunk, src, dst, way, fraction))
        return found

    def _rewind(self) -> None:
        self._next = 0
        self._levels = {name: list(levels) for name, levels in self._start.items()}


Arrival = tuple[float, str, int, float]
"""µs, device, chunk, and the share of it that is there from then on."""


def _is_gpu(device: Mapping[str, Any]) -> bool:
    return bool(device["kind"] == "gpu")


def _givers(scene: Mapping[str, Any]) -> list[list[str]]:
    """Devices that hold each chunk at the start."""
    givers: list[list[str]] = [[] for _ in scene["chunks"]]
    for device, chunks in scene["holds"].items():
        for chunk in chunks:
            givers[chunk].append(device)
    return givers


def _start_levels(scene: Mapping[str, Any]) -> dict[str, list[float]]:
    devices = scene["topology"]["devices"]
    stores = [d["name"] for d in devices if d.get("stores", d["kind"] in ("gpu", "memory"))]
    levels = {name: [0.0] * len(scene["chunks"]) for name in stores}
    for chunk, givers in enumerate(_givers(scene)):
        for device in givers:
            share = 1 / len(givers) if scene["chunks"][chunk]["reduced"] else 1.0
            levels[device][chunk] = share
    return levels


def _arrivals(scene: Mapping[str, Any]) -> list[Arrival]:
    reduced = {number for number, each in enumerate(scene["chunks"]) if each["reduced"]}
    return _copied(scene, reduced) + _added(scene, reduced)


def _copied(scene: Mapping[str, Any], reduced: set[int]) -> list[Arrival]:
    """Arrivals of chunks that are only copied: fractions add up."""
    have: dict[tuple[int, str], float] = {}
    moves = [each for each in scene["transfers"] if each[0] not in reduced]
    arrivals = []
    for chunk, _, device, _, time, fraction in sorted(moves, key=lambda each: each[4]):
        level = min(1.0, have.get((chunk, device), 0.0) + fraction)
        have[chunk, device] = level
        arrivals.append((time, device, chunk, 1.0 if level > 1 - 1e-6 else level))
    return arrivals


def _added(scene: Mapping[str, Any], reduced: set[int]) -> list[Arrival]:
    """Arrivals of chunks that are added up: who contributed travels along, a bit for each."""
    givers = _givers(scene)
    inside: dict[tuple[int, str], int] = {
        (chunk, device): 1 << bit for chunk in reduced for bit, device in enumerate(givers[chunk])
    }
    moves = [each for each in scene["transfers"] if each[0] in reduced]
    late = scene["epoch_duration"] * 1e-6
    events = [(each[3] + late, number, True) for number, each in enumerate(moves)]
    events += [(each[4], number, False) for number, each in enumerate(moves)]
    carried: dict[int, int] = {}
    arrivals = []
    for time, number, leaves in sorted(events, key=lambda each: each[0]):
        chunk, src, device, *_ = moves[number]
        if leaves:
            carried[number] = inside.get((chunk, src), 0)
            continue
        total = inside.get((chunk, device), 0) | carried.get(number, 0)
        inside[chunk, device] = total
        arrivals.append((time, device, chunk, total.bit_count() / len(givers[chunk])))
    return arrivals
