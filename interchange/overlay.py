"""Ways that others planned over a cluster, drawn above it: the rings and trees of NCCL."""

from __future__ import annotations

from dataclasses import dataclass

from ccl.errors import ProblemError
from ccl.topology import Topology


@dataclass(frozen=True, slots=True)
class Overlay:
    """Ways over a topology, which plan nothing by themselves.

    Parameters
    ----------
    title
        What they are: ``NCCL ring, 2 channels at 20 GB/s inside``.
    ways
        Names of the devices along each way, in order.
    labels
        A word for each way.
    """

    title: str
    ways: tuple[tuple[str, ...], ...]
    labels: tuple[str, ...]

    def check(self, topology: Topology) -> None:
        """Check it against a topology.

        Raises
        ------
        ProblemError
            If it names a device that is not there.
        """
        for way, label in zip(self.ways, self.labels, strict=True):
            for name in way:
                if name not in topology.index:
                    raise ProblemError(
                        f"{label} of {self.title} goes over {name}, which {topology} does not have"
                    )
