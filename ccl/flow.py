"""Fluid flows: how much of each chunk every link carries, without saying when."""

from __future__ import annotations

from dataclasses import dataclass

from ccl.errors import ProblemError


@dataclass(frozen=True, slots=True)
class Rate:
    """What one link carries of one commodity.

    Parameters
    ----------
    chunk
        Number of the chunk, which is the commodity; it has one holder and one destination.
    src, dst
        Ends of the link.
    amount
        Share of the chunk, above 0 and at most 1.
    """

    chunk: int
    src: str
    dst: str
    amount: float

    def __post_init__(self) -> None:
        if not 0 < self.amount <= 1 + 1e-9:
            msg = (
                f"link {self.src}->{self.dst} carries {self.amount} of chunk {self.chunk}; "
                "give more than 0, at most 1"
            )
            raise ProblemError(msg)


@dataclass(frozen=True)
class Flow:
    """A steady state: each chunk is a unit flow from its holder to its destination."""

    rates: tuple[Rate, ...]
