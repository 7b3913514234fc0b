"""What MSCCL XML calls things, by executor."""

from __future__ import annotations

from ccl.collective import CollectiveKind
from interchange.programs import Buffer
from interchange.programs.lint import Executor

COLLECTIVES: dict[str, CollectiveKind] = {
    "allgather": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "reducescatter": "reduce-scatter",
    "allreduce": "all-reduce",
    "alltoall": "all-to-all",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
    "custom": "custom",
}
"""Values of ``coll``; of the two names of a reduce-scatter each executor takes one."""

BUFFERS: dict[str, Buffer] = {"i": "input", "o": "output", "s": "scratch"}
"""Values of ``srcbuf`` and ``dstbuf``."""

ROOTED: frozenset[CollectiveKind] = frozenset({"broadcast", "reduce", "gather", "scatter"})

SUMS: frozenset[CollectiveKind] = frozenset({"all-reduce", "reduce-scatter", "reduce"})


def collective_name(kind: CollectiveKind, executor: Executor) -> str:
    """Return how an executor calls a collective, known to it or not."""
    names = [name for name, each in COLLECTIVES.items() if each == kind]
    return names[0] if executor == "msccl" else names[-1]
