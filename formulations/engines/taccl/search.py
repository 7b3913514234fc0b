"""Search in three steps: quick paths, then those of the program, ordered and offered.

Quick paths are the plan to begin with (`route`): one chunk after the other along whatever is
soonest there over links so far. A chunk spreads from device to device, each time over the transfer
for which the later of two times is least: when the chunk would be there if it never waited, and
when the busiest link of the transfer would have carried everything so far. Images by symmetry go
along.
"""

from dataclasses import dataclass, replace

import numpy as np

from ccl.errors import Infeasible, LimitReached
from ccl.result import Stop
from formulations.core.refusals import host_numbers
from formulations.core.run import Run
from formulations.engines.list_scheduling.timed import in_epochs, transfers_of
from formulations.engines.reverse_time import adding
from formulations.engines.taccl import Options
from formulations.engines.taccl.ordering import DIRECTIONS, HEURISTICS, Order, longest, orders
from formulations.engines.taccl.pairs import Pairs, Part, leaves, pairs_of, parts_of
from formulations.engines.taccl.program import Demands, Paths, demands_of, load_of
from formulations.engines.taccl.sends import (
    Contiguity,
    Sends,
    both_halves,
    end,
    parted,
    sends_of,
    timed,
    times,
)
from formulations.engines.taccl.sketching import derived, with_offsets, words
from formulations.solvers.cvxpy_highs import TerminationCondition


class _Spread:
    """Loads of the links so far, and what every chunk has taken."""

    def __init__(self, pairs: Pairs, demands: Demands, usable: np.ndarray) -> None:
        self.pairs, self.demands, self.usable = pairs, demands, usable
        self.taken = np.zeros(pairs.many, dtype=bool)
        logic = pairs.part.logical
        self.beta = logic.beta.tocsc()
        self.load = np.zeros(len(logic.transfers.topology.links))
        order = np.argsort(pairs.orbit, kind="stable")
        self.members = np.split(order, np.searchsorted(pairs.orbit[order], range(1, pairs.many)))

    def spread(self, number: int) -> None:
        """Let a chunk reach all its destinations that can be reached."""
        pairs, part = self.pairs, self.pairs.part
        span = np.arange(pairs.first[number], pairs.first[number + 1])
        span = span[self.usable[span]]
        there = np.where(part.holds[number], 0.0, np.inf)
        came = np.full(len(there), -1)
        wanted = set(np.flatnonzero(part.wants[number]).tolist())
        for pair in self._first(number):
            self._go(pair, there, came)
            wanted.discard(int(pairs.dst[pair]))
        while wanted:
            open_ = span[np.isfinite(there[pairs.src[span]]) & ~np.isfinite(there[pairs.dst[span]])]
            if not len(open_):
                return
            soon = there[pairs.src[open_]] + pairs.delay[open_]
            busy = self._busy(pairs.transfer[open_], float(part.nbytes[number]))
            best = int(open_[np.lexsort((soon, np.maximum(soon, busy)))[0]])
            there[pairs.dst[best]] = there[pairs.src[best]] + pairs.delay[best]
            came[pairs.dst[best]] = best
            if int(pairs.dst[best]) in wanted:
                wanted.discard(int(pairs.dst[best]))
                self._take(best, came)

    def _first(self, number: int) -> list[int]:
        """Return the pairs of a chunk that a forced pair of GPUs makes it take, in order."""
        pairs = self.pairs
        for forced in self.demands.forced:
            if self.taken[pairs.orbit[forced]].any():
                continue
            mine = forced[pairs.chunk[forced] == number]
            direct = mine[pairs.part.holds[number][pairs.src[mine]]]
            if len(direct):
                return [int(direct[0])]
        return []

    def _go(self, pair: int, there: np.ndarray, came: np.ndarray) -> None:
        there[self.pairs.dst[pair]] = self.pairs.delay[pair]
        came[self.pairs.dst[pair]] = pair
        self._take(pair, came)

    def _busy(self, transfer: np.ndarray, nbytes: float) -> np.ndarray:
        """Return µs until the busiest link of each transfer would have carried the chunk too."""
        first, beta = self.beta.indptr, self.beta
        return np.array(
            [
                (self.load[beta.indices[span]] + nbytes * beta.data[span]).max()
                for span in (slice(first[each], first[each + 1]) for each in transfer.tolist())
            ]
        )

    def _take(self, pair: int, came: np.ndarray) -> None:
        """Take the path that leads to a pair's end, with all images."""
        pairs, beta = self.pairs, self.beta
        while pair >= 0 and not self.taken[pairs.orbit[pair]]:
            self.taken[pairs.orbit[pair]] = True
            for each in self.members[pairs.orbit[pair]].tolist():
                transfer = pairs.transfer[each]
                span = slice(beta.indptr[transfer], beta.indptr[transfer + 1])
                self.load[beta.indices[span]] += (
                    pairs.part.nbytes[pairs.chunk[each]] * beta.data[span]
                )
            pair = int(came[pairs.src[pair]])


