"""What opens above the page: options, mathematics, a cluster's parameters."""

from __future__ import annotations

from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html

from designer.shell import ids
from designer.shell.request import DEFAULT_TIME_LIMIT
from designer.views.draw import export_card, import_card
from widgets import QuantityField


def dialogs() -> list[Any]:
    """Return every dialog, closed."""
    return [_options(), _mathematics(), _gallery(), import_card.dialog(), export_card.dialog()]


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
        closeButtonProps={"aria-label": "Close"},
    )
