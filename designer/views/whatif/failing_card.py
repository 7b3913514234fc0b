"""The cards of what may fail and of what may lag: a row for each class, the worst first.

What the cards of studies have in common: run, stop, how far it is, and what it has found.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html

from ccl import text
from designer.shell import ids
from designer.shell.markup import attributes, heading, icon
from designer.views.solve.results import banner
from designer.views.whatif.running import Found

OLD = "Out of date: the cluster or what is asked has changed. Run it again."
STUDIES = ("failures", "stragglers", "budget")


def part(study: str, name: str) -> str:
    """Return the id of a part of a study's card."""
    return f"whatif-{study}-{name}"


def stores() -> list[Any]:
    """Return what the page keeps of studies."""
    return [
        each
        for study in STUDIES
        for each in (
            dcc.Store(id=part(study, "job"), storage_type="session"),
            dcc.Store(id=part(study, "beat")),
            dcc.Store(id=part(study, "busy"), data=False),
            dcc.Store(id=part(study, "seen")),
            dcc.Interval(id=part(study, "tick"), interval=300, disabled=True),
        )
    ]


def controls(study: str, label: str) -> html.Div:
    """Return the two buttons of which one is shown, and how far it is."""
    run = dmc.Button(
        label, id=part(study, "run"), leftSection=icon("play"), size="xs", variant="default"
    )
    stop = dmc.Button(
        "Stop",
        id=part(study, "stop"),
        leftSection=icon("stop"),
        size="xs",
        variant="default",
        style={"display": "none"},
    )
    told = html.Div(id=part(study, "status"), className="ds-wif-progress", role="status")
    old = html.Div(banner("clock", "plain", OLD), id=part(study, "old"), hidden=True, role="status")
    return html.Div([run, stop, told, old], className="ds-wif-run")


def status(found: Found | None, *, doing: str) -> Any:
    """Say how far a study is.

    Parameters
    ----------
    found
        What there is so far.
    doing
        What it does, for a study that has no rows to count.
    """
    if found is None:
        return None
    error = found.last("error")
    if error:
        return banner("warning", "bad", text.sentence(error))
    of, rows = found.last("of"), len(found.rows)
    if found.waiting:
        return [dmc.Loader(size=12), html.Span(f"waits for {text.count(found.waiting, 'turn')}")]
    if found.running:
        words = f"{rows} of {of}" if of else doing
        return [dmc.Loader(size=12), html.Span(words)]
    if found.cancelled:
        return html.Span(f"stopped: {rows} of {of}" if of else "stopped")
    return [icon("check"), html.Span(f"{text.seconds(found.seconds)}")]


Json = Mapping[str, Any]

MOST_ROWS = 40
"""Rows that are shown; more are counted."""
LABELS = {"failures": "Lost", "stragglers": "Lags"}


def failing_cards() -> list[html.Section]:
    """Return both cards before anything is known."""
    return [
        html.Section(
            [
                heading("If one fails"),
                html.P(
                    "What every single loss costs: one of each class of links, GPUs, switches, "
                    "NICs and hosts that can change places.",
                    className="ds-quiet",
                ),
                controls("failures", "Lose each"),
                html.Div(id=part("failures", "found")),
            ],
            className="ds-wif-card",
            **attributes(aria_label="If one fails"),
        ),
        html.Section(
            [
                heading("If one lags"),
                _factors(),
                controls("stragglers", "Slow each"),
                html.Div(id=part("stragglers", "found")),
            ],
            className="ds-wif-card",
            **attributes(aria_label="If one lags"),
        ),
    ]


def _factors() -> html.Div:
    """Return the two sliders: by how much what lags is slower."""
    return html.Div(
        [
            html.Div(
                [
                    html.Span(label, className="ds-wif-label", **attributes(aria_hidden="true")),
                    dmc.Slider(
                        id=key,
                        value=value,
                        min=1,
                        max=10,
                        step=0.5,
                        label={"function": "whatifTimes"},
                        marks=[{"value": each} for each in (1, 5, 10)],
                        size=4,
                        thumbSize=16,
                        thumbLabel=title,
                    ),
                    html.Span(id=f"{key}-words", className="ds-wif-times"),
                ],
                className="ds-wif-row",
            )
            for key, label, title, value in (
                (ids.WHATIF_LAG_ALPHA, "Alpha", "Times the latency of what lags", 1),
                (ids.WHATIF_LAG_BETA, "Beta", "Times as long for each byte of what lags", 2),
            )
        ],
        className="ds-wif-form",
    )


