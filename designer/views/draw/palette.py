"""The panel at the left: devices and link types to draw with, and ready clusters.

The drawing itself: restoring and keeping it, its name, what is added to it.

What opens above the page: options, mathematics, a cluster's parameters.
"""

from __future__ import annotations

from typing import Any

import dash_mantine_components as dmc
from dash import ALL, ClientsideFunction, Dash, Input, Output, State, dcc, html

from designer.shell import commands, ids
from designer.shell.markup import (
    DEFAULT_LINK,
    DEVICE_TYPES,
    LINK_TYPES,
    DeviceType,
    LinkType,
    attributes,
    heading,
    icon,
    link_type,
)
from designer.shell.request import DEFAULT_TIME_LIMIT
from designer.views.draw import export_card, import_card
from widgets import QuantityField


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


def dialogs() -> list[Any]:
    """Return every dialog, closed."""
    return [
        _options(),
        _mathematics(),
        _dialogs_gallery(),
        import_card.dialog(),
        export_card.dialog(),
    ]


def _options() -> dmc.Drawer:
    return dmc.Drawer(
        [
            html.Div(id=ids.OPTIONS_FORM),
            dmc.Divider(label="Limits", labelPosition="left", my="md"),
            _limits(),
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
        closeButtonProps={"aria-label": "Close"},
    )


def _limits() -> html.Div:
    """Return when to stop: a row of every formulation."""
    kept = {"debounce": 300, "persistence": True, "persistence_type": "local"}
    return html.Div(
        [
            QuantityField(
                id=ids.TIME_LIMIT,
                kind="duration",
                what="the time limit",
                label="Time limit",
                description="Stop then and keep the best; empty for none",
                value=DEFAULT_TIME_LIMIT,
                above=0,
                optional=True,
                size="sm",
                **kept,
            ),
        ],
        className="ds-fields",
    )


def _mathematics() -> dmc.Modal:
    return dmc.Modal(
        [
            html.Div(id=ids.ABOUT_HEAD),
            html.Div(id=ids.ABOUT_SIZE),
            html.Div(id=ids.MATHEMATICS_TEXT, tabIndex=0),
            dcc.Store(id=ids.ABOUT_ASKED),
        ],
        id=ids.MATHEMATICS,
        title="About this formulation",
        size=900,
        classNames={"title": "ds-modal-title"},
        closeButtonProps={"aria-label": "Close"},
    )


def _dialogs_gallery() -> dmc.Modal:
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
        closeButtonProps={"aria-label": "Close"},
    )
