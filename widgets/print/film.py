"""Pictures and films of a document as they were chosen, with what they cannot show.

In a film what stands still is painted once, what moves for every frame.
"""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from PIL import Image

from ccl.errors import FormatError
from ccl.serialization.documents import Document
from interchange.formats.format import Written, one_file, replayed
from widgets.print.cutting import Region, strongest
from widgets.print.geometry.stage import Stage
from widgets.print.legend import entries, rows
from widgets.print.painter import PER_INCH, Frames, Sheet, image, pdf, svg
from widgets.print.playback import Moment, Playback
from widgets.print.sheet import Picture, Words, unwritten
from widgets.print.style import LOOK_OF, FilmOptions, PixelOptions, StillOptions
from widgets.print.view import View
from widgets.view_model.scene import cuts, moves, scene

_MOST_PIXELS_OF_FILM = 1_000_000_000
"""Of all frames together."""
_LAST = 1500
"""Milliseconds that the last frame of a GIF stays."""
_HINT = "a WebM needs PyAV, which is an extra: pip install -e '.[video]'"


@dataclass(frozen=True)
class Film:
    """A plan that is played.

    Parameters
    ----------
    view
        What it is played on.
    playback
        The plan.
    seconds
        That it takes.
    rate
        Frames per second.
    """

    view: View
    playback: Playback
    seconds: float
    rate: float

    @property
    def times(self) -> list[float]:
        """µs that each frame shows, from the start to the makespan."""
        frames = max(2, round(self.seconds * self.rate))
        return [self.playback.makespan * frame / (frames - 1) for frame in range(frames)]

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of a frame in pixels."""
        return self.view.framed(()).size

    def frames(self, times: Sequence[float] | None = None) -> Iterator[Image.Image]:
        """Paint the frames, or those of some times in µs."""
        frames = Frames(self.view.framed(tuple(self.view.still())))
        over = tuple(self.view.over())
        for time in self.times if times is None else times:
            yield frames.paint([*self.view.moving(Moment(self.playback, time)), *over])

    def check(self) -> None:
        """Check that it can be painted in minutes.

        Raises
        ------
        FormatError
            If it is too large.
        """
        (width, height), count = self.size, len(self.times)
        if width * height * count > _MOST_PIXELS_OF_FILM:
            raise FormatError(
                f"{count} frames of {width} x {height} pixels are {width * height * count:,} "
                f"pixels, more than {_MOST_PIXELS_OF_FILM:,}; give less width, length or rate"
            )


def gif(film: Film) -> bytes:
    """Return a film as the content of a GIF, which plays again and again.

    All frames have the colours of three of them: the first, the last and one between.
    """
    times = film.times
    some = [times[0], times[len(times) // 2], times[-1]]
    palette = _palette(list(film.frames(some)))
    painted = (
        each.quantize(palette=palette, dither=Image.Dither.NONE) for each in film.frames(times)
    )
    pause = round(100 / film.rate) * 10  # a GIF counts in hundredths of a second
    content = io.BytesIO()
    next(painted).save(
        content,
        "GIF",
        save_all=True,
        append_images=painted,
        duration=[max(20, pause)] * (len(times) - 1) + [_LAST],
        loop=0,
        optimize=False,
    )
    return content.getvalue()


def _palette(frames: list[Image.Image]) -> Image.Image:
    width, height = frames[0].size
    together = Image.new("RGB", (width, height * len(frames)))
    for row, each in enumerate(frames):
        together.paste(each, (0, row * height))
    return together.quantize(colors=255, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)


def webm(film: Film) -> bytes:
    """Return a film as the content of a WebM, encoded as VP9.

    Raises
    ------
    FormatError
        If PyAV is not installed.
    """
    try:
        import av  # noqa: PLC0415 - an extra
    except ImportError:
        raise FormatError(_HINT) from None
    content = io.BytesIO()
    with av.open(content, "w", format="webm", options={"fflags": "bitexact"}) as container:
        stream = container.add_stream(
            "libvpx-vp9", rate=Fraction(film.rate).limit_denominator(1000)
        )
        # The format has one sample of colour for four pixels, so both sides are even.
        stream.width, stream.height = (side // 2 * 2 for side in film.size)
        stream.pix_fmt = "yuv420p"
        stream.options = {"crf": "32", "b": "0", "deadline": "good", "cpu-used": "5"}
        for frame in film.frames():
            even = frame.crop((0, 0, stream.width, stream.height))
            container.mux(stream.encode(av.VideoFrame.from_image(even)))
        container.mux(stream.encode())
    return content.getvalue()


_MOST_PIXELS = 100_000_000
_MOST_MOVES = 400_000
"""Transfers of a plan that is played; more take minutes and cannot be distinguished."""


def write_svg(content: Document, options: StillOptions) -> Written:
    """Write a picture of lines and letters."""
    picture, lost = _still(content, options)
    return one_file(svg(picture, column=options.column), ending="svg", lost=lost)


def write_png(content: Document, options: PixelOptions) -> Written:
    """Write a picture of pixels."""
    picture, lost = _still(content, options)
    painted = pixels_of(picture, scale=options.scale)
    return one_file(painted, ending="png", lost=lost + _unwritten(picture))


def write_pdf(content: Document, options: StillOptions) -> Written:
    """Write a picture for print."""
    picture, lost = _still(content, options)
    return one_file(pdf(picture), ending="pdf", lost=lost + _unwritten(picture))


def pixels_of(sheet: Sheet, *, scale: float) -> bytes:
    """Return a sheet as the content of a PNG file.

    Raises
    ------
    FormatError
        If it is too large to be painted.
    """
    width, height = (round(side * scale) for side in sheet.size)
    if width * height > _MOST_PIXELS:
        raise FormatError(
            f"a picture of {width} x {height} pixels is larger than {_MOST_PIXELS:,} pixels; "
            "give less width or scale"
        )
    content, dots = io.BytesIO(), PER_INCH * scale
    image(sheet, scale=scale).save(content, "PNG", dpi=(dots, dots))
    return content.getvalue()


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
    "pdf": write_pdf,
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
        LOOK_OF[options.style],
        width=options.pixels,
        region=_region(content, stage, wanted=options.cut),
        filled=moment is not None,
        captioned=moment is not None and (options.style != "paper" or options.legend),
        font=options.letters,
    )
    if options.legend:
        played = None if moment is None else moment.playback
        parts = entries(stage, played, view.look, cut=view.region is not None)
        view = replace(view, legend=tuple(map(tuple, rows(parts, view.width))))
    return view.picture(moment), lost


def _film(content: Document, options: FilmOptions) -> tuple[Film, tuple[str, ...]]:
    playback = _playback(content)
    stage, lost = _stage(content)
    view = View(
        stage,
        LOOK_OF[options.style],
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
        lost.append(f"{stage.left_out:,} lines are too many to be distinguished and are not drawn")
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
        raise FormatError(
            f"the plan has {count:,} transfers, more than the {_MOST_MOVES:,} that a picture "
            "shows; draw the cluster without a time"
        )
    return Playback(scene(problem, plan, timeline))


def _time(playback: Playback, options: StillOptions) -> float:
    """Return the requested time in µs."""
    if options.time is not None and options.epoch is not None:
        raise FormatError(
            f"a picture shows {options.time} µs or epoch {options.epoch}, not both; give one"
        )
    time = options.time
    if options.epoch is not None:
        time = min(options.epoch * playback.step, playback.makespan)
        if options.epoch > playback.epochs:
            raise FormatError(
                f"epoch {options.epoch} is beyond the plan's {playback.epochs}; give one of these"
            )
    assert time is not None
    if time > playback.makespan * (1 + 1e-9):
        raise FormatError(
            f"time {time} µs is beyond the makespan of {playback.makespan:.6g} µs; give less"
        )
    return time


def _unwritten(picture: Picture) -> tuple[str, ...]:
    """Say how many texts have signs that are drawn as boxes."""
    texts = {each.text for each in picture.shapes if isinstance(each, Words)}
    count = sum(unwritten(each) for each in texts)
    if not count:
        return ()
    return (f"{count} names have signs that the built-in font lacks, drawn as boxes; svg has them",)