def identity(row: Json) -> str:
    """Return what tells a row from the others."""
    return "/".join([row["kind"], *row["names"]])


def table(study: str, found: Found | None, picked: str) -> Any:
    """Return the rows so far.

    Parameters
    ----------
    study
        ``failures`` or ``stragglers``.
    found
        What there is.
    picked
        Identity of the row that is drawn, or nothing.
    """
    if found is None or not found.rows:
        return None
    rows = found.rows
    more = len(rows) - MOST_ROWS
    words = found.last("words")
    return [
        html.P(words, className="ds-wif-worst") if words else None,
        html.Table(
            [
                html.Caption("Losses, the worst first", className="ds-unseen"),
                html.Thead(
                    html.Tr(
                        [
                            html.Th(LABELS[study], scope="col"),
                            html.Th("costs", scope="col"),
                            html.Th("leaves", scope="col"),
                            html.Th(html.Span("Open", className="ds-unseen"), scope="col"),
                        ]
                    )
                ),
                html.Tbody([_row(study, row, picked) for row in rows[:MOST_ROWS]]),
            ],
            className="ds-wif-table ds-wif-losses",
        ),
        html.Small(f"and {more} more that cost no more", className="ds-note") if more > 0 else None,
    ]


def _row(study: str, row: Json, picked: str) -> html.Tr:
    name = identity(row)
    button = html.Button(
        [html.Span(" – ".join(row["names"])), html.Small(_kind(row))],
        id={"whatif-loss": name, "of": study},
        type="button",
        className="ds-wif-class ds-wif-loss",
        title=f"Draw it: {row['words']}",
        **attributes(aria_pressed=str(name == picked).lower()),
    )
    opens = html.Button(
        icon("open"),
        id={"whatif-open": name, "of": study},
        type="button",
        className="ds-wif-open",
        title="Open this cluster in the drawing",
        **attributes(aria_label=f"Open the cluster: {row['words']}"),
    )
    return html.Tr(
        [
            html.Th(button, scope="row"),
            html.Td(_cost(row)),
            html.Td(text.bandwidth(row["algbw"]) if row["algbw"] else "nothing"),
            html.Td(opens),
        ]
    )


def _kind(row: Json) -> str:
    """Say what it is, without its name: ``a link (NVLink 3 at 300 GB/s), 16 alike``."""
    name = " – ".join(row["names"])
    words = str(row["words"]).partition(", such as")[0].removesuffix(name).rstrip(" ,")
    return f"{words}, {row['alike']:,} alike" if row["alike"] > 1 else words


def _cost(row: Json) -> Any:
    if row["ends"]:
        return html.B("all of it", className="ds-wif-ends")
    if row["cut_off"]:
        return html.B(f"cuts off {len(row['cut_off'])}", className="ds-wif-ends")
    share = row["lost"]
    if abs(share) < _NOTHING:
        return "nothing"
    bar = html.Span(html.I(style={"width": f"{max(share, 0):.1%}"}), className="ds-track")
    return [text.share(share) if share > 0 else f"gains {text.share(-share)}", bar]


_NOTHING = 5e-6


def marks(study: str, row: Json, hosts: Mapping[str, str | None]) -> Json:
    """Return what is drawn of a row: what is lost or lags, and in pale what is like it.

    Parameters
    ----------
    study
        ``failures`` or ``stragglers``.
    row
        Of the study.
    hosts
        Host of each device.
    """
    alike = [each for each in row["members"] if each != row["names"]]
    groups = [
        _group(
            row["kind"],
            [row["names"]],
            hosts,
            heat=1.0,
            label=f"{LABELS[study]}: {' – '.join(row['names'])}",
        )
    ]
    groups[0]["badge"] = "×" if study == "failures" else "!"
    if alike:
        label = f"{len(alike):,} alike"
        groups.append(_group(row["kind"], alike, hosts, heat=0.3, label=label))
    return {"title": f"{LABELS[study]}: {row['words']}", "groups": groups}


def _group(
    kind: str,
    members: list[list[str]],
    hosts: Mapping[str, str | None],
    *,
    heat: float,
    label: str,
) -> dict[str, Any]:
    links = (
        [list(ends) for pair in members for ends in (pair, pair[::-1])] if kind == "link" else []
    )
    names = {name for each in members for name in each}
    if kind == "host":
        devices = [device for device, host in hosts.items() if host in names]
    else:
        devices = [] if kind == "link" else sorted(names)
    return {"tone": {"heat": heat}, "devices": devices, "links": links, "label": label}
