"""Icons: own SVG files shown as CSS masks, so that they follow the colour of the text."""

from __future__ import annotations

from typing import Any

from dash import html


def icon(name: str, **props: Any) -> html.I:
    """Return the icon called `name`; a screen reader passes over it."""
    return html.I(className=f"ico ico-{name}", **{"aria-hidden": "true", **props})


def heading(text: str, *extra: Any) -> html.Div:
    """Return the small heading of a section, with controls at its right."""
    return html.Div([html.H2(text), *extra], className="tl-heading")
