"""Paths over devices that cannot store, from one device that stores to the next.

A chunk crosses switches without stopping, so what can be sent is a whole path. Large fabrics have
too many of them to list all; then the shortest are taken, shared out so that what many GPUs send at
a time meets on no link.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, pairwise

from ccl.errors import Infeasible, SolveError
from ccl.topology import Topology
from formulations.core.refusals import betas

LONGEST_PATH = 6
"""Most links of one path through devices that cannot store: up and down a three-level tree."""

MOST = 3_000_000
"""Most paths that are listed; more take more memory and time than there is."""

FEW = 400_000
"""About as many are listed where all would be too many: the shortest, several of each pair."""


def no_path(name: str) -> str:
    """Return the message that no path leads to the device called `name`."""
    return (
        f"no path of at most {LONGEST_PATH} links from one device that stores to the next leads "
        f"to {name} under the shared limits; link it to others more directly"
    )


def relay_paths(topology: Topology) -> Iterator[tuple[str, ...]]:
    """Yield every path from one storing device to another over devices that cannot store."""
    stores = {each.name: each.stores for each in topology.devices}

    def onwards(route: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for link in topology.links_out[route[-1]]:
            if link.dst in route:
                continue
            longer = (*route, link.dst)
            if stores[link.dst]:
                yield longer
            elif len(longer) <= LONGEST_PATH:
                yield from onwards(longer)

    for each in topology.devices:
        if each.stores:
            yield from onwards((each.name,))


def _too_many(topology: Topology) -> bool:
    """Return whether even the shortest of them are more than `MOST`, before any is listed.

    Where those from the first devices are few it is not looked at on.
    """
    out = {name: [each.dst for each in links] for name, links in topology.links_out.items()}
    stores = {each.name for each in topology.devices if each.stores}
    found = 0
    for seen, root in enumerate(stores, 1):
        _, many = _shortest(out, root, topology.index, stores)
        found += sum(many[name] for name in stores & many.keys()) - 1
        if found > MOST or 2 * found * len(stores) < MOST * seen:
            return found > MOST
    return False


def shortest_relay_paths(topology: Topology, most: int) -> list[tuple[str, ...]]:
    """Return the shortest of them, at most so many from one device to another, by where they begin.

    Of parallel ones each pair takes others, so that links share what is sent: on a fat-tree paths
    that lead equally far around the devices in their order share no link, since each is chosen by
    the place of the device that comes later on the shorter way around (Zahavi, JPDC 2012, chooses
    by the destination). On reversed links they are the same, reversed.
    """
    index = topology.index
    return sorted(_of_each_pair(topology, most), key=lambda route: index[route[0]])


def _of_each_pair(topology: Topology, most: int) -> Iterator[tuple[str, ...]]:
    index = topology.index
    out = {name: [each.dst for each in topology.links_out[name]] for name in index}
    into = {name: [each.src for each in topology.links_in[name]] for name in index}
    stores = {each.name for each in topology.devices if each.stores}
    place = {name: turn for turn, name in enumerate(sorted(stores, key=index.__getitem__))}
    for root, here in place.items():
        for onwards in (out, into):
            before, many = _shortest(onwards, root, index, stores)
            for end in stores & before.keys():
                if here < place[end]:
                    nearer = 2 * (place[end] - here) < len(place)
                    first, taken = place[end] if nearer else here, min(most, many[end])
                    for turn in range(taken):
                        number = (first + turn * (many[end] // taken)) % many[end]
                        route = _walked(before, many, end, number)
                        yield route if onwards is into else route[::-1]


def _shortest(
    onwards: dict[str, list[str]], root: str, index: dict[str, int], stores: set[str]
) -> tuple[dict[str, list[str]], dict[str, int]]:
    """Return what is before each device on shortest paths, and how many lead to it."""
    before: dict[str, list[str]] = {}
    many, last = {root: 1}, [root]
    for _ in range(LONGEST_PATH):
        found: dict[str, list[str]] = {}
        for name in last:
            for other in onwards[name]:
                if other not in many:
                    found.setdefault(other, []).append(name)
        before |= found
        many |= {name: sum(many[each] for each in found[name]) for name in found}
        last = sorted(found.keys() - stores, key=index.__getitem__)
    return before, many


def _walked(
    before: dict[str, list[str]], many: dict[str, int], end: str, number: int
) -> tuple[str, ...]:
    """Return the shortest path of a number, from its end to the root.

    Where all choices lead as many paths on, the last digits of the number choose first.
    """
    route = [end]
    while route[-1] in before:
        names = before[route[-1]]
        if len({many[name] for name in names}) == 1:
            number, turn = divmod(number, len(names))
            route.append(names[turn])
            continue
        for name in names:
            if number < many[name]:
                break
            number -= many[name]
        route.append(name)
    return tuple(route)


def listed(topology: Topology, *, fewer: bool) -> list[tuple[str, ...]]:
    """List those that shared limits let through, not too many and not none.

    With `fewer` they are the shortest where all are too many.

    Raises
    ------
    SolveError
        If there are too many.
    Infeasible
        If there are none.
    """
    routes = None
    if not _too_many(topology):
        routes = _no_more(topology, relay_paths(topology))
    if routes is None and fewer:
        pairs = sum(each.stores for each in topology.devices) ** 2
        most = max(1, FEW // pairs)
        routes = _no_more(topology, shortest_relay_paths(topology, most))
    if routes is None:
        raise SolveError(
            f"{topology} has more than {MOST:,} paths from GPU to GPU over its "
            "switches; draw fewer levels of switches or join parallel ones"
        )
    if not routes:
        raise Infeasible(no_path(topology.ranks[-1]))
    return routes


def _no_more(topology: Topology, paths: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]] | None:
    """Return the paths that shared limits let through, None if there are too many."""
    routes = list(islice(filter(passable(topology), paths), MOST + 1))
    return routes if len(routes) <= MOST else None


def passable(topology: Topology) -> Callable[[tuple[str, ...]], bool]:
    """Return what says whether shared limits let a chunk through on all links of a path at once."""
    index, fits = topology.link_index, let_through(topology)
    return lambda route: not topology.limits or fits([index[pair] for pair in pairwise(route)])


def let_through(topology: Topology) -> Callable[[Sequence[int]], bool]:
    """Return what says whether shared limits let a chunk through on some links at once."""
    rate = 1e-3 / betas(topology)
    index = topology.link_index
    limits = [
        (limit.bandwidth * (1 + 1e-9), {index[ends] for ends in limit.links})
        for limit in topology.limits
    ]

    def fits(links: Sequence[int]) -> bool:
        return all(
            sum(rate[link] for link in links if link in under) <= most for most, under in limits
        )

    return fits
