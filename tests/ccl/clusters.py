"""Small clusters and the schedules that tests of several modules share. GB/s, µs, bytes."""

from __future__ import annotations

from ccl.collective import all_gather, all_reduce, reduce_scatter
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.topology import Device, Link, Topology, device, duplex

MB = 1e6


def gpus(count: int) -> tuple[Device, ...]:
    """Make g0, g1, ..."""
    return tuple(device("gpu", f"g{rank}") for rank in range(count))


def mesh(count: int, *, bandwidth: float = 50.0, alpha: float = 0.0) -> Topology:
    """Join every two GPUs both ways."""
    names = [f"g{rank}" for rank in range(count)]
    links = tuple(Link(a, b, bandwidth, alpha) for a in names for b in names if a != b)
    return Topology("mesh", gpus(count), links)


def ring(count: int, *, bandwidth: float = 50.0, alpha: float = 0.0) -> Topology:
    """Join every GPU to the next, one way."""
    links = tuple(Link(f"g{r}", f"g{(r + 1) % count}", bandwidth, alpha) for r in range(count))
    return Topology("ring", gpus(count), links)


def line(count: int, *, bandwidth: float = 50.0, alpha: float = 0.0) -> Topology:
    """Join every GPU to the next both ways, the last not to the first."""
    links = tuple(
        link
        for r in range(count - 1)
        for link in duplex(f"g{r}", f"g{r + 1}", bandwidth=bandwidth, alpha=alpha)
    )
    return Topology("line", gpus(count), links)


def star(
    count: int,
    *,
    bandwidth: float = 50.0,
    alpha: float = 0.0,
    copies: bool = False,
    reduces: bool = False,
) -> Topology:
    """Join every GPU to the switch s both ways."""
    switch = device("switch", "s", copies=copies, reduces=reduces)
    links = tuple(
        link
        for r in range(count)
        for link in duplex(f"g{r}", "s", bandwidth=bandwidth, alpha=alpha)
    )
    return Topology("star", (*gpus(count), switch), links)


def ring_sends(count: int, rounds: int, *, ahead: int = 0) -> tuple[Send, ...]:
    """In round k each GPU r sends chunk r - k - ahead to the next."""
    return tuple(
        Send(k, (r - k - ahead) % count, f"g{r}", f"g{(r + 1) % count}")
        for k in range(rounds)
        for r in range(count)
    )


def ring_all_gather(
    topology: Topology, *, epoch_duration: float = 20.0
) -> tuple[Problem, Schedule]:
    """Pass every chunk of 1 MB once round; 20 µs a round at 50 GB/s."""
    count = len(topology.ranks)
    problem = Problem(topology, all_gather(count, count * MB))
    return problem, Schedule(ring_sends(count, count - 1), epoch_duration, count - 1)


def ring_reduce_scatter(
    topology: Topology, *, epoch_duration: float = 20.0
) -> tuple[Problem, Schedule]:
    """Add up chunk c on its way from GPU c + 1 round to GPU c."""
    count = len(topology.ranks)
    problem = Problem(topology, reduce_scatter(count, count * MB))
    return problem, Schedule(ring_sends(count, count - 1, ahead=1), epoch_duration, count - 1)


def ring_all_reduce(
    topology: Topology, *, epoch_duration: float = 20.0
) -> tuple[Problem, Schedule]:
    """Add up on the way round, then pass the sums round."""
    count = len(topology.ranks)
    problem = Problem(topology, all_reduce(count, count * MB))
    rounds = 2 * (count - 1)
    return problem, Schedule(ring_sends(count, rounds, ahead=1), epoch_duration, rounds)


def line_all_gather(
    topology: Topology, *, epoch_duration: float = 20.0
) -> tuple[Problem, Schedule]:
    """Pass every chunk along the line both ways, each as soon as it can."""
    count = len(topology.ranks)
    problem = Problem(topology, all_gather(count, count * MB))
    sends = []
    for chunk in range(count):
        sends += [Send(r - chunk, chunk, f"g{r}", f"g{r + 1}") for r in range(chunk, count - 1)]
        sends += [Send(chunk - r, chunk, f"g{r}", f"g{r - 1}") for r in range(chunk, 0, -1)]
    return problem, Schedule(tuple(sends), epoch_duration, count - 1)


def star_all_gather(
    topology: Topology, *, epoch_duration: float = 20.0
) -> tuple[Problem, Schedule]:
    """One GPU after the other sends up, and in the next epoch the switch copies to the others."""
    count = len(topology.ranks)
    problem = Problem(topology, all_gather(count, count * MB))
    up = tuple(Send(r, r, f"g{r}", "s") for r in range(count))
    down = tuple(
        Send(r + 1, r, "s", f"g{other}")
        for r in range(count)
        for other in range(count)
        if other != r
    )
    return problem, Schedule(up + down, epoch_duration, count + 1)
