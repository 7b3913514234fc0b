"""A problem reduced by its symmetry: one chunk of each orbit, links of one orbit as one resource.

If h is an automorphism, and chunk c goes over link e at time t, then its image hc goes over he at
the same time, in a plan that is to look the same after h. So c keeps all of the orbit of e busy,
and two representatives that never meet in an orbit of links never meet on a link, nor do their
images. What is found for representatives is lifted by taking all images.

That needs that no element but the identity leaves a link that is used where it is: else two images
of one chunk would be on it at once. Moves over such links are left out, as are moves that cross
two links of one orbit while they are held. A plan that needs them is not found here; the full
problem has it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ccl.symmetry import Symmetry
from formulations.engines.list_scheduling.multistart import Task
from formulations.engines.list_scheduling.routes import Moves
from formulations.engines.list_scheduling.timed import TimedMoves


@dataclass(frozen=True)
class Quotient:
    """A task for representatives, and what lifts its plans.

    Parameters
    ----------
    task
        The task; its moves are some of the full one's.
    chunks
        Image of each representative under each element, shape (order, representatives).
    full
        The moves of the full task.
    links
        Image of each link under each element, shape (order, links).
    """

    task: Task
    chunks: np.ndarray
    full: Moves
    links: np.ndarray

    def lifted(self, timed: TimedMoves) -> TimedMoves:
        """Return all images of a plan of the representatives."""
        order = len(self.chunks)
        used, which = np.unique(timed.move, return_inverse=True)
        images = _images(self.full, self.links, _chosen(self.task.moves, used))
        many = int(timed.group.max(initial=0)) + 1
        return TimedMoves(
            images[:, which.ravel()].ravel(),
            self.chunks[:, timed.chunk].ravel(),
            np.tile(timed.start, order),
            (timed.group + many * np.arange(order)[:, None]).ravel(),
        )


def quotient(full: Task, symmetry: Symmetry, images: np.ndarray) -> Quotient | None:
    """Reduce a task; None if moves that are left out may be needed.

    Parameters
    ----------
    full
        A task without limits that bind, all of whose links are resources of their own.
    symmetry
        Acts on its topology.
    images
        Of each chunk under each element, shape (order, chunks).
    """
    links = symmetry.links
    if symmetry.order < 2 or not _alike(full, symmetry, images):
        return None
    fixed = (links[1:] == np.arange(links.shape[1])).any(axis=0)
    names = symmetry.orbits(links)
    orbit = np.searchsorted(np.unique(names), names)
    kept = np.flatnonzero(~_unfit(full, orbit, fixed))
    if not len(kept):
        return None
    moves = _chosen(full.moves, kept)
    representatives = np.unique(symmetry.orbits(images))
    if (images[1:, representatives] == representatives).any():
        return None
    free = np.zeros(int(orbit.max()) + 1)
    np.maximum.at(free, orbit, full.free)
    task = replace(
        full,
        moves=moves,
        nbytes=full.nbytes[representatives],
        there=full.there[representatives],
        wants=full.wants[representatives],
        rank=full.rank[representatives],
        resource=orbit,
        free=free,
    )
    return Quotient(task, images[:, representatives], full.moves, links)


def _alike(full: Task, symmetry: Symmetry, images: np.ndarray) -> bool:
    """Whether what is where at the beginning looks the same after each element."""
    for place in symmetry.generators:
        devices, chunks = symmetry.devices[place], images[place]
        there = full.there[chunks][:, devices]
        if (full.wants[chunks][:, devices] != full.wants).any():
            return False
        if not np.allclose(there, full.there, rtol=1e-9, atol=0.0):
            return False
    return True


def _unfit(full: Task, orbit: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    """Whether each move crosses a fixed link, or an orbit twice at once."""
    moves = full.moves
    unfit = np.zeros(len(moves), dtype=bool)
    np.logical_or.at(unfit, moves.of_link, fixed[moves.link])
    crossed = orbit[moves.link]
    nbytes = float(full.nbytes.max())
    lead = moves.lead + nbytes * moves.drag
    for step in range(1, int(np.diff(moves.first).max(initial=1))):
        same = moves.of_link[:-step] == moves.of_link[step:]
        twice = same & (crossed[:-step] == crossed[step:])
        apart = np.abs(lead[step:] - lead[:-step])
        clash = twice & (apart < nbytes * moves.beta[step:])
        unfit[moves.of_link[:-step][clash]] = True
    return unfit


def _chosen(moves: Moves, kept: np.ndarray) -> Moves:
    """Return some of the moves."""
    crossed = np.diff(moves.first)[kept]
    first = np.concatenate([[0], np.cumsum(crossed)])
    place = np.repeat(moves.first[kept] - first[:-1], crossed) + np.arange(first[-1])
    return replace(
        moves,
        routes=tuple(moves.routes[number] for number in kept.tolist()),
        src=moves.src[kept],
        dst=moves.dst[kept],
        first=first,
        link=moves.link[place],
        beta=moves.beta[place],
        lead=moves.lead[place],
        drag=moves.drag[place],
        parts=moves.parts[place],
        latency=moves.latency[kept],
        slowest=moves.slowest[kept],
    )


def _images(moves: Moves, links: np.ndarray, part: Moves) -> np.ndarray:
    """Return the image of some moves under each element among all moves, shape (order, part)."""
    chance = np.random.default_rng(0)
    code: np.ndarray = chance.integers(1, 1 << 62, size=(links.shape[1],), dtype=np.int64)
    # A way is known by its links whatever their order, as no two ways have the same ones.
    names = _sums(code[moves.link], moves.first)
    order = np.argsort(names)
    images = np.empty((len(links), len(part)), dtype=np.int64)
    for element, mapped in enumerate(links):
        found = _sums(code[mapped[part.link]], part.first)
        images[element] = order[np.searchsorted(names[order], found)]
    return images


def _sums(values: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Add up the values of each move."""
    total: np.ndarray = np.concatenate([[0], np.cumsum(values)])
    return np.asarray(total[first[1:]] - total[first[:-1]])
