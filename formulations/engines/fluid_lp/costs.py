"""What a byte on a link costs: the secondary objective of the thesis (sections 2.4 and 3.1).

Among plans of the best rate the one that moves the least weighted data is wanted: the sum over
links of bytes times cost. Costs belong to a question, not to a cluster, so they are arrays in the
order of the links of a topology, and each has a name.

``gpus``
    What GPUs upload and download: 1 for each end of a link that is a GPU. The thesis writes
    c = 1 "for edges incident to a GPU" and counts data "uploaded to" and downloaded "from GPUs";
    a link between two GPUs is both, so it costs 2, as it would with a switch in the middle.
``ports``
    The same, and 1 for each host that a link leaves or enters. The objectives in tables 6.3 to 6.8
    of the thesis count this much, by inference: with ``gpus`` alone, an all-to-all of 2 nodes
    "using only NVLink" would cost 704 and not 960, which is 112 pairs in a host at 2, 16 along a
    rail at 4, 112 across rails at 6. A link from a GPU to a rail stands for the way GPU, PCIe
    switch, port, rail there, of which the first and the last part cost 1.
``links``
    Every link costs 1: bytes times hops.
``none``
    Nothing costs anything.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from ccl.errors import ProblemError
from ccl.topology import Topology

CostKind = Literal["gpus", "ports", "links", "none"]
"""The costs that have a name."""

COST_KINDS: tuple[CostKind, ...] = get_args(CostKind)

COST_ROW = {
    "label": "Of the best, least",
    "help": "gpus: what GPUs upload and download; ports: and what hosts do; "
    "links: bytes times hops; none: any",
}
"""The row of a form that asks for one of them."""


def default_costs(topology: Topology) -> np.ndarray:
    """Return the cost of a byte on each link when nothing else is said: that of GPUs' ends.

    Returns
    -------
    np.ndarray
        Shape (links,), in the order of the links; no unit.
    """
    return link_costs(topology, "gpus")


def link_costs(topology: Topology, kind: CostKind) -> np.ndarray:
    """Return the cost of a byte on each link.

    Returns
    -------
    np.ndarray
        Shape (links,), in the order of the links; no unit.

    Raises
    ------
    ProblemError
        If there are no costs of that name.
    """
    if kind not in COST_KINDS:
        msg = f"there are no costs called {kind!r}; there are {', '.join(COST_KINDS)}"
        raise ProblemError(msg)
    gpu = np.array([each.kind == "gpu" for each in topology.devices], dtype=float)
    hosts = {name: number for number, name in enumerate(topology.hosts)}
    host = np.array([hosts.get(each.host or "", -1) for each in topology.devices])
    src, dst = topology.ends
    if kind in ("links", "none"):
        return np.full(len(src), float(kind == "links"))
    ends = gpu[src] + gpu[dst]
    if kind == "gpus":
        return np.asarray(ends)
    crossed = (host[src] != host[dst]) * ((host[src] >= 0) * 1.0 + (host[dst] >= 0))
    return np.asarray(ends + crossed)
