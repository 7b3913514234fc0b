"""Published times for clusters of the gallery, to set beside one's own.

Each stands for one cluster, collective and size, and only where all three are the same is it a
comparison. Published times are not replays: epochs of a model times their duration, or what a
program says that its plan takes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from ccl.problem import Problem
from ccl.topology import Topology
from gallery.registry import open_cluster


@dataclass(frozen=True, slots=True)
class Published:
    """A time that somebody printed.

    Parameters
    ----------
    method
        Whose it is.
    cluster
        What opens its cluster here.
    kind
        The collective.
    size
        Bytes of the whole buffer.
    makespan
        µs, as printed.
    source
        Where it is printed.
    """

    method: str
    cluster: str
    kind: str
    size: float
    makespan: float
    source: str


def published(problem: Problem, sizes: Iterable[float]) -> tuple[Published, ...]:
    """Return what is published of the cluster and the collective of a problem at these sizes."""
    if problem.windows:
        return ()
    asked = set(sizes)
    return tuple(
        each
        for each in POINTS
        if each.kind == problem.collective.kind
        and each.size in asked
        and _opened(each.cluster) == problem.topology
    )


@cache
def _opened(cluster: str) -> Topology:
    return open_cluster(cluster)


_PAPER = "TE-CCL, doi.org/10.1145/3651890.3672249"
_SIZES = (1e9, 256e6, 64e6, 16e6, 4e6, 1e6, 256e3, 64e3, 16e3, 4e3, 1e3)
_TABLE_8 = {
    ("TE-CCL", "all-gather"): "43750 11200 2800 700 190 48.75 14.72 6.08 4.44 4.24 4.135",
    ("TE-CCL", "all-to-all"): "320235.81 82000.00 20495.09 5123.77 1296.25 325.28 85.52 23.30 7.27 "
    "4.64 4.24",
    ("TACCL", "all-gather"): "53766.70 12494.60 3133.20 - 216.50 62.15 25.26 13.08 12.68 11.85 "
    "10.16",
    ("TACCL", "all-to-all"): "320049.4 81964.2 20532 5164.4 1324.2 359 115.72 50.34 35.76 32.16 "
    "36.8",
}
_TABLE_3 = {
    ("TE-CCL", "all-gather"): "4 5 6.1",
    ("SCCL", "all-gather"): "3.4 5.1 8",
    ("TE-CCL", "all-to-all"): "4",
    ("SCCL", "all-to-all"): "3.4",
}
"""By chunks of 25 KB for each shard: one, two, three."""


def _points() -> Iterator[Published]:
    for (method, kind), row in _TABLE_8.items():
        for size, time in zip(_SIZES, row.split(), strict=True):
            if time != "-":
                yield Published(
                    method, "ndv2:hosts=2", kind, size, float(time), f"{_PAPER}, table 8"
                )
    for (method, kind), row in _TABLE_3.items():
        for chunks, time in enumerate(row.split(), 1):
            size = 8 * 25e3 * chunks
            yield Published(method, "dgx-1v", kind, size, float(time), f"{_PAPER}, table 3")


POINTS: tuple[Published, ...] = tuple(_points())
