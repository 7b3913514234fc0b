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
* likewise on a link with windows of less bandwidth (`ccl.window`): in an epoch that one overlaps
  it lets through that share of ``bandwidth * epoch_duration``, and a send takes the fewest epochs,
  from those that it needs at full bandwidth on, each of which lets an equal part of it through;
* the chunk is there ``alpha`` after it left the link; latency does not hold the link.

What several sends cross together (`Send.via` says what one send does with its links):

* A multicast is one transmission for several sends: two or more whole sends of one chunk that
  leave the same storing device over the same link in the same epoch, crossing others on the way,
  are one if their links form a tree (all that cross a link have come the same way to it), none of
  them ends where another goes on, and they part only at devices that copy (`Device.copies`).
* It has the place of its first send. Every link of the tree is held once, for ``bytes * beta``,
  beginning the sum of the alphas before it later than the common start, which is the latest of
  the beginning of the epoch and, over all links, of ``end of the previous one - alphas before``.
  All deadlines count from that start, as for one send. Each send arrives at its own destination
  the alphas of its own way plus the longest ``bytes * beta`` of its own way after the start. What
  leaves the device leaves it once.
* A sum on the way is the mirror image: two or more sends of one reduced chunk that reach the same
  storing device over the same link, all given the same epoch, are one if their links form a tree
  that ends there, none of them begins where another comes through, and they run together only at
  devices that reduce (`Device.reduces`). It has the place of its last send. A link is held from
  ``start + A - (alphas from it to the end)`` on, with A the alphas of the longest way, so that the
  first bytes meet where ways run together; a send of the alphas B leaves its device at
  ``start + A - B``, and must hold what it sends only then. All arrive at once, A plus the longest
  ``bytes * beta`` of the whole tree after the start, as one sum; nothing may be in it twice.
* Sends that could be in both are a multicast. Where one of the conditions fails, as where ways
  part at a device that does not copy, every one of these sends crosses its links by itself. The
  same holds for chunks of which parts are sent.

A schedule on the reversed topology, whose switches have `copies` and `reduces` exchanged, read
backwards: a multicast becomes a sum of the same links, whose epoch is that of its longest send.
To be valid backwards, every destination of a multicast may use it only when all of them could.

So times are exact and no latency is ever dropped; a formulation that wants to count a short
latency as nothing makes its epochs longer by it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from ccl.errors import ProblemError
from ccl.in_words import InWords


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
        longest of these. Sends may cross the same links together (above). Empty when one link
        joins the two.
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
class Schedule(InWords):
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
