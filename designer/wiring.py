"""What happens when: each module wires names to functions that know no Dash."""

from __future__ import annotations

from dash import Dash

from designer.jobs import Jobs
from designer.server.reading import Apart
from designer.views.compare import callbacks
from designer.views.compare.running import Comparisons
from designer.views.draw import (
    clusters,
    edits,
    export_card,
    files,
    import_card,
    inspector,
    sharing,
    sketch_callbacks,
    table,
)
from designer.views.solve import (
    about,
    live_card,
    plan_card,
    remedy_callbacks,
    results,
    solve_card,
    tree_card,
)
from designer.views.solve import paths_card as ways_card
from designer.views.whatif import form
from designer.views.whatif.running import Studies


def register(
    app: Dash, jobs: Jobs, comparisons: Comparisons, studies: Studies, *, apart: Apart
) -> None:
    """Wire the whole page."""
    for room in (
        about,
        plan_card,
        edits,
        export_card,
        clusters,
        inspector,
        live_card,
        results,
        remedy_callbacks,
        table,
        tree_card,
        ways_card,
    ):
        room.register(app)
    for reading in (files, import_card, sharing, sketch_callbacks):
        reading.register(app, apart)
    solve_card.register(app, jobs)
    callbacks.register(app, comparisons)
    form.register(app, studies)
