"""Captions and legends of a picture: what it shows and when, whose colours, which kinds of links.

A plan has a line above and one below the drawing. A picture for slides has a legend below all:
sizes are in pixels of the picture, until `entries` are laid out in rows of its width and drawn.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ccl import text
from ccl.topology import Link
from widgets.print.geometry.stage import Stage
from widgets.print.playback import Moment, Playback
from widgets.print.sheet import Box, Rect, Shape, Stroke, Words, shortened
from widgets.print.sheet import width as letters
from widgets.print.style import Look, between

ROW = 22.0
"""Pixels from one row to the next."""
SIZE = 12.0
"""Pixels of its letters."""

_SWATCH, _LINE, _GAP, _APART = 10.0, 26.0, 7.0, 22.0
_SIDE = 16.0
_MOST_CHUNKS = 16
_MOST_KINDS = 8


@dataclass(frozen=True, slots=True)
class Entry:
    """A word of the legend and what stands before it.

    Parameters
    ----------
    label
        The word.
    color
        Of the swatch or the line; none where there is only a word.
    width
        Of the line in pixels; None where it is a swatch.
    dash
        Of the line.
    """

    label: str
    color: str = ""
    width: float | None = None
    dash: tuple[float, ...] = ()

    @property
    def wide(self) -> float:
        """Pixels that it takes."""
        sign = 0.0 if not self.color else _GAP + (_SWATCH if self.width is None else _LINE)
        return sign + letters(self.label, SIZE)


def entries(
    stage: Stage, playback: Playback | None, look: Look, *, cut: bool
) -> list[Sequence[Entry]]:
    """Return the parts of the legend: chunks if there is a plan, then links.

    Parameters
    ----------
    stage, playback, look
        What is drawn.
    cut
        Whether the bottleneck cut is.
    """
    found: list[Sequence[Entry]] = []
    if playback is not None:
        found.append([Entry("Chunks of"), *_chunks(playback)])
    links = _links(stage, look)
    if cut:
        links.append(Entry("bottleneck cut", look.cut, 2.0, (6.0, 4.0)))
    return [*found, [Entry("Links"), *links]] if links else found


def _chunks(playback: Playback) -> list[Entry]:
    origins, colors = playback.origins, playback.colors
    shown, last = list(range(len(origins))), len(origins) - 1
    if last >= _MOST_CHUNKS:
        half = _MOST_CHUNKS // 2
        shown = [last * i // half for i in range(half + 1)]
    return [Entry(shortened(playback.names[origins[i]], SIZE, 80), colors[i]) for i in shown]


def _links(stage: Stage, look: Look) -> list[Entry]:
    """Return the kinds of links, the fastest first, each as wide as it is drawn."""
    drawn = {ends: line.width for line in stage.lines for ends in line.carries}
    kinds: dict[str, Link] = {}
    for link in sorted(stage.topology.links, key=lambda each: -each.bandwidth):
        kinds.setdefault(f"{link.medium} {text.bandwidth(link.bandwidth)}".strip(), link)
    return [
        Entry(label, look.link, min(6.0, drawn.get((link.src, link.dst), 2.0)))
        for label, link in list(kinds.items())[:_MOST_KINDS]
    ]


def rows(parts: list[Sequence[Entry]], width: float) -> list[list[Entry]]:
    """Return the entries row by row, each part from a row of its own on."""
    found: list[list[Entry]] = []
    for part in parts:
        found.append([])
        used = 0.0
        for each in part:
            if found[-1] and used + each.wide > width - 2 * _SIDE:
                found.append([])
                used = 0.0
            found[-1].append(each)
            used += each.wide + _APART
    return found


def drawn(
    found: Sequence[Sequence[Entry]], look: Look, frame: Rect, *, zoom: float
) -> Iterator[Shape]:
    """Draw the rows at the bottom of a frame, in drawing units."""
    pixel = 1 / zoom
    for number, row in enumerate(found):
        base = frame.y2 - ((len(found) - number) * ROW - 6) * pixel
        x = frame.x1 + _SIDE * pixel
        for each in row:
            color = look.text if each.color else look.dim
            start = x
            if each.color:
                x += (_GAP + (_SWATCH if each.width is None else _LINE)) * pixel
                yield _sign(each, start, base, pixel=pixel)
            yield Words((x, base), each.label, SIZE * pixel, color, anchor="start")
            x = start + (each.wide + _APART) * pixel


def _sign(each: Entry, x: float, base: float, *, pixel: float) -> Shape:
    if each.width is None:
        return Box(Rect(x, base - 9 * pixel, x + _SWATCH * pixel, base + pixel), each.color)
    y = base - 4 * pixel
    ends = (x, y), (x + _LINE * pixel, y)
    dash = tuple(length * pixel for length in each.dash)
    return Stroke(ends, each.color, each.width * pixel, dash=dash, round=not dash)


HEADING = 50.0
"""Pixels above the drawing."""
CAPTION = 54.0
"""Pixels below it."""

_RAMP = (96.0, 8.0)
_PIECES = 24
_CAPTION_NARROW = 430.0
"""Pixels of a picture that has no room for the legend."""


def caption(
    moment: Moment, look: Look, *, frame: Rect, zoom: float, ramp: bool = True
) -> Iterator[Shape]:
    """Draw the lines of a moment, a ramp of the origins' colours if wanted; sizes are in pixels."""
    pixel = 1 / zoom
    left, right = frame.x1 + 16 * pixel, frame.x2 - 16 * pixel
    title = shortened(moment.playback.title, 13 * pixel, frame.width - 32 * pixel)
    yield Words(
        (left, frame.y1 + 25 * pixel), title, 13 * pixel, look.text, bold=True, anchor="start"
    )
    base = frame.y2 - 20 * pixel
    told = when(moment)
    yield Words((right, base), told, 12 * pixel, look.text, bold=True, anchor="end")
    share = min(1.0, moment.time / moment.playback.makespan) if moment.playback.makespan else 1.0
    top, bottom = frame.y2 - 9 * pixel, frame.y2 - 5 * pixel
    yield Box(Rect(left, top, right, bottom), look.track, 2 * pixel)
    done = left + (right - left) * share
    if done - left > 4 * pixel:
        yield Box(Rect(left, top, done, bottom), look.accent, 2 * pixel)
    room = frame.width * zoom - letters(told, 12)
    if ramp and room > _CAPTION_NARROW:
        yield from _origins(moment.playback, look, left, base, pixel=pixel)


