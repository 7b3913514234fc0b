"""Collectives in steps and rounds (SCCL): exact instances, least steps, the Pareto front.

>>> from formulations.engines.sccl.search import front, pareto
>>> from gallery import open_cluster
>>> points = pareto(open_cluster("ring:gpus=4"), "all-gather", 4e6)  # doctest: +SKIP
>>> [(each.steps, each.rounds, each.chunks) for each in front(points)]  # doctest: +SKIP
[(2, 3, 2)]
"""

from dataclasses import dataclass
from typing import Literal

from ccl.options import option


@dataclass(frozen=True, kw_only=True)
class Options:
    """The form of steps and rounds."""

    mode: Literal["least-steps", "instance", "pareto"] = option(
        "least-steps",
        "Mode",
        "Fewest steps of one round each, one instance, or every best trade between "
        "steps and rounds",
    )
    steps: int | None = option(
        None, "Steps", "Of an instance; empty for the least that distances allow", min=1, max=1000
    )
    rounds: int | None = option(
        None,
        "Rounds",
        "Of all steps of an instance together; empty for the least that cuts allow",
        min=1,
        max=100_000,
    )
    seconds: float = option(
        10.0, "Time", "For each instance, where no shorter time limit is set", unit="s", min=0.01
    )
    symmetry: bool = option(True, "Symmetry", "Look for plans that look the same all round first")
    workers: int = option(
        1,
        "Workers",
        "Threads of the solver; with one the same question has the same answer",
        min=1,
        max=64,
    )
    seed: int = option(0, "Seed", "Of the random numbers", min=0)
