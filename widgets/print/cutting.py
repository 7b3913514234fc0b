"""The bottleneck cut on a picture: a glowing region with its label (`widgets/js/src/cuts.js`)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from widgets.print.geometry.buses import Ends
from widgets.print.geometry.outlines import Loop, outline
from widgets.print.geometry.own_wires import OwnWire, own_wires
from widgets.print.geometry.stage import HOST_NAME, Line, Stage
from widgets.print.sheet import Area, Box, Rect, Shape, Stroke, Words, around, width
from widgets.print.style import Look

_LABEL = 28.0
_GLOW = ((17.0, 0.05), (12.0, 0.07), (7.0, 0.1))
"""Widths and opacities of the strokes that glow, in pixels."""
_NAMES = 26.0
"""Room for the name of a host inside the region."""


@dataclass(frozen=True)
class Region:
    """A cut on a stage.

    Parameters
    ----------
    stage
        Where everything stands.
    cut
        As `widgets.view_model.scene.cuts` makes it.
    """

    stage: Stage
    cut: Mapping[str, Any]

    @cached_property
    def links(self) -> frozenset[Ends]:
        """Ends of the links that leave it."""
        return frozenset((src, dst) for src, dst in self.cut["links"])

    def crosses(self, line: Line) -> bool:
        """Say whether a line carries one of them."""
        return not self.links.isdisjoint(line.carries)

    @cached_property
    def wires(self) -> dict[Ends, OwnWire]:
        """What its lines that run along buses have for themselves, from their ends inside it."""
        parts = {each.key: [one.name for one in each.members] for each in self.stage.groups}

        def share(end: str) -> float:
            names = parts.get(end, [end])
            return sum(each in self._inside for each in names) / len(names)

        crossing = [each.ends for each in self.stage.lines if self.crosses(each)]
        return own_wires(self.stage.lines, {(a, b): share(b) > share(a) for a, b in crossing})

    @cached_property
    def _inside(self) -> set[str]:
        """Names of the side with fewer devices."""
        names = set(self.cut["inside"])
        others = {each.name for each in self.stage.topology.devices} - names
        return others if 0 < len(others) < len(self.stage.topology.devices) / 2 else names

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """Outlines of the side with fewer devices: a cut is the same from both.

        A whole host counts as its frame with the name above it.
        """
        stage, inside = self.stage, self._inside
        split = {each.host for each in stage.topology.devices if each.name not in inside}
        within, without = [], []
        for each in stage.devices:
            if each.name not in inside:
                without.append(stage.boxes[each.name])
            elif each.host is None or each.host in split:
                within.append(stage.boxes[each.name])
        for group in stage.groups:
            # One that is cut in two is on neither side.
            count = sum(each.name in inside for each in group.members)
            if count in (0, len(group.members)):
                (within if count else without).append(stage.boxes[group.key])
        for host, box in stage.hosts.items():
            if host not in split:
                within.append(Rect(box.x1, box.y1 - _NAMES, box.x2, box.y2))
        return outline(within, without)

    @cached_property
    def split(self) -> frozenset[str]:
        """Keys of the folded groups that it goes through."""
        names = set(self.cut["inside"])
        return frozenset(
            group.key
            for group in self.stage.groups
            if 0 < sum(each.name in names for each in group.members) < len(group.members)
        )

    @cached_property
    def frame(self) -> Rect | None:
        """What is around the outlines, or else around the groups that it goes through."""
        rects = [Rect(x, y, x, y) for loop in self.loops for x, y in loop]
        rects = rects or [self.stage.boxes[key] for key in self.split]
        return around(rects) if rects else None

    def ground(self, look: Look, *, zoom: float) -> Iterator[Shape]:
        """Draw the tint and the glow, beneath the graph."""
        if not look.cut_fill:
            return
        yield Area(self.loops, look.cut, look.cut_fill)
        for loop in self.loops:
            for thick, opacity in _GLOW:
                yield Stroke(loop, look.cut, thick / max(0.6, zoom), opacity=opacity, closed=True)

    def border(self, look: Look, *, zoom: float) -> Iterator[Shape]:
        """Draw the border, above the graph, where frames of hosts cannot hide it."""
        thick = (1.1 if look.paper else 1.8) / max(0.6, zoom)
        dash = (7.0, 6.0) if zoom >= 0.6 else (7 / zoom * 0.6, 6 / zoom * 0.6)
        for loop in self.loops:
            yield Stroke(loop, look.cut, thick, dash=dash, closed=True, round=False)

    def spot(self, view: Rect, *, zoom: float, size: float) -> Rect | None:
        """Return where in view the label covers the fewest devices: below if it can be."""
        if self.frame is None:
            return None
        half = width(self.cut["label"], size) / 2 / zoom + 11 / zoom
        tall = max(_LABEL, size * 1.9) / 2 / zoom
        best, least = Rect(0, 0, 0, 0), len(self._taken) + 1
        for wanted_x, wanted_y in _spots(self.frame, half, tall * 2, gap=6 / zoom):
            x = max(view.x1 + half, min(view.x2 - half, wanted_x))
            y = max(view.y1 + tall, min(view.y2 - tall, wanted_y))
            rect = Rect(x - half, y - tall, x + half, y + tall)
            hits = sum(rect.meets(each) for each in self._taken)
            if hits < least:
                best, least = rect, hits
            if not hits:
                break
        return best

    @cached_property
    def _taken(self) -> list[Rect]:
        names = [
            Rect(r.middle[0] - 34, r.y1 - HOST_NAME + 2, r.middle[0] + 34, r.y1)
            for r in self.stage.hosts.values()
        ]
        return [*self.stage.boxes.values(), *names]

    def label(self, look: Look, spot: Rect, *, size: float) -> Iterator[Shape]:
        """Draw the label; `size` of its font in drawing units."""
        x, y = spot.middle
        inner = Rect(spot.x1, y - size, spot.x2, y + size)
        yield Box(inner, look.cut, radius=size)
        text, at = self.cut["label"], (x, y + size * 0.36)
        yield Words(at, text, size, look.on_cut, bold=True)


def _spots(r: Rect, half: float, tall: float, *, gap: float) -> Iterator[tuple[float, float]]:
    """Middles for a label around a region, the preferred first."""
    x, y = r.middle
    beside = (r.x2 + half + gap, r.x1 - half - gap)
    yield from ((x, r.y2), (x, r.y1), *((each, y) for each in beside))
    for step in (tall * far for far in range(1, 5)):
        yield from ((x, r.y2 + step), (x, r.y1 - step))
        yield from ((each, r.y1 - step + tall / 2) for each in beside)
        yield from ((each, r.y2 + step - tall / 2) for each in beside)


def strongest(cuts: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the cut that proves most, None of none."""
    return max(cuts, key=lambda each: each["makespan"], default=None)
