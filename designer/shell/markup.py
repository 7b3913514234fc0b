"""Small parts of the page: icons, headings, attributes.

Messages that float in for a while: what went wrong, what was restored.

How the figures of Plotly behave on our pages.

The quantities of links, wherever they can be typed.

Colours and shapes: the Mantine theme.

Identity is Okabe-Ito; vermillion is kept for bottlenecks and never the only mark of one.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dash import html

from ccl import text


def icon(name: str, **props: Any) -> html.I:
    """Return the icon called `name`; a screen reader passes over it."""
    return html.I(className=f"ico ico-{name}", **attributes(aria_hidden="true", **props))


def heading(text: str, *extra: Any) -> html.Div:
    """Return the small heading of a section, with controls at its right."""
    return html.Div([html.H2(text), *extra], className="ds-heading")


def attributes(**values: Any) -> dict[str, Any]:
    """Return attributes whose names have hyphens: ``aria_label`` becomes ``aria-label``."""
    return {name.replace("_", "-"): value for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class Extra:
    """A view that is there for whoever asked for it.

    Parameters
    ----------
    name, label
        In the choice of views.
    pane
        What it shows.
    stores
        What the page keeps of it.
    """

    name: str
    label: str
    pane: Any
    stores: Sequence[Any]


Tone = Literal["bad", "good", "plain"]
_LOOK: dict[Tone, tuple[str, str, str]] = {
    "bad": ("orange", "warning", "That did not work"),
    "good": ("teal", "check", "Done"),
    "plain": ("azure", "info", "Note"),
}
_numbers = itertools.count()


def note(sentence: str, tone: Tone = "bad", *, title: str = "") -> list[dict[str, Any]]:
    """Return a notification for the container; a bad one stays longer."""
    colour, picture, usual = _LOOK[tone]
    return [
        {
            "action": "show",
            "id": f"note-{next(_numbers)}",
            "title": title or usual,
            "message": text.sentence(sentence),
            "color": colour,
            "icon": icon(picture),
            "autoClose": 20_000 if tone == "bad" else 6000,
            "withBorder": True,
        }
    ]


CONFIG: Any = {"displayModeBar": False, "responsive": True}


LINK_QUANTITIES: dict[str, dict[str, Any]] = {
    "bandwidth": {"kind": "bandwidth", "what": "bandwidth", "above": 0},
    "alpha": {"kind": "latency", "what": "latency", "least": 0},
    "count": {"kind": "count", "what": "number of links", "least": 1},
}
"""What the fields take, as `widgets.QuantityField` and `ccl.serialization.quantity` have it."""
MOST_HOSTS = 64
"""Hosts that one is repeated to at most."""


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
