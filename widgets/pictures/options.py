"""What can be chosen of a picture or a film (`ccl.options`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Style = Literal["light", "dark", "paper"]

PIXELS_PER_INCH = 96
"""As in CSS, so that a picture is as wide in print as it says."""
MILLIMETRES_PER_INCH = 25.4
POINTS_PER_INCH = 72

_STYLE = {
    "label": "Style",
    "help": "light and dark as the designer; paper: white, thin lines, nothing to please.",
}
_CUT = {"label": "Bottleneck cut", "help": "Whether the cut that proves the bound is drawn."}
_WIDTH = {"label": "Width", "unit": "px", "min": 160}


@dataclass(frozen=True, kw_only=True)
class SheetOptions:
    """Of anything that is drawn on a sheet: on a screen in pixels, in print in mm and points."""

    style: Style = field(default="light", metadata=_STYLE)
    width: int = field(default=1280, metadata={**_WIDTH, "max": 8000})
    font: float | None = field(
        default=None,
        metadata={
            "label": "Font size",
            "unit": "px",
            "min": 2,
            "max": 100,
            "help": "Of names; by default they grow as the drawing shrinks.",
        },
    )
    column: float | None = field(
        default=None,
        metadata={
            "label": "Column",
            "unit": "mm",
            "min": 40,
            "max": 1000,
            "help": "Width in print, instead of pixels; 25.4 mm are an inch.",
        },
    )
    points: float | None = field(
        default=None,
        metadata={
            "label": "Font size in print",
            "unit": "pt",
            "min": 2,
            "max": 72,
            "help": "Instead of pixels; 72 pt are an inch.",
        },
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

    time: float | None = field(
        default=None,
        metadata={
            "label": "Time",
            "unit": "µs",
            "min": 0,
            "help": "Of a plan: what is where at this time; without it only the cluster.",
        },
    )
    epoch: int | None = field(
        default=None,
        metadata={
            "label": "Epoch",
            "min": 0,
            "help": "Of a plan: the time as a number of epochs that are over.",
        },
    )
    cut: bool = field(default=True, metadata=_CUT)


_SCALE = {
    "label": "Scale",
    "min": 0.25,
    "max": 4,
    "help": "Pixels for each of the width: 2 for screens of twice the density.",
}


@dataclass(frozen=True, kw_only=True)
class PixelOptions(StillOptions):
    """Of a picture made of pixels."""

    scale: float = field(default=1.0, metadata=_SCALE)


@dataclass(frozen=True, kw_only=True)
class ChartOptions(SheetOptions):
    """Of a chart."""

    width: int = field(default=720, metadata={**_WIDTH, "max": 8000})
    quantity: Literal["time", "ratio", "algbw"] = field(
        default="time",
        metadata={"label": "Upwards", "help": "The makespan, that over the bound, or algbw."},
    )


@dataclass(frozen=True, kw_only=True)
class ChartPixelOptions(ChartOptions):
    """Of a chart made of pixels."""

    scale: float = field(default=1.0, metadata=_SCALE)


@dataclass(frozen=True, kw_only=True)
class FilmOptions:
    """Of a film."""

    style: Style = field(default="dark", metadata=_STYLE)
    width: int = field(default=640, metadata={**_WIDTH, "max": 1920})
    seconds: float = field(
        default=6.0,
        metadata={"label": "Length", "unit": "s", "min": 0.2, "max": 60},
    )
    rate: float = field(
        default=12.5,
        metadata={"label": "Frames per second", "min": 1, "max": 50},
    )
    cut: bool = field(default=True, metadata=_CUT)
