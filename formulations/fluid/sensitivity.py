"""What a little more or less bandwidth of some links would do to the best rate.

Duals of an optimum that is not unique say too much or too little: of a box whose up- and downlinks
are equally full, more of one alone gains nothing although its price is not 0. So each class of
links is given a share more and a share less, and the optimum is found again: from the worst cut
where a cut decides (exact fractions), else from the orbit linear program, which is compiled once.
Prices stand beside: by how much of itself the rate would follow, were the optimum unique.

A class holds both directions of its links: one alone would let a switch take in more than it
gives out, where no cut decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from ccl.problem import Problem
from ccl.symmetry import Group, automorphisms
from ccl.topology import Topology
from formulations.fluid.graph import balanced
from formulations.forest.network import WHOLE, Network, cut_decides, network_of
from formulations.forest.search import SYMMETRIC, rate_of
from formulations.orbits.loads import Uniform

STEP = 0.01
"""Share of more and of less bandwidth."""


@dataclass(frozen=True)
class Sensitivity:
    """What becomes of the best rate when links of one class change.

    Parameters
    ----------
    words
        What they are.
    links
        Their ends; of a shared limit, those it holds.
    more, less
        Change of algbw, as a share of it, for a share of `STEP` more and less bandwidth: ``more``
        is 0 or above, ``less`` 0 or below.
    price
        An optimal dual: by how much of its change algbw would follow, if the dual were unique.
    """

    words: str
    links: tuple[tuple[str, str], ...]
    more: float
    less: float
    price: float


def link_classes(
    topology: Topology, *, by: Literal["kind", "orbit"] = "kind", group: Group | None = None
) -> np.ndarray:
    """Return a number for each link, equal for links that change together, shape (links,).

    Parameters
    ----------
    topology
        The cluster.
    by
        ``kind``: bandwidth and medium; ``orbit``: links that symmetries exchange. In both the two
        directions of a link are together.
    group
        The symmetries, found where none are given.
    """
    if by == "orbit":
        group = automorphisms(topology, steady=True) if group is None else group
        label = np.unique(group.link_orbits(), return_inverse=True)[1].ravel()
    else:
        kinds: dict[tuple[float, str], int] = {}
        label = np.array(
            [kinds.setdefault((e.bandwidth, e.medium), len(kinds)) for e in topology.links]
        )
    place = topology.link_index
    back = np.array([place.get((e.dst, e.src), i) for i, e in enumerate(topology.links)])
    many = int(label.max()) + 1
    joined = sparse.coo_array((np.ones(len(label)), (label, label[back])), shape=(many, many))
    return np.asarray(csgraph.connected_components(joined, directed=False)[1][label])


def sensitivities(
    problem: Problem | Uniform, *, classes: np.ndarray | None = None, step: float = STEP
) -> tuple[Sensitivity, ...]:
    """Return the effect of each class of links and of each kind of shared limit, largest first.

    Parameters
    ----------
    problem, classes, step
        As for `effects`.

    Raises
    ------
    ProblemError
        If fluid models cannot say the problem.
    """
    found = effects(problem, classes=classes, step=step)
    return tuple(sorted(found, key=lambda each: each.less - each.more))


def effects(
    problem: Problem | Uniform, *, classes: np.ndarray | None = None, step: float = STEP
) -> Iterator[Sensitivity]:
    """Yield the effect of each class in order, then of each kind of shared limit that can bind.

    Parameters
    ----------
    problem
        What is asked.
    classes
        A number for each link, from 0 on, shape (links,); by default `link_classes`.
    step
        Share of more and of less bandwidth.

    Raises
    ------
    ProblemError
        If fluid models cannot say the problem.
    """
    number = link_classes(problem.topology) if classes is None else classes
    part = Fraction(step).limit_denominator(10_000)
    network = _cut_network(problem, number, part) if isinstance(problem, Problem) else None
    if network is None:
        yield from _by_program(problem, number, step)
    else:
        yield from _by_cut(network, problem.topology, number, part)


def _cut_network(problem: Problem, number: np.ndarray, part: Fraction) -> Network | None:
    """Return the network whose cuts decide whichever class changes, or None."""
    topology = problem.topology
    relays = {each.name for each in topology.devices if each.kind != "gpu"}
    if not (cut_decides(problem) and balanced(topology, relays, classes=number)):
        return None
    network = network_of(problem)
    whole = int(network.capacity.sum()) * int(network.weight.sum()) * part.denominator
    return network if whole < WHOLE else None


def _by_cut(
    network: Network, topology: Topology, number: np.ndarray, part: Fraction
) -> Iterator[Sensitivity]:
    """Yield the effects by cuts."""
    sinks = _sinks(network, number)
    now = rate_of(network, sinks=sinks, reduces=False)
    inside = now.sides[-1]
    crossing = inside[network.src] & ~inside[network.dst]
    full = network.capacity[crossing].sum()
    for each in range(int(number.max()) + 1):
        more, less = (
            float(rate_of(_scaled(network, number == each, by), sinks=sinks, reduces=False).speed
                  / now.speed - 1)
            for by in (1 + part, 1 - part)
        )  # fmt: skip
        mine = crossing & (number == each)
        price = float(network.capacity[mine].sum() / full)
        ends = tuple(topology.links[i].ends for i in np.flatnonzero(number == each))
        yield Sensitivity(_words(topology, number, each), ends, more, less, price)


def _scaled(network: Network, chosen: np.ndarray, by: Fraction) -> Network:
    """Return a network whose chosen links have `by` times their capacity."""
    factor = np.where(chosen, by.numerator, by.denominator)
    return replace(network, capacity=network.capacity * factor, unit=network.unit / by.denominator)


def _sinks(network: Network, number: np.ndarray) -> np.ndarray:
    """Return one sink of each orbit of symmetries that keep the classes."""
    if len(network.sinks) < SYMMETRIC:
        return network.sinks
    group = automorphisms(
        network.topology, colours=network.weight.tolist(), links=number.tolist(), steady=True
    )
    _, chosen = np.unique(group.orbits()[network.sinks], return_index=True)
    return np.asarray(network.sinks[chosen])


def _by_program(
    problem: Problem | Uniform, number: np.ndarray, step: float
) -> Iterator[Sensitivity]:
    """Yield the effects by the orbit linear program, those of shared limits among them."""
    # CVXPY takes most of a second to load, and a cut needs none.
    from formulations.backends import Backend  # noqa: PLC0415
    from formulations.orbits.lp import orbit_program  # noqa: PLC0415

    topology, backend = problem.topology, Backend()
    program = orbit_program(problem, classes=number).program
    now = program.fastest(backend)
    prices = program.prices
    orbits = int(program.rows.max()) + 1
    of_orbit = np.zeros(orbits, dtype=np.int64)
    kinds = np.unique([each.bandwidth for each in topology.limits], return_inverse=True)[1]
    of_orbit[program.rows] = np.concatenate([number, number.max() + 1 + kinds])
    for each in range(int(of_orbit.max()) + 1):
        effects = []
        for by in (1 + step, 1 - step):
            program.scale.value = np.where(of_orbit == each, by, 1.0)
            effects.append(now / program.fastest(backend) - 1)
        yield Sensitivity(
            _words(topology, number, each)
            if each <= number.max()
            else _limited(topology, kinds, each - int(number.max()) - 1),
            _ends(topology, number, kinds=kinds, each=each),
            max(effects[0], 0.0),
            min(effects[1], 0.0),
            float(prices[of_orbit == each].sum()),
        )


def _words(topology: Topology, number: np.ndarray, each: int) -> str:
    found = dict.fromkeys(
        f"{link.medium or 'links'} at {link.bandwidth:g} GB/s"
        for link, mine in zip(topology.links, (number == each).tolist(), strict=True)
        if mine
    )
    return ", ".join(found)


def _limited(topology: Topology, kinds: np.ndarray, each: int) -> str:
    mine = [topology.limits[i] for i in np.flatnonzero(kinds == each)]
    others = f" and {len(mine) - 1} alike" if len(mine) > 1 else ""
    return f"limit {mine[0].name}{others} at {mine[0].bandwidth:g} GB/s"


def _ends(
    topology: Topology, number: np.ndarray, *, kinds: np.ndarray, each: int
) -> tuple[tuple[str, str], ...]:
    if each <= number.max():
        return tuple(topology.links[i].ends for i in np.flatnonzero(number == each))
    chosen = np.flatnonzero(kinds == each - int(number.max()) - 1)
    return tuple(ends for i in chosen for ends in topology.limits[i].links)
