"""Why a solve ended without a schedule, told in its place, with what would put it right."""

from __future__ import annotations

import re
from typing import Any

import dash_mantine_components as dmc
from dash import html

from ccl import text
from ccl.errors import CclError, Infeasible
from designer.shell.markup import icon
from formulations import formulation, option_fields

ENOUGH = re.compile(r"\ballow ([\d,]+) (epoch|step|hop|round)s? (?:and [\d,]+ rounds )?or more")
"""How an error names the smallest horizon that could work."""

OPTIONS = {"epoch": "horizon", "step": "steps", "hop": "hops", "round": "rounds"}
"""The option that an error is about, by what it counts."""


def enough(error: CclError, name: str) -> tuple[str, int, str] | None:
    """Return the option that an error asks for, its value, and what it counts.

    None where it asks for none that the formulation called `name` takes.
    """
    found = ENOUGH.search(str(error)) if isinstance(error, Infeasible) else None
    fields = {each.name for each in option_fields(formulation(name).options)}
    if found is None or OPTIONS[found[2]] not in fields:
        return None
    return OPTIONS[found[2]], int(found[1].replace(",", "")), found[2]


def fault(error: CclError, name: str) -> html.Div:
    """Show why there is no schedule.

    Parameters
    ----------
    error
        What the solve raised.
    name
        The formulation that was asked.
    """
    asked = enough(error, name)
    content: list[Any] = [html.Span(text.sentence(str(error)))]
    if asked is not None:
        option, value, unit = asked
        button = dmc.Button(
            f"Use {text.count(value, unit)}",
            id={"remedy": f"{name}.{option}", "value": value},
            size="compact-sm",
            variant="light",
            color="orange",
            mt=8,
        )
        content.append(html.Div(button))
    return html.Div([icon("warning"), html.Div(content)], className="ds-banner ds-bad")
