"""From a document and what was chosen to pictures and films, with what they cannot show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ccl.errors import FormatError
from ccl.serialization.documents import Document
from interchange.formats.format import Written, one_file, replayed
from widgets.pictures.colors import DARK, LIGHT, PAPER, Look
from widgets.pictures.cutting import Region, strongest
from widgets.pictures.film import Film, gif, webm
from widgets.pictures.moving import Moment
from widgets.pictures.options import FilmOptions, PixelOptions, StillOptions, Style
from widgets.pictures.playback import Playback
from widgets.pictures.raster import png, unwritten
from widgets.pictures.shapes import Picture, Words
from widgets.pictures.stage import Stage
from widgets.pictures.svg import svg
from widgets.pictures.view import View
from widgets.shown.scene import cuts, moves, scene

_LOOKS: dict[Style, Look] = {"light": LIGHT, "dark": DARK, "paper": PAPER}
_MOST_PIXELS = 100_000_000
_MOST_MOVES = 400_000
"""Transfers of a plan that is played; more take minutes and cannot be told apart."""


def write_svg(content: Document, options: StillOptions) -> Written:
    """Write a picture of lines and letters."""
    picture, lost = _still(content, options)
    return one_file(svg(picture, column=options.column), ending="svg", lost=lost)


def write_png(content: Document, options: PixelOptions) -> Written:
    """Write a picture of pixels."""
    picture, lost = _still(content, options)
    painted = pixels_of(picture, scale=options.scale)
    return one_file(painted, ending="png", lost=lost + _unwritten(picture))


def pixels_of(picture: Picture, *, scale: float) -> bytes:
    """Return a picture as the content of a PNG file.

    Raises
    ------
    FormatError
        If it is too large to be painted.
    """
    width, height = (round(side * scale) for side in picture.size)
    if width * height > _MOST_PIXELS:
        msg = (
            f"a picture of {width} x {height} pixels is larger than {_MOST_PIXELS:,} pixels; "
            "give less width or scale"
        )
        raise FormatError(msg)
    return png(picture, scale=scale)


def write_gif(content: Document, options: FilmOptions) -> Written:
    """Write a film that any page and any viewer of pictures plays."""
    film, lost = _film(content, options)
    return one_file(gif(film), ending="gif", lost=lost)


def write_webm(content: Document, options: FilmOptions) -> Written:
    """Write a film that browsers play."""
    film, lost = _film(content, options)
    return one_file(webm(film), ending="webm", lost=lost)


PAINTERS: Mapping[str, Callable[[Document, Any], Written]] = {
    "svg": write_svg,
    "png": write_png,
    "gif": write_gif,
    "webm": write_webm,
}
"""By the name of the format."""


def _still(content: Document, options: StillOptions) -> tuple[Picture, tuple[str, ...]]:
    moment = None
    if options.time is not None or options.epoch is not None:
        playback = _playback(content)
        moment = Moment(playback, _time(playback, options))
    stage, lost = _stage(content)
    view = View(
        stage,
        _LOOKS[options.style],
        width=options.pixels,
        region=_region(content, stage, wanted=options.cut),
        filled=moment is not None,
        captioned=moment is not None and options.style != "paper",
        font=options.letters,
    )
    return view.picture(moment), lost


def _film(content: Document, options: FilmOptions) -> tuple[Film, tuple[str, ...]]:
    playback = _playback(content)
    stage, lost = _stage(content)
    view = View(
        stage,
        _LOOKS[options.style],
        width=float(options.width),
        region=_region(content, stage, wanted=options.cut),
        filled=True,
        captioned=True,
    )
    film = Film(view, playback, options.seconds, options.rate)
    film.check()
    return film, lost


def _stage(content: Document) -> tuple[Stage, tuple[str, ...]]:
    stage = Stage.of(content.topology, content.positions)
    lost = []
    if stage.groups:
        inside = sum(len(each.members) for each in stage.groups)
        lost.append(f"{inside:,} devices are folded into {len(stage.groups):,} boxes")
    if stage.left_out:
        lost.append(f"{stage.left_out:,} lines are too many to be told apart and are not drawn")
    if content.topology.limits:
        count = len(content.topology.limits)
        lost.append(f"{count} shared limit{'s are' if count > 1 else ' is'} not drawn")
    return stage, tuple(lost)


def _region(content: Document, stage: Stage, *, wanted: bool) -> Region | None:
    if content.result is None or not wanted:
        return None
    cut = strongest(cuts(content.result.bounds))
    return None if cut is None else Region(stage, cut)


def _playback(content: Document) -> Playback:
    problem, plan, timeline = replayed(content)
    count = moves(timeline)
    if count > _MOST_MOVES:
        msg = (
            f"the plan has {count:,} transfers, more than the {_MOST_MOVES:,} that a picture "
            "shows; draw the cluster without a time"
        )
        raise FormatError(msg)
    return Playback(scene(problem, plan, timeline))


def _time(playback: Playback, options: StillOptions) -> float:
    """µs that are asked for."""
    if options.time is not None and options.epoch is not None:
        msg = f"a picture shows {options.time} µs or epoch {options.epoch}, not both; give one"
        raise FormatError(msg)
    time = options.time
    if options.epoch is not None:
        time = min(options.epoch * playback.step, playback.makespan)
        if options.epoch > playback.epochs:
            msg = f"epoch {options.epoch} is beyond the plan's {playback.epochs}; give one of these"
            raise FormatError(msg)
    assert time is not None
    if time > playback.makespan * (1 + 1e-9):
        msg = f"time {time} µs is beyond the makespan of {playback.makespan:.6g} µs; give less"
        raise FormatError(msg)
    return time


def _unwritten(picture: Picture) -> tuple[str, ...]:
    """Say how many texts have signs that are drawn as boxes."""
    texts = {each.text for each in picture.shapes if isinstance(each, Words)}
    count = sum(unwritten(each) for each in texts)
    if not count:
        return ()
    return (f"{count} names have signs that the built-in font lacks, drawn as boxes; svg has them",)
