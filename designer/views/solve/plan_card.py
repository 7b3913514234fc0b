"""What stands before a solve: when it is good enough, and how large its model would be."""

from __future__ import annotations

from typing import Any

import dash_mantine_components as dmc
from dash import html

from ccl import text
from designer.shell import ids
from designer.shell.markup import icon
from designer.views.solve.header import KEPT
from designer.views.solve.sizes import Remedy, Sizing
from widgets import QuantityField


def plan_card() -> html.Div:
    """Return the card; the size fills in when it is known."""
    return html.Div(
        [
            html.Div(
                [
                    html.Label("Good enough at", htmlFor=ids.GAP),
                    QuantityField(
                        id=ids.GAP,
                        kind="percent",
                        what="the gap",
                        least=0,
                        value="",
                        optional=True,
                        placeholder="a proof",
                        ariaLabel="Good enough at this gap to the bound, in %",
                        className="ds-floating",
                        style={"width": 74},
                        **KEPT,
                    ),
                    html.Span("above the bound"),
                ],
                className="ds-enough",
            ),
            html.Div(id=ids.SIZING),
        ],
        className="ds-card ds-plan",
    )


def sizing_shown(sizing: Sizing | None) -> Any:
    """Show the size of the model with its warning and remedies; nothing where there is none."""
    if sizing is None:
        return None
    size = sizing.size
    rows = (
        ("variables", f"{size.variables:,}"),
        ("constraints", f"{size.constraints:,}"),
        ("nonzeros", f"{size.nonzeros:,}"),
        ("memory, about", text.size(size.memory)),
    )
    return html.Details(
        [
            html.Summary(
                ["Model: ", html.B(variables(size.variables)), f" · {text.size(size.memory)}"]
            ),
            html.Dl(
                [part for name, value in rows for part in (html.Dt(name), html.Dd(value))],
                className="ds-size",
            ),
            *_warning(sizing),
        ],
        open=bool(sizing.warning),
        className="ds-fold ds-sizing",
    )


def _warning(sizing: Sizing) -> list[Any]:
    if not sizing.warning:
        return []
    smaller = [html.Div("Smaller with", className="ds-note")] if sizing.remedies else []
    buttons = [_remedy(each) for each in sizing.remedies]
    return [
        html.Div([icon("warning"), html.Span(sizing.warning)], className="ds-banner ds-bad"),
        *smaller,
        html.Div(buttons, className="ds-remedies"),
    ]


def _remedy(remedy: Remedy) -> dmc.Button:
    small = "no model" if remedy.variables is None else variables(remedy.variables)
    return dmc.Button(
        [remedy.label, html.Small(small)],
        id={"remedy": remedy.what, "value": remedy.value},
        size="compact-sm",
        variant="default",
        justify="space-between",
        fullWidth=True,
    )


def chip(sizing: Sizing | None) -> tuple[Any, str, str]:
    """Return content, class and title of the size beside the Solve button."""
    if sizing is None:
        return None, "ds-chip", ""
    size = sizing.size
    content = [
        icon("warning") if sizing.warning else None,
        html.Div([html.B(f"{short(size.variables)} vars"), html.Small(text.size(size.memory))]),
    ]
    title = (
        f"The model would have {size.variables:,} variables, {size.constraints:,} constraints "
        f"and {size.nonzeros:,} nonzeros and take about {text.size(size.memory)}. {sizing.warning}"
    )
    return content, "ds-chip ds-bad" if sizing.warning else "ds-chip", title.strip()


def variables(number: int) -> str:
    """Write ``5.81 K variables``, ``1 variable``."""
    return f"{short(number)} variable{'' if number == 1 else 's'}"


def short(number: float) -> str:
    """Write a count with three digits, such as ``812``, ``5.81 K`` or ``378 M``."""
    return text.scaled(number, ("", "K", "M", "G")).rstrip()
