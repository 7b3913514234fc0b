"""Step 3, contiguity encoding (formulation 3): what is sent together, sharing one latency.

The paper's model of a link: a transfer takes ``alpha + beta s`` and holds the link for all of it;
chunks that go together take one alpha for the sum of their bytes, and are there only when the last
of them is. `ccl.schedule` says otherwise: latency does not hold a link, so that chunks one after
the other overlap theirs. What goes together here then gains nothing and only waits. So the program
is solved and its time told in the paper's model; its order is offered like any other, and the
replay decides.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import cvxpy as cp
import numpy as np

from formulations.engines.taccl.hops import Sends
from formulations.solvers.sparse_rows import rows


@dataclass(frozen=True)
class Contiguity:
    """The program; times in shares of `most`. n sends, k pairs that may go together.

    Parameters
    ----------
    sends
        What is sent.
    order
        All of it in order.
    allowed
        Whether contiguous transfers are allowed on each move of the topology.
    most
        Makespan in µs, in the paper's model, of the order with nothing together.
    """

    sends: Sends
    order: list[int]
    allowed: np.ndarray
    most: float

    @cached_property
    def served(self) -> list[list[int]]:
        """The sends of each link in order: of links, and of ports of switches alike."""
        found: dict[int, list[int]] = defaultdict(list)
        for number in self.order:
            for link, _, _ in self.sends.crossed[number]:
                found[link].append(number)
        return list(found.values())

    @cached_property
    def groups(self) -> list[list[int]]:
        """Sends over one move with no other between them on any of its links, in order.

        Formulation 3 prints ``if allow_together then before = 1`` for the orders of switches; the
        text has it that only what is sent to the same device without another between may go
        together, so what may not is ``before``.
        """
        runs: dict[int, list[int]] = defaultdict(list)
        for line in self.served:
            run = 0
            for place, number in enumerate(line):
                run += place > 0 and self.sends.move[line[place - 1]] != self.sends.move[number]
                runs[number].append(run)
        found: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for number in self.order:
            move = int(self.sends.move[number])
            if self.allowed[move]:
                found[(move, *runs[number])].append(number)
        return [each for each in found.values() if len(each) > 1]

    @cached_property
    def pairs(self) -> dict[tuple[int, int], int]:
        """Number of each pair that may go together."""
        found: dict[tuple[int, int], int] = {}
        for group in self.groups:
            for place, first in enumerate(group):
                for second in group[place + 1 :]:
                    found[first, second] = len(found)
        return found

    @cached_property
    def together(self) -> cp.Variable:
        """Whether each pair goes together; ``before`` is what is left of 1 (equation 1)."""
        return cp.Variable(len(self.pairs), boolean=True)

    @cached_property
    def begin(self) -> cp.Variable:
        """When each is sent."""
        return cp.Variable(len(self.sends), bounds=[0, 1])

    @cached_property
    def model(self) -> cp.Problem:
        """The whole program."""
        time = cp.Variable(bounds=[0, 1])
        took = self._took()
        waits, waited = self._after()
        rules = [time >= self.begin + took, *self._ordered(took), *self._runs()]
        if len(waits):
            rules.append(self.begin[waits] >= self.begin[waited] + took[waited])
        return cp.Problem(cp.Minimize(time), rules)

    def _took(self) -> cp.Expression:
        """``lat``: latency, and the bytes of all that goes together."""
        sends = self.sends
        one = np.array(sends.delay) / self.most
        first, second = np.array(list(self.pairs), dtype=np.int64).T
        number = np.arange(len(first))
        slow = sends.moves.slowest[sends.move] / self.most
        more = rows(
            np.concatenate([first, second]),
            np.concatenate([number, number]),
            (len(sends), len(number)),
            value=np.concatenate(
                [slow[first] * sends.nbytes[second], slow[second] * sends.nbytes[first]]
            ),
        )
        took: cp.Expression = one + more @ self.together
        return took

    def _after(self) -> tuple[np.ndarray, np.ndarray]:
        """Each send that waits, and for what."""
        found = [(number, each) for number, waits in enumerate(self.sends.after) for each in waits]
        waits, waited = np.array(found, dtype=np.int64).reshape(-1, 2).T
        return waits, waited

    def _ordered(self, took: cp.Expression) -> list[cp.Constraint]:
        """On a link the next is sent when the one before is there, or with it.

        For neighbours only: what goes together has one send time and one latency, so the others
        follow. The paper's ``before -> start[o] >= start[c] + lat[o]`` is the same: ``start[o]``
        is ``send[o] + lat[o]``.
        """
        lines = {each for line in self.served for each in pairwise(line)}
        apart = np.array(sorted(lines - self.pairs.keys()), dtype=np.int64).reshape(-1, 2).T
        rules = [self.begin[apart[1]] >= self.begin[apart[0]] + took[apart[0]]]
        near = sorted(lines & self.pairs.keys())
        first, second = np.array(near, dtype=np.int64).reshape(-1, 2).T
        choice = self.together[np.array([self.pairs[each] for each in near], dtype=np.int64)]
        gap = self.begin[second] - self.begin[first]
        return [*rules, gap >= took[first] - choice, gap <= 1 - choice, gap >= 0]

    def _runs(self) -> list[cp.Constraint]:
        """Let what goes together go with all between (equation 2), and with all that these do."""
        pairs, rules = self.pairs, []
        wide = [(i, j) for group in self.groups for i, j in _wide(group)]
        if not wide:
            return []
        after = {first: each for group in self.groups for first, each in pairwise(group)}
        before = {each: first for first, each in after.items()}
        whole, left, right, last = (
            np.array([pairs[each] for each in some], dtype=np.int64)
            for some in (
                wide,
                [(i, before[j]) for i, j in wide],
                [(after[i], j) for i, j in wide],
                [(before[j], j) for i, j in wide],
            )
        )
        rules.append(self.together[whole] <= self.together[left])
        rules.append(self.together[whole] <= self.together[right])
        rules.append(self.together[whole] >= self.together[left] + self.together[last] - 1)
        return rules

    def found(self) -> tuple[list[int], int]:
        """Return the order of the solution, and how many sends go together with the one before."""
        begin = np.asarray(self.begin.value)
        turn = np.empty(len(self.order))
        turn[self.order] = np.arange(len(self.order))
        # What rounding tells apart keeps its order.
        ticks = np.round(begin * 1e6)
        order = np.lexsort((turn, ticks)).tolist()
        chosen = np.asarray(self.together.value) > 0.5
        near = [self.pairs[each] for group in self.groups for each in pairwise(group)]
        return _valid(self.sends, order), int(chosen[near].sum())


def _wide(group: list[int]) -> list[tuple[int, int]]:
    """Return pairs of a group that are no neighbours."""
    return [(group[i], group[j]) for i in range(len(group)) for j in range(i + 2, len(group))]


def _valid(sends: Sends, order: list[int]) -> list[int]:
    """Return an order with each send put behind what it waits for, where rounding hid that."""
    done: set[int] = set()
    found: list[int] = []
    waiting = order
    while waiting:
        later = []
        for number in waiting:
            if all(each in done for each in sends.after[number]):
                done.add(number)
                found.append(number)
            else:
                later.append(number)
        waiting = later
    return found
