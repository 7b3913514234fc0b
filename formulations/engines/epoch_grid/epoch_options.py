"""The rows of the form that every model on a grid of epochs has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class ProofOptions:
    """Whether a model is built where a plan that is found before it is proved."""

    stop_at_proof: bool = field(
        default=False,
        metadata={
            "label": "Stop at a proof",
            "help": "Build no model where a plan that is found without one is proved to be the "
            "best",
        },
    )


@dataclass(frozen=True, kw_only=True)
class DurationOptions:
    """How long an epoch is; a model's own options come after these."""

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


@dataclass(frozen=True, kw_only=True)
class GridOptions(DurationOptions):
    """The grid, with the paper's ways to make epochs longer."""

    epoch_multiplier: int = field(
        default=1,
        metadata={
            "label": "Epoch multiplier",
            "min": 1,
            "help": "Longer epochs for a smaller model; does not touch a duration that is given",
        },
    )
    lengthen_short: bool = field(
        default=True,
        metadata={
            "label": "Lengthen short epochs",
            "help": "Five times, where a latency is more than 200 epochs by the fastest or "
            "slowest link, as the paper does",
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


@dataclass(frozen=True, kw_only=True)
class EpochOptions(GridOptions):
    """Objective and grid of a model that knows two objectives."""

    objective: Literal["fewest-epochs", "early-arrivals"] = field(
        default="fewest-epochs",
        metadata={
            "label": "Objective",
            "help": "Fewest epochs, or the paper's reward for every early arrival",
        },
    )


@dataclass(frozen=True, kw_only=True)
class ChunkOptions(GridOptions, ProofOptions):
    """The form of the model of whole chunks."""

    objective: Literal["fewest-epochs", "early-arrivals", "finish-times"] = field(
        default="fewest-epochs",
        metadata={
            "label": "Objective",
            "help": "Fewest epochs; the paper's reward for every early arrival; or each tenant's "
            "last arrival times its priority, in one model",
        },
    )
    horizon_by: Literal["greedy", "algorithm-1", "bisection"] = field(
        default="greedy",
        metadata={
            "label": "Horizon by",
            "help": "Down from a greedy schedule, down from what the paper's Algorithm 1 finds, "
            "or halves between the bounds and a greedy schedule",
        },
    )
    model_gap: float | None = field(
        default=None,
        metadata={
            "label": "Early stop",
            "unit": "%",
            "min": 0.0,
            "help": "Gap of a model's own objective at which its solve stops; the paper takes 30. "
            "Left empty, the gap to the bound that is asked for",
        },
    )
    copy: bool = field(
        default=True,
        metadata={
            "label": "Copy on the way",
            "help": "Else every destination of a chunk is sent a chunk of its own",
        },
    )
    store_and_forward: bool = field(
        default=True,
        metadata={
            "label": "Store and forward",
            "help": "Else a device sends on what it receives in the epoch after its arrival, or "
            "never",
        },
    )
    switches: Literal["as drawn", "hyper-edges"] = field(
        default="as drawn",
        metadata={
            "label": "Switches",
            "help": "Devices that copy or not as drawn, or replaced by hyper-edges between GPUs",
        },
    )
    greedy_start: bool = field(
        default=True,
        metadata={
            "label": "Greedy start",
            "help": "Keep the greedy schedule that sets the horizon as a first plan",
        },
    )
