"""``python -m benchmarks NAME``: what is fast, measured here beside the published figures.

Each benchmark prints a table. Published times are other people's machines and solvers; ratios of
times on one machine in one run say more than any single time.
"""

from __future__ import annotations

import typer

from benchmarks import (
    astar,
    auto,
    build,
    catalog,
    classes,
    compare,
    figures,
    fluid,
    formats,
    player,
    rivals,
    sccl,
    schedules,
    sweep,
    table8,
    taccl,
    truth,
    whatif,
)

app = typer.Typer(help=__doc__, add_completion=False, no_args_is_help=True)
app.command("table8")(table8.main)
app.command("auto")(auto.main)
app.command("build")(build.main)
app.command("catalog")(catalog.main)
app.command("classes")(classes.main)
app.command("figures")(figures.main)
app.command("astar")(astar.main)
app.command("schedules")(schedules.main)
app.command("fluid")(fluid.main)
app.command("taccl")(taccl.main)
app.command("sccl")(sccl.main)
app.command("compare")(compare.main)
app.command("rivals")(rivals.main)
app.command("formats")(formats.main)
app.command("player")(player.main)
app.command("sweep")(sweep.main)
app.command("truth")(truth.main)
app.command("whatif")(whatif.main)

if __name__ == "__main__":
    app()
