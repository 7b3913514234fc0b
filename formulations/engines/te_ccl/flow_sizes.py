"""How many variables and rows the model of amounts has (`te_ccl.flow_lp`), uncompiled."""

from __future__ import annotations

import numpy as np

from formulations.core.model_size import Anatomy
from formulations.engines.epoch_grid.arcs import Hops
from formulations.engines.epoch_grid.commodities import Commodities

GROUPS = {
    "balance": "what comes to a device in an epoch is held back, read or sent on",
    "demand": "who wants an amount reads all of it, sooner or later",
    "room of a link": "what is sent over a link in an epoch fits into it",
    "shared limit": "what is sent under a shared limit in an epoch fits into it",
    "any row": "windows are left out, so no rows are told apart",
}
"""What the constraints say."""


def count_amounts(hops: Hops, flows: Commodities, horizon: int) -> Anatomy:
    """Count the model of `horizon` epochs; rows of limited buffers are left out."""
    sent, held, read = _masks(hops, flows, horizon)
    many = [int(each.sum()) for each in (sent, held, read)]
    # Every send, wait and read stands in the balance of where it is from and where it goes.
    touched = np.zeros((horizon + 1, *held.shape[1:]), dtype=bool)
    k, e, s = np.nonzero(sent)
    touched[k + hops.delay[e], hops.dst[e], s] = touched[k, hops.src[e], s] = True
    k, v, s = np.nonzero(held)
    touched[k, v, s] = touched[k + 1, v, s] = True
    k, d = np.nonzero(read)
    touched[k, flows.goal[d], flows.source[d]] = True
    touched[0, flows.sources, np.arange(len(flows.sources))] = True
    orbit = flows.links.min(axis=0)
    k, e, _ = np.nonzero(sent)
    rooms = len(np.unique(k * len(orbit) + orbit[e]))
    limits, entries = _limits(hops, flows, sent)
    rows = {
        "balance": int(touched.sum()),
        "demand": len(flows.amount),
        "room of a link": rooms,
        "shared limit": limits,
    }
    nonzeros = 2 * many[0] + 2 * many[1] + many[2] + many[2] + many[0] + entries
    return Anatomy(sum(many), nonzeros, rows)


def _masks(
    hops: Hops, flows: Commodities, horizon: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where there are variables: of (epoch, link, source), waits, and reads."""
    earliest = hops.distance[flows.sources].T
    goals = [flows.goal[flows.source == s] for s in range(len(flows.sources))]
    latest = horizon - np.stack([hops.distance[:, goal].min(axis=1) for goal in goals], axis=1)
    start = np.arange(horizon)[:, None, None]
    home = np.zeros(earliest.shape, dtype=bool)
    home[flows.sources, np.arange(len(flows.sources))] = True
    sent = (start >= earliest[hops.src]) & (start + hops.delay[:, None] <= latest[hops.dst])
    held = (start >= earliest) & (start < latest) & hops.stores[:, None]
    read = np.arange(horizon + 1)[:, None] >= earliest[flows.goal, flows.source]
    return sent & ~home[hops.dst], held, read


def _limits(hops: Hops, flows: Commodities, sent: np.ndarray) -> tuple[int, int]:
    topology = hops.topology
    rows = entries = 0
    seen = set()
    per_link = sent.sum(axis=(0, 2))
    for limit in topology.limits:
        inside = np.zeros(len(topology.links))
        inside[[topology.link_index[ends] for ends in limit.links]] = 1.0
        carried = inside[flows.links].sum(axis=0)
        if (key := (limit.bandwidth, carried.tobytes())) in seen:
            continue
        seen.add(key)
        rows += len(sent)
        entries += int(per_link[carried > 0].sum())
    return rows, entries
