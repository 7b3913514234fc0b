"""Grid of epochs: the only place where time is rounded, and how long devices keep chunks.

A chunk of L bytes holds link e for ``hold = L * beta[e]`` and arrives ``alpha[e]`` later. On a
grid of epochs of duration tau a link has (`EpochGrid`)

* ``occupancy``: epochs that one chunk holds it, ``ceil(hold / tau)``, at least 1;
* ``delay``: epochs after its own in which a chunk can be sent on, ``ceil((hold + alpha) / tau)``;
* ``capacity``: chunks that may start in any ``occupancy`` epochs in a row: 1 if it is more than one
  epoch, else as many as fit into the epoch and still arrive within the delay,
  ``floor(min(tau, delay * tau - alpha) / hold)``.

Decisions where the sources are silent or wrong (TE-CCL, SIGCOMM 2024):

* The paper's window of appendix F, ``k - kappa <= k' <= k``, has kappa + 1 epochs; it is meant to
  have kappa, and so it has here.
* The paper's program drops latencies below a tenth of an epoch. Here none is dropped: where the
  largest latency is at most `SHORT` of the epoch, the epoch grows by it, so that such a hop still
  takes one epoch. The replay then closes the gaps that this leaves.
* A link under a shared limit that binds is slowed down by the others: what it starts in an epoch
  counts as spread over all of the epochs that it occupies, so it has left at their end. So does
  what crosses a link that has less bandwidth at times.
* Fluid amounts need no whole number of chunks: their `capacity` is the real number of chunks whose
  last byte still arrives within the delay.

`Memory` is how long a device may keep what it receives: for good, within a limit, or not at all.
`ccl.verify` says what a limited buffer is: a device keeps a chunk from its arrival until its last
send of it starts, and for ever where the chunk is wanted there; a chunk held from the start
counts from then on, unless it is never sent and not wanted. What leaves at a moment makes room
for what arrives then.

On the grid, with b[k, v, c] the buffer at the beginning of epoch k and ``gone[k, v, c]``, the
running sum of the evictions X of TE-CCL, appendix B (no send of c starts after the beginning of
epoch k - 1, so that gone[0] is 1 only where what is held from the start is never sent):

    gone[k-1] <= gone[k]                                              gone for good
    f[k, e, c] <= b[k, src(e), c] - gone[k, src(e), c]                sends that start sharply
    f[k, e, c] <= b[k, src(e), c] - gone[k+1, src(e), c]              other sends
    kept[k] = b[k] + what arrives inside epoch k - gone[k+1] >= 0
    sum over c of kept[k, v, c] <= buffer of v, in chunks             for k = -1 .. K-1

A send starts sharply, with its epoch, where its links have room for one chunk; of several in one
epoch only the first does, and which one that is the model does not know. Likewise what arrives
exactly at the end of an epoch counts from the next one on. So the model never lets a plan pass
that breaks a buffer, and forbids at most plans that need a certain order within an epoch.

Decision: the paper lets a chunk that was evicted come again; here each chunk comes to a device
once, as schedules demand.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from ccl.errors import ProblemError
from ccl.options import option
from ccl.problem import Problem, Window
from ccl.topology import Topology, binding_limits
from formulations.core.refusals import betas

EpochBy = Literal["auto", "fastest", "slowest"]

SHORT = 0.1
"""Latencies up to this share of an epoch lengthen the epoch instead of delaying the chunk."""

SNAP = 1.7
"""Factor by which a fluid epoch may become longer or shorter to suit latencies."""

DOMINANT = 200.0
"""A latency of more epochs than this makes the epochs longer, `LONGER` times."""

LONGER = 5.0

ROUNDING = 1e-9
"""Ratios this close to a whole number are that number."""


@dataclass(frozen=True)
class EpochGrid:
    """How the links of a topology look on a grid of epochs.

    Parameters
    ----------
    topology
        Its links are the rows of the arrays.
    chunk_size
        Bytes of the (largest) chunk.
    epoch_duration
        tau, in µs.
    fluid
        None for whole chunks; for amounts, the least share of an epoch that every link must have
        for sending: 1 keeps all bandwidth and delays a little longer, 0 vice versa.
    reverse_time
        Whether plans on it will be read backwards (``formulations.engines.reverse_time``). A send
        then holds its links at the end of its delay, because read backwards it does so at the
        beginning.
    windows
        Times in which links have less bandwidth; such links count as limited.

    Raises
    ------
    ProblemError
        If the epoch duration is not positive.
    """

    topology: Topology
    chunk_size: float
    epoch_duration: float
    fluid: float | None = None
    reverse_time: bool = False
    windows: tuple[Window, ...] = ()

    def __post_init__(self) -> None:
        if not (self.epoch_duration > 0 and math.isfinite(self.epoch_duration)):
            raise ProblemError(
                f"the epoch duration is {self.epoch_duration} µs; give a positive one"
            )

    @cached_property
    def hold(self) -> np.ndarray:
        """µs for which a chunk holds each link at least, shape (links,)."""
        return np.asarray(self.chunk_size * betas(self.topology))

    @cached_property
    def limited(self) -> np.ndarray:
        """Whether each link is under a shared limit that binds or has windows, shape (links,)."""
        under = np.zeros(len(self.topology.links), dtype=bool)
        covered = [limit.links for limit in binding_limits(self.topology)]
        covered += [window.links for window in self.windows]
        for links in covered:
            under[[self.topology.link_index[ends] for ends in links]] = True
        return under

    def shares(self, horizon: int) -> np.ndarray:
        """Share of its bandwidth that each link has in each epoch, shape (horizon, links).

        It is the least of the windows that overlap the epoch.
        """
        share = np.ones((horizon, len(self.topology.links)))
        for window in self.windows:
            first = math.floor(window.begin / self.epoch_duration + ROUNDING)
            last = math.ceil(window.end / self.epoch_duration - ROUNDING)
            links = [self.topology.link_index[ends] for ends in window.links]
            share[first:last, links] = np.minimum(share[first:last, links], window.share)
        return share

    @cached_property
    def alpha(self) -> np.ndarray:
        """µs of latency of each link, shape (links,)."""
        return np.array([link.alpha for link in self.topology.links])

    @cached_property
    def occupancy(self) -> np.ndarray:
        """Epochs that one chunk holds each link, shape (links,); 1 for fluid amounts."""
        if self.fluid is not None:
            return np.ones(len(self.hold), dtype=int)
        return np.asarray(np.maximum(1, _ceil(self.hold / self.epoch_duration)))

    @cached_property
    def delay(self) -> np.ndarray:
        """Epochs after which a chunk can be sent on, shape (links,)."""
        tau = self.epoch_duration
        spread = self.occupancy + _ceil(self.alpha / tau)
        if self.fluid is None:
            alone = np.maximum(1, _ceil((self.hold + self.alpha) / tau))
            return np.asarray(np.where(self.limited, spread, alone))
        # At least half an epoch or a whole chunk, whatever the share.
        least = np.maximum(np.minimum(self.hold, 0.5 * tau), self.fluid * tau)
        # The smallest amount leaves a device that cannot store as late as the largest.
        exact = 1 + np.floor(self.alpha / tau + ROUNDING).astype(int)
        alone = np.maximum(1, _ceil((least + self.alpha) / tau))
        return np.where(self.limited, spread, np.where(self._relayed, exact, alone))

    @cached_property
    def _relayed(self) -> np.ndarray:
        """Whether each link enters a device that cannot store."""
        device = self.topology.device
        return np.array([not device(link.dst).stores for link in self.topology.links], dtype=bool)

    @cached_property
    def capacity(self) -> np.ndarray:
        """Chunks that may start in `occupancy` epochs in a row, shape (links,).

        Whole numbers, unless the grid is for fluid amounts.
        """
        tau = self.epoch_duration
        late = np.minimum(tau, self.delay * tau - self.alpha)
        free = np.where(self.limited, tau, late) / self.hold
        if self.fluid is not None:
            return np.asarray(free)
        whole = np.maximum(1, np.floor(free + ROUNDING))
        return np.asarray(np.where(self.occupancy > 1, 1.0, whole))


def durations(
    topology: Topology, chunk_size: float, *, by: EpochBy, given: float | None = None
) -> list[float]:
    """Return the epoch durations in µs to try.

    ``fastest`` and ``slowest`` are those of TE-CCL, section 5: a chunk on the quickest or on the
    slowest link, lengthened by short latencies. ``auto`` adds a whole hop, latency included, of
    the slowest and of the quickest link and a half of the former: where latency dominates, an
    epoch of a hop needs few epochs and loses little. A duration that is given is the only one.

    Raises
    ------
    ProblemError
        If there is no link.
    """
    if given is not None:
        return [given]
    if not topology.links:
        raise ProblemError(f"{topology} has no link; add one")
    hold = [chunk_size * link.beta for link in topology.links]
    hops = [link.transfer_time(chunk_size) for link in topology.links]
    fastest = stretched(topology, min(hold), chunk_size)
    slowest = stretched(topology, max(hold), chunk_size)
    if by == "fastest":
        return [fastest]
    if by == "slowest":
        return [slowest]
    tried = [fastest, slowest, max(hops), max(hops) / 2, min(hops) * (1 + SHORT)]
    return sorted({tau for tau in tried if tau >= fastest})


def lengthened(topology: Topology, epoch_duration: float) -> float:
    """Return an epoch duration in µs, `LONGER` times as long where a latency dominates it.

    TE-CCL, section 6: where alpha is more than 200 epochs these become 5 times as long, once.
    (The smallest rows of its table 8 have epochs that are 4 times those of the fastest link.)
    """
    dominant = any(link.alpha > DOMINANT * epoch_duration for link in topology.links)
    return epoch_duration * (LONGER if dominant else 1.0)


def longest_hop(topology: Topology, chunk_size: float) -> float:
    """Return the µs that a chunk takes over the slowest link, latency and limits included."""
    # The duration does not matter for these two.
    grid = EpochGrid(topology, chunk_size, 1.0)
    return float(max(grid.hold + grid.alpha))


def stretched(topology: Topology, epoch_duration: float, chunk_size: float = math.inf) -> float:
    """Return an epoch duration in µs plus the longest latency that is short beside it.

    Only links count on which a chunk of `chunk_size` bytes takes all of the epoch.
    """
    short = [
        link.alpha
        for link in topology.links
        if link.alpha <= SHORT * epoch_duration
        and chunk_size * link.beta >= epoch_duration * (1 - ROUNDING)
    ]
    return epoch_duration + max(short, default=0.0)


def snapped(topology: Topology, epoch_duration: float) -> float:
    """Return a fluid epoch duration in µs near the one given that suits devices without store.

    What enters such a device in one epoch must leave it in one, so a link into it can send for
    ``delay * tau - alpha`` only; that is all of the epoch when tau divides alpha. Of the given
    duration and the divisors of the latencies near it, the one is taken that leaves the slowest
    of these links most of its bandwidth.
    """
    relays = [link for link in topology.links if not topology.device(link.dst).stores]

    def left(tau: float) -> float:
        return min(
            link.bandwidth * (math.floor(link.alpha / tau + ROUNDING) + 1 - link.alpha / tau)
            for link in relays
        )

    near = {epoch_duration}
    for alpha in {link.alpha for link in relays}:
        many = round(alpha / epoch_duration)
        near |= {alpha / part for part in (many - 1, many, many + 1) if part >= 1}
    if not relays:
        return epoch_duration
    fit = [tau for tau in near if epoch_duration / SNAP <= tau <= epoch_duration * SNAP]
    return max(fit, key=lambda tau: (round(left(tau), 6), -abs(tau - epoch_duration)))


def _ceil(ratio: np.ndarray) -> np.ndarray:
    return np.ceil(ratio - ROUNDING).astype(int)


@dataclass(frozen=True)
class Memory:
    """Capacity of each device.

    Parameters
    ----------
    capacity
        Chunks that each device may keep, inf where it is not limited, shape (devices,).
    keeps
        Whether a device is a destination of a chunk, shape (devices, chunks).
    """

    capacity: np.ndarray
    keeps: np.ndarray

    @property
    def limited(self) -> np.ndarray:
        """Positions of the devices with a limited buffer."""
        return np.flatnonzero(np.isfinite(self.capacity))


def memory(problem: Problem) -> Memory:
    """Read the buffers off a problem whose chunks are of one size."""
    topology, chunks = problem.topology, problem.collective.chunks
    size = problem.collective.chunk_size
    capacity = np.array(
        [
            np.floor(each.buffer_bytes / size * (1 + ROUNDING))
            if each.stores and each.buffer_bytes is not None
            else np.inf
            for each in topology.devices
        ]
    )
    keeps = np.zeros((len(topology.devices), len(chunks)), dtype=bool)
    for number, chunk in enumerate(chunks):
        wanting = [topology.index[topology.ranks[rank]] for rank in chunk.destinations]
        keeps[wanting, number] = True
    return Memory(capacity, keeps)


def too_small(problem: Problem) -> str | None:
    """Return which buffer cannot even take what its device must have at the end, or None."""
    found = memory(problem)
    for device in found.limited.tolist():
        each, many = problem.topology.devices[device], int(found.keeps[device].sum())
        if many > found.capacity[device]:
            return (
                f"{each.name} wants {many} chunks of {problem.collective.chunk_size:g} bytes and "
                f"its buffer takes {each.buffer_bytes:g}; enlarge it"
            )
    return None


@dataclass(frozen=True, kw_only=True)
class ProofOptions:
    """Whether a model is built where a plan that is found before it is proved."""

    stop_at_proof: bool = option(
        False,
        "Stop at a proof",
        "Build no model where a plan that is found without one is proved to be the best",
    )


@dataclass(frozen=True, kw_only=True)
class DurationOptions:
    """How long an epoch is; a model's own options come after these."""

    epoch: Literal["auto", "fastest", "slowest"] = option(
        "auto",
        "Epoch by",
        "How long an epoch is: several tried, or a chunk on the fastest or slowest link",
    )
    epoch_duration: float | None = option(
        None, "Epoch duration", "Given here, it is what the epoch is by", unit="µs", min=0.0
    )