def route(pairs: Pairs, demands: Demands, *, direct: bool) -> np.ndarray:
    """Return which pairs are taken, shape (many,); some chunks may not come everywhere.

    Parameters
    ----------
    pairs, demands
        What there is to choose and to meet.
    direct
        Whether chunks come to another host only from their own, where paths lead there, so that
        crossings are met.
    """
    usable = demands.direct if direct else np.ones(len(pairs), dtype=bool)
    state = _Spread(pairs, demands, usable)
    # Chunks whose images have gone already have nothing left to do.
    done = np.zeros(len(pairs.part.nbytes), dtype=bool)
    for number in range(len(done)):
        if done[number]:
            continue
        state.spread(number)
        done[pairs.chunk[state.taken[pairs.orbit]]] = True
    return state.taken


MOST_TAKEN = 60_000
"""Binary variables above which step 1 is not solved by the program."""

MOST_TOGETHER = 2_000
"""Pairs above which step 3 is not solved."""

FINE, COARSE = 1e-4, 2e-3
"""Gaps at which small and large programs may stop."""

LARGE = 1_000
"""Binary variables from which on a program is large."""

SHARE = 0.6
"""Share of the time left that step 1 may take, and step 3 of what is left then."""

LOOSE = 4.0
"""How much longer than the quick paths those of the program may be if those miss demands."""

MET = 1e-9
"""A makespan within this share is the same."""


@dataclass(frozen=True)
class Routed:
    """A part with its pairs and demands.

    Parameters
    ----------
    pairs, demands
        What there is to choose and to meet.
    quick
        Which pairs the quick paths take, or None where they miss a destination.
    """

    pairs: Pairs
    demands: Demands
    quick: np.ndarray | None

    @property
    def forced(self) -> bool:
        """Whether the quick paths use the forced pairs."""
        if self.quick is None:
            return False
        taken = self.quick[self.pairs.orbit]
        return all(bool(taken[each].any()) for each in self.demands.forced)


