"""The bar at the top: the drawing, its views, the answer; what is solved, how, and within what."""

from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html

from ccl import text
from ccl.result import Stop
from designer.server.guard import MOST_UPLOAD
from designer.shell import ids, ui
from designer.shell.request import DEFAULT_FORMULATION, DEFAULT_TIME_LIMIT, Json
from designer.views.solve.forms import PERSISTED
from widgets import QuantityField

FLOATING: Json = {"className": "ds-floating", "size": "sm", **PERSISTED}
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

NEEDING = {
    "gif": "needs a schedule; solve first",
    "webm": "needs a schedule; solve first",
    "csv": "needs a solve that is over",
}
"""Why some of these exports are grey as long as there is no schedule."""

SHARES: tuple[tuple[str, str, str, str], ...] = (
    (ids.COPY_LINK, "link", "Copy link", "drawing and question, in the address"),
    (ids.COPY_PYTHON, "copy", "Copy as Python", "the same as code, to paste"),
    (ids.EXPORT_OPEN, "sliders", "More formats...", "runtimes, simulators, graphs"),
)
"""(id, icon, title, note) of what stands below."""


def collective_choices(*, custom: bool) -> list[Json]:
    """Return the menu of collectives; a custom one is there once a file has brought it."""
    named: list[Json] = [
        {"value": key, "label": label} for key, label in ui.COLLECTIVE_LABELS.items()
    ]
    return [*named, {"value": "custom", "label": "From a file"}] if custom else named


def header(views: Any) -> dmc.AppShellHeader:
    """Return the bar around the choice of views: two rows, more where it is narrow."""
    return dmc.AppShellHeader(
        className="ds-header",
        children=[
            ui.div(
                "ds-header-row",
                _side("left", "Devices, link types and gallery ([)"),
                _header_title(),
                views,
                html.Div(answer(None), id=ids.ANSWER, className="ds-answer", role="status"),
                _actions(),
                _side("right", "Selection, schedule and bounds (])"),
            ),
            _question(),
        ],
    )


def _side(side: str, label: str) -> dmc.Tooltip:
    """Return the button that hides a column, or brings it back."""
    return dmc.Tooltip(
        ui.press(
            ui.icon("sideleft" if side == "left" else "sideright"),
            f"panel-{side}",
            "ds-side-button",
            aria_label=label,
            aria_expanded="true",
            data_side=side,
        ),
        label=label,
        openDelay=500,
    )


def answer(
    summary: Mapping[str, Any] | None,
    *,
    stale: str = "",
    solving: bool = False,
    trouble: str | None = None,
) -> list[Any]:
    """Return makespan, gap and proof in the words of the schedule's card, or why there are none.

    Parameters
    ----------
    summary
        As `designer.views.solve.results.summary_of` returns it.
    stale
        What has changed since.
    solving
        Whether a solve runs.
    trouble
        Why it cannot be solved as it stands.
    """
    if trouble and summary is None:
        sentence = text.sentence(trouble)
        said = html.Span(sentence, className="ds-answer-said", title=sentence)
        return [ui.icon("warning"), said]
    if summary is None:
        return [html.Span("Solving" if solving else "No schedule yet", className="ds-answer-said")]
    figures = (
        (text.duration(summary["makespan"]), "makespan"),
        (text.share(summary["gap"]), above(summary)),
    )
    old = stale or trouble
    look = "ds-answer-figures ds-answer-old" if old else "ds-answer-figures"
    return [
        ui.div(
            look,
            *(html.Span([html.B(value), html.Small(label)]) for value, label in figures),
            _proof(summary, stale=stale, solving=solving, trouble=trouble),
            html.A(
                ui.icon("chevron"),
                href="#",
                className="ds-answer-more",
                **ui.attributes(aria_label="To the schedule", data_skip="#schedule-section"),
            ),
        )
    ]


def above(summary: Mapping[str, Any]) -> str:
    """Say what the gap is to: where whole chunks are proved the best, the bound is another."""
    return "above the bound of any plan" if summary["whole"] else "above the lower bound"


def _proof(
    summary: Mapping[str, Any], *, stale: str, solving: bool, trouble: str | None
) -> html.Span:
    """Return what is proved of the plan, as a label with an icon."""
    picture, tone, words, more = proof_of(summary)
    if trouble:
        words, tone, picture = "Cannot be solved", "bad", "warning"
        more = text.sentence(trouble)
    elif stale:
        words, tone, picture = "Out of date", "plain", "clock"
        more = f"Out of date: {stale} has changed. Solve again."
    elif solving or summary.get("running"):
        words, tone, picture = "Still solving", "plain", "clock"
        more = text.sentence(str(summary["verdict"]))
    return html.Span([ui.icon(picture), words], className=f"ds-proved ds-{tone}", title=more)


