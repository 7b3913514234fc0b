"""What opens above the page: options, mathematics, shortcuts, a cluster's parameters."""

from __future__ import annotations

from typing import Any

import dash_mantine_components as dmc
from dash import html

from designer import ids
from designer.request import DEFAULT_TIME_LIMIT

SHORTCUTS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "Draw",
        (
            ("G", "add a GPU"),
            ("S", "add a switch"),
            ("M", "add memory"),
            ("N", "add a NIC"),
            ("L", "draw links: drag from device to device"),
            ("V", "select and move"),
            ("Ctrl G", "put the selection into a host"),
        ),
    ),
    (
        "Edit",
        (
            ("Ctrl Z", "undo"),
            ("Ctrl Shift Z", "redo"),
            ("Ctrl C", "copy"),
            ("Ctrl V", "paste"),
            ("Ctrl D", "duplicate"),
            ("Ctrl A", "select all"),
            ("Del", "delete the selection"),
            ("Esc", "let go"),
        ),
    ),
    (
        "Watch",
        (
            ("Space", "play or pause"),
            ("→", "next epoch"),
            ("←", "previous epoch"),
            ("F", "fit into view"),
            ("Ctrl Enter", "solve"),
        ),
    ),
)


def dialogs() -> list[Any]:
    """Return every dialog, closed."""
    return [_options(), _mathematics(), _shortcuts(), _gallery()]


def _options() -> dmc.Drawer:
    return dmc.Drawer(
        [
            html.Div(id=ids.OPTIONS_FORM),
            dmc.Divider(label="Limits", labelPosition="left", my="md"),
            html.Div(
                [
                    dmc.NumberInput(
                        id=ids.TIME_LIMIT,
                        label="Time limit",
                        description="Stop then and keep the best; empty for none",
                        value=DEFAULT_TIME_LIMIT,
                        suffix=" s",
                        min=0.1,
                        debounce=300,
                        persistence=True,
                        persistence_type="local",
                    ),
                    dmc.NumberInput(
                        id=ids.GAP,
                        label="Good enough",
                        description="Stop at this gap to the bound; empty for a proof",
                        value="",
                        suffix=" %",
                        min=0,
                        debounce=300,
                        persistence=True,
                        persistence_type="local",
                    ),
                ],
                className="ds-fields",
            ),
            dmc.Button(
                "Reset to defaults",
                id=ids.OPTIONS_RESET,
                variant="default",
                mt="lg",
                fullWidth=True,
            ),
        ],
        id=ids.OPTIONS_DRAWER,
        title="Options",
        position="right",
        size=380,
        keepMounted=True,
        classNames={"title": "ds-modal-title"},
    )


def _mathematics() -> dmc.Modal:
    return dmc.Modal(
        html.Div(id=ids.MATHEMATICS_TEXT),
        id=ids.MATHEMATICS,
        title="Mathematics",
        size=860,
        classNames={"title": "ds-modal-title"},
    )


def _shortcuts() -> dmc.Modal:
    return dmc.Modal(
        html.Div(
            [
                html.Div(
                    [
                        html.H3(group),
                        html.Dl([_shortcut(keys, what) for keys, what in rows]),
                    ]
                )
                for group, rows in SHORTCUTS
            ],
            className="ds-shortcuts",
        ),
        id=ids.SHORTCUTS,
        title="Keyboard shortcuts",
        size=820,
        classNames={"title": "ds-modal-title"},
    )


def _shortcut(keys: str, what: str) -> html.Div:
    return html.Div([html.Dt([dmc.Kbd(key, size="sm") for key in keys.split()]), html.Dd(what)])


def _gallery() -> dmc.Modal:
    return dmc.Modal(
        [
            html.Div(id=ids.GALLERY_FORM),
            dmc.Group(
                dmc.Button("Open", id=ids.GALLERY_OPEN),
                justify="flex-end",
                mt="lg",
            ),
        ],
        id=ids.GALLERY_DIALOG,
        title="Open a cluster",
        size=460,
        keepMounted=True,
        classNames={"title": "ds-modal-title"},
    )