class Search:
    """The steps on one run."""

    def __init__(self, run: Run, options: Options) -> None:
        self.run, self.options = run, options
        self.holds = options.latency == "holds"
        problem = run.problem
        whole = adding(problem) if problem.collective.reduces else problem
        self.transfers = transfers_of(whole.topology)
        if options.sketch is not None:
            options.sketch.check(problem.topology)
        self.sketch = options.sketch or derived(problem, self.transfers)
        run.note(words(self.sketch))
        self.sizes = np.array([chunk.size for chunk in problem.collective.chunks], dtype=float)
        self.backend = replace(run.backend, seed=options.seed)
        self.solved = True
        self.begun = False

    def solve(self) -> Stop:
        """Offer plans; say why no more are looked for.

        Raises
        ------
        Infeasible
            If the sketch leaves no plan, as far as the steps see.
        """
        parts = parts_of(self.transfers, self.run.problem.collective, self.sketch)
        routed = [self._routed(part) for part in parts]
        if self.options.quick and self._quick(routed) and self.options.stop_at_proof:
            return self.run.reached
        return self._programs(routed)

    def _quick(self, routed: list[Routed]) -> bool:
        """Order and offer the quick paths, if they match the sketch; return if that is enough."""
        known = [each.quick for each in routed if each.quick is not None and each.forced]
        if len(known) == len(routed):
            self.begun = True
            self.run.report("quick paths, ordered")
            self._offered(routed, known, contiguous=False)
        return self.run.enough

    def _programs(self, routed: list[Routed]) -> Stop:
        """Let the programs find paths and what goes together; say why no more are looked for."""
        before = self.run.best
        chosen = [self._paths(each, left=len(routed) - i) for i, each in enumerate(routed)]
        logic = [each for each in chosen if each is not None]
        known = all(some is each.quick for some, each in zip(chosen, routed, strict=True))
        if len(logic) == len(routed) and not (known and self.begun):
            self._offered(routed, logic, contiguous=True)
            if self.begun and self.run.best is before:
                self.run.note("the plan of the quick paths is no longer than these, and stays")
        if self.run.enough:
            return self.run.reached
        if self.run.expired or not logic:
            return Stop.TIME_LIMIT
        return Stop.MODEL_GAP if self.solved else Stop.EFFORT

    def _routed(self, part: Part) -> Routed:
        """Find the quick paths of a part, with its symmetries or, failing that, without."""
        single = pairs_of(part)
        pairs = with_offsets(single, self.sketch, self.run.note)
        demands = demands_of(pairs, self.sketch)
        taken = quick_paths(pairs, demands)
        if taken is None and pairs is not single:
            without = demands_of(single, self.sketch)
            taken = quick_paths(single, without)
            if taken is not None:
                self.run.note("no plan is as symmetric as the sketch asks; offsets are left out")
                return Routed(single, without, taken)
        return Routed(pairs, demands, taken)

    def _paths(self, routed: Routed, *, left: int) -> np.ndarray | None:
        """Solve step 1 of a part; return the paths, the quick ones if there are no others in time.

        Parameters
        ----------
        routed
            The part.
        left
            Parts that are left, this one included.
        """
        run, pairs = self.run, routed.pairs
        if pairs.many > MOST_TAKEN:
            many = f"{pairs.many:,} binary variables, more than {MOST_TAKEN:,}"
            return self._stand(routed, f"it would have {many}")
        if run.expired:
            return self._stand(routed, "no time was left for it")
        paths = self._program(routed)
        run.report(f"step 1: paths, {pairs.many} binary variables")
        try:
            outcome = self.backend.solve(
                paths.model,
                time_limit=self._seconds(self.options.path_seconds, left),
                gap=FINE if pairs.many < LARGE else COARSE,
                on_report=lambda _: run.expired,
                start=None if routed.quick is None else (paths.taken, routed.quick.astype(float)),
            )
        except LimitReached:
            return self._stand(routed, "its limit came before it had paths")
        except Infeasible:
            if not routed.forced:
                raise Infeasible(
                    "no paths match the sketch; leave out fewer links or force fewer pairs"
                ) from None
            return self._stand(routed, "no paths are as symmetric and direct as it requires")
        run.met(outcome.size)
        self.solved &= outcome.ending in (TerminationCondition.OPTIMAL, TerminationCondition.GAP)
        run.note(
            f"step 1: {pairs.many} binary variables, {paths.reached:.6g} µs "
            f"before ordering, {outcome.ending.value} after {outcome.solve_seconds:.2f} s"
        )
        taken = np.asarray(np.asarray(paths.taken.value) > 0.5)
        if not routed.demands.spreads(taken):
            # Delays may be less than a solver's tolerance, so that nothing orders them.
            return self._stand(routed, "its paths have cycles that take no time")
        return taken

    def _stand(self, routed: Routed, why: str) -> np.ndarray | None:
        """Return the quick paths where step 1 has none, and say why."""
        self.solved = False
        if routed.quick is not None:
            missed = "" if routed.forced else ", which miss a forced pair"
            self.run.note(f"step 1 found no paths: {why}; the quick ones stay{missed}")
        return routed.quick

    def _program(self, routed: Routed) -> Paths:
        wanted = self.options.inclination
        inclination = self.sketch.switches if wanted == "sketch" else wanted
        pairs, holds = routed.pairs, self.holds
        if routed.quick is not None:
            busy = load_of(pairs, holds=holds) @ routed.quick
            most = max(float(busy.max(initial=0.0)), _longest(routed))
            loose = 1.0 if routed.demands.met(routed.quick) else LOOSE
        else:
            busy = load_of(pairs, holds=holds) @ np.ones(pairs.many)
            most, loose = float(busy.max(initial=0.0)) + float(pairs.delay.sum()), 1.0
        # A little more than the quick paths, so that rounding does not shut them out.
        return Paths(pairs, routed.demands, inclination, holds, most * loose * (1 + 1e-6))

    def _seconds(self, requested: float, left: int) -> float:
        """Return the seconds for a step: those requested, within a share of what is left."""
        return requested if self.run.left is None else min(requested, SHARE * self.run.left / left)

    def _offered(self, routed: list[Routed], taken: list[np.ndarray], *, contiguous: bool) -> None:
        """Order paths, offer the best orders, then what step 3 makes of the best one."""
        halves = [sends_of(each.pairs, some) for each, some in zip(routed, taken, strict=True)]
        sends = halves[0]
        if len(halves) == 2:
            sends = both_halves(routed[0].pairs.part, *halves)
        first, along = self.options.ordering, self.options.link_order
        found = orders(
            sends,
            heuristics=HEURISTICS if first == "best" else (first,),
            directions=DIRECTIONS if along == "best" else (along,),
            holds=self.holds,
            seed=self.options.seed,
            over=lambda: self.run.expired,
        )
        best = found[0]
        if contiguous:
            self.run.note(f"step 2: {best.heuristic} first, {best.direction} the paths, is best")
        # As good ones only where the replay of those before took longer than their own times said.
        for each in found:
            known = self.run.best
            met = known is not None and known.makespan <= each.makespan * (1 + MET)
            if each is not best and (met or each.makespan > best.makespan * (1 + MET)):
                break
            self._offer(sends, each.order)
            if self._done:
                return
        if contiguous:
            self._contiguous(sends, best)

    @property
    def _done(self) -> bool:
        """Whether nothing more is to be tried: time is over, or a bound is met and that is all."""
        return self.run.expired or (self.options.stop_at_proof and self.run.enough)

    def _offer(self, sends: Sends, order: list[int]) -> None:
        """Offer an order of parents, their chunks one after the other."""
        whole, order = parted(sends, order, self.sizes)
        self.run.offer(in_epochs(self.run.problem, self.transfers, timed(whole, order)))

    def _contiguous(self, sends: Sends, best: Order) -> None:
        """Solve step 3 behind the best order and offer what it says."""
        run = self.run
        before = end(sends, times(sends, best.order, holds=True))
        said = f"step 3: in the paper's model, where latency holds a link, {before:.6g} µs"
        program = Contiguity(sends, best.order, self._allowed(), before)
        many = len(program.pairs)
        if not many or many > MOST_TOGETHER:
            left_out = f"; {many:,} pairs are more than {MOST_TOGETHER:,} and were not tried"
            run.note(said + (left_out if many else "; nothing may be sent together"))
            return
        run.report(f"step 3: what goes together, {many} pairs")
        try:
            outcome = self.backend.solve(
                program.model,
                time_limit=self._seconds(self.options.contiguity_seconds, 1),
                gap=FINE,
                on_report=lambda _: run.expired,
                start=(program.together, np.zeros(many)),
            )
        except (Infeasible, LimitReached) as error:
            run.note(f"{said}; nothing better was found ({error})")
            return
        run.met(outcome.size)
        order, near = program.found()
        run.note(
            f"{said}; {outcome.objective * before:.6g} µs with {near} of {len(sends)} sent "
            f"together with the one before ({outcome.ending.value})"
        )
        self._offer(sends, order)

    def _allowed(self) -> np.ndarray:
        """Mark transfers on which chunks go together; in the paper InfiniBand, for its alpha."""
        transfers, choice = self.transfers, self.options.contiguity
        if choice != "between-hosts":
            return np.full(len(transfers), choice == "everywhere")
        host = host_numbers(transfers.topology)
        return leaves(host[transfers.src], host[transfers.dst])


def quick_paths(pairs: Pairs, demands: Demands) -> np.ndarray | None:
    """Return paths found greedily that meet all demands if such are found, else others or None."""
    for direct in (True, False):
        taken = route(pairs, demands, direct=direct)
        if demands.spreads(taken):
            return taken
    return None


def _longest(routed: Routed) -> float:
    """Return the µs until the last arrival by the quick paths if nothing ever waits."""
    assert routed.quick is not None
    sends = sends_of(routed.pairs, routed.quick)
    return max(longest(sends.after, sends.before, sends.delay, own=True), default=0.0)


def search(run: Run, options: Options) -> Stop:
    """Offer TACCL's plans of any collective to a run; say why it stopped.

    Raises
    ------
    Infeasible
        If the sketch leaves no plan.
    ProblemError
        If it names what is not there, or has other chunks than there are.
    SolveError
        If there are too many chunks and paths.
    """
    return Search(run, options).solve()
