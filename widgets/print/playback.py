"""Playback of a plan: what every device holds at a time and what is on its way, and both as shapes.

A scene is what `widgets.view_model.scene.scene` makes for the canvas; levels and flights are found
as its player does (`widgets/js/src/{buffers,player}.js`). Cells fill up and dots travel along the
links as on the canvas (`widgets/js/src/{buffers,tokens}.js`).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from widgets.print.geometry.stage import Line, Stage
from widgets.print.sheet import Box, Dot, Point, Rect, Shape, Stroke
from widgets.print.style import Look, origin_color


@dataclass(frozen=True, slots=True)
class Flight:
    """A transfer that is on its way.

    Parameters
    ----------
    chunk
        Number of the chunk.
    src, dst
        Ends of the link.
    progress
        Share of the time between start and arrival that has gone by.
    fraction
        Share of the chunk that is carried.
    """

    chunk: int
    src: str
    dst: str
    progress: float
    fraction: float


class Playback:
    """A scene at any time; going on costs only what arrived since.

    Parameters
    ----------
    scene
        As `widgets.view_model.scene.scene` makes it.
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
    """Arrivals of chunks that are added up: who contributed travels along, a bit for each.

    Of a send that names its terms these do, else all that is at its source.
    """
    givers = _givers(scene)
    named = _named(scene, givers)
    inside: dict[tuple[int, str], int] = {
        (chunk, device): 1 << bit for chunk in reduced for bit, device in enumerate(givers[chunk])
    }
    moves = [each for each in enumerate(scene["transfers"]) if each[1][0] in reduced]
    late = scene["epoch_duration"] * 1e-6
    events = [(each[3] + late, place, True) for place, (_, each) in enumerate(moves)]
    events += [(each[4], place, False) for place, (_, each) in enumerate(moves)]
    carried: dict[int, int] = {}
    arrivals = []
    for time, place, leaves in sorted(events, key=lambda each: each[0]):
        number, (chunk, src, device, *_) = moves[place]
        if leaves:
            carried[place] = named.get(number, inside.get((chunk, src), 0))
            continue
        total = inside.get((chunk, device), 0) | carried.get(place, 0)
        inside[chunk, device] = total
        arrivals.append((time, device, chunk, total.bit_count() / len(givers[chunk])))
    return arrivals


def _named(scene: Mapping[str, Any], givers: list[list[str]]) -> dict[int, int]:
    """Return by transfer the contributions that it names, a bit for each."""
    ranks = [each["name"] for each in scene["topology"]["devices"] if _is_gpu(each)]
    found = {}
    for number, place in enumerate(scene.get("carried", ())):
        if place >= 0:
            listed = givers[scene["transfers"][number][0]]
            names = [ranks[rank] for rank in scene["terms"][place]["ranks"]]
            found[number] = sum(1 << listed.index(name) for name in names)
    return found


_MOST_CELLS = 256
_SMALLEST_CELL = 1.3
"""Pixels of a cell below which one bar says as much."""
_AREA = (60.0, 24.0)
_MANY_TOKENS = 800
"""Dots above which outlines and tails cannot be seen."""
_TALL = 50.0


@dataclass(frozen=True, slots=True)
class Moment:
    """A plan at a time.

    Parameters
    ----------
    playback
        The plan.
    time
        µs.
    """

    playback: Playback
    time: float


def cells(stage: Stage, moment: Moment, look: Look, *, zoom: float) -> Iterator[Box]:
    """Draw what each device holds: a cell per chunk, or where they are too small one bar."""
    playback = moment.playback
    columns, rows = _grid(playback.chunks)
    small = min(_AREA[0] / columns, _AREA[1] / rows) * zoom < _SMALLEST_CELL
    draw = _bar if small or playback.chunks > _MOST_CELLS else _cells
    drawn: list[Box] = []
    for name, levels in playback.levels(moment.time).items():
        box = stage.boxes.get(name)
        if box is None:
            continue  # its host is folded
        tall = box.height > _TALL
        x, width = box.middle[0] - _AREA[0] / 2, _AREA[0]
        height = _AREA[1] if tall else 13.0
        y = box.y2 - (_AREA[1] + 8 if tall else 20.0)
        drawn += draw(Rect(x, y, x + width, y + height), levels, playback, empty=look.empty)
    # Those of one colour follow one another, so that one outline draws them; the empty are beneath.
    colors = {color: place for place, color in enumerate([look.empty, *playback.colors])}
    yield from sorted(drawn, key=lambda each: colors[each.fill])


