"""The Designer as a Dash application, and serving it."""

from __future__ import annotations

import logging
import threading
import webbrowser
from typing import Any

from dash import Dash, set_props

from designer.callbacks import register
from designer.compare.running import Comparisons
from designer.drawn.files import drawing_of
from designer.page import ids
from designer.page.layout import page
from designer.page.notes import note
from designer.solves.solving import Jobs
from formulations import start, start_comparison
from gallery import open_cluster

HOME_CLUSTER = "ndv2:hosts=2"
"""What opens when nothing is asked for: two hosts, one thin network, a clear bottleneck."""

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
) -> Dash:
    """Return the application.

    Parameters
    ----------
    drawing
        What is open at first: ``{"topology": ..., "positions": ...}``; None opens what the
        browser kept, or a cluster of the gallery on the first visit.
    jobs, comparisons
        Where solves and comparisons run; by default in child processes.
    """
    app = Dash(
        __name__,
        title="Topoloom",
        update_title="",
        index_string=PAGE,
        on_error=_bug,
        suppress_callback_exceptions=True,
    )
    shown = drawing or drawing_of(open_cluster(HOME_CLUSTER))
    app.layout = page(shown, chosen=drawing is not None)
    register(app, jobs or Jobs(start), comparisons or Comparisons(start_comparison))
    return app


def serve(
    drawing: dict[str, Any] | None,
    *,
    host: str,
    port: int,
    open_browser: bool,
    fragment: str = "",
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
    """
    jobs, comparisons = Jobs(start), Comparisons(start_comparison)
    app = create_app(drawing, jobs=jobs, comparisons=comparisons)
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    if open_browser:
        timer = threading.Timer(0.8, webbrowser.open, [f"http://{host}:{port}/{fragment}"])
        timer.daemon = True
        timer.start()
    try:
        app.run(host=host, port=port, debug=False)
    finally:
        comparisons.close()
        jobs.close()


def _bug(error: Exception) -> None:
    """Show and log what is not an error of the user's: a bug, and the page stays up."""
    log.error("a callback failed", exc_info=error)
    sentence = f"this is a bug in Topoloom, nothing is lost ({type(error).__name__}: {error})"
    set_props(ids.NOTES, {"sendNotifications": note(sentence, title="Internal error")})
