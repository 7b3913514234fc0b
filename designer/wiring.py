"""What happens when: each module wires names to functions that know no Dash."""

from __future__ import annotations

from dash import Dash

from designer.jobs.solving import Jobs
from designer.server.reading import Apart
from designer.views.compare import callbacks as compare
from designer.views.compare.running import Comparisons
from designer.views.draw import drawing_callbacks as drawing
from designer.views.draw import export_callbacks as exporting
from designer.views.draw import file_callbacks as files
from designer.views.draw import gallery_callbacks as gallery
from designer.views.draw import import_callbacks as importing
from designer.views.draw import inspector_callbacks as inspecting
from designer.views.draw import sharing_callbacks as sharing
from designer.views.draw import sketch_callbacks as sketch
from designer.views.draw import table_callbacks as tables
from designer.views.solve import about_callbacks as about
from designer.views.solve import live_callbacks as live
from designer.views.solve import panel_callbacks as panels
from designer.views.solve import remedy_callbacks as remedies
from designer.views.solve import request_callbacks as asking
from designer.views.solve import solve_callbacks as solve
from designer.views.solve import tree_callbacks as trees
from designer.views.solve import ways_callbacks as ways
from designer.views.whatif import callbacks as whatif
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
