"""The Designer as a Dash application, and serving it.

Where solves run: in child processes of the server, or on the workers of a Dask scheduler.
"""

from __future__ import annotations

import logging
import os
import threading
import webbrowser
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dash import MATCH, ClientsideFunction, Dash, Input, Output, State, set_props

from ccl.errors import CclError
from designer.jobs import Jobs, Limits
from designer.layout import page
from designer.server.guard import ALIVE, Names, address, bound, names
from designer.server.reading import Apart
from designer.server.server import run
from designer.server.sessions import protect
from designer.shell import ids, ui
from designer.studies import Studies, StudyJob
from designer.views.catalog.catalog_view import CatalogView, answering, keeping
from designer.views.compare import callbacks
from designer.views.compare.running import Comparisons
from designer.views.draw import (
    exporting,
    files,
    import_card,
    inspector,
    palette,
    sharing,
    sketch_callbacks,
    table,
    wizard,
)
from designer.views.draw.files import drawing_of
from designer.views.propose import callbacks as proposing
from designer.views.propose.stored import storing
from designer.views.solve import about, front, live_card, overlays, plan_card, results, solve_card
from designer.views.whatif import form
from formulations import start, start_comparison
from gallery import open_cluster

if TYPE_CHECKING:
    from formulations.campaigns.catalog import Catalog


def jobs_at(
    scheduler: str | None, limits: Limits | None = None, *, catalog: Catalog | None = None
) -> Jobs:
    """Return where the pages of a server solve.

    Parameters
    ----------
    scheduler
        Address of the Dask scheduler whose workers solve, or None to solve on this machine.
    limits
        What solves of this machine may take; workers have limits of their own.
    catalog
        What answers what was solved before and keeps what is solved, None without one.

    Raises
    ------
    ProblemError
        If it is no such address.
    SolveError
        If no scheduler is there.
    """
    if scheduler is None:
        return Jobs(answering(start, catalog), limits)
    from formulations.campaigns.remote import Remote  # noqa: PLC0415  it loads Dask

    return Jobs(answering(Remote(scheduler).start, catalog), Limits(at_once=SENT))


SENT = 32
"""Solves of one server that a scheduler has at once; others wait in the server, in fair turns."""


STUDIES, SEARCHES = "designer.views.whatif.worker", "designer.views.propose.worker"
"""What the processes of *What if* and of *Propose* run."""


HOME_CLUSTER = "ndv2:hosts=2"
"""What opens where no cluster is requested: two hosts, one thin network, a clear bottleneck."""

PAGE = """<!doctype html>
<html lang="en">
<head>{%metas%}<title>{%title%}</title>{%favicon%}{%css%}</head>
<body>{%app_entry%}<footer>{%config%}{%scripts%}{%renderer%}</footer></body>
</html>
"""
"""The page around the application: Dash's own does not say in which language it is."""

log = logging.getLogger(__name__)


def create_app(
    drawing: dict[str, Any] | None = None,
    *,
    jobs: Jobs | None = None,
    comparisons: Comparisons | None = None,
    studies: Studies | None = None,
    proposals: Studies | None = None,
    known: Names | None = None,
    sweeps: Sequence[Path] = (),
    catalog_view: CatalogView | None = None,
    apart: Apart | None = None,
) -> Dash:
    """Return the application.

    Parameters
    ----------
    drawing
        What is open at first: ``{"topology": ..., "positions": ...}``; None opens what the
        browser kept, or a cluster of the gallery on the first visit.
    jobs, comparisons, studies, proposals
        Where solves, comparisons, studies and searches run; by default in child processes.
    known
        Names under which browsers may ask for it; by default those of loopback, with any port.
    sweeps
        Folders of sweeps whose rows are shown.
    catalog_view
        What the catalog holds that is shown, None without one.
    apart
        Where files of others are read; by default in processes of their own.

    Raises
    ------
    FormatError
        If a folder is not one of a sweep.
    """
    app = Dash(
        __name__,
        title="Topoloom",
        update_title="",
        index_string=PAGE,
        on_error=_bug,
        suppress_callback_exceptions=True,
        prevent_initial_callbacks=True,  # what an event changes waits for the event
        health_endpoint=ALIVE,
        hooks={"request_pre": "(question) => window.topoloomShorten(question)"},
    )
    shown = drawing or drawing_of(open_cluster(HOME_CLUSTER))
    apart, proposals = apart or Apart(), proposals or Studies.run_by(SEARCHES)
    extra = _views(app, sweeps, catalog_view, apart=apart, proposals=proposals)
    app.layout = page(shown, chosen=drawing is not None, extra=extra)
    _wire(
        app,
        jobs or Jobs(start),
        comparisons or Comparisons(start_comparison),
        studies or Studies.run_by(STUDIES),
        apart=apart,
    )
    proposing.register(app, proposals, None if catalog_view is None else catalog_view.catalog)
    protect(app, known or Names())
    return app


def _wire(
    app: Dash, jobs: Jobs, comparisons: Comparisons, studies: Studies, *, apart: Apart
) -> None:
    """Wire what is on every page but Propose."""
    _stage(app)
    for room in (
        about,
        plan_card,
        exporting,
        palette,
        front,
        inspector,
        live_card,
        overlays,
        results,
        table,
        wizard,
    ):
        room.register(app)
    for reading in (files, import_card, sharing, sketch_callbacks):
        reading.register(app, apart)
    solve_card.register(app, jobs)
    callbacks.register(app, comparisons)
    form.register(app, studies)


