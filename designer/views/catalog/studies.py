"""Searches for networks in the Catalog view: listed, opened in Propose as they were, removed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dash import ALL, Dash, Input, Output, State, ctx, html

from ccl import text
from ccl.errors import CclError, ProblemError
from designer.shell import ids, ui
from designer.shell.request import Json, callback, changes
from designer.studies import Studies
from designer.views.propose.page import field_id, prices, use_id
from designer.views.propose.running import ALONE, FIELDS, USES, as_typed, parts_of
from designer.views.propose.stored import reopened
from widgets.charts.proposals import RESPECTS

if TYPE_CHECKING:
    from formulations.campaigns.catalog import Catalog, Proposal, ProposalEntry

HEADS = ("What was wanted", "The best", "Networks", "Searched for", "Kept", "")


def card() -> html.Section:
    """Return where they are listed."""
    head = ui.div("ds-sto-head", html.H2("Proposed networks"))
    rows = html.Div(id=ids.CATALOG_STUDIES)
    return ui.section("Proposed networks", head, rows, className="ds-sto-card ds-sto-studies")


def listed(entries: Sequence[ProposalEntry]) -> html.Table | html.Div:
    """Return a row for each search, the last first."""
    if not entries:
        return ui.div("ds-note", "None yet: what Propose finds is kept here.")
    return ui.table("Searches for networks", "ds-sto-table", HEADS, [_row(e) for e in entries])


def _row(entry: ProposalEntry) -> html.Tr:
    opens = ui.press(entry.title, {"study-open": entry.number}, title="Open it in Propose")
    removes = ui.quiet(
        "Remove", {"study-remove": entry.number}, aria_label=f"Remove {entry.title}, {entry.stored}"
    )
    told = (entry.best, f"{entry.networks:,}", text.seconds(entry.seconds), entry.stored[:16])
    return html.Tr(
        [html.Th(opens, scope="row"), *(html.Td(e, title=e) for e in told), html.Td(removes)]
    )


def register(app: Dash, catalog: Catalog, studies: Studies) -> None:
    """Wire the list."""
    from formulations.campaigns.catalog import Proposals  # noqa: PLC0415  it loads a database library

    kept = Proposals(catalog)

    @callback(
        app,
        output={"rows": Output(ids.CATALOG_STUDIES, "children"), **changes("notes")},
        inputs={
            "view": Input(ids.VIEW, "value"),
            "removes": Input({"study-remove": ALL}, "n_clicks"),
        },
        prevent_initial_call=False,
    )
    def on_list(view: str, removes: list[int | None]) -> Json:
        if view != "catalog":
            return {}
        chosen = ctx.triggered_id
        try:
            if isinstance(chosen, dict) and any(removes):
                kept.forget([chosen["study-remove"]])
            elif isinstance(chosen, dict):  # the rows are new
                return {}
            return {"rows": listed(kept.entries())}
        except CclError as error:
            return {"notes": ui.note(str(error))}

    @callback(
        app,
        output={
            "job": Output(ids.PROPOSE_JOB, "data", allow_duplicate=True),
            "seen": Output(ids.PROPOSE_SEEN, "data", allow_duplicate=True),
            "chosen": Output(ids.PROPOSE_CHOSEN, "data", allow_duplicate=True),
            "prices": Output(ids.PROPOSE_PRICES, "children", allow_duplicate=True),
            "parts": Output(ids.PROPOSE_PARTS, "data", allow_duplicate=True),
            "up": Output(ids.PROPOSE_UP, "value"),
            "across": Output(ids.PROPOSE_ACROSS, "value"),
            "host": Output(ids.PROPOSE_HOST, "value"),
            "one_way": Output(ids.PROPOSE_ONE_WAY, "checked"),
            **{name: Output(field_id(name), "value") for name in FIELDS},
            **{f"{kind} size": Output(use_id(kind, "size"), "value") for kind in USES},
            **{f"{kind} times": Output(use_id(kind, "times"), "value") for kind in USES},
            **changes("view", "notes"),
        },
        inputs={"opens": Input({"study-open": ALL}, "n_clicks")},
        state={"axes": [State(ids.PROPOSE_UP, "value"), State(ids.PROPOSE_ACROSS, "value")]},
    )
    def on_open(opens: list[int | None], axes: Sequence[str]) -> Json:
        if not any(opens) or not ctx.triggered_id:
            return {}
        number = ctx.triggered_id["study-open"]
        try:
            study = kept.load(number)
            if study is None:
                raise ProblemError(f"study {number} is not in the catalog any more")
            job = reopened(studies, catalog, study)
        except CclError as error:
            return {"notes": ui.note(str(error))}
        return {"job": job, "view": "propose", **_shown(study, axes)}


def _shown(study: Proposal, axes: Sequence[str]) -> Json:
    """Return what Propose shows of a search; its prices first, as they tell how it is looked at."""
    parts = parts_of(study.networks)
    seen = study.view.axes
    up, across = seen if len(seen) == 2 and {*seen} <= {*RESPECTS} else axes
    values, mix = as_typed(study.request)
    return {
        **values,
        **{f"{kind} size": size for kind, (size, _) in mix.items()},
        **{f"{kind} times": times for kind, (_, times) in mix.items()},
        "host": study.request.get("host") or ALONE,
        "one_way": bool(study.request.get("one_way")),
        "seen": None,
        "chosen": "",
        "prices": prices(parts, study.view.prices),
        "parts": sorted(parts),
        "up": up,
        "across": across,
    }
