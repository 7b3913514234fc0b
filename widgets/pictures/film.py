"""A plan as moving pictures: what stands still is painted once, what moves for every frame."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from PIL import Image

from ccl.errors import FormatError
from widgets.pictures.moving import Moment
from widgets.pictures.playback import Playback
from widgets.pictures.raster import Canvas
from widgets.pictures.view import View

_FINER = 2
"""How many times as large a frame is painted before it is reduced."""
_MOST_PIXELS = 1_000_000_000
"""Of all frames together."""
_LAST = 1500
"""Milliseconds that the last frame of a GIF stays."""
_HINT = "a WebM needs PyAV, which is an extra: pip install 'topoloom[video]'"


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
        ground = Canvas(self.view.framed(()), finer=_FINER)
        ground.paint(self.view.still())
        over = tuple(self.view.over())
        for time in self.times if times is None else times:
            canvas = ground.copy()
            canvas.paint(self.view.moving(Moment(self.playback, time)))
            canvas.paint(over)
            yield canvas.reduced()

    def check(self) -> None:
        """Check that it can be painted in minutes.

        Raises
        ------
        FormatError
            If it is too large.
        """
        (width, height), count = self.size, len(self.times)
        if width * height * count > _MOST_PIXELS:
            msg = (
                f"{count} frames of {width} x {height} pixels are {width * height * count:,} "
                f"pixels, more than {_MOST_PIXELS:,}; give less width, length or rate"
            )
            raise FormatError(msg)


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
