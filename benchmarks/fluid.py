"""Fluid optima beside the papers' figures, part by part.

``tables``
    Tables 6.3 to 6.8 of the thesis: latency, objective and seconds of all 34 cells.
``forestcoll``
    ForestColl's optimal algbw as fractions.
``scale``
    Rates of 128 to 100,000 GPUs.
``forests``
    Forests of 1,024 GPUs on rails, 128 dies, 128 GPUs with 32 switches joined by chance.
``pipeline``
    ForestColl's search, splitting and packing.
``agree``
    All engines on 200 random networks and on the gallery.
``all-reduce``
    All-reduces whose halves share links, beside twice an all-gather.
``toys``
    Figures 2.1 to 2.7 of the thesis.
``steps``
    Its theorem 4: steady states as schedules of 1 to 256 staggered chunks.

Seconds are medians; published ones are other people's machines and solvers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.fluid_agree import agree
from benchmarks.fluid_forests import forestcoll, forests, pipeline
from benchmarks.fluid_reductions import all_reduces
from benchmarks.fluid_steps import steps
from benchmarks.fluid_tables import scale, tables
from benchmarks.fluid_toys import toys

Part = Callable[[int], Iterator[Table]]
"""Tables of a part, each time measured so often."""

PARTS: dict[str, Part] = {
    "tables": tables,
    "forestcoll": forestcoll,
    "scale": scale,
    "forests": forests,
    "pipeline": pipeline,
    "agree": agree,
    "all-reduce": all_reduces,
    "toys": toys,
    "steps": steps,
}


def main(
    part: Annotated[str, typer.Argument(help="One part, or all of them.")] = "all",
    *,
    repeat: Annotated[int, typer.Option(min=1, help="Times each is measured; median.")] = 3,
) -> None:
    """Print optimal rates, forests and their seconds beside the figures of the papers."""
    if part != "all" and part not in PARTS:
        msg = f"there is no part {part!r}; choose all or one of {', '.join(PARTS)}"
        raise typer.BadParameter(msg)
    console = Console(width=200)
    for name in PARTS if part == "all" else (part,):
        for each in PARTS[name](repeat):
            console.print(each)
    busy = f"{os.getloadavg()[0]:.1f} tasks on {os.cpu_count()} processors"
    console.print(f"at the end: {busy}; more of them stretch the seconds of the clock")
