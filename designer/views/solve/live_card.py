"""The cards of what follows the drawing: the optimum with its proof, link prices, classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dash import html

from ccl import text
from designer.shell import ids
from designer.shell.markup import attributes, heading, icon
from designer.views.solve.live import price_words

Json = Mapping[str, Any]

MOST_CUTS = 4
"""Cuts that are named; the rest are counted."""

MOST_DIGITS = 15
"""Characters of a fraction that people still read."""

DEAREST = 3
"""How many kinds of links are told before one asks for more."""

LAYERS = {
    "gpus": "GPUs",
    "links": "Links",
    "prices": "±1 %",
    "duals": "µs per GB/s",
    "tree": "Show on canvas",
    "ways": "Show on canvas",
}
"""What a button that draws over the cluster says, by what it draws."""


def sections() -> list[Any]:
    """Return the sections of the right side that are there before a solve."""
    return [
        html.Section(
            [
                heading("Optimum", html.Small("best rate, latencies aside", className="ds-note")),
                html.Div(optimum_card(None, None), id=ids.OPTIMUM_CARD, role="status"),
                html.Div(id=ids.PRICES_CARD),
                html.Div(
                    "The prices of links are being found …",
                    id=ids.DUALS_WAIT,
                    className="ds-note ds-under ds-late",
                    hidden=True,
                ),
                html.Div(id=ids.DUALS_NOTE),
            ],
            className="ds-live",
            **attributes(aria_label="Optimum"),
        ),
    ]


def alike_section() -> html.Section:
    """Return the section that tells which devices can change places."""
    return html.Section(
        [
            heading(
                "Interchangeable", html.Div([layer("gpus"), layer("links")], className="ds-row")
            ),
            html.Div(alike_card(None), id=ids.ALIKE_CARD),
        ],
        **attributes(aria_label="Interchangeable"),
    )


def layer(what: str) -> html.Button:
    """Return the button that draws something over the cluster, or takes it away again."""
    return html.Button(
        [icon("eye"), LAYERS[what]],
        id={"layer": what},
        type="button",
        className="ds-layer",
        **attributes(aria_pressed="false"),
    )


def optimum_card(found: Json | None, shown: str | int | None) -> Any:
    """Show the best rate and what proves it.

    Parameters
    ----------
    found
        As `designer.views.solve.live.optimum_told` returns it.
    shown
        Which cut is on the canvas: ``cut0`` is the first.
    """
    if found is None:
        return html.P("The best rate appears while you draw.", className="ds-card ds-quiet")
    if found.get("trouble"):
        return html.P(found["trouble"], className="ds-card ds-quiet")
    cuts = found["cuts"]
    rows = [_cut(each, number=i, pressed=shown == f"cut{i}") for i, each in enumerate(cuts)]
    more = len(cuts) - MOST_CUTS
    return html.Div(
        [
            html.Div(
                [
                    _figure(text.bandwidth(found["algbw"]), "algbw at best"),
                    _figure(text.duration(found["makespan"]), f"per {text.size(found['size'])}"),
                ],
                className="ds-figures",
            ),
            _proof(found),
            *rows[:MOST_CUTS],
            *([html.Div(f"and {more} more", className="ds-note ds-more")] if more > 0 else []),
        ],
        className="ds-card ds-bounds",
    )


def _proof(found: Json) -> html.Div:
    """Say what proves the rate, exactly where it is known so, and whether a plan has it."""
    ties = len(found["cuts"])
    said: list[Any] = ["Proved by ", html.B(found["proved_by"]), "."]
    if found["fraction"] and "/" in found["fraction"] and len(found["fraction"]) <= MOST_DIGITS:
        said = ["Exactly ", html.B(f"{found['fraction']} GB/s"), ". ", *said]
    if not found["reached"]:
        said.append(" No plan is faster; whether one is as fast is open.")
    if ties > 1:
        said.append(f" {ties} cuts tie:")
    return html.Div(said, className="ds-note ds-proof")


def _figure(value: str, label: str) -> html.Div:
    return html.Div([html.B(value), html.Span(label)])


def _cut(cut: Json, *, number: int, pressed: bool) -> html.Button:
    return html.Button(
        [html.Span(cut["where"]), html.Small(text.count(len(cut["links"]), "link"))],
        id={"best-cut": number},
        type="button",
        className="ds-bound ds-cut",
        title="Show on the canvas",
        **attributes(aria_pressed=str(pressed).lower()),
    )


def prices_card(found: Json | None) -> Any:
    """Say what 1 % of bandwidth of each class of links is worth."""
    if not found or not (found.get("rows") or found.get("hint")):
        return None
    if found.get("hint"):
        return html.Div(found["hint"], className="ds-note ds-under")
    rows = found["rows"]
    felt = [row for row in rows if "neither" not in price_words(row)]
    idle = len(rows) - len(felt)
    items = [html.Li(price_words(row)) for row in felt]
    if idle:
        words = "kind of links" if idle == 1 else "kinds of links"
        items.append(html.Li(f"{idle} {words}: neither more nor less changes anything"))
    return html.Div(
        [
            html.Div(
                [
                    html.Span("What a link is worth"),
                    html.Div([layer("prices"), layer("duals")], className="ds-row"),
                ],
                className="ds-subhead ds-two",
            ),
            html.Ul(items[:DEAREST]),
            html.Details(
                [html.Summary(f"{len(items) - DEAREST} more"), html.Ul(items[DEAREST:])],
                className="ds-fold",
            )
            if len(items) > DEAREST
            else None,
        ],
        className="ds-card ds-facts ds-prices",
    )


def duals_note(told: Json) -> html.Div:
    """Say what the prices on the drawing are of."""
    return html.Div(told["words"], className="ds-note ds-under", role="status")


def alike_card(found: Json | None) -> Any:
    """Say in words which GPUs and links can change places."""
    if not found:
        return html.P("Nothing is drawn yet.", className="ds-card ds-quiet")
    gpus, links = found["gpus"], found["links"]
    if not gpus["rows"]:
        told: Any = html.P("No two GPUs can change places.", className="ds-quiet")
    elif len(gpus["rows"]) == 1 and not gpus["lone"]:
        told = html.P(
            [html.B("All GPUs can change places: "), gpus["rows"][0][1]], className="ds-quiet"
        )
    else:
        told = _classes(gpus["rows"])
    lone = text.count(gpus["lone"], "GPU") if gpus["rows"] and gpus["lone"] else ""
    return html.Div(
        [
            told,
            html.P(f"{lone} like no other.", className="ds-quiet") if lone else None,
            html.Details(
                [
                    html.Summary(text.count(len(links["rows"]), "kind of links", "kinds of links")),
                    _classes(links["rows"]),
                ],
                className="ds-fold",
            ),
        ],
        className="ds-card ds-alike",
    )


def _classes(rows: Sequence[Sequence[str]]) -> html.Ul:
    return html.Ul([html.Li([html.I(badge), html.Span(words)]) for badge, words in rows])
