"""What happens when: each module wires names to functions that know no Dash."""

from __future__ import annotations

from dash import Dash

from designer.callbacks import (
    about,
    asking,
    compare,
    drawing,
    exporting,
    files,
    gallery,
    importing,
    inspecting,
    live,
    panels,
    remedies,
    sharing,
    sketch,
    solve,
    tables,
    trees,
    ways,
    whatif,
)
from designer.compare.running import Comparisons
from designer.serving.reading import Apart
from designer.solves.solving import Jobs
from designer.whatif.running import Studies


def register(
    app: Dash, jobs: Jobs, comparisons: Comparisons, studies: Studies, *, apart: Apart
) -> None:
    """Wire the whole page."""
    for room in (
        about,
        asking,
        drawing,
        exporting,
        gallery,
        inspecting,
        live,
        panels,
        remedies,
        tables,
        trees,
        ways,
    ):
        room.register(app)
    for reading in (files, importing, sharing, sketch):
        reading.register(app, apart)
    solve.register(app, jobs)
    compare.register(app, comparisons)
    whatif.register(app, studies)
