"""Networks that a rule makes for a number of GPUs and ports: all splits of the families, lattices.

Closed families are those of the gallery, with every choice of their parameters that comes to so
many GPUs, ports of a GPU and ports of a switch. Where a rule has fewer links at each GPU than there
are ports, and the ports are a multiple, its links are parallel ones.

Lattices are all networks of abelian groups with p / 2 generators (`gallery.lattices`), twisted tori
and circulants among them. They are compared by their distances: of the points of Z^D, the nearest
first, each lies in a class of the lattice, and the first in a class says how far that is.

Products and copies make large networks of the best small ones (`gallery.expansions`). Their
distances follow from those of the parts: with S the sum of distances over ordered pairs,

    S(G x H) = |H|^2 S(G) + |G|^2 S(H)         S(m copies of G) = m^2 S(G) + 2 |G| m (m - 1)

This module alone in `formulations` knows the gallery.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from ccl.errors import ProblemError
from ccl.topology import Topology
from formulations.proposals.request import Request
from formulations.proposals.rewiring import Annealing, network_of, possible
from formulations.proposals.scores import cabled
from gallery import open_cluster
from gallery.direct_networks import (
    generalised_de_bruijn,
    generalised_kautz,
    hyperx,
    slim_fly,
    twisted_torus,
)
from gallery.expansions import cartesian_product, expand_degree, in_planes, line_graph
from gallery.fabrics import dragonfly, fat_tree, rail_only
from gallery.lattices import HermiteForm, hermite_forms
from gallery.leaf_spine import leaf_spine
from gallery.switched_networks import dragonfly_plus, hamming_mesh
from gallery.toys import torus

SPLITS = 4
"""Splits of a family of routers, those with fewest routers."""

BOARD = 4
"""Ports of a GPU on a board of a HammingMesh."""

EXPANDED = 4
"""Networks made of small ones, those with the least distances."""

FORMS = 20_000
"""Lattices that are compared; of more, so many are drawn by chance."""

SMALL = 64
"""GPUs of the largest network that is annealed to be a part."""


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A network that may be made.

    Parameters
    ----------
    family
        What it is one of.
    make
        Makes it.
    one_way
        Whether its links go one way.
    total
        Sum of distances over ordered pairs, where it is known.
    """

    family: str
    make: Callable[[], Topology]
    one_way: bool = False
    total: float = math.inf


@dataclass(frozen=True, slots=True)
class Host:
    """A type of host: GPUs at an inner switch, by GB/s and µs of their links to it."""

    gpus: int
    bandwidth: float
    alpha: float


ALONE = Host(1, 0.0, 0.0)
"""A GPU without a host."""


def host_of(request: Request) -> Host:
    """Return the type of host of a request.

    Raises
    ------
    ProblemError
        If the gallery has none of the name, its GPUs have no inner switch, or it does not divide
        the GPUs.
    """
    if request.host is None:
        return ALONE
    made = open_cluster(request.host)
    first = made.device(made.ranks[0])
    inside = [each for each in made.ranks if made.device(each).host == first.host]
    hubs = [
        link
        for link in made.links_out[first.name]
        if made.device(link.dst).kind == "switch" and made.device(link.dst).host == first.host
    ]
    if first.host is None or len(hubs) != 1:
        raise ProblemError(
            f"propose: host {request.host} has no inner switch that joins its GPUs; give one that "
            f"has, such as dgx-h100"
        )
    if request.gpus % len(inside):
        raise ProblemError(
            f"propose: {request.gpus:,} GPUs are no whole hosts {request.host} of {len(inside)}; "
            f"give a multiple of {len(inside)}"
        )
    return Host(len(inside), hubs[0].bandwidth, hubs[0].alpha)


