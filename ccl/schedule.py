"""Discrete schedules: which chunk crosses which link in which epoch.

What an epoch means, exactly (``verify`` and every writer of a schedule hold to it):

* epoch k begins at ``k * epoch_duration``;
* sends of one link start in the order of their epochs, within an epoch in the order of
  `Schedule.sends`, each at the beginning of its epoch or when the one before it has left the
  link, whichever is later: ``start = max(k * epoch_duration, end of the previous one)``;
* a send holds its link for ``bytes * beta`` and must leave it before the epoch ends or, if it
  takes longer than an epoch, before the end of the last of the epochs that it needs when it
  starts with one, of which there are ``max(1, ceil(bytes * beta / epoch_duration))``;
* on a link under a shared limit that binds, a send is spread evenly over these epochs and leaves
  at the end of the last; in every epoch the limit lets its bandwidth through;
* the chunk is there ``alpha`` after it left the link; latency does not hold the link.

So times are exact and no latency is ever dropped; a formulation that wants to count a short
latency as nothing makes its epochs longer by it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from ccl.errors import ProblemError


@dataclass(frozen=True, slots=True, order=True)
class Send:
    """One chunk, or a fraction of one, sent from a device to another in an epoch.

    Parameters
    ----------
    epoch
        In which it starts, from 0.
    chunk
        Its number in the collective.
    src, dst
        The devices it leaves and reaches.
    via
        Devices that cannot store and that it crosses on the way without stopping (cut-through):
        it holds each link of the way for ``bytes * beta`` of that link, each beginning alpha of
        the links before later than the first, and arrives after the sum of alphas plus the
        longest of these. Empty when one link joins the two.
    fraction
        How much of the chunk, in (0, 1]. Less than 1 only for a chunk with one destination
        that is not reduced: parts of it are then amounts, as in a fluid flow.
    """

    epoch: int
    chunk: int
    src: str
    dst: str
    via: tuple[str, ...] = ()
    fraction: float = 1.0

    @property
    def hops(self) -> tuple[tuple[str, str], ...]:
        """Ends of each link it crosses, in order."""
        stops = (self.src, *self.via, self.dst)
        return tuple(pairwise(stops))

    def __str__(self) -> str:
        return f"chunk {self.chunk} {'->'.join((self.src, *self.via, self.dst))}"


@dataclass(frozen=True)
class Schedule:
    """Sends in epochs.

    Parameters
    ----------
    sends
        In any order of epochs; within an epoch and a link the order here is the order there.
    epoch_duration
        µs.
    horizon
        Number of epochs within which everything has arrived; what arrives later is an error.

    Raises
    ------
    ProblemError
        If the epoch duration or an epoch or fraction is out of range.
    """

    sends: tuple[Send, ...]
    epoch_duration: float
    horizon: int

    def __post_init__(self) -> None:
        if not (self.epoch_duration > 0 and math.isfinite(self.epoch_duration)):
            msg = f"a schedule needs a positive epoch duration, got {self.epoch_duration} µs"
            raise ProblemError(msg)
        if self.horizon < 1:
            msg = f"a schedule needs a horizon of 1 epoch or more, got {self.horizon}"
            raise ProblemError(msg)
        for send in self.sends:
            if not 0 <= send.epoch < self.horizon:
                msg = f"{send} is in epoch {send.epoch}; epochs go from 0 to {self.horizon - 1}"
                raise ProblemError(msg)
            if not 0 < send.fraction <= 1:
                msg = f"{send} sends the fraction {send.fraction}; give more than 0, at most 1"
                raise ProblemError(msg)

    @property
    def duration(self) -> float:
        """µs until the end of the last epoch; the replay (`ccl.simulate`) is never later."""
        return self.horizon * self.epoch_duration
