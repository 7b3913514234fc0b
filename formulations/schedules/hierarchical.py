"""Hierarchical: within hosts, between hosts, within hosts.

k hosts have g GPUs each, p = g k; α1, β1 are those of paths within a host, α2, β2 between hosts.

``multi-rooted`` (TACCL, Shah et al., NSDI 2023, section 6.1): GPU i of each host deals with GPU i
of every other host.

* all-gather: the shards of a host are gathered in it; GPU i sends its own to GPU i elsewhere; what
  came is gathered in each host. Each to each at once it takes
  α1 + (g-1) m/p β1 + α2 + (k-1) m/p β2 + α1 + (g-1)(k-1) m/p β1.
* all-reduce: reduce-scatter in each host, all-reduce of m/g bytes between GPUs i, all-gather in
  each host; the middle one is a reduce-scatter and an all-gather too, so the whole is
  2 (α2 + (k-1) m/p β2 + α1 + (g-1) m/g β1).
* all-to-all: what is for GPU j of any host is gathered at GPU j here, which sends each host's part
  to GPU j there, where it belongs: α1 + (g-1) m/g β1 + α2 + (k-1) m/k β2. (The paper scatters
  after that; with the destination's number as the relay's nothing is left to scatter.)

``single``: one GPU of each host, its leader, deals with those of the others (as the paper does
where hosts have one port, and Blink, Wang et al., MLSys 2020).

* all-gather: shards are gathered in each host; leaders exchange what their hosts have, g m/p bytes
  each; each passes (k-1) m/k bytes down.
* all-reduce: sums of a host at its leader, all-reduce among leaders, passed down again.
* all-to-all: an exchange in each host; leaders collect what is for other hosts, exchange g g m/p
  bytes for each, and deal it out.

Reduce-scatter is the all-gather backwards. In a host and between hosts all send to all at once
(``direct``), or around a ring in n - 1 steps, or ``doubling`` in log2 n, with the same bytes. What
a leader passes down goes as by a flat tree, a chain or a binomial tree of ``tree``.

Decisions: GPU i is the i-th of its host by rank; a leader is the GPU of its host with the most GB/s
to and from other hosts, each over the fastest path. Rings in hosts are laid on paths as fast as
were found.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from ccl.errors import ProblemError
from ccl.options import option
from ccl.problem import Problem
from ccl.result import Result
from ccl.topology import Topology
from formulations.core.registry import Formulation
from formulations.core.run import Run
from formulations.engines.closed_forms.hosts import best_connected, by_host, laid, uneven
from formulations.engines.closed_forms.routing import Among, Pattern, Phase, summed
from formulations.engines.closed_forms.steps import answer
from formulations.engines.closed_forms.steps import refuses as refuses_any
from formulations.engines.closed_forms.trees import (
    Algorithm,
    Chunks,
    Messages,
    Task,
    exchanged,
    gathered,
    in_turn,
    passed,
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Who deals with other hosts, and how."""

    roots: Literal["multi-rooted", "single"] = option(
        "multi-rooted", "Between hosts", "every GPU with its like, or one GPU a host"
    )
    inside: Algorithm = option("direct", "Within a host", "all at once, around a ring, or doubling")
    between: Algorithm = option("direct", "Among hosts", "all at once, around a ring, or doubling")


def refuses(problem: Problem) -> str | None:
    """Refuse hosts that are not alike."""
    return refuses_any(problem) or uneven(problem.topology)


def run(run: Run, options: Options) -> Result:
    """Within hosts, between them, within them."""
    problem = run.problem
    topology, collective = problem.topology, problem.collective
    plan = _Plan(
        kind=collective.kind,
        options=options,
        blocks=_blocks(topology, options),
        size=collective.size,
        chunks=len(collective.chunks),
    )
    plan.check()
    twice = collective.kind == "all-reduce"
    return answer(
        run,
        Pattern(
            plan.order,
            plan.spread,
            summed(plan.phases, twice=twice),
            roots=plan.roots,
            one_port=True,
        ),
    )


def _blocks(topology: Topology, options: Options) -> list[list[int]]:
    """Return the ranks of each host in the order of their places, leaders first."""
    blocks = by_host(topology)
    count = len(blocks[0])
    ring = [*pairwise(range(count)), (count - 1, 0)]
    around = options.inside == "ring"
    if options.roots == "multi-rooted":
        turn = list(range(count))
        if around:
            first = laid(topology, blocks[:1], ring).tolist()
            turn = [blocks[0].index(rank) for rank in first]
        return [[block[i] for i in turn] for block in blocks]
    found = []
    for block in blocks:
        others = [rank for rank in range(len(topology.ranks)) if rank not in set(block)]
        leader = best_connected(topology, block, others)
        led = sorted(block, key=lambda rank: rank != leader)
        found.append(laid(topology, [led], ring).tolist() if around else led)
    return found


