"""The cluster of one row of what may fail or lag, made again from the row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ccl.topology import Topology
from formulations.analyses.failures.nouns import Part
from formulations.analyses.failures.study import slowed, without


def degraded(
    topology: Topology, row: Mapping[str, Any], *, alpha: float | None = None, beta: float = 1.0
) -> Topology:
    """Return a cluster without what a row says, or with it slow.

    Parameters
    ----------
    topology
        With everything in place.
    row
        As `designer.views.whatif.worker` tells it.
    alpha, beta
        Factors of latency and of time per byte, where it lags; without them it is lost.

    Raises
    ------
    ProblemError
        If the cluster has no such part.
    """
    names = tuple(row["names"])
    members = tuple(tuple(each) for each in row["members"])
    part = Part(row["kind"], names, row["alike"], members, parallel=row["parallel"])
    if alpha is None:
        return without(topology, part)
    return slowed(topology, part, alpha=alpha, beta=beta)
