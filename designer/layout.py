"""The page: header, palette, canvas or table, inspector, and what floats above them."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html

from designer.shell import ids, ui
from designer.views.compare import page as compare
from designer.views.draw import exporting, files, import_card, palette, wizard
from designer.views.draw.table import Sorting, toolbar
from designer.views.propose import page as propose
from designer.views.solve import about, forms, live_card, overlays, results, solve_card
from designer.views.solve.front import front_card
from designer.views.solve.header import header
from designer.views.solve.plan_card import plan_card
from designer.views.whatif import page as whatif
from widgets import TopologyCanvas

HEADER_HEIGHT = {"base": 184, "sm": 98}
"""Of its rows: two, and four where the page is narrower than 48 em."""
LEFT_WIDTH = 240
RIGHT_WIDTH = 336


def page(
    drawing: dict[str, Any], *, chosen: bool, extra: Sequence[ui.Extra] = ()
) -> dmc.MantineProvider:
    """Return the whole page.

    Parameters
    ----------
    drawing
        What the canvas shows first.
    chosen
        Whether the user chose this drawing; if not, the one kept in the browser comes back.
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
                [header(_views(extra)), palette.palette(), _main(drawing, extra), _aside()],
                header={"height": HEADER_HEIGHT},
                navbar={"width": LEFT_WIDTH, "breakpoint": 0},
                aside={"width": RIGHT_WIDTH, "breakpoint": 0},
                padding=0,
            ),
            *_dialogs(),
        ],
        theme=ui.THEME,
        defaultColorScheme="auto",
    )


def _skips() -> html.Nav:
    """Return the links past the header and the palette, seen when the keyboard reaches them."""
    return html.Nav(
        [
            html.A(words, href="#", className="ds-skip", **ui.attributes(data_skip=f"{target}"))
            for words, target in (
                ("Skip to the drawing", "#canvas .tl"),
                ("Skip to the schedule", "#schedule-section"),
            )
        ],
        **ui.attributes(aria_label="Skip"),
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
        *(dcc.Store(id=each) for each in (ids.ROWS, ids.TABLE_ACT)),
        dcc.Store(id=ids.SORTING, data={what: asdict(Sorting()) for what in ("device", "link")}),
        dcc.Store(id=ids.OPTIONS, data={}, storage_type="local"),
        dcc.Store(id=ids.SKETCH, data={}, storage_type="local"),
        *(dcc.Store(id=each) for each in (ids.SKETCHING, ids.SKETCH_ACT)),
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
        *propose.stores(),
        dcc.Download(id=ids.DOWNLOAD),
    ]


def _dialogs() -> list[Any]:
    """Return what opens above the page, closed."""
    return [
        forms.drawer(),
        about.dialog(),
        palette.dialog(),
        files.dialog(),
        import_card.dialog(),
        exporting.dialog(),
        wizard.dialog(),
    ]


def _main(drawing: dict[str, Any], extra: Sequence[ui.Extra]) -> dmc.AppShellMain:
    return dmc.AppShellMain(
        className="ds-main",
        children=ui.div(
            "ds-stage",
            dmc.VisuallyHidden(html.H1("Topoloom")),
            html.Div(id=ids.SKETCH_CARD, className="ds-sketch", hidden=True),
            ui.div(
                "ds-pane",
                TopologyCanvas(
                    id=ids.CANVAS,
                    drawing=drawing,
                    cuts=[],
                    link_preset=ui.link_type(ui.DEFAULT_LINK).preset(),
                    theme="auto",
                    height="100%",
                    request={},
                ),
                id="canvas-pane",
            ),
            ui.div("ds-pane ds-table-pane", toolbar(), html.Div(id=ids.TABLE), id="table-pane"),
            compare.pane(),
            whatif.pane(),
            propose.pane(),
            *(each.pane for each in extra),
            id="stage",
            data_view="canvas",
        ),
    )


def _views(extra: Sequence[ui.Extra]) -> dmc.SegmentedControl:
    """Return the choice between what the middle of the page shows."""
    return ui.segments(
        ids.VIEW,
        "How the cluster is shown",
        {
            "canvas": "Canvas",
            "table": "Table",
            "compare": "Compare",
            "whatif": "What if",
            "propose": "Propose",
            **{each.name: each.label for each in extra},
        },
        className="ds-view",
    )


def _aside() -> dmc.AppShellAside:
    return dmc.AppShellAside(
        className="ds-side ds-right",
        children=[
            ui.card("Selection", html.Div(id=ids.INSPECTOR)),
            overlays.paths_section(),
            *live_card.sections(),
            _schedule(),
            overlays.tree_section(),
            ui.section(
                "Lower bounds",
                ui.folding(
                    "Lower bounds", html.Small("no schedule is faster", className="ds-note")
                ),
                html.Div(id=ids.BOUNDS),
            ),
            live_card.alike_section(),
            html.Section(
                results.link_load(),
                id=ids.LOAD_BOX,
                hidden=True,
                **ui.attributes(aria_label="Link load"),
            ),
        ],
    )


def _schedule() -> html.Section:
    """Return what is to be solved, how a solve goes, and what it has found."""
    mathematics = ui.quiet("About", ids.MATHEMATICS_OPEN, "formula")
    return ui.section(
        "Schedule",
        ui.folding("Schedule", mathematics),
        html.Div(id=ids.TROUBLE, role="alert"),
        html.Div(id=ids.FAULT, role="alert"),
        html.Div(plan_card(), id=ids.PLAN_BOX),
        html.Div(solve_card.solve_card(), id=ids.SOLVE_BOX, hidden=True),
        front_card(),
        html.Div(id=ids.SCHEDULE),
        id="schedule-section",
        tabIndex=-1,
        className="ds-schedule",
    )
