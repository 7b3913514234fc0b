"""Sizes of names: the farther away a drawing is seen, the larger, as far as their boxes have room.

Boxes of one kind whose names are about as long have one size, as on the canvas
(`widgets/js/src/names.js`). A picture has one zoom for good, the pixels of its requested width for
each drawing unit, and its names are those that the canvas has at this zoom: a picture of twice the
density has the same. In print a pixel is a 96th of an inch, and a frame of a film is a picture.
Names whose size is requested have it, whatever the room.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from ccl.topology import Device
from widgets.print.geometry.folding import Group
from widgets.print.geometry.stage import SIZES, Stage
from widgets.print.sheet import one_line, width

_FAR = (0.9, 0.72, 0.6, 0.5)
"""Zooms below which names are written larger than before."""

_DEVICE = (11.0, 12.5, 15.5, 19.0, 26.0)
_NIC = (10.0, 12.0, 15.0, 18.0, 20.0)
_GROUP = (12.5, 13.5, 15.0, 18.0, 18.0)
"""Sizes that are wished for, near and from farther and farther away, in drawing units."""
_FILLED = (11.0, 12.5, 14.0, 18.0, 22.0)
_FILLED_MEMORY = (10.0, 11.0, 12.0, 14.0, 14.0)
"""Of names above a buffer."""
_HOST = (12.0, 13.5, 16.0, 20.0, 25.0)
_BASES = (17.0, 17.5, 19.0, 23.0, 24.0)
_BASE_MEMORY = 15.0
"""Where a name above a buffer stands, below the upper side of its box."""

_LEAST = {"device": 11.0, "nic": 10.0, "group": 9.0}
"""Sizes below which none is wished for, though its end be left out."""
_ROOM, _BESIDE, _SWITCH = 142.0, 12.0, 24.0
"""Room that a name has in a folded group, beside it in other boxes, and in the height of a
switch."""
_ALIKE, _SHORT = 1.75, 2.4
"""Names are about as long where the longest is so many times as long, or where their letters of one
unit are no wider than this."""
_READABLE = 4.5
"""Pixels of letters that are worth writing."""


@dataclass(frozen=True)
class Names:
    """How large the names on a stage are.

    Parameters
    ----------
    stage
        Where everything stands.
    zoom
        Pixels of a drawing unit.
    font
        Size in pixels that was requested, or None.
    """

    stage: Stage
    zoom: float
    font: float | None = None

    @cached_property
    def far(self) -> int:
        """How far away they are seen: 0 near, 4 farthest."""
        return sum(self.zoom < each for each in _FAR)

    def readable(self, size: float) -> bool:
        """Say whether letters of a size in drawing units are worth writing."""
        return size * self.zoom >= _READABLE

    def device(self, device: Device, *, filled: bool = False) -> float:
        """Return the size of a device's name, in drawing units; above a buffer it has less room."""
        if self.font is not None:
            return self.font / self.zoom
        if filled and device.kind == "memory":
            return _FILLED_MEMORY[self.far]
        what = "nic" if device.kind == "nic" else "device"
        wished = (_FILLED if filled else _NIC if what == "nic" else _DEVICE)[self.far]
        most = _SWITCH if device.kind == "switch" else wished
        return max(_LEAST[what], min(wished, most, self._rooms[device.name]))

    def base(self, device: Device) -> float:
        """Return how far below its box's upper side a name above a buffer stands."""
        return _BASE_MEMORY if device.kind == "memory" else _BASES[self.far]

    def group(self, group: Group) -> float:
        """Return the size of the two lines of a folded group."""
        if self.font is not None:
            return self.font / self.zoom
        return max(_LEAST["group"], min(_GROUP[self.far], self._rooms[group.key]))

    @cached_property
    def hosts(self) -> float:
        """Size of the names above hosts, which no longer one than the frame's width limits."""
        if self.font is not None:
            return self.font / self.zoom
        rooms = [box.width / _long(host) for host, box in self.stage.hosts.items()]
        return max(_HOST[0], min(_HOST[self.far], *rooms)) if rooms else _HOST[self.far]

    @property
    def pods(self) -> float:
        """Size of the names of racks and pods."""
        return _HOST[self.far] if self.font is None else self.font / self.zoom

    @cached_property
    def _rooms(self) -> dict[str, float]:
        """The largest sizes that names have room for, by device and by key of a group."""
        kinds: dict[str, list[tuple[float, str]]] = {}
        for each in self.stage.devices:
            kinds.setdefault(each.kind, []).append((_long(short_name(each)), each.name))
        found = dict(
            pair
            for kind, names in kinds.items()
            for pair in _fitted(names, SIZES[kind][0] - _BESIDE)
        )
        groups = [(max(map(_long, (g.title, g.counts))), g.key) for g in self.stage.groups]
        return found | dict(_fitted(groups, _ROOM))


def _fitted(names: Iterable[tuple[float, str]], room: float) -> Iterator[tuple[str, float]]:
    """Yield one size for names that are about as long."""
    longest = float("inf")
    for long, name in sorted(names, reverse=True):
        if longest > _ALIKE * long:
            longest = long
        yield name, room / longest


def _long(name: str) -> float:
    """Return the width of a name whose letters are one unit high."""
    return max(_SHORT, width(one_line(name), 1.0))


def short_name(device: Device) -> str:
    """Return the name without the host's, which stands above the frame."""
    host = device.host
    if not host or not device.name.startswith(host):
        return device.name
    return device.name[len(host) :].lstrip(" \t/.:_-") or device.name
