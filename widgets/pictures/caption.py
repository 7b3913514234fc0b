"""Lines above and below a picture of a plan: what it is, whose chunks have which colour, when."""

from __future__ import annotations

from collections.abc import Iterator

from widgets.pictures import lettering
from widgets.pictures.colors import Look, between
from widgets.pictures.moving import Moment
from widgets.pictures.playback import Playback
from widgets.pictures.shapes import Box, Rect, Shape, Words

HEADING = 50.0
"""Pixels above the drawing."""
CAPTION = 54.0
"""Pixels below it."""

_RAMP = (96.0, 8.0)
_PIECES = 24
_NARROW = 430.0
"""Pixels of a picture that has no room for the legend."""


def caption(moment: Moment, look: Look, *, frame: Rect, zoom: float) -> Iterator[Shape]:
    """Draw the lines of a moment; sizes are in pixels of the picture."""
    pixel = 1 / zoom
    left, right = frame.x1 + 16 * pixel, frame.x2 - 16 * pixel
    title = lettering.shortened(
        moment.playback.title, 13 * pixel, frame.width - 32 * pixel, bold=True
    )
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
    room = frame.width * zoom - lettering.width(told, 12, bold=True)
    if room > _NARROW:
        yield from _legend(moment.playback, look, left, base, pixel=pixel)


def when(moment: Moment) -> str:
    """Say which epoch it is and how much time has gone by."""
    playback = moment.playback
    done = moment.time >= playback.makespan * (1 - 1e-9)
    epoch = playback.epochs if done else playback.epoch_at(moment.time) + 1
    whole = duration(playback.makespan)
    return f"Epoch {epoch} / {playback.epochs} · {duration(moment.time)} of {whole}"


def duration(time: float) -> str:
    """Return µs for people, in µs, ms or s."""
    if time >= 1e6:
        return f"{time / 1e6:.4g} s"
    if time >= 1e4:
        return f"{time / 1e3:.4g} ms"
    if time == 0:
        return "0 µs"
    return f"{time:.1f} µs" if time >= 100 else f"{time:.3g} µs"


def _legend(
    playback: Playback, look: Look, x: float, base: float, *, pixel: float
) -> Iterator[Shape]:
    size = 11 * pixel
    names = [_name(playback, playback.origins[end]) for end in (0, -1)]
    for text, color in (("Chunk origin", look.dim), (names[0], look.text)):
        yield Words((x, base), text, size, color, anchor="start")
        x += lettering.width(text, size) + 8 * pixel
    width, height = _RAMP[0] * pixel, _RAMP[1] * pixel
    ramp = _ramp(playback.colors)
    for index, color in enumerate(ramp):
        start, end = x + width * index / len(ramp), x + width * (index + 1) / len(ramp)
        yield Box(Rect(start, base - height, end, base), color)
    x += width + 8 * pixel
    if len(playback.origins) > 1:
        yield Words((x, base), names[1], size, look.text, anchor="start")


def _name(playback: Playback, origin: int) -> str:
    return lettering.shortened(playback.names[origin], 11, 80)


def _ramp(colors: list[str]) -> list[str]:
    """Return the colours of the legend: each one of few, a smooth row of many."""
    if len(colors) <= _PIECES // 3:
        return colors
    steps = [index * (len(colors) - 1) / (_PIECES - 1) for index in range(_PIECES)]
    return [
        between(colors[int(at)], colors[min(len(colors) - 1, int(at) + 1)], at - int(at))
        for at in steps
    ]
