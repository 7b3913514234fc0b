"""Small parts of the page: icons, headings, attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dash import html


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