def proof_of(summary: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Return what is proved of a plan: an icon, a tone, in a word or two, and in sentences."""
    stop, verdict = str(summary["stop"]), str(summary["verdict"])
    if summary["optimal"] or summary["throughput"] or summary["whole"]:
        proved = summary["optimal"] or summary["throughput"]
        more = "" if proved else " A plan that cuts them may be faster."
        title = f"{verdict[0].upper()}{verdict[1:]}"
        return "check", "good", title, f"{text.sentence(f'{verdict}: {stop}')}{more}"
    near = f" and {verdict}" if verdict.startswith("within") else ""
    faster = "" if stop == Stop.FEWER else " A faster schedule may exist."
    return "info", "plain", "Verified", f"{text.sentence(stop)} Verified{near}.{faster}"


def _header_title() -> html.Div:
    return ui.div(
        "ds-title",
        ui.div("ds-logo", ui.icon("links")),
        ui.div(
            "ds-title-text",
            dmc.TextInput(
                id=ids.NAME,
                variant="unstyled",
                classNames={"input": "ds-name"},
                debounce=True,
                spellCheck=False,
                **ui.attributes(aria_label="Name of the topology"),
            ),
            html.Div(id=ids.COUNTS, className="ds-counts"),
        ),
        dmc.Tooltip(
            ui.press(
                [ui.icon("file"), html.Span("Drawings")],
                ids.DRAWINGS_OPEN,
                "ds-documents",
                aria_label="Drawings",
                aria_haspopup="dialog",
            ),
            label="All drawings and versions (Ctrl+O)",
            openDelay=500,
        ),
    )


def _question() -> html.Div:
    return ui.div(
        "ds-question",
        ui.select(
            ids.COLLECTIVE,
            collective_choices(custom=False),
            value="all-gather",
            className="ds-collective",
            size="sm",
            maxDropdownHeight=320,
            **PERSISTED,
            aria_label="Collective",
        ),
        _size(),
        _chunks(),
        html.Div(_root(), id=ids.ROOT_BOX, hidden=True),
        ui.select(
            ids.FORMULATION,
            [],
            className="ds-formulation",
            value=DEFAULT_FORMULATION,
            leftSection=html.Span("Method", className="ds-prefix"),
            leftSectionWidth=66,
            leftSectionPointerEvents="none",
            size="sm",
            maxDropdownHeight=420,
            renderOption={"function": "formulationOption"},
            comboboxProps={"width": 340, "position": "bottom-start"},
            **PERSISTED,
            aria_label="Method",
        ),
        _tool("sliders", ids.OPTIONS_OPEN, "Options of the method"),
        _limit(),
        _solve(),
        html.Div(id=ids.CHIP, className="ds-chip"),
        role="group",
        aria_label="What to solve",
    )


def _solve() -> html.Div:
    """Return the two buttons of which one is shown; Stop keeps the best schedule."""
    return html.Div(
        [
            ui.button("Solve", ids.SOLVE, "play", size="sm", className="ds-solve"),
            ui.button(
                "Cancel",
                ids.CANCEL,
                "stop",
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


def _limit() -> Any:
    return QuantityField(
        id=ids.TIME_LIMIT,
        kind="duration",
        what="the time limit",
        above=0,
        value=DEFAULT_TIME_LIMIT,
        optional=True,
        debounce=300,
        prefix="Limit",
        placeholder="none",
        ariaLabel="Time limit of the solve",
        title="Time limit: stop then and keep the best; empty for none",
        style={"width": 112},
        **FLOATING,
    )


def _actions() -> html.Div:
    return ui.div(
        "ds-actions",
        dcc.Upload(
            _tool("open", "open-button", "Open a file, or drop it anywhere"),
            id=ids.UPLOAD,
            max_size=MOST_UPLOAD,
        ),
        _tool("save", ids.SAVE, "Save the drawing"),
        _exports(),
        dmc.ColorSchemeToggle(
            id=ids.SCHEME,
            lightIcon=ui.icon("sun"),
            darkIcon=ui.icon("moon"),
            variant="default",
            size="lg",
            className="ds-tool",
            **ui.attributes(aria_label="Switch between light and dark"),
        ),
    )


def _exports() -> dmc.Menu:
    button = dmc.Button(
        "Export",
        variant="default",
        size="sm",
        leftSection=ui.icon("download"),
        className="ds-export",
    )
    entries = [
        *(
            ui.menu_entry(
                {"picture" if key == "png" else "export": key},
                picture,
                title,
                note,
                NEEDING.get(key, ""),
            )
            for key, picture, title, note in EXPORTS
        ),
        dmc.MenuDivider(),
        *(ui.menu_entry(key, *told) for key, *told in SHARES),
    ]
    return ui.menu(button, entries)


def _tool(picture: str, key: str, label: str) -> dmc.Tooltip:
    return dmc.Tooltip(
        dmc.ActionIcon(
            ui.icon(picture),
            id=key,
            variant="default",
            size="lg",
            className="ds-tool",
            **ui.attributes(aria_label=label),
        ),
        label=label,
        openDelay=500,
    )
