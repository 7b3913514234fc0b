"""A program that no plan over switches escapes: chunks may wait in devices that cannot store.

The program of `formulations.engines.cp_sat.model` lets a chunk cross switches as it comes. A
schedule may also send it link by link, and a switch then keeps it until its way out is free. Here
every link of a way p from u to v has a moment ``b[p, j]`` at which it begins to be held, with
alphas of the way before the link ``lead[j]`` and of the whole way ``alpha``, and with ``busy[j]``
for the bytes:

    x[p]:  b[p, j] >= A[c, u] + lead[j]
           b[p, j + 1] >= b[p, j] + lead[j + 1] - lead[j]
           A[c, v] >= b[p, j] + busy[j] + alpha - lead[j]     A[c, v] >= A[c, u] + delay[p]

Crossing without waiting has equalities, waiting and storing on the way only make it later. What
several ways share on their way to a device that copies is held once at least, so it is one
interval that no way over it begins before. So every plan is a solution that is not longer, and a
bound on all solutions is one on all plans; a solution is not always a plan.

Of a chunk that comes to a device over one link, one way at most is chosen, so that they have one
``b`` for that link together.
"""

from __future__ import annotations

from collections import defaultdict

from ortools.sat.python import cp_model
from ortools.sat.python.cp_model import LiteralT

from formulations.engines.cp_sat.model import Model

Key = tuple[object, ...]


class Waiting(Model):
    """The program for bounds over switches."""

    def _holds(self) -> None:
        asked = self.asked
        first = asked["first"]
        self.moment: dict[Key, cp_model.IntVar] = {}
        self.users: dict[Key, list[int]] = defaultdict(list)
        self.busy: dict[Key, tuple[int, int]] = {}
        for pair in self.pairs:
            self._cross(pair, range(first[pair], first[pair + 1]))
        for key, pairs in self.users.items():
            resource, length = self.busy[key]
            if length > 0:
                self._add(
                    resource,
                    self.moment[key],
                    length=length,
                    there=self._one_of(pairs),
                    head=min(asked["earliest"][asked["chunk"][p]][asked["src"][p]] for p in pairs),
                    tail=min(asked["tail"][asked["chunk"][p]][asked["dst"][p]] for p in pairs),
                )
        self._once_at_a_time()

    def _cross(self, pair: int, crossings: range) -> None:
        """Let the links of a way be held one after the other."""
        asked, model, chosen = self.asked, self.model, self.chosen[pair]
        arrival = self.arrival[asked["chunk"][pair], asked["dst"][pair]]
        place = asked["chunk"][pair], asked["src"][pair]
        # Differences of rounded times may be a tick too long.
        spare = 0 if asked["exact"] else 1
        before = None
        for cross in crossings:
            begin = asked["begin"][cross]
            length = asked["end"][cross] - begin
            key = self._key(pair, cross, last=cross == crossings[-1])
            if key not in self.moment:
                self.moment[key] = model.new_int_var(0, asked["upper"], "")
                self.busy[key] = asked["resource"][cross], length
            self.users[key].append(pair)
            moment = self.moment[key]
            lead = max(0, begin - spare)
            if place in self.there:
                ready = max(self.there[place], asked["ready"][pair]) + lead
                model.add(moment >= ready).only_enforce_if(chosen)
            elif place in self.arrival:
                model.add(moment >= self.arrival[place] + lead).only_enforce_if(chosen)
            after = max(0, length + asked["latency"][pair] - begin)
            model.add(arrival >= moment + after).only_enforce_if(chosen)
            if before is not None:
                gap = max(0, begin - before[1] - spare)
                model.add(moment >= before[0] + gap).only_enforce_if(chosen)
            before = moment, begin

    def _key(self, pair: int, cross: int, *, last: bool) -> Key:
        """Return what ways that begin to hold a link together have in common."""
        asked = self.asked
        resource = asked["resource"][cross]
        if asked["shared"][cross] >= 0:
            return "shared", asked["shared"][cross], resource
        if last:
            length = asked["end"][cross] - asked["begin"][cross]
            return "last", asked["chunk"][pair], asked["dst"][pair], resource, length
        return "own", pair, cross

    def _one_of(self, pairs: list[int]) -> LiteralT:
        """Return a literal that is true if some of the pairs are chosen."""
        if len(pairs) == 1:
            return self.chosen[pairs[0]]
        there = self.model.new_bool_var("")
        self.model.add_max_equality(there, [self.chosen[pair] for pair in pairs])
        return there