def _stage(app: Dash) -> None:
    """Wire the middle of the page: which view it shows, and the plots of all views."""
    app.clientside_callback(
        ClientsideFunction("views", "open"),
        Output("stage", "data-view"),
        Input(ids.VIEW, "value"),
        State(ids.VIEW, "data"),
        prevent_initial_call=False,
    )
    app.clientside_callback(
        ClientsideFunction("topoloom", "plot"),
        Output(ui.plot_part(MATCH, "place"), "children"),
        Input(ui.plot_part(MATCH, "figure"), "data"),
        State(ui.plot_part(MATCH, "figure"), "id"),
        State(ui.plot_part(MATCH, "look"), "data"),
    )


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What a server has beside drawing, as whoever starts it wants.

    Parameters
    ----------
    limits
        What pages may take of this machine.
    scheduler
        Address of the Dask scheduler whose workers solve, None to solve on this machine.
    sweeps
        Folders of sweeps whose rows are shown.
    catalog
        What answers solves and keeps plans, None without one.
    """

    limits: Limits | None = None
    scheduler: str | None = None
    sweeps: Sequence[Path] = ()
    catalog: Catalog | None = None


def serve(
    drawing: dict[str, Any] | None,
    *,
    host: str,
    port: int,
    open_browser: bool,
    fragment: str = "",
    allowed: Iterable[str] = (),
    offer: Offer | None = None,
    ready: Callable[[str], Any] | None = None,
) -> None:
    """Serve the application until it is interrupted; running solves end with it.

    Parameters
    ----------
    drawing
        What is open at first, or None.
    host, port
        Where it listens.
    open_browser
        Whether to open a browser once it listens.
    fragment
        Of the link that is opened then, with its ``#``.
    allowed
        Names beside its own under which browsers may ask for it, as in ``--allow-host``.
    offer
        What there is beside drawing.
    ready
        Called with its address once it listens.

    Raises
    ------
    ProblemError
        If the address is taken or not this machine's, a name is none, or no scheduler answers.
    FormatError
        If a folder is not one of a sweep.
    """
    known, given = names(host, port, allowed), offer or Offer()
    with bound(host, port) as on, ExitStack() as ends:
        places = _places(given, ends)
        app = create_app(drawing, known=known, sweeps=given.sweeps, **places)
        page = f"{address(host, port)}{fragment}"

        def listening() -> None:
            if ready is not None:
                ready(page)
            if open_browser:
                threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()

        idle = run(app.server, on, ready=listening)
    if not idle:
        # A thread that still computes for a page cannot be ended, and needs to end nothing.
        os._exit(0)


def _places(offer: Offer, ends: ExitStack) -> dict[str, Any]:
    """Return where the long work of all pages runs; it ends with `ends`."""
    places: dict[str, Any] = {
        "jobs": jobs_at(offer.scheduler, offer.limits, catalog=offer.catalog),
        "comparisons": Comparisons(keeping(start_comparison, offer.catalog), offer.limits),
        "studies": Studies.run_by(STUDIES, offer.limits),
        "proposals": Studies(storing(partial(StudyJob, SEARCHES), offer.catalog), offer.limits),
        "apart": Apart(),
    }
    places["apart"].warm()
    if offer.catalog is not None:
        places["catalog_view"] = CatalogView(offer.catalog)
    for each in places.values():
        ends.callback(each.close)
    return places


def _views(
    app: Dash,
    sweeps: Sequence[Path],
    catalog_view: CatalogView | None,
    *,
    apart: Apart,
    proposals: Studies,
) -> list[ui.Extra]:
    """Wire and return the views that were requested; reading Parquet takes a while to load."""
    views = []
    if sweeps:
        from designer.views.sweeps.view import Shelf  # noqa: PLC0415
        from designer.views.sweeps.view import register as register_sweeps  # noqa: PLC0415
        from designer.views.sweeps.view import view as view_of_sweeps  # noqa: PLC0415

        shelf = Shelf(sweeps)
        register_sweeps(app, shelf)
        views.append(view_of_sweeps(shelf.names))
    if catalog_view is not None:
        from designer.views.catalog.view import register as register_stored  # noqa: PLC0415
        from designer.views.catalog.view import view as view_of_catalog  # noqa: PLC0415

        register_stored(app, catalog_view, apart, proposals)
        views.append(view_of_catalog())
    return views


def _bug(error: Exception) -> None:
    """Show and log what is not an error of the user's: a bug, and the page stays up."""
    if isinstance(error, CclError):  # what the page offers brings none, so it is of another version
        set_props(ids.NOTES, {"sendNotifications": ui.note(str(error))})
        return
    log.error("a callback failed", exc_info=error)
    # What the error says may be of the machine; who runs the server has it in the log.
    kind = type(error).__name__
    sentence = f"this is a bug in Topoloom, nothing is lost ({kind}; the server's log says more)"
    set_props(ids.NOTES, {"sendNotifications": ui.note(sentence, title="Internal error")})
