"""Sketches: what a user wants a synthesizer to use of a cluster, as in TACCL (section 3 and 4.2).

A sketch narrows what is searched; it is no part of a topology, and every plan found with one is a
plan without it. GPUs are named as in the topology, so that one sketch serves every size of chunk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from ccl.errors import ProblemError
from ccl.topology import Topology

Inclination = Literal["all", "uc-min", "uc-max"]
INCLINATIONS: tuple[Inclination, ...] = get_args(Inclination)

Pair = tuple[str, str]
"""A GPU that sends and one that receives."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """A communication sketch.

    Parameters
    ----------
    between
        Pairs of GPUs in different hosts that may send to each other; None for every pair that a
        way joins. Which physical links these are, the topology says.
    without
        Links of the topology, by their ends, that are not used.
    forced
        Pairs of GPUs whose way must carry at least one chunk.
    relays
        Pairs (GPU, relay): what the GPU has for other hosts leaves its host from the relay.
    switches
        Of GPUs that meet at devices which cannot store: whether every pair is as good as another
        (``all``), or few (``uc-min``, for large chunks) or many (``uc-max``, for small ones)
        different pairs are preferred.
    offsets
        Pairs (by, block): the plan looks the same when in every block of `block` consecutive ranks
        each rank is replaced by the one `by` further on, around the block.
    chunks
        Chunks per shard, or None for as many as the request says.
    instances
        Neighbouring chunks that go the same way one after the other, as parts of one.

    Raises
    ------
    ProblemError
        If a number is not positive, or a pair names one GPU twice.
    """

    between: tuple[Pair, ...] | None = None
    without: tuple[Pair, ...] = ()
    forced: tuple[Pair, ...] = ()
    relays: tuple[Pair, ...] = ()
    switches: Inclination = "all"
    offsets: tuple[tuple[int, int], ...] = ()
    chunks: int | None = None
    instances: int = 1

    def __post_init__(self) -> None:
        if self.switches not in INCLINATIONS:
            msg = f"a sketch has switches {self.switches!r}; choose {', '.join(INCLINATIONS)}"
            raise ProblemError(msg)
        for src, dst in (*(self.between or ()), *self.without, *self.forced):
            if src == dst:
                msg = f"a sketch joins {src} with itself; name two different devices"
                raise ProblemError(msg)
        for by, block in self.offsets:
            if not 0 < by < block:
                msg = f"a sketch moves ranks by {by} in blocks of {block}; give 1 to block - 1"
                raise ProblemError(msg)
        if self.instances < 1 or (self.chunks is not None and self.chunks < 1):
            msg = "a sketch needs 1 chunk and 1 instance or more"
            raise ProblemError(msg)

    def check(self, topology: Topology) -> None:
        """Check it against a topology.

        Raises
        ------
        ProblemError
            If it names what is not there, or its blocks do not divide the ranks.
        """
        pairs = (*(self.between or ()), *self.forced, *self.relays)
        for name in (each for pair in pairs for each in pair):
            if name not in topology.rank:
                msg = f"the sketch names {name}, which is no GPU of {topology}"
                raise ProblemError(msg)
        for src, dst in self.without:
            if (src, dst) not in topology.link_index:
                msg = f"the sketch leaves out the link {src}->{dst}, which {topology} does not have"
                raise ProblemError(msg)
        for by, block in self.offsets:
            if len(topology.ranks) % block:
                msg = (
                    f"the sketch moves ranks by {by} in blocks of {block}, which do not divide the "
                    f"{len(topology.ranks)} GPUs of {topology}"
                )
                raise ProblemError(msg)