def _grid(count: int, width: float = _AREA[0], height: float = _AREA[1]) -> tuple[int, int]:
    """Columns and rows with large cells, near squares, and few places left empty."""
    best, size = (max(1, count), 1), 0.0
    for rows in range(1, min(count, 16) + 1):
        columns = math.ceil(count / rows)
        full = count / (columns * rows)
        found = min(width / columns, height / rows * 0.8) * full * full
        if found > size:
            best, size = (columns, rows), found
    return best


def _cells(area: Rect, levels: Sequence[float], playback: Playback, *, empty: str) -> Iterator[Box]:
    """Draw a cell per chunk; one that is there in part is filled from below."""
    columns, rows = _grid(len(levels), area.width, area.height)
    w, h = area.width / columns, area.height / rows
    gap = min(1.4, w * 0.18)
    for chunk, level in enumerate(levels):
        x, y = area.x1 + chunk % columns * w, area.y1 + chunk // columns * h
        bottom = y + h - gap
        if level < 1:
            yield Box(Rect(x, y, x + w - gap, bottom), empty)
        if level > 0:
            full = Rect(x, bottom - (h - gap) * level, x + w - gap, bottom)
            yield Box(full, playback.chunk_colors[chunk])


def _bar(area: Rect, levels: Sequence[float], playback: Playback, *, empty: str) -> Iterator[Box]:
    """Draw one bar, a segment per origin, as long as the share of all chunks that is there."""
    sums = [0.0] * len(playback.origins)
    for chunk, level in enumerate(levels):
        sums[playback.origin_of[chunk]] += level
    top, bottom = area.y1 + 5, area.y2 - 3
    yield Box(Rect(area.x1, top, area.x2, bottom), empty)
    x = area.x1
    for origin, total in enumerate(sums):
        width = total / len(levels) * area.width
        if width > 0:
            yield Box(Rect(x, top, x + width, bottom), playback.colors[origin])
        x += width


@dataclass(frozen=True, slots=True)
class _Token:
    at: Point
    tail: Point
    radius: float
    color: str


def tokens(stage: Stage, moment: Moment, look: Look, *, zoom: float) -> Iterator[Shape]:
    """Draw the chunks that are on their way, each at its place on its side of the link."""
    if moment.time >= moment.playback.makespan:
        return
    flights = moment.playback.flights(moment.time)
    found = list(_tokens(stage, flights, moment.playback, zoom=zoom))
    if len(flights) < _MANY_TOKENS:
        for each in found:
            yield Stroke((each.tail, each.at), each.color, each.radius * 1.1, opacity=0.45)
    for each in found:
        line, width = (look.bg, 0.9) if len(flights) < _MANY_TOKENS else ("", 0.0)
        yield Dot(each.at, each.radius, each.color, line, width)


def _tokens(
    stage: Stage, flights: list[Flight], playback: Playback, *, zoom: float
) -> Iterator[_Token]:
    radius = _radius(len(flights), zoom)
    seen: dict[tuple[int, bool], int] = {}
    for flight in flights:
        ends = flight.src, flight.dst
        if ends not in stage.lanes:
            continue  # inside a folded host
        line, forth = stage.lanes[ends]
        way_of = id(line), forth
        behind = seen.get(way_of, 0)
        seen[way_of] = behind + 1
        # Those sent side by side follow one another.
        gap = min(0.25, behind * radius * 2.4 / line.curve.length)
        way = min(1.0, max(0.0, flight.progress - gap))
        if _hidden(line, way if forth else 1 - way):
            continue
        tail = max(0.0, way - radius * 3.6 / line.curve.length)
        yield _Token(
            place(line, way, forth=forth),
            place(line, tail, forth=forth),
            radius * (0.55 + 0.45 * min(1.0, flight.fraction)),
            playback.chunk_colors[flight.chunk],
        )


def place(line: Line, progress: float, *, forth: bool) -> Point:
    """Return where on its side of a line a chunk is that has gone so far."""
    side = line.lane if forth else -line.lane
    return line.curve.at(progress if forth else 1 - progress, side)


def _radius(count: int, zoom: float) -> float:
    """Smaller dots where there are many, about as large on the picture at every zoom."""
    pixels = 3.8 - 1.9 * min(1.0, max(0.0, (count - 200) / 1800))
    return max(pixels * 0.85, min(6.5, pixels / zoom))


def _hidden(line: Line, way: float) -> bool:
    """Whether a place on a line is beneath a device that the line crosses."""
    parts = line.covered
    return bool(parts) and parts[min(len(parts) - 1, int(way * len(parts)))]
