"""Whether a group really is one, of permutations that leave topology and collective as they are."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from ccl.errors import ScheduleError
from ccl.problem import Problem
from ccl.symmetry import Symmetry
from ccl.topology import Topology


def check_group(topology: Topology, symmetry: Symmetry) -> None:
    """Check that the elements are the products of generators, and these automorphisms.

    Then every element is one. What must stay: the abilities and kinds of devices, bandwidth and
    latency of links, limits with their links.

    Raises
    ------
    ScheduleError
        If one of this fails, or an element leaves a GPU in its place.
    """
    devices = symmetry.devices
    many = len(topology.devices)
    if devices.ndim != 2 or devices.shape[1:] != (many,) or symmetry.topology != topology:
        _refuse(topology, "is one of another topology; make the forest anew")
    identity = np.arange(many)
    elements = identity[None, :]
    for place, power in zip(symmetry.generators, symmetry.powers, strict=True):
        generator = devices[min(place, len(devices) - 1)]
        if (np.sort(generator) != identity).any():
            _refuse(topology, f"has a generator, element {place}, that is no permutation")
        _check_automorphism(topology, generator)
        blocks = [elements]
        for _ in range(power - 1):
            blocks.append(generator[blocks[-1]])
        elements = np.concatenate(blocks)
    if not np.array_equal(devices, elements):
        _refuse(topology, "has elements that are not the products of its generators")
    gpus = [topology.index[name] for name in topology.ranks]
    still = (devices[1:, gpus] == gpus).any(axis=0)
    if still.any():
        name = topology.ranks[int(still.argmax())]
        _refuse(topology, f"leaves {name} in its place", where=name)


def check_kept(
    problem: Problem, symmetry: Symmetry, *, wanted: Mapping[int, frozenset[int]]
) -> None:
    """Check that each generator brings a root with its data to one that has the same for others.

    Parameters
    ----------
    problem
        Whose chunks are looked at.
    symmetry
        A group that `check_group` accepts.
    wanted
        For each root the ranks that its data goes to, or comes from.

    Raises
    ------
    ScheduleError
        If a generator does not keep the collective.
    """
    many = len(problem.topology.ranks)
    table = np.zeros((many, many), dtype=bool)
    for root, ranks in wanted.items():
        table[root, list(ranks)] = True
    data = _data(problem)
    for place in symmetry.generators:
        image = symmetry.ranks[place]
        moved = table[np.ix_(image, image)]
        for root in range(many):
            same = data[root] == data[int(image[root])]
            if not same or (table[root] != moved[root]).any():
                name = problem.topology.ranks[root]
                what = f"brings {name} to {problem.topology.ranks[image[root]]}, "
                _refuse(problem.topology, what + "whose data is not the same", where=name)


def _data(problem: Problem) -> list[Counter[tuple[float, float, str]]]:
    """Return size, priority and tenant of the chunks of each rank: it alone sends or gets them."""
    found: defaultdict[int, Counter[tuple[float, float, str]]] = defaultdict(Counter)
    for chunk in problem.collective.chunks:
        if chunk.in_place:
            continue
        ends, others = chunk.holders, chunk.destinations
        if chunk.reduced:
            ends, others = others, ends
        for each in (set(ends), set(others) - set(ends)):
            if len(each) == 1:
                found[each.pop()][chunk.size, chunk.priority, chunk.tenant] += 1
    return [found[rank] for rank in range(len(problem.topology.ranks))]


def _check_automorphism(topology: Topology, image: np.ndarray) -> None:
    devices, links = topology.devices, topology.links
    to = {
        each.name: devices[place].name for each, place in zip(devices, image.tolist(), strict=True)
    }
    for each in devices:
        other = topology.device(to[each.name])
        if _abilities(each) != _abilities(other):
            _refuse(topology, f"brings {each.name} to {other.name}, which is not alike")
    for link in links:
        ends = to[link.src], to[link.dst]
        place = topology.link_index.get(ends)
        if place is None:
            _refuse(topology, f"brings {link} to {ends[0]}->{ends[1]}, which is no link")
        elif (links[place].bandwidth, links[place].alpha) != (link.bandwidth, link.alpha):
            _refuse(topology, f"brings {link} to {links[place]}, which is not as fast")
    if Counter(_limits(topology, to)) != Counter(_limits(topology, {name: name for name in to})):
        _refuse(topology, "does not keep the shared limits")


def _abilities(device: object) -> tuple[object, ...]:
    names = ("kind", "stores", "copies", "reduces", "buffer_bytes")
    return tuple(getattr(device, name) for name in names)


def _limits(
    topology: Topology, to: Mapping[str, str]
) -> Iterator[tuple[float, frozenset[tuple[str, str]]]]:
    for limit in topology.limits:
        yield limit.bandwidth, frozenset((to[src], to[dst]) for src, dst in limit.links)


def _refuse(topology: Topology, what: str, *, where: str | None = None) -> None:
    msg = f"the symmetry of a forest {what}"
    raise ScheduleError(msg, where=where or topology.name)
