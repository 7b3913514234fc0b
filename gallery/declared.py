"""Declared symmetry of the gallery's clusters; `ccl.symmetry` checks it on use."""

import itertools
from collections.abc import Callable, Iterable, Sequence

from ccl.topology import Declared, Interchange, Permutation
from gallery.build import Fabric

Place = list[int]
"""Where a device of a lattice is: its coordinate along each prime factor."""


def interchange(blocks: Iterable[Iterable[str]], *inner: Declared) -> Interchange:
    """Declare that blocks may be permuted, and what may be inside the first."""
    return Interchange(tuple(tuple(block) for block in blocks), inner)


def each_alone(names: Iterable[str]) -> Interchange:
    """Declare that devices may be permuted."""
    return interchange([name] for name in names)


def moved(names: Sequence[str], images: Iterable[int]) -> Permutation:
    """Declare one permutation of devices by the number of each one's image."""
    return Permutation(tuple(names), tuple(names[image] for image in images))


def hosts_and_places(
    boxes: Sequence[Sequence[str]],
    ports: Sequence[Sequence[str]],
    *,
    fabric: Fabric,
    inner: Iterable[Declared] = (),
) -> list[Declared]:
    """Declare the symmetry of `gallery.build.network`: of hosts, and of the places of their ports.

    Parameters
    ----------
    boxes
        All devices of each host.
    ports
        Those of them that have a port, which are all alike in their host.
    fabric
        How they are joined.
    inner
        What else may be permuted in the first host.
    """
    if fabric == "flat" or len(ports) < 2:
        return [interchange(boxes, each_alone(ports[0]), *inner)]
    places = zip(*ports, strict=True)
    rails = ([f"rail{i}", *names] for i, names in enumerate(places))
    return [interchange(boxes, *inner), interchange(rails)]


def lattice_symmetry(
    names: Sequence[str], shape: Sequence[int], *, wrap: bool
) -> tuple[Permutation, ...]:
    """Declare all symmetries of a torus or grid with equal links.

    It is the Cartesian product of rings and lines, and these are prime but for the ring of four,
    which is the product of two pairs. So its symmetries are those of each factor and the exchanges
    of equal factors (Imrich and Klavžar, Product Graphs, 2000, theorem 4.15).

    Parameters
    ----------
    names
        GPUs with the last coordinate fastest.
    shape, wrap
        GPUs along each dimension, and whether these are closed to rings.
    """
    factors = [factor for side in shape for factor in _primes(side, wrap=wrap)]
    split = [_split(side, wrap=wrap) for side in shape]
    places = [[digit for part in parts for digit in part] for parts in itertools.product(*split)]
    number = {tuple(place): i for i, place in enumerate(places)}
    found: list[Permutation] = []
    for factor in sorted(set(factors)):
        same = [axis for axis, each in enumerate(factors) if each == factor]
        found += [
            moved(names, [number[tuple(move(place))] for place in places])
            for move in _moves(factor, same, wrap=wrap)
        ]
    return tuple(found)


def _primes(side: int, *, wrap: bool) -> tuple[int, ...]:
    if side == 1:
        return ()
    return (2, 2) if side == 4 and wrap else (side,)


def _split(side: int, *, wrap: bool) -> list[Place]:
    """Return the coordinates along the prime factors of each place along a side."""
    if side == 1:
        return [[]]
    if side == 4 and wrap:
        return [[0, 0], [0, 1], [1, 1], [1, 0]]
    return [[i] for i in range(side)]


def _moves(side: int, same: list[int], *, wrap: bool) -> list[Callable[[Place], Place]]:
    """Return generators of the symmetries of equal factors, on the axes `same`."""
    first = same[0]

    def turn(place: Place) -> Place:
        return [(at + 1) % side if axis == first else at for axis, at in enumerate(place)]

    def flip(place: Place) -> Place:
        return [side - 1 - at if axis == first else at for axis, at in enumerate(place)]

    def exchange(place: Place) -> Place:
        return _taken(place, same[:2], [same[1], same[0]])

    def rotate(place: Place) -> Place:
        return _taken(place, same, [*same[1:], first])

    found: list[Callable[[Place], Place]] = [flip]
    if wrap and side > 2:
        found.append(turn)
    if len(same) > 1:
        found.append(exchange)
    if len(same) > 2:
        found.append(rotate)
    return found


def _taken(place: Place, axes: Sequence[int], others: Sequence[int]) -> Place:
    taken = list(place)
    for axis, other in zip(axes, others, strict=True):
        taken[axis] = place[other]
    return taken
