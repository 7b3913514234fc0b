"""Collectives in steps and rounds (SCCL): exact instances, least steps, the Pareto front.

>>> from formulations.engines.sccl import front, pareto
>>> from gallery import open_cluster
>>> points = pareto(open_cluster("ring:gpus=4"), "all-gather", 4e6)  # doctest: +SKIP
>>> [(each.steps, each.rounds, each.chunks) for each in front(points)]  # doctest: +SKIP
[(2, 3, 2)]

Importing this package loads no solver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from formulations.engines.sccl.sweep import Point, front, pareto

__all__ = ["Point", "front", "pareto"]


def __getattr__(name: str) -> Any:
    """Return what loads compiled functions, once it is requested."""
    if name in __all__:
        from formulations.engines.sccl import sweep  # noqa: PLC0415

        return getattr(sweep, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
