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
from designer.solves.solving import Jobs


def register(app: Dash, jobs: Jobs, comparisons: Comparisons) -> None:
    """Wire the whole page."""
    for room in (
        about,
        asking,
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
        tables,
        trees,
        ways,
        whatif,
    ):
        room.register(app)
    solve.register(app, jobs)
    compare.register(app, comparisons)
