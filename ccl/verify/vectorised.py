"""Chunks that are right at a glance: judged all at once, as arrays.

Most plans move whole chunks between devices that store, or add up sums along trees and spread
them from there. A few comparisons say of such a chunk that no rule is broken. What they leave open,
everything that is wrong among it, is followed send by send (`ccl.verify.schedule`), which is slower
and says what is wrong.

* A whole chunk comes to a device once, to none that has it, leaves where it is, and is where it is
  wanted.
* Of a sum every device but one sends once, after all that comes to it, so that all contributions
  come to that one, each once: sends lead to later sends until there is none. If it is wanted
  elsewhere, it leaves that device when all is there, and moves like a whole chunk.

Of a sum that several want a send spreads what is done if nothing comes to its device any more, and
adds up else. That is a guess, which a plan may prove wrong; the comparisons then say nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ccl.plans import Integers, Order
from ccl.problem import Problem
from ccl.timeline import among
from ccl.topology import Topology
from ccl.verify.times import Clock

Flags = NDArray[np.bool_]


def settle(problem: Problem, duration: float, order: Order, clock: Clock) -> Flags:
    """Return of each chunk whether it is certain that its sends break no rule but of their links.

    Parameters
    ----------
    problem
        Whose chunks.
    duration
        µs until the end of the last epoch.
    order, clock
        The sends, and their times.

    Returns
    -------
    Array of shape (chunks,).
    """
    return _Glance(problem, duration, order, clock).settled()


class _Glance:
    """Sends as arrays. A place is a chunk at a device, as one number."""

    def __init__(self, problem: Problem, duration: float, order: Order, clock: Clock) -> None:
        topology, self._chunks = problem.topology, problem.collective.chunks
        self._devices = len(topology.devices)
        src, dst = order.devices(topology)
        self._of = order.chunks
        self._from, self._to = self._of * self._devices + src, self._of * self._devices + dst
        # As the replay send by send has them: what takes no time is there when it has left.
        self._left = clock.starts + clock.slack
        self._there = np.maximum(clock.ends, self._left)
        stores, self._copies, self._adds = (
            np.array([getattr(each, name) for each in topology.devices], dtype=bool)
            for name in ("stores", "copies", "reduces")
        )
        self._holders, self._wanted = (
            self._places(topology, [getattr(each, name) for each in self._chunks])
            for name in ("holders", "destinations")
        )
        self._open = np.zeros(len(self._chunks), dtype=bool)
        self._open[[*order.split, *order.named]] = True
        joined = [place for place, tree in clock.trees.items() if tree.joins]
        passed, late = ~(stores[src] & stores[dst]), clock.ends > duration + clock.slack
        self._open[self._of[passed | late]] = True
        self._open[self._of[joined]] = True

    def _places(self, topology: Topology, ranks: Sequence[tuple[int, ...]]) -> Integers:
        """Return the places of ranks of each chunk."""
        device = np.array([topology.index[name] for name in topology.ranks], dtype=np.int64)
        of = np.repeat(np.arange(len(ranks)), [len(each) for each in ranks])
        flat = np.fromiter(chain.from_iterable(ranks), np.int64, len(of))
        return of * self._devices + device[flat]

    def settled(self) -> Flags:
        """Return which chunks are certain."""
        sums = np.array([each.reduced for each in self._chunks], dtype=bool)
        several = np.array([len(each.destinations) > 1 for each in self._chunks], dtype=bool)
        sends = np.arange(len(self._of))
        adds, spreads = sums[self._of], np.zeros(len(sends), dtype=bool)
        some = sends[adds & several[self._of]]
        spreads[some] = ~self._early(some, some)
        holds, wants = sums[self._holders // self._devices], self._wanted // self._devices
        self._moves(sends[~adds], self._holders[~holds], self._wanted[~sums[wants]])
        roots = self._adds_up(sends[adds & ~spreads], self._holders[holds], sums)
        self._moves(sends[spreads], roots, self._wanted[sums[wants]])
        return ~self._open

    def _doubt(self, places: Integers) -> None:
        self._open[places // self._devices] = True

    def _early(self, sends: Integers, others: Integers) -> Flags:
        """Return which sends leave before all of the others that come to their device are there.

        So do those to whose device none comes; at one moment, where what leaves takes no time, it
        is not certain which is first.
        """
        if not len(others):
            return np.ones(len(sends), dtype=bool)
        by_place = others[np.lexsort((self._there[others], self._to[others]))]
        last = np.searchsorted(self._to[by_place], self._from[sends], "right") - 1
        found = by_place[np.maximum(last, 0)]
        none = (last < 0) | (self._to[found] != self._from[sends])
        at_once = self._there[sends] <= self._left[sends]
        there, left = self._there[found], self._left[sends]
        return np.asarray(none | (there > left) | (at_once & (there == left)))

    def _moves(self, sends: Integers, first: Integers, wanted: Integers) -> None:
        """Doubt what does not go from where it is first to where it is wanted as a whole chunk."""
        came, src = self._to[sends], self._from[sends]
        self._doubt(came[_twice(came) | among(came, first)])
        later = sends[~among(src, first)]
        self._doubt(self._from[later[self._early(later, sends)]])
        lost = src[~self._copies[src % self._devices]]
        self._doubt(lost[_twice(lost)])
        there = among(wanted, came) | among(wanted, first)
        self._doubt(wanted[~there | among(wanted, lost)])

    def _adds_up(self, sends: Integers, holders: Integers, sums: Flags) -> Integers:
        """Doubt what does not bring all contributions to one place; return these places."""
        src, dst = self._from[sends], self._to[sends]
        self._doubt(src[_twice(src)])
        self._doubt(dst[~self._adds[dst % self._devices]])
        inner = sends[among(src, dst)]
        self._doubt(self._from[inner[self._early(inner, sends)]])
        roots = np.unique(dst[~among(dst, src)])
        self._doubt(holders[~among(holders, src) & ~among(holders, roots)])
        many = np.bincount(roots // self._devices, minlength=len(sums))
        self._open |= sums & (many != 1)
        return roots


def _twice(values: Integers) -> Flags:
    """Return which values there are more than once."""
    _, which, many = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray(many[which] > 1)
