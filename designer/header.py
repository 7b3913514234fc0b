"""The bar at the top: what is solved, how, and what can be done with it."""

from __future__ import annotations

from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html

from designer import ids
from designer.icons import icon
from designer.presets import COLLECTIVE_LABELS
from designer.request import DEFAULT_FORMULATION

KEPT: dict[str, Any] = {"persistence": True, "persistence_type": "local"}
"""Settings survive a reload as the drawing does."""

EXPORTS: tuple[tuple[str, str, str, str], ...] = (
    ("json", "file", "Result as JSON", "problem, plan, bounds; opens here again"),
    ("html", "code", "Web page", "one file that plays without a server"),
    ("gif", "film", "Animation as GIF", "every epoch, loops"),
    ("webm", "film", "Video as WebM", "recorded while it plays"),
    ("csv", "table", "Transfers as CSV", "one row per crossing of a link"),
    ("png", "image", "Picture as PNG", "the canvas as it is"),
)
"""(key, icon, title, note) of the Export menu."""


def header() -> dmc.AppShellHeader:
    """Return the bar."""
    return dmc.AppShellHeader(
        className="tl-header",
        children=[_title(), _question(), _actions()],
    )


def _title() -> html.Div:
    return html.Div(
        [
            html.Div(icon("links"), className="tl-logo"),
            html.Div(
                [
                    dmc.TextInput(
                        id=ids.NAME,
                        variant="unstyled",
                        classNames={"input": "tl-name"},
                        debounce=True,
                        spellCheck=False,
                        **{"aria-label": "Name of the topology"},
                    ),
                    html.Div(id=ids.COUNTS, className="tl-counts"),
                ],
                className="tl-title-text",
            ),
        ],
        className="tl-title",
    )


def _question() -> html.Div:
    return html.Div(
        [
            dmc.Select(
                id=ids.COLLECTIVE,
                data=[{"value": key, "label": label} for key, label in COLLECTIVE_LABELS.items()],
                value="all-gather",
                allowDeselect=False,
                w=142,
                size="sm",
                maxDropdownHeight=320,
                **KEPT,
                **{"aria-label": "Collective"},
            ),
            _size(),
            _chunks(),
            html.Div(_root(), id=ids.ROOT_BOX, hidden=True),
            dmc.Select(
                id=ids.FORMULATION,
                data=[],
                value=DEFAULT_FORMULATION,
                allowDeselect=False,
                w=214,
                size="sm",
                maxDropdownHeight=420,
                renderOption={"function": "formulationOption"},
                comboboxProps={"width": 340, "position": "bottom-start"},
                **KEPT,
                **{"aria-label": "Formulation"},
            ),
            _tool("sliders", ids.OPTIONS_OPEN, "Options of the formulation"),
            html.Div(
                [
                    dmc.Button(
                        "Solve",
                        id=ids.SOLVE,
                        leftSection=icon("play"),
                        size="sm",
                        className="tl-solve",
                    ),
                    dmc.Button(
                        "Cancel",
                        id=ids.CANCEL,
                        leftSection=icon("stop"),
                        size="sm",
                        color="gray",
                        variant="light",
                        className="tl-solve",
                        style={"display": "none"},
                    ),
                ]
            ),
        ],
        className="tl-question",
        role="group",
        **{"aria-label": "What to solve"},
    )


def _size() -> Any:
    return dmc.TextInput(
        id=ids.SIZE,
        value="1MB",
        debounce=400,
        leftSection=html.Span("Size", className="tl-prefix"),
        leftSectionWidth=44,
        w=122,
        size="sm",
        spellCheck=False,
        **KEPT,
        **{"aria-label": "Size of the whole buffer, such as 1GB or 64 KiB"},
    )


def _chunks() -> Any:
    return dmc.NumberInput(
        id=ids.CHUNKS,
        value=1,
        debounce=400,
        leftSection=html.Span("Chunks", className="tl-prefix"),
        leftSectionWidth=60,
        w=112,
        size="sm",
        allowDecimal=False,
        allowNegative=False,
        **KEPT,
        **{"aria-label": "Chunks per shard"},
    )


def _root() -> Any:
    return dmc.NumberInput(
        id=ids.ROOT,
        value=0,
        debounce=400,
        leftSection=html.Span("Root", className="tl-prefix"),
        leftSectionWidth=46,
        w=96,
        size="sm",
        min=0,
        allowDecimal=False,
        **KEPT,
        **{"aria-label": "Rank of the root"},
    )


def _actions() -> html.Div:
    return html.Div(
        [
            dcc.Upload(
                _tool("open", "open-button", "Open a file (topology, problem or result)"),
                id=ids.UPLOAD,
                accept=".json,application/json",
                max_size=200_000_000,
            ),
            _tool("save", ids.SAVE, "Save the drawing"),
            _exports(),
            dmc.ColorSchemeToggle(
                id=ids.SCHEME,
                lightIcon=icon("sun"),
                darkIcon=icon("moon"),
                variant="default",
                size="lg",
                className="tl-tool",
                **{"aria-label": "Switch between light and dark"},
            ),
        ],
        className="tl-actions",
    )


def _exports() -> dmc.Menu:
    return dmc.Menu(
        [
            dmc.MenuTarget(
                dmc.Button("Export", variant="default", size="sm", leftSection=icon("download"))
            ),
            dmc.MenuDropdown(
                [
                    dmc.MenuItem(
                        [html.Div(title), html.Small(note)],
                        id={"export": key},
                        leftSection=icon(picture),
                        className="tl-menu-item",
                    )
                    for key, picture, title, note in EXPORTS
                ]
            ),
        ],
        position="bottom-end",
        width=268,
        shadow="md",
    )


def _tool(picture: str, key: str, label: str) -> dmc.Tooltip:
    return dmc.Tooltip(
        dmc.ActionIcon(
            icon(picture),
            id=key,
            variant="default",
            size="lg",
            className="tl-tool",
            **{"aria-label": label},
        ),
        label=label,
        openDelay=500,
    )
