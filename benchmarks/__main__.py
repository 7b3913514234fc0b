"""``python -m benchmarks NAME``: what is fast, measured here beside the published figures.

Each benchmark prints a table. Published times are other people's machines and solvers; ratios of
times on one machine in one run say more than any single time.
"""

from __future__ import annotations

import typer

from benchmarks import (
    best,
    campaigns,
    default,
    fluid,
    formats,
    methods,
    model_costs,
    player,
    propose,
    responses,
    scale,
    schedules,
    synthesizers,
    te_ccl,
    truth,
)

app = typer.Typer(help=__doc__, add_completion=False, no_args_is_help=True)
app.command("table8")(te_ccl.table8)
app.command("figures")(te_ccl.figures)
app.command("astar")(te_ccl.astar)
app.command("auto")(default.auto)
app.command("gallery")(default.gallery)
app.command("compare")(methods.compare)
app.command("best")(best.best)
app.command("scale")(scale.scale)
app.command("schedules")(schedules.main)
app.command("fluid")(fluid.main)
app.command("taccl")(synthesizers.taccl)
app.command("sccl")(synthesizers.sccl)
app.command("rivals")(synthesizers.rivals)
app.command("build")(model_costs.build)
app.command("classes")(model_costs.classes)
app.command("catalog")(campaigns.catalog)
app.command("sweep")(campaigns.sweep)
app.command("formats")(formats.main)
app.command("player")(player.player)
app.command("propose")(propose.main)
app.command("whatif")(responses.whatif)
app.command("truth")(truth.main)

if __name__ == "__main__":
    app()