@dataclass(frozen=True)
class _Plan:
    """Who sends what; place h g + i is the i-th of host h."""

    kind: str
    options: Options
    blocks: list[list[int]]
    size: float
    chunks: int

    @property
    def order(self) -> np.ndarray:
        """Rank at each place."""
        return np.array(self.blocks).ravel()

    @property
    def hosts(self) -> int:
        """How many: k."""
        return len(self.blocks)

    @property
    def gpus(self) -> int:
        """How many in each host: g."""
        return len(self.blocks[0])

    @property
    def single(self) -> bool:
        """Whether only leaders deal with other hosts."""
        return self.options.roots == "single"

    @property
    def roots(self) -> np.ndarray | None:
        """Place at which each chunk of an all-reduce is added up: with leaders, one of these."""
        if not self.single:
            return None
        return np.arange(self.chunks) * self.hosts // self.chunks * self.gpus

    @property
    def inside(self) -> np.ndarray:
        """Places of each host, shape (hosts, gpus)."""
        return np.arange(self.hosts * self.gpus).reshape(self.hosts, self.gpus)

    def check(self) -> None:
        """Refuse what cannot double.

        Raises
        ------
        ProblemError
            If numbers are no powers of two, or nothing doubles.
        """
        for name, count, what in (
            ("inside", self.gpus, f"hosts have {self.gpus} GPUs"),
            ("between", self.hosts, f"there are {self.hosts} hosts"),
        ):
            if getattr(self.options, name) != "doubling":
                continue
            if self.kind == "all-to-all":
                raise ProblemError(
                    f"option {name} is 'doubling', and an all-to-all goes direct or ring"
                )
            if count & (count - 1):
                raise ProblemError(
                    f"option {name} is 'doubling' and {what}; doubling needs a power of two"
                )

    def spread(self, task: Task) -> Messages:
        """Send in phases."""
        if self.kind == "all-to-all":
            phases = self._one_exchange(task) if self.single else self._exchange(task)
        elif self.kind == "all-reduce":
            phases = self._down(task)
        else:
            phases = self._gather(task)
        return in_turn(phases)

    @property
    def _give(self) -> Callable[[Chunks, Algorithm], Messages]:
        """How chunks that have come to a host get to its GPUs."""
        return passed if self.single else gathered

    def _at(self, task: Task) -> Chunks:
        """Return chunks in their hosts."""
        return Chunks(self.inside, task.chunk, task.root // self.gpus, task.root % self.gpus)

    def _across(self, task: Task) -> Chunks:
        """Return chunks in the groups of those who deal with other hosts."""
        groups = self.inside[:, :1].T if self.single else self.inside.T
        row = np.zeros_like(task.root) if self.single else task.root % self.gpus
        return Chunks(groups, task.chunk, row, task.root // self.gpus)

    def _elsewhere(self, task: Task, *, home: bool) -> Chunks:
        """Return chunks where they are in every host, or in every other host."""
        host = np.tile(np.arange(self.hosts), len(task.chunk))
        chunk, root = (np.repeat(each, self.hosts) for each in (task.chunk, task.root))
        which = (host != root // self.gpus) | home
        at = np.zeros_like(root) if self.single else root % self.gpus
        return Chunks(self.inside, chunk[which], host[which], at[which])

    def _gather(self, task: Task) -> list[Messages]:
        return [
            gathered(self._at(task), self.options.inside),
            gathered(self._across(task), self.options.between),
            self._give(self._elsewhere(task, home=False), self.options.inside),
        ]

    def _down(self, task: Task) -> list[Messages]:
        return [
            gathered(self._across(task), self.options.between),
            self._give(self._elsewhere(task, home=True), self.options.inside),
        ]

    def _exchange(self, task: Task) -> list[Messages]:
        column = task.goal % self.gpus
        relayed = Task(
            task.places, task.chunk, task.root // self.gpus * self.gpus + column, task.goal
        )
        return [
            exchanged(self._at(task), column, self.options.inside),
            exchanged(self._across(relayed), task.goal // self.gpus, self.options.between),
        ]

    def _one_exchange(self, task: Task) -> list[Messages]:
        home = task.root // self.gpus == task.goal // self.gpus
        near, far = task.chosen(home), task.chosen(~home)
        there = self.inside[far.goal // self.gpus, 0]
        dealt = Task(far.places, far.chunk, there, far.goal)
        return [
            exchanged(self._at(near), near.goal % self.gpus, self.options.inside),
            exchanged(self._at(far), np.zeros_like(far.goal), "direct"),
            exchanged(self._across(far), far.goal // self.gpus, self.options.between),
            exchanged(self._at(dealt), far.goal % self.gpus, "direct"),
        ]

    @property
    def phases(self) -> list[Phase]:
        """What each phase takes; an all-reduce goes through them twice."""
        k, g, size = self.hosts, self.gpus, self.size
        shard = size / (k * g)
        near = Among(1, "g", g, self.options.inside)
        far = Among(2, "k", k, self.options.between)
        if self.kind == "all-to-all" and self.single:
            one = near.through_one((g - 1) * (k - 1) * g * shard, "(g-1)(p-g) m/p")
            return [near.to_all(shard, "m/p"), one, far.to_all(g * size / k, "g m/k"), one]
        if self.kind == "all-to-all":
            return [near.to_all(size / g, "m/g"), far.to_all(size / k, "m/k")]
        if self.kind == "all-reduce" and self.single:
            down = near.down(size, "m", chunks=self.chunks)
            return [far.to_all(size / k, "m/k"), down]
        if self.kind == "all-reduce":
            return [far.to_all(shard, "m/p"), near.to_all(size / g, "m/g")]
        came = (k - 1) * (size / k if self.single else shard)
        if self.single:
            many = self.chunks // k * (k - 1)
            down = near.down(came, "(k-1) m/k", chunks=many)
            return [near.to_all(shard, "m/p"), far.to_all(size / k, "m/k"), down]
        last = near.to_all(came, "(k-1) m/p")
        return [near.to_all(shard, "m/p"), far.to_all(shard, "m/p"), last]


FORMULATION = Formulation(
    name="hierarchical",
    title="Hierarchical",
    reference="Shah et al., TACCL, NSDI 2023, section 6.1; Wang et al., Blink, MLSys 2020",
    collectives=frozenset({"all-gather", "reduce-scatter", "all-reduce", "all-to-all"}),
    options=Options,
    refuses=refuses,
    run=run,
)
