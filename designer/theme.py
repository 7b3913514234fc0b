"""Colours and shapes: the Mantine theme, and the same colours for the charts.

Identity is Okabe-Ito; vermillion is kept for bottlenecks and never the only mark of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

FONT = '"Inter Variable", Inter, system-ui, -apple-system, "Segoe UI", sans-serif'

THEME: dict[str, Any] = {
    "fontFamily": FONT,
    "fontFamilyMonospace": 'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, monospace',
    "primaryColor": "azure",
    "primaryShade": {"light": 6, "dark": 7},
    "defaultRadius": "md",
    "cursorType": "pointer",
    "colors": {
        "azure": [
            "#e7f3ff", "#cfe5ff", "#9ccaff", "#6ab0ff", "#4aa3ff",
            "#2f8ef2", "#1474d4", "#0f6ccb", "#0059b3", "#00479a",
        ],
        "dark": [
            "#dfe7ef", "#b6c2cf", "#93a2b3", "#62748a", "#3b4a5c",
            "#2b3746", "#1d2733", "#161e28", "#10161e", "#0b0f15",
        ],
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Palette:
    """The colours of the charts in one scheme."""

    text: str
    soft: str
    line: str
    empty: str
    middle: str
    full: str


LIGHT = Palette(
    text="#1b2733",
    soft="#55657a",
    line="#dfe6ee",
    empty="#e9eef4",
    middle="#5b9bd8",
    full="#084a8c",
)
DARK = Palette(
    text="#dfe7ef",
    soft="#93a2b3",
    line="#2b3746",
    empty="#1b2531",
    middle="#2f6fb0",
    full="#8accff",
)


def palette(scheme: str | None) -> Palette:
    """Return the chart colours of ``light`` or ``dark``; dark before the page has said."""
    return LIGHT if scheme == "light" else DARK
