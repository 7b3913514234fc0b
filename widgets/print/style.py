"""What can be chosen of a picture or a film (`ccl.options`): its style, its size, its time.

Colours as on the canvas (`widgets/js/src/style.js`), and one look more for print. Identity by the
palette of Okabe and Ito, "Color Universal Design" (2008), safe for colour-blind readers; vermillion
is kept for bottlenecks alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ccl.options import option

Style = Literal["light", "dark", "paper"]

PIXELS_PER_INCH = 96
"""As in CSS, so that a picture is as wide in print as it says."""
MILLIMETRES_PER_INCH = 25.4
POINTS_PER_INCH = 72


_STYLE = "Style", "light and dark as the designer; paper: white, thin lines, nothing to please."
_CUT = "Bottleneck cut", "Whether the cut that proves the bound is drawn."
_SCALE = "Scale", "Pixels for each of the width: 2 for screens of twice the density."
_WIDTH: dict[str, Any] = {"unit": "px", "min": 160}


@dataclass(frozen=True, kw_only=True)
class SheetOptions:
    """Of anything that is drawn on a sheet: on a screen in pixels, in print in mm and points."""

    style: Style = option("light", *_STYLE)
    width: int = option(1280, "Width", max=8000, **_WIDTH)
    font: float | None = option(
        None,
        "Font size",
        "Of names; by default they grow as the drawing shrinks.",
        unit="px",
        min=2,
        max=100,
    )
    column: float | None = option(
        None,
        "Column",
        "Width in print, instead of pixels; 25.4 mm are an inch.",
        unit="mm",
        min=40,
        max=1000,
    )
    points: float | None = option(
        None,
        "Font size in print",
        "Instead of pixels; 72 pt are an inch.",
        unit="pt",
        min=2,
        max=72,
    )

    @property
    def pixels(self) -> float:
        """Width of the picture in pixels."""
        if self.column is None:
            return float(self.width)
        return self.column / MILLIMETRES_PER_INCH * PIXELS_PER_INCH

    @property
    def letters(self) -> float | None:
        """Size of letters in pixels, or None."""
        if self.points is None:
            return self.font
        return self.points / POINTS_PER_INCH * PIXELS_PER_INCH


@dataclass(frozen=True, kw_only=True)
class StillOptions(SheetOptions):
    """Of a picture."""

    time: float | None = option(
        None,
        "Time",
        "Of a plan: what is where at this time; without it only the cluster.",
        unit="µs",
        min=0,
    )
    epoch: int | None = option(
        None, "Epoch", "Of a plan: the time as a number of epochs that are over.", min=0
    )
    cut: bool = option(True, *_CUT)
    legend: bool = option(
        False,
        "Legend",
        "Below the drawing, for slides: whose chunks have which colour, and the kinds of links.",
    )


@dataclass(frozen=True, kw_only=True)
class PixelOptions(StillOptions):
    """Of a picture made of pixels."""

    scale: float = option(1.0, *_SCALE, min=0.25, max=4)


@dataclass(frozen=True, kw_only=True)
class ChartOptions(SheetOptions):
    """Of a chart."""

    width: int = option(720, "Width", max=8000, **_WIDTH)
    quantity: Literal["time", "ratio", "algbw"] = option(
        "time", "Upwards", "The makespan, that over the bound, or algbw."
    )


@dataclass(frozen=True, kw_only=True)
class ChartPixelOptions(ChartOptions):
    """Of a chart made of pixels."""

    scale: float = option(1.0, *_SCALE, min=0.25, max=4)


@dataclass(frozen=True, kw_only=True)
class FilmOptions:
    """Of a film."""

    style: Style = option("dark", *_STYLE)
    width: int = option(640, "Width", max=1920, **_WIDTH)
    seconds: float = option(6.0, "Length", unit="s", min=0.2, max=60)
    rate: float = option(12.5, "Frames per second", min=1, max=50)
    cut: bool = option(True, *_CUT)


OKABE_ITO = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#0072b2", "#9ad1f5", "#b39ddb")
"""Colours of up to eight origins."""

RAMP = ("#3d5aa0", "#4682be", "#56b4e9", "#78c8b4", "#b4cd78", "#f0c850", "#f0aa3c")
"""Of more than eight, from the first to the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Colours of everything, and whether it is for print: thin lines and nothing to please."""

    bg: str
    dot: str
    text: str
    dim: str
    surface: str
    raised: str
    box: str
    box_line: str
    gpu: str
    switch: str
    memory: str
    nic: str
    link: str
    cut: str
    on_cut: str
    cut_fill: float
    empty: str
    accent: str
    track: str
    links: tuple[str, ...]
    paper: bool = False

    def device(self, kind: str) -> str:
        """Colour of the border of a kind of device."""
        return str(getattr(self, kind))


_LOOKS: Mapping[str, tuple[Any, Any, Any]] = {
    # dark, light, paper
    "bg": ("#0f141b", "#f7f9fb", "#ffffff"),
    "dot": ("#1d2631", "#d9e1ea", ""),
    "text": ("#dfe7ef", "#17212e", "#000000"),
    "dim": ("#8e9db0", "#566577", "#444444"),
    "surface": ("#1a222d", "#ffffff", "#ffffff"),
    "raised": ("#202b38", "#ffffff", "#f2f2f2"),
    "box": ("#151c26", "#eef2f7", "#ffffff"),
    "box_line": ("#2f3e50", "#c3cfdb", "#8a8a8a"),
    "gpu": ("#4aa3ff", "#1670c9", "#1f1f1f"),
    "switch": ("#2dc7b0", "#0c8f7d", "#1f1f1f"),
    "memory": ("#e0b64f", "#946d06", "#1f1f1f"),
    "nic": ("#b69cff", "#6f4fd1", "#1f1f1f"),
    "link": ("#62748a", "#7a8a9c", "#5c5c5c"),
    "cut": ("#ff7a50", "#c45500", "#c45500"),
    "on_cut": ("#1c0c05", "#ffffff", "#ffffff"),
    "cut_fill": (0.086, 0.07, 0.0),
    "empty": ("#2a3645", "#e2e8ef", "#ebebeb"),
    "accent": ("#4aa3ff", "#1670c9", "#1670c9"),
    "track": ("#202b38", "#dde5ee", "#ebebeb"),
    # Of kinds of links: none is orange, which is the bottleneck's.
    "links": (
        ("#8fa8c4", "#c9a2ff", "#93c26b", "#7fd0e0", "#d98fc0", "#d6cf6a"),
        ("#5b7391", "#8a35b8", "#4b7a1e", "#0e7490", "#a8387f", "#7a6a00"),
        (),
    ),
    "paper": (False, False, True),
}
DARK, LIGHT, PAPER = (
    Look(**dict(zip(_LOOKS, look, strict=True))) for look in zip(*_LOOKS.values(), strict=True)
)


def origin_color(index: int, origins: int) -> str:
    """Return the colour of what began at an origin, of which there are so many."""
    if origins <= len(OKABE_ITO):
        return OKABE_ITO[index]
    at = index / (origins - 1) * (len(RAMP) - 1)
    step = min(len(RAMP) - 2, int(at))
    return between(RAMP[step], RAMP[step + 1], at - step)


def between(start: str, end: str, share: float) -> str:
    """Return the colour so far on the way from one to another."""
    mixed = (round(a + (b - a) * share) for a, b in zip(rgb(start), rgb(end), strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)


def rgb(color: str) -> tuple[int, int, int]:
    """Return red, green and blue of ``#rrggbb``, from 0 to 255."""
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


LOOK_OF: Mapping[Style, Look] = {"light": LIGHT, "dark": DARK, "paper": PAPER}
"""Colours of a drawing by its style."""
