"""The page: header, palette, canvas or table, inspector, and what floats above them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html

from designer.shell import ids
from designer.shell.markup import DEFAULT_LINK, THEME, Extra, attributes, heading, icon, link_type
from designer.views.compare import page as compare
from designer.views.draw import edits
from designer.views.draw.edits import palette
from designer.views.draw.table import Sorting
from designer.views.solve import live_card, overlays, results, solve_card
from designer.views.solve.forms import header
from designer.views.solve.plan_card import plan_card
from designer.views.whatif import page as whatif
from widgets import TopologyCanvas

HEADER_HEIGHT = 56
LEFT_WIDTH = 240
RIGHT_WIDTH = 336


def page(
    drawing: dict[str, Any], *, chosen: bool, extra: Sequence[Extra] = ()
) -> dmc.MantineProvider:
    """Return the whole page.

    Parameters
    ----------
    drawing
        What the canvas shows first.
    chosen
        Whether the user asked for this drawing; if not, the one kept in the browser comes back.
    extra
        Views that are not always there.
    """
    return dmc.MantineProvider(
        [
            _skips(),
            dmc.NotificationContainer(
                id=ids.NOTES, position="bottom-left", limit=4, containerWidth=380
            ),
            *_stores(drawing, chosen=chosen),
            *(store for each in extra for store in each.stores),
            dmc.AppShell(
                [header(), palette(), _main(drawing, extra), _aside()],
                header={"height": HEADER_HEIGHT},
                navbar={"width": LEFT_WIDTH, "breakpoint": 0},
                aside={"width": RIGHT_WIDTH, "breakpoint": 0},
                padding=0,
            ),
            *edits.dialogs(),
        ],
        theme=THEME,
        defaultColorScheme="auto",
    )


def _skips() -> html.Nav:
    """Return the ways past the header and the palette, seen when the keyboard reaches them."""
    return html.Nav(
        [
            html.A(words, href="#", className="ds-skip", **attributes(data_skip=f"{target}"))
            for words, target in (
                ("Skip to the drawing", "#canvas .tl"),
                ("Skip to the schedule", "#schedule-section"),
            )
        ],
        **attributes(aria_label="Skip"),
    )


def _stores(drawing: dict[str, Any], *, chosen: bool) -> list[Any]:
    return [
        dcc.Store(id=ids.HOME, data={"drawing": drawing, "chosen": chosen}),
        *(dcc.Store(id=each) for each in (ids.REQUEST, ids.PROBLEM, ids.CUSTOM, ids.ASSESSMENT)),
        *(dcc.Store(id=each) for each in (ids.LIVE, ids.OPTIMUM, ids.PRICES, ids.ALIKE, ids.TREE)),
        dcc.Store(id=ids.DUALS),
        dcc.Store(id=ids.LAYER, data=""),
        dcc.Store(id=ids.TREE_NUMBER, data=0),
        dcc.Store(id=ids.CUT, data="auto"),
        dcc.Store(id=ids.SORTING, data={what: asdict(Sorting()) for what in ("device", "link")}),
        dcc.Store(id=ids.OPTIONS, data={}, storage_type="local"),
        dcc.Store(id=ids.SKETCH, data={}, storage_type="local"),
        dcc.Store(id=ids.SKETCHING),
        dcc.Store(id=ids.JOB, storage_type="session"),
        *(dcc.Store(id=each) for each in (ids.FILE, ids.EXPORT_CHOSEN, ids.EXPORT_ENOUGH)),
        *(dcc.Store(id=each) for each in (ids.COPY, ids.LINK_COPY, ids.LINK_FILE)),
        *(dcc.Store(id=each) for each in (ids.LINKED, ids.LINK_REFUSED)),
        dcc.Store(id=ids.PATHS, storage_type="session"),
        dcc.Store(id=ids.PATHS_MARKS),
        *(dcc.Store(id=each) for each in (ids.RESULT, ids.PERSISTED, ids.SUMMARY, ids.LOAD_DATA)),
        *(dcc.Store(id=each) for each in (ids.REMEDY, ids.OTHER)),
        dcc.Store(id=ids.SCHEME_NOW),
        dcc.Store(id=ids.BEAT),
        dcc.Store(id=ids.BUSY, data=False),
        dcc.Interval(id=ids.TICK, interval=250, disabled=True),
        *compare.stores(),
        *whatif.stores(),
        dcc.Download(id=ids.DOWNLOAD),
    ]


def _main(drawing: dict[str, Any], extra: Sequence[Extra]) -> dmc.AppShellMain:
    return dmc.AppShellMain(
        className="ds-main",
        children=html.Div(
            [
                dmc.VisuallyHidden(html.H1("Topoloom")),
                _views(extra),
                html.Div(id=ids.SKETCH_CARD, className="ds-sketch", hidden=True),
                html.Div(
                    TopologyCanvas(
                        id=ids.CANVAS,
                        drawing=drawing,
                        cuts=[],
                        link_preset=link_type(DEFAULT_LINK).preset(),
                        theme="auto",
                        height="100%",
                    ),
                    id="canvas-pane",
                    className="ds-pane",
                ),
                html.Div(
                    html.Div(id=ids.TABLE), id="table-pane", className="ds-pane ds-table-pane"
                ),
                compare.pane(),
                whatif.pane(),
                *(each.pane for each in extra),
            ],
            id="stage",
            className="ds-stage",
            **attributes(data_view="canvas", data_extra=str(len(extra))),
        ),
    )


def _views(extra: Sequence[Extra]) -> dmc.SegmentedControl:
    """Return the choice between what the middle of the page shows."""
    return dmc.SegmentedControl(
        id=ids.VIEW,
        data=[
            {"value": "canvas", "label": "Canvas"},
            {"value": "table", "label": "Table"},
            {"value": "compare", "label": "Compare"},
            {"value": "whatif", "label": "What if"},
            *({"value": each.name, "label": each.label} for each in extra),
        ],
        value="canvas",
        size="xs",
        className="ds-view",
        **attributes(aria_label="How the cluster is shown"),
    )


def _aside() -> dmc.AppShellAside:
    return dmc.AppShellAside(
        className="ds-side ds-right",
        children=[
            html.Section(
                [heading("Selection"), html.Div(id=ids.INSPECTOR)],
                **attributes(aria_label="Selection"),
            ),
            overlays.paths_section(),
            *live_card.sections(),
            _schedule(),
            overlays.tree_section(),
            html.Section(
                [heading("Lower bounds"), html.Div(id=ids.BOUNDS)],
                **attributes(aria_label="Lower bounds"),
            ),
            live_card.alike_section(),
            html.Section(
                results.link_load(),
                id=ids.LOAD_BOX,
                hidden=True,
                **attributes(aria_label="Link load"),
            ),
        ],
    )


def _schedule() -> html.Section:
    """Return what is to be solved, how a solve goes, and what it has found."""
    mathematics = dmc.Button(
        "About",
        id=ids.MATHEMATICS_OPEN,
        leftSection=icon("formula"),
        size="compact-xs",
        variant="subtle",
        color="gray",
    )
    return html.Section(
        [
            heading("Schedule", mathematics),
            html.Div(id=ids.TROUBLE, role="alert"),
            html.Div(id=ids.FAULT, role="alert"),
            html.Div(plan_card(), id=ids.PLAN_BOX),
            html.Div(solve_card.solve_card(), id=ids.SOLVE_BOX, hidden=True),
            html.Div(id=ids.SCHEDULE),
        ],
        id="schedule-section",
        tabIndex=-1,
        className="ds-schedule",
        **attributes(aria_label="Schedule"),
    )
