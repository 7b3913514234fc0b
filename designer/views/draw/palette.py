"""The panel at the left: devices and link types to draw with, and ready clusters.

The drawing itself: restoring and keeping it, its name, what is added to it.
"""

from __future__ import annotations

from typing import Any

import dash_mantine_components as dmc
from dash import ALL, ClientsideFunction, Dash, Input, Output, State, html

from designer.shell import commands, ids
from designer.shell.markup import attributes, heading, icon
from designer.shell.presets import (
    DEFAULT_LINK,
    DEVICE_TYPES,
    LINK_TYPES,
    DeviceType,
    LinkType,
    link_type,
)


def palette() -> dmc.AppShellNavbar:
    """Return the panel; the list of clusters is filled by a callback."""
    return dmc.AppShellNavbar(
        className="ds-side ds-left",
        children=[
            html.Section(
                [
                    heading("Devices"),
                    html.Div([_device(each) for each in DEVICE_TYPES], className="ds-tiles"),
                ],
                **attributes(aria_label="Devices"),
            ),
            html.Section([heading("Link type"), _links()], **attributes(aria_label="Link type")),
            _gallery(),
            dmc.UnstyledButton(
                [dmc.Kbd("?", size="xs"), "Keyboard shortcuts"],
                id=ids.SHORTCUTS_OPEN,
                className="ds-help",
            ),
        ],
    )


def _device(device: DeviceType) -> html.Button:
    return html.Button(
        [icon(device.kind), html.Span(device.label), html.Kbd(device.key)],
        id={"device": device.kind},
        className=f"ds-tile ds-{device.kind}",
        type="button",
        draggable="true",
        title=f"{device.label}: {device.note}. Drag it onto the canvas, or click.",
        **attributes(data_topology=device.kind),
    )


def _links() -> dmc.RadioGroup:
    return dmc.RadioGroup(
        html.Div([_link(each) for each in LINK_TYPES], className="ds-links"),
        id=ids.LINK_TYPE,
        value=DEFAULT_LINK,
        persistence=True,
        persistence_type="local",
        **attributes(aria_label="Type of the next link"),
    )


def _link(link: LinkType) -> dmc.RadioCard:
    return dmc.RadioCard(
        [
            html.I(style={"height": f"{link.width:.1f}px"}, **attributes(aria_hidden="true")),
            html.Span(link.label),
            html.Small(f"{link.bandwidth:g} GB/s"),
        ],
        value=link.key,
        className="ds-link",
        withBorder=False,
        attributes={
            "root": {
                "title": f"{link.label}: {link.bandwidth:g} GB/s ({link.bandwidth * 8:,.0f} Gb/s)"
                f" each way, alpha {link.alpha:g} µs; {link.note}",
            }
        },
    )


def _gallery() -> Any:
    return html.Section(
        [
            heading(
                "Gallery",
                dmc.Button("New", id=ids.NEW, size="compact-xs", variant="subtle", color="gray"),
            ),
            dmc.TextInput(
                id=ids.GALLERY_SEARCH,
                placeholder="Search clusters",
                leftSection=icon("search"),
                size="xs",
                debounce=200,
                **attributes(aria_label="Search clusters"),
            ),
            html.Div(id=ids.GALLERY_LIST, className="ds-gallery"),
        ],
        **attributes(aria_label="Gallery"),
    )


def register(app: Dash) -> None:
    """Wire the drawing; what must be quick runs in the page (assets/designer.js)."""
    _document(app)
    for name, pressed in (
        ("add", Input({"device": ALL}, "n_clicks")),
        ("shortcuts", Input(ids.SHORTCUTS_OPEN, "n_clicks")),
    ):
        app.clientside_callback(
            ClientsideFunction("topoloom", name),
            commands.output(),
            pressed,
            prevent_initial_call=True,
        )
    app.clientside_callback(
        ClientsideFunction("topoloom", "picture"),
        Input({"picture": ALL}, "n_clicks"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        ClientsideFunction("topoloom", "view"),
        Output("stage", "data-view"),
        Input(ids.VIEW, "value"),
    )

    @app.callback(Output(ids.CANVAS, "link_preset"), Input(ids.LINK_TYPE, "value"))
    def on_link_type(key: str) -> dict[str, Any]:
        return link_type(key).preset()


def _document(app: Dash) -> None:
    """Wire what is restored when the page opens, kept while it is edited, and renamed."""
    app.clientside_callback(
        ClientsideFunction("topoloom", "restore"),
        Output(ids.CANVAS, "drawing", allow_duplicate=True),
        commands.notes(),
        Input(ids.HOME, "data"),
        prevent_initial_call="initial_duplicate",
    )
    app.clientside_callback(
        ClientsideFunction("topoloom", "keep"),
        Output(ids.NAME, "value"),
        Output(ids.COUNTS, "children"),
        Input(ids.CANVAS, "drawing"),
        State(ids.HOME, "data"),
    )
    app.clientside_callback(
        ClientsideFunction("topoloom", "rename"),
        commands.output(),
        Input(ids.NAME, "value"),
        State(ids.CANVAS, "drawing"),
        prevent_initial_call=True,
    )
