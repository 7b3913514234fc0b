"""TACCL's three steps: paths of chunks, their order on links, and what is sent contiguously.

`formulations.models.taccl` has the mathematics and the decisions.
"""

from dataclasses import dataclass
from typing import Literal

from ccl.options import option
from ccl.serialization.sketches import Sketch
from formulations.engines.epoch_grid.epochs import ProofOptions


@dataclass(frozen=True, kw_only=True)
class Options(ProofOptions):
    """The form of TACCL."""

    sketch: Sketch | None = option(
        None, "Sketch", "Which links are used and how; derived from the cluster when left out"
    )
    ordering: Literal["best", "shortest-until-now", "longest-from-now"] = option(
        "best",
        "Chunk first",
        "With the shortest path until now, with the longest from now, or both tried",
    )
    link_order: Literal["best", "along", "against"] = option(
        "best",
        "Links ordered",
        "Along the paths from their beginnings, against them, or both tried",
    )
    inclination: Literal["sketch", "all", "uc-min", "uc-max"] = option(
        "sketch",
        "Pairs at switches",
        "Few (uc-min), many (uc-max) or whatever comes; as the sketch says if left",
    )
    latency: Literal["passes", "holds"] = option(
        "passes", "Latency", "Whether a link is busy for it too in steps 1 and 2, as in the paper"
    )
    contiguity: Literal["off", "between-hosts", "everywhere"] = option(
        "between-hosts", "Contiguity", "Links on which step 3 may send together"
    )
    path_seconds: float = option(20.0, "Step 1", unit="s", min=0.01, max=86_400.0)
    contiguity_seconds: float = option(3.0, "Step 3", unit="s", min=0.01, max=86_400.0)
    quick: bool = option(
        True,
        "Quick paths",
        "Offer quick paths first; without, they are only what step 1 begins with",
    )
    seed: int = option(0, "Seed", "Of the solver, and of ties if not 0", min=0)
