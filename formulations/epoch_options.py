"""The rows of the form that every model on a grid of epochs has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class EpochOptions:
    """Objective and grid; a model's own options come after these."""

    objective: Literal["fewest-epochs", "early-arrivals"] = field(
        default="fewest-epochs",
        metadata={
            "label": "Objective",
            "help": "Fewest epochs, or the paper's reward for every early arrival",
        },
    )
    epoch: Literal["auto", "fastest", "slowest"] = field(
        default="auto",
        metadata={
            "label": "Epoch by",
            "help": "How long an epoch is: several tried, or a chunk on the fastest or slowest "
            "link",
        },
    )
    epoch_duration: float | None = field(
        default=None,
        metadata={
            "label": "Epoch duration",
            "unit": "µs",
            "min": 0.0,
            "help": "Given here, it is what the epoch is by",
        },
    )
    horizon: int | None = field(
        default=None,
        metadata={
            "label": "Epochs at most",
            "min": 1,
            "help": "Left empty, as few as are found",
        },
    )
