"""Tables 6.3 to 6.8 of the thesis: all-gather and all-to-all of the DGX A100 on rails.

Latency in s/GB when every GPU gives 1 GB to all (all-gather) or to each (all-to-all), to three
digits; objective in GB, data times cost, to four; seconds of its mirrored Dantzig-Wolfe. Numbers
stay texts, because how many digits were printed says how well they have to agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

Used = Literal["nvlink-only", "no-nvlink", "all"]
Kind = Literal["all-gather", "all-to-all"]


@dataclass(frozen=True, slots=True)
class Cell:
    """A row of one of the tables.

    Parameters
    ----------
    table
        Its number.
    kind, used, hosts
        Collective, which links, how many nodes of 8 GPUs.
    seconds, latency, objective
        As printed; empty where nothing is.
    """

    table: str
    kind: Kind
    used: Used
    hosts: int
    seconds: str
    latency: str
    objective: str

    @property
    def cluster(self) -> str:
        """What opens its cluster."""
        return f"thesis-dgx-a100:hosts={self.hosts},used={self.used}"

    @property
    def latency_digits(self) -> int:
        """Digits of its latency: three, but for one that is printed with two."""
        return 2 if self.latency == "0.021" else 3

    @property
    def slip(self) -> str:
        """Why a figure that is printed cannot be right, or nothing."""
        return SLIPS.get((self.table, self.hosts), "")


HOSTS = (1, 2, 4, 8, 16, 32)

_LATENCIES = {
    "6.3": "0.0233 0.0462 0.12 0.28 0.60 1.24",
    "6.4": "0.0219 0.469 0.969 1.97 3.97 -",
    "6.5": "0.0211 0.0452 0.12 0.28 0.60 -",
    "6.6": "0.0233 0.32 0.96 2.24 4.80 9.92",
    "6.7": "0.375 0.75 1.5 3.0 6.0 12.0",
    "6.8": "0.021 0.32 0.96 2.24 4.8 9.92",
}
_OBJECTIVES = {
    "6.3": "112 516.9 2176 8960 36350 146400",
    "6.4": "92 424 1808 7456 30270 -",
    "6.5": "109.7 504.9 2092 8600 33640 -",
    "6.6": "112 960 4864 21500 90110 368600",
    "6.7": "112 736 3520 15230 63230 257500",
    "6.8": "112 764.2 3689 16020 66610 271500",
}
_SECONDS = {
    "6.3": "0.247 19.3 42.8 254 865 5360",
    "6.4": "0.257 3.9 22 360 4200 -",
    "6.5": "2.95 27.7 82.1 634 9870 -",
    "6.6": "0.854 1.04 4.36 21.6 106 633",
    "6.7": "0.198 0.902 4.58 15.4 97.1 467",
    "6.8": "1.02 2.84 15.1 75.1 330 1550",
}
_SCENARIOS: tuple[tuple[str, Kind, Used], ...] = (
    ("6.3", "all-gather", "nvlink-only"),
    ("6.4", "all-gather", "no-nvlink"),
    ("6.5", "all-gather", "all"),
    ("6.6", "all-to-all", "nvlink-only"),
    ("6.7", "all-to-all", "no-nvlink"),
    ("6.8", "all-to-all", "all"),
)


def _printed(text: str) -> list[str]:
    return ["" if each == "-" else each for each in text.split()]


CELLS: tuple[Cell, ...] = tuple(
    Cell(table, kind, used, *row)
    for table, kind, used in _SCENARIOS
    for row in zip(
        HOSTS,
        _printed(_SECONDS[table]),
        _printed(_LATENCIES[table]),
        _printed(_OBJECTIVES[table]),
        strict=True,
    )
)
"""All 36 rows; two of them are empty."""

_BELOW = (
    "its objective is below the least of the cluster inferred here: another detail of the cluster, "
    "a relaxation or an early stop"
)
SLIPS: dict[tuple[str, int], str] = {
    ("6.4", 1): "a factor of ten: 7 shards over 32 GB/s take 0.219 s, at the objective printed",
    ("6.5", 4): _BELOW,
    ("6.5", 8): _BELOW,
    ("6.5", 16): _BELOW,
}
"""Table and nodes -> what is wrong there."""


def agrees(value: float, printed: str, *, digits: int) -> bool:
    """Say whether a value rounds to what is printed.

    Parameters
    ----------
    value
        Ours.
    printed
        Theirs.
    digits
        Significant ones that theirs was rounded to.
    """
    theirs = Decimal(printed)
    unit = Decimal(1).scaleb(theirs.adjusted() - digits + 1)
    return abs(Decimal(value) - theirs) <= unit / 2 * (1 + _ROUNDING)


_ROUNDING = Decimal("1e-4")
"""Share of half a digit that a value computed in floating point may be beyond it."""