def when(moment: Moment) -> str:
    """Say how many epochs and how much time have gone by, as the player does."""
    playback = moment.playback
    done = moment.time >= playback.makespan * (1 - 1e-9)
    gone = playback.epochs if done else playback.epoch_at(moment.time)
    clock = text.moment(moment.time, playback.makespan)
    return f"{gone} of {text.count(playback.epochs, 'epoch')} · {clock}"


def _origins(
    playback: Playback, look: Look, x: float, base: float, *, pixel: float
) -> Iterator[Shape]:
    size = 11 * pixel
    names = [_name(playback, playback.origins[end]) for end in (0, -1)]
    for word, color in (("Chunk origin", look.dim), (names[0], look.text)):
        yield Words((x, base), word, size, color, anchor="start")
        x += letters(word, size) + 8 * pixel
    width, height = _RAMP[0] * pixel, _RAMP[1] * pixel
    ramp = _smooth(playback.colors)
    for index, color in enumerate(ramp):
        start, end = x + width * index / len(ramp), x + width * (index + 1) / len(ramp)
        yield Box(Rect(start, base - height, end, base), color)
    x += width + 8 * pixel
    if len(playback.origins) > 1:
        yield Words((x, base), names[1], size, look.text, anchor="start")


def _name(playback: Playback, origin: int) -> str:
    return shortened(playback.names[origin], 11, 80)


def _smooth(colors: list[str]) -> list[str]:
    """Return the colours of the legend: each one of few, a smooth row of many."""
    if len(colors) <= _PIECES // 3:
        return colors
    steps = [index * (len(colors) - 1) / (_PIECES - 1) for index in range(_PIECES)]
    return [
        between(colors[int(at)], colors[min(len(colors) - 1, int(at) + 1)], at - int(at))
        for at in steps
    ]