@dataclass(frozen=True, kw_only=True)
class GridOptions(DurationOptions):
    """The grid, with the paper's methods to make epochs longer."""

    epoch_multiplier: int = option(
        1,
        "Epoch multiplier",
        "Longer epochs for a smaller model; does not touch a duration that is given",
        min=1,
    )
    lengthen_short: bool = option(
        True,
        "Lengthen short epochs",
        "Five times, where a latency is more than 200 epochs by the fastest or "
        "slowest link, as the paper does",
    )
    horizon: int | None = option(None, "Epochs at most", "Left empty, as few as are found", min=1)


@dataclass(frozen=True, kw_only=True)
class EpochOptions(GridOptions):
    """Objective and grid of a model that knows two objectives."""

    objective: Literal["fewest-epochs", "early-arrivals"] = option(
        "fewest-epochs", "Objective", "Fewest epochs, or the paper's reward for every early arrival"
    )


@dataclass(frozen=True, kw_only=True)
class ChunkOptions(GridOptions, ProofOptions):
    """The form of the model of whole chunks."""

    objective: Literal["fewest-epochs", "early-arrivals", "finish-times"] = option(
        "fewest-epochs",
        "Objective",
        "Fewest epochs; the paper's reward for every early arrival; or each tenant's "
        "last arrival times its priority, in one model",
    )
    horizon_by: Literal["greedy", "algorithm-1", "bisection"] = option(
        "greedy",
        "Horizon by",
        "Down from a greedy schedule, down from what the paper's Algorithm 1 finds, "
        "or halves between the bounds and a greedy schedule",
    )
    model_gap: float | None = option(
        None,
        "Early stop",
        "Gap of a model's own objective at which its solve stops; the paper takes 30. "
        "Left empty, the gap to the bound requested",
        unit="%",
        min=0.0,
    )
    copy: bool = option(
        True, "Copy along the path", "Else every destination of a chunk is sent a chunk of its own"
    )
    store_and_forward: bool = option(
        True,
        "Store and forward",
        "Else a device sends on what it receives in the epoch after its arrival, or never",
    )
    switches: Literal["as drawn", "hyper-edges"] = option(
        "as drawn",
        "Switches",
        "Devices that copy or not as drawn, or replaced by hyper-edges between GPUs",
    )
    greedy_start: bool = option(
        True, "Greedy start", "Keep the greedy schedule that sets the horizon as a first plan"
    )