def closed(request: Request) -> Iterator[Draft]:
    """Yield every network of a closed family, simple ones first."""
    host = host_of(request)
    if request.host is None and request.ports > 1:
        yield from _direct(request)
    if request.radix:
        yield from _leaves(request, host)
        if request.host is None and request.ports % BOARD == 0:
            yield from _in_planes(_boards(request), request.ports // BOARD)
        of_one_port = _trees(request, host), _of_switches(request) if host == ALONE else ()
        yield from _in_planes(itertools.chain(*of_one_port), request.ports)


def _in_planes(drafts: Iterable[Draft], planes: int) -> Iterator[Draft]:
    """Yield networks of fewer ports with all their switches in each of several planes."""

    def made(make: Callable[[], Topology]) -> Topology:
        return in_planes(make(), planes)

    for each in drafts:
        yield replace(each, make=partial(made, each.make))


def fits(topology: Topology, request: Request) -> bool:
    """Return whether no GPU, NIC or switch has more cables than ports."""
    for each in topology.devices:
        out = sum(link.count for link in topology.links_out[each.name] if cabled(link))
        most = request.radix if each.kind == "switch" else request.ports
        inner = each.kind == "switch" and each.name.startswith("nvswitch")
        if out > most and not inner:
            return False
    return len(topology.ranks) == request.gpus


def _direct(request: Request) -> Iterator[Draft]:
    """Yield tori, full meshes, Slim Fly, and networks of one-way links."""
    gpus, ports = request.gpus, request.ports
    wire: dict[str, Any] = {"bandwidth": request.bandwidth, "alpha": request.alpha}
    for shape in _shapes(gpus):
        rings = sum(1 if side == 2 else 2 for side in shape)
        if ports % rings == 0:
            yield Draft(family="torus", make=_thick(partial(torus, shape, **wire), ports // rings))
        meshes = sum(shape) - len(shape)
        if ports % meshes == 0 and max(shape) > 3:
            made = _thick(partial(hyperx, shape, **wire), ports // meshes)
            yield Draft(family="HyperX", make=made)
    order = math.isqrt(gpus // 2)
    if 2 * order**2 == gpus and order > 2:
        yield Draft(family="Slim Fly", make=partial(slim_fly, order, **wire))
    if request.one_way and 2 <= ports < gpus:
        for family, rule in (("Kautz", generalised_kautz), ("de Bruijn", generalised_de_bruijn)):
            yield Draft(family=family, make=partial(rule, gpus, degree=ports, **wire), one_way=True)
        if gpus % ports == 0 and gpus // ports >= 2:
            base = partial(_part, gpus // ports, ports, request)
            yield Draft(family="line graph", make=lambda: line_graph(base()), one_way=True)


def _shapes(number: int, least: int = 2) -> Iterator[tuple[int, ...]]:
    """Yield every product of sides from 2 on, none before a smaller one, at most 6."""
    yield (number,)
    for side in range(least, math.isqrt(number) + 1):
        if number % side == 0:
            for rest in _shapes(number // side, side):
                if len(rest) < 6:
                    yield (side, *rest)


def _thick(make: Callable[[], Topology], times: int) -> Callable[[], Topology]:
    """Return what makes the same with so many parallel links."""
    if times == 1:
        return make

    def made() -> Topology:
        plain = make()
        links = tuple(
            replace(each, bandwidth=each.bandwidth * times, count=each.count * times)
            for each in plain.links
        )
        return replace(plain, name=f"{plain.name}, links × {times}", links=links)

    return made


def _leaves(request: Request, host: Host) -> Iterator[Draft]:
    """Yield leaves and spines of each oversubscription."""
    ports, radix = request.ports, request.radix
    alphas: dict[str, Any] = {"alpha": host.alpha, "network_alpha": request.alpha}
    for share in (1.0, 2.0, 4.0, 8.0):
        for rails in (True, False) if host.gpus * ports > 1 else (True,):
            made = partial(
                leaf_spine,
                hosts=request.gpus // host.gpus,
                gpus=host.gpus,
                nics=host.gpus * ports,
                rails=rails,
                leaf_radix=radix,
                spine_radix=radix,
                oversubscription=share,
                bandwidth=host.bandwidth or request.bandwidth,
                bus_bandwidth=request.bandwidth,
                network_bandwidth=request.bandwidth,
                spine_bandwidth=request.bandwidth,
                **alphas,
            )
            yield Draft(family="leaf-spine", make=partial(_tree, made, share, rails))


def _trees(request: Request, host: Host) -> Iterator[Draft]:
    """Yield rails without spines, and fat trees; of one port for each GPU."""
    gpus, radix, hosts = request.gpus, request.radix, request.gpus // host.gpus
    if host.gpus > 1 and 2 <= hosts <= radix:
        made = partial(
            rail_only,
            hosts=hosts,
            gpus=host.gpus,
            bandwidth=host.bandwidth,
            network_bandwidth=request.bandwidth,
            alpha=host.alpha,
            network_alpha=request.alpha,
        )
        yield Draft(family="rail-only", make=made)
    if host.gpus == 1:
        for half in range(2, radix // 2 + 1):
            if 2 * half**3 == gpus:
                wire: dict[str, Any] = {"bandwidth": request.bandwidth, "alpha": request.alpha}
                yield Draft(family="fat-tree", make=partial(fat_tree, radix=2 * half, **wire))


def _tree(make: Callable[[], Topology], share: float, rails: bool) -> Topology:
    """Name leaves and spines by what they are."""
    made = make()
    what = "a rail for each port" if rails else "a leaf for all ports"
    return replace(made, name=f"Leaf and spine {share:g}:1, {what}")


def _of_switches(request: Request) -> Iterator[Draft]:
    """Yield networks of routers with GPUs, of one port for each GPU."""
    gpus, radix = request.gpus, request.radix
    wire: dict[str, Any] = {"bandwidth": request.bandwidth, "alpha": request.alpha}
    yield from _few(_dragonflies(request))
    found = []
    for each in range(2, radix):
        if gpus % each or gpus // each < 4:
            continue
        for shape in _shapes(gpus // each):
            trunk = (radix - each) // (sum(shape) - len(shape))
            if trunk >= 1 and len(shape) <= 3:
                made = partial(hyperx, shape, trunks=(trunk,), concentration=each, **wire)
                found.append((gpus // each, Draft(family="HyperX", make=made)))
        order = math.isqrt(gpus // each // 2)
        if 2 * order**2 * each == gpus and order > 2:
            made = partial(slim_fly, order, concentration=each, **wire)
            found.append((gpus // each, Draft(family="Slim Fly", make=made)))
    yield from _few(found)


def _boards(request: Request) -> Iterator[Draft]:
    """Yield boards of GPUs whose rows and columns end at switches, of `BOARD` ports for each."""
    wire: dict[str, Any] = {"bandwidth": request.bandwidth, "network_bandwidth": request.bandwidth}
    found = []
    for rows, columns in itertools.combinations_with_replacement(range(1, 5), 2):
        boards, rest = divmod(request.gpus, rows * columns)
        for down in range(2, math.isqrt(boards) + 1) if not rest else ():
            across = boards // down
            if boards % down == 0 and 2 * across <= request.radix:
                board, shape = (rows, columns), (down, across)
                made = partial(hamming_mesh, board=board, shape=shape, alpha=request.alpha, **wire)
                switches = rows * down + columns * across
                found.append((switches, Draft(family="HammingMesh", make=made)))
    return _few(found)


def _dragonflies(request: Request) -> Iterator[tuple[int, Draft]]:
    """Yield dragonflies and dragonflies+ whose uplinks carry what their GPUs send, with routers."""
    gpus, radix = request.gpus, request.radix
    wire: dict[str, Any] = {"bandwidth": request.bandwidth, "alpha": request.alpha}
    for routers, each in itertools.product(range(2, radix), range(2, radix)):
        groups, rest = divmod(gpus, routers * each)
        if rest or groups < 2:
            continue
        uplinks = max(each, -(-(groups - 1) // routers))
        sizes = {"groups": groups, "gpus": each, "uplinks": uplinks}
        if routers - 1 + each + uplinks <= radix and routers <= 64 and max(each, uplinks) <= 64:
            made = partial(dragonfly, routers=routers, **sizes, **wire)
            yield groups * routers, Draft(family="dragonfly", make=made)
        if routers + max(each, uplinks) <= radix and routers <= 64 and max(each, uplinks) <= 64:
            both = {"group_leaves": routers, "group_spines": routers}
            made = partial(dragonfly_plus, **both, **sizes, **wire)
            yield 2 * groups * routers, Draft(family="dragonfly+", make=made)


def _few(found: Iterable[tuple[int, Draft]]) -> Iterator[Draft]:
    """Yield those of each family that need fewest switches."""
    ordered = sorted(found, key=lambda each: (each[1].family, each[0]))
    for _, drafts in itertools.groupby(ordered, key=lambda each: each[1].family):
        yield from (draft for _, draft in itertools.islice(drafts, SPLITS))


def lattices(request: Request) -> list[Draft]:
    """Return every lattice with as many links at each GPU as ports, the least distances first."""
    dimensions = request.ports // 2
    if request.ports % 2 or not 2 <= dimensions <= 4 or request.host is not None:
        return []
    forms = _chosen(hermite_forms(request.gpus, dimensions), request.seed)
    points = _nearest(8 * request.gpus, dimensions)
    found: dict[tuple[float, int], HermiteForm] = {}
    for shape, several in itertools.groupby(forms, key=lambda each: each[0]):
        twists = [each for _, each in several]
        for form, total, diameter in _compared(shape, twists, points):
            # Networks with equal distances are, mostly, the same one with its axes exchanged.
            found.setdefault((total, diameter), form)
    wire: dict[str, Any] = {"bandwidth": request.bandwidth, "alpha": request.alpha}
    return [
        Draft(
            family="lattice",
            make=partial(twisted_torus, shape, twists=twists, **wire),
            total=request.gpus * total,
        )
        for (total, _), (shape, twists) in sorted(found.items())
    ]


def _chosen(forms: Iterator[HermiteForm], seed: int) -> list[HermiteForm]:
    """Return all forms, or of many so many by chance, those of one shape together."""
    first = list(itertools.islice(forms, FORMS))
    dice = random.Random(seed)
    for number, form in enumerate(forms, start=len(first)):
        place = dice.randrange(number + 1)
        if place < FORMS:
            first[place] = form
    return sorted(first)


@cache
def _nearest(many: int, dimensions: int) -> np.ndarray:
    """Return at least so many points around 0, the farthest first: norm and place, as columns."""
    reach = 1
    while True:
        axis = np.arange(-reach, reach + 1)
        grid = np.stack(np.meshgrid(*[axis] * dimensions, indexing="ij"), axis=-1)
        points = grid.reshape(-1, dimensions)
        norms = np.abs(points).sum(axis=1)
        inside = norms <= reach
        if inside.sum() >= many:
            order = np.argsort(-norms[inside], kind="stable")
            return np.column_stack([norms[inside], points[inside]])[order]
        reach += 1


def _compared(
    shape: tuple[int, ...], twists: Sequence[tuple[int, ...]], points: np.ndarray
) -> Iterator[tuple[HermiteForm, float, int]]:
    """Yield lattices of one shape with the sum of the distances from a GPU, and the largest.

    Those with a distance beyond the points, or with fewer neighbours than links, are left out.
    """
    gpus, dimensions = math.prod(shape), len(shape)
    above = np.triu_indices(dimensions, 1)
    step = max(1, 2_000_000 // (len(points) * dimensions))
    for first in range(0, len(twists), step):
        some = np.array(twists[first : first + step], dtype=np.int64)
        matrices = np.zeros((len(some), dimensions, dimensions), dtype=np.int64)
        matrices[:, above[0], above[1]] = some
        matrices[:, range(dimensions), range(dimensions)] = shape
        places = np.repeat(points[None, :, 1:], len(some), axis=0)
        for axis, side in enumerate(shape):
            turns = places[:, :, axis] // side
            places -= turns[:, :, None] * matrices[:, None, axis, :]
        numbers = np.ravel_multi_index(tuple(np.moveaxis(places, -1, 0)), shape)
        far = np.full((len(some), gpus), gpus)
        # Of several points of one class the last, which is the nearest, counts.
        far[np.arange(len(some))[:, None], numbers] = points[None, :, 0]
        neighbours = (far == 1).sum(axis=1)
        joined = (far.max(axis=1) < gpus) & (neighbours == min(2 * dimensions, gpus - 1))
        for place in np.flatnonzero(joined).tolist():
            form = shape, twists[first + place]
            yield form, float(far[place].sum()), int(far[place].max())


def expansions(request: Request) -> Iterator[Draft]:
    """Yield products and copies of small networks, those with the least distances."""
    if request.host is not None or request.radix:
        return
    gpus, ports = request.gpus, request.ports
    found: list[tuple[float, int, Draft]] = []
    for many in (each for each in range(2, gpus // 2 + 1) if gpus % each == 0):
        rest = gpus // many
        for degree in range(1, ports):
            if many > rest or (many == rest and 2 * degree > ports):
                continue  # the same with the parts exchanged
            parts = (many, degree), (rest, ports - degree)
            totals = [_part_total(*each, request.seed) for each in parts]
            total = rest**2 * totals[0] + many**2 * totals[1]
            made = partial(_product, parts, request)
            found.append((total, len(found), Draft(family="product", make=made, total=total)))
        if ports % many == 0 and rest > 2:
            total = many**2 * _part_total(rest, ports // many, request.seed)
            total += 2 * rest * many * (many - 1)
            made = partial(_copied, (rest, ports // many), many, request)
            found.append((total, len(found), Draft(family="copies", make=made, total=total)))
    yield from (each for total, _, each in sorted(found, key=_order)[:EXPANDED] if total < math.inf)


def _order(found: tuple[float, int, Draft]) -> tuple[float, int]:
    return found[:2]


def _product(parts: Sequence[tuple[int, int]], request: Request) -> Topology:
    first, second = (_part(*each, request) for each in parts)
    return cartesian_product(first, second)


def _copied(part: tuple[int, int], copies: int, request: Request) -> Topology:
    return expand_degree(_part(*part, request), copies)


@cache
def _annealed(gpus: int, degree: int, seed: int) -> Annealing:
    found = Annealing(gpus, degree, seed=seed)
    found.advance(runs=1)
    return found


def _part_total(gpus: int, degree: int, seed: int) -> float:
    """Return the sum of distances of the best small network that is known, or infinity."""
    if degree == gpus - 1:
        return float(gpus * degree)
    if degree == 2 and gpus > 3:
        return gpus * float(sum(min(i, gpus - i) for i in range(gpus)))
    if not possible(gpus, degree) or gpus > SMALL:
        return math.inf
    return _annealed(gpus, degree, seed).total


def _part(gpus: int, degree: int, request: Request) -> Topology:
    """Return the best small network that is known: a full mesh, a ring, or an annealed one."""
    wire: dict[str, Any] = {"bandwidth": request.bandwidth, "alpha": request.alpha}
    if degree == gpus - 1:
        return hyperx((gpus,), **wire)
    if degree == 2 and gpus > 3:
        return torus((gpus,), **wire)
    if not possible(gpus, degree) or gpus > SMALL:
        raise ProblemError(f"no network of {gpus:,} GPUs with {degree} links each to build on")
    pairs = _annealed(gpus, degree, request.seed).pairs
    return network_of(pairs, gpus=gpus, name=f"Rewired {gpus} of degree {degree}", **wire)
