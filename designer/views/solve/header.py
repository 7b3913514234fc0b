"""The bar at the top: what is solved, how, and what can be done with it."""

from __future__ import annotations

from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html

from designer.server.sessions import MOST_UPLOAD
from designer.shell import ids
from designer.shell.markup import COLLECTIVE_LABELS, attributes, icon
from designer.shell.request import DEFAULT_FORMULATION
from widgets import QuantityField

KEPT: dict[str, Any] = {"persistence": True, "persistence_type": "local"}
"""Settings survive a reload as the drawing does."""

FLOATING: dict[str, Any] = {"className": "ds-floating", "size": "sm", **KEPT}
"""What the fields of the bar have in common: there is no room below them."""

EXPORTS: tuple[tuple[str, str, str, str], ...] = (
    ("json", "file", "Result as JSON", "with plan and bounds; opens here"),
    ("html", "code", "Web page", "one file that plays without a server"),
    ("gif", "film", "Animation as GIF", "every epoch, loops"),
    ("webm", "film", "Video as WebM", "recorded while it plays"),
    ("csv", "table", "Transfers as CSV", "one row per crossing of a link"),
    ("png", "image", "Picture as PNG", "the canvas as it is"),
)
"""(key, icon, title, note) of the Export menu."""

SHARES: tuple[tuple[str, str, str, str], ...] = (
    (ids.COPY_LINK, "link", "Copy link", "drawing and question, in the address"),
    (ids.COPY_PYTHON, "copy", "Copy as Python", "the same as code, to paste"),
    (ids.EXPORT_OPEN, "sliders", "More formats...", "runtimes, simulators, graphs"),
)
"""(id, icon, title, note) of what stands below."""


def collective_choices(*, custom: bool) -> list[dict[str, Any]]:
    """Return the menu of collectives; a custom one is there once a file has brought it."""
    named: list[dict[str, Any]] = [
        {"value": key, "label": label} for key, label in COLLECTIVE_LABELS.items()
    ]
    return [*named, {"value": "custom", "label": "From a file"}] if custom else named


def header() -> dmc.AppShellHeader:
    """Return the bar."""
    return dmc.AppShellHeader(
        className="ds-header",
        children=[_title(), _question(), _actions()],
    )


def _title() -> html.Div:
    return html.Div(
        [
            html.Div(icon("links"), className="ds-logo"),
            html.Div(
                [
                    dmc.TextInput(
                        id=ids.NAME,
                        variant="unstyled",
                        classNames={"input": "ds-name"},
                        debounce=True,
                        spellCheck=False,
                        **attributes(aria_label="Name of the topology"),
                    ),
                    html.Div(id=ids.COUNTS, className="ds-counts"),
                ],
                className="ds-title-text",
            ),
        ],
        className="ds-title",
    )


def _question() -> html.Div:
    return html.Div(
        [
            dmc.Select(
                id=ids.COLLECTIVE,
                data=collective_choices(custom=False),
                value="all-gather",
                allowDeselect=False,
                w=136,
                size="sm",
                maxDropdownHeight=320,
                **KEPT,
                **attributes(aria_label="Collective"),
            ),
            _size(),
            _chunks(),
            html.Div(_root(), id=ids.ROOT_BOX, hidden=True),
            dmc.Select(
                className="ds-formulation",
                id=ids.FORMULATION,
                data=[],
                value=DEFAULT_FORMULATION,
                allowDeselect=False,
                size="sm",
                maxDropdownHeight=420,
                renderOption={"function": "formulationOption"},
                comboboxProps={"width": 340, "position": "bottom-start"},
                **KEPT,
                **attributes(aria_label="Formulation"),
            ),
            _tool("sliders", ids.OPTIONS_OPEN, "Options of the formulation"),
            _solve(),
            html.Div(id=ids.CHIP, className="ds-chip"),
        ],
        className="ds-question",
        role="group",
        **attributes(aria_label="What to solve"),
    )


def _solve() -> html.Div:
    """Return the two buttons of which one is shown; Stop keeps the best schedule."""
    return html.Div(
        [
            dmc.Button(
                "Solve",
                id=ids.SOLVE,
                leftSection=icon("play"),
                size="sm",
                className="ds-solve",
            ),
            dmc.Button(
                "Cancel",
                id=ids.CANCEL,
                leftSection=icon("stop"),
                size="sm",
                variant="default",
                className="ds-solve",
                style={"display": "none"},
            ),
        ],
        title="Ctrl+Enter solves; Stop keeps the best schedule",
    )


def _size() -> Any:
    return QuantityField(
        id=ids.SIZE,
        kind="size",
        what="size",
        above=0,
        value="1MB",
        verbatim=True,
        debounce=400,
        prefix="Size",
        ariaLabel="Size of the whole buffer, such as 1GB or 64 KiB",
        style={"width": 122},
        **FLOATING,
    )


def _chunks() -> Any:
    return QuantityField(
        id=ids.CHUNKS,
        kind="count",
        what="chunks per shard",
        least=1,
        value="",
        optional=True,
        debounce=400,
        prefix="Chunks",
        placeholder="Automatic",
        ariaLabel="Chunks per shard",
        title="Automatic: a plan cuts the data as it likes. A number keeps so many chunks of each "
        "shard whole",
        style={"width": 156},
        **FLOATING,
    )


def _root() -> Any:
    return QuantityField(
        id=ids.ROOT,
        kind="count",
        what="the root's rank",
        least=0,
        value=0,
        debounce=400,
        prefix="Root",
        ariaLabel="Rank of the root",
        style={"width": 84},
        **FLOATING,
    )


def _actions() -> html.Div:
    return html.Div(
        [
            dcc.Upload(
                _tool("open", "open-button", "Open a file, or drop it anywhere"),
                id=ids.UPLOAD,
                max_size=MOST_UPLOAD,
            ),
            _tool("save", ids.SAVE, "Save the drawing"),
            _exports(),
            dmc.ColorSchemeToggle(
                id=ids.SCHEME,
                lightIcon=icon("sun"),
                darkIcon=icon("moon"),
                variant="default",
                size="lg",
                className="ds-tool",
                **attributes(aria_label="Switch between light and dark"),
            ),
        ],
        className="ds-actions",
    )


def _exports() -> dmc.Menu:
    button = dmc.Button("Export", variant="default", size="sm", leftSection=icon("download"))
    entries = [
        *(_entry({"picture" if key == "png" else "export": key}, *told) for key, *told in EXPORTS),
        dmc.MenuDivider(),
        *(_entry(key, *told) for key, *told in SHARES),
    ]
    return dmc.Menu(
        [dmc.MenuTarget(button), dmc.MenuDropdown(entries)],
        position="bottom-end",
        width=268,
        shadow="md",
    )


def _entry(key: Any, picture: str, title: str, note: str) -> dmc.MenuItem:
    return dmc.MenuItem(
        [html.Div(title), html.Small(note)],
        id=key,
        leftSection=icon(picture),
        className="ds-menu-item",
    )


def _tool(picture: str, key: str, label: str) -> dmc.Tooltip:
    return dmc.Tooltip(
        dmc.ActionIcon(
            icon(picture),
            id=key,
            variant="default",
            size="lg",
            className="ds-tool",
            **attributes(aria_label=label),
        ),
        label=label,
        openDelay=500,
    )
