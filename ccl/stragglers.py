"""Links that lag, by scaling their latency and their time per byte."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from ccl.errors import ProblemError
from ccl.topology import Topology


def straggling(
    topology: Topology,
    where: Iterable[str | tuple[str, str]],
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
) -> Topology:
    """Return the same cluster with stragglers, as in TE-CCL (SIGCOMM 2024), section 5.

    Parameters
    ----------
    topology
        The cluster as it should be.
    where
        Names of devices, all of whose links straggle, or ends ``(src, dst)`` of links; a link
        named twice straggles once.
    alpha
        Factor of the latency of these links: lags that do not grow with what is sent.
    beta
        Factor of their time per byte: lags that do. Shared limits stay as they are.

    Raises
    ------
    ProblemError
        If a device or link is not there or a factor is not positive.
    """
    for what, factor in (("alpha", alpha), ("beta", beta)):
        if not (factor > 0 and math.isfinite(factor)):
            msg = f"stragglers of {topology.name} have {what} times {factor}; give a positive one"
            raise ProblemError(msg)
    slow: set[tuple[str, str]] = set()
    for each in where:
        if isinstance(each, str):
            name = topology.device(each).name
            slow |= {link.ends for link in topology.links_out[name] + topology.links_in[name]}
        else:
            slow.add(topology.link(*each).ends)
    links = tuple(
        replace(link, bandwidth=link.bandwidth / beta, alpha=link.alpha * alpha)
        if link.ends in slow
        else link
        for link in topology.links
    )
    return replace(topology, links=links)
