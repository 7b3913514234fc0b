"""Why a solve ended without a schedule, told in its place, with what would put it right."""

from __future__ import annotations

import re
from typing import Any

import dash_mantine_components as dmc
from dash import html

from ccl.errors import CclError, Infeasible
from designer import text
from designer.markup import icon
from formulations import formulation, option_fields

ENOUGH = re.compile(r"\ballow ([\d,]+)(?: epochs| or more)")
"""How an error names the smallest horizon that could work."""


def epochs_enough(error: CclError, name: str) -> int | None:
    """Return the horizon that an error asks for, if the formulation called `name` takes one."""
    found = ENOUGH.search(str(error)) if isinstance(error, Infeasible) else None
    fields = {each.name for each in option_fields(formulation(name).options)}
    return int(found[1].replace(",", "")) if found and "horizon" in fields else None


def fault(error: CclError, name: str) -> html.Div:
    """Show why there is no schedule.

    Parameters
    ----------
    error
        What the solve raised.
    name
        The formulation that was asked.
    """
    epochs = epochs_enough(error, name)
    content: list[Any] = [html.Span(text.sentence(str(error)))]
    if epochs is not None:
        button = dmc.Button(
            f"Use {text.count(epochs, 'epoch')}",
            id={"remedy": f"{name}.horizon", "value": epochs},
            size="compact-sm",
            variant="light",
            color="orange",
            mt=8,
        )
        content.append(html.Div(button))
    return html.Div([icon("warning"), html.Div(content)], className="ds-banner ds-bad")
