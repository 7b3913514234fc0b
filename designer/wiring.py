"""What happens when: each module wires names to functions that know no Dash."""

from __future__ import annotations

from dash import Dash

from designer.jobs.solving import Jobs
from designer.server.reading import Apart
from designer.views.compare import callbacks as compare
from designer.views.compare.running import Comparisons
from designer.views.draw import clusters as gallery
from designer.views.draw import export_card as exporting
from designer.views.draw import files, sharing
from designer.views.draw import import_card as importing
from designer.views.draw import inspector as inspecting
from designer.views.draw import palette as drawing
from designer.views.draw import sketch_callbacks as sketch
from designer.views.draw import table as tables
from designer.views.solve import about
from designer.views.solve import live_card as live
from designer.views.solve import plan_card as asking
from designer.views.solve import remedy_callbacks as remedies
from designer.views.solve import results as panels
from designer.views.solve import solve_callbacks as solve
from designer.views.solve import tree_card as trees
from designer.views.solve import ways_card as ways
from designer.views.whatif import form as whatif
from designer.views.whatif.running import Studies


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
