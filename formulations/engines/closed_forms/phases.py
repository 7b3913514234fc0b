"""Formulas of several phases, some within hosts (α1, β1) and some between hosts (α2, β2).

A closed form for one problem: an order of the ranks, messages, and the published formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from formulations.engines.closed_forms.doubling import Messages, Task
from formulations.engines.closed_forms.trees import Algorithm


@dataclass(frozen=True)
class Formula:
    """A published α-β formula.

    Parameters
    ----------
    expression
        As it is written: α, β, p ranks, m bytes of the whole buffer, n chunks; γ, to add up, is
        left out, as adding costs nothing in a replay.
    makespan
        What it comes to in µs, of α in µs and β in µs per byte; p and m are those of the problem.
    by_host
        The same of α1, β1 of ways within a host and α2, β2 of those between hosts, for a formula
        that tells them apart.
    """

    expression: str
    makespan: Callable[[float, float], float]
    by_host: Callable[[float, float, float, float], float] | None = None


@dataclass(frozen=True)
class Pattern:
    """What a form does with a problem.

    Parameters
    ----------
    order
        Rank at each place, shape (places,).
    spread
        Gives the messages of a task without sums. Reductions are these read backwards, from the
        last step to the first on reversed links; a sum that all want is added up at one place
        for each chunk and spread from there.
    formula
        The published formula for the whole problem.
    roots
        Place at which each chunk of an all-reduce is added up, shape (chunks,); None for shards
        in order, as the blocks of an all-gather lie.
    exchange
        Gives the messages of an all-reduce that has no root: in every step partial sums go both
        ways between two places. None for forms that add up and then spread.
    back
        Rank at each place on reversed links, where that is another order.
    turned
        Gives the messages on reversed links, where these are others: where links are one way,
        rings are turned round.
    one_port
        Whether the formula counts all that a place sends in a step, and all that it takes in, as
        passing through one port.
    """

    order: np.ndarray
    spread: Callable[[Task], Messages]
    formula: Formula
    roots: np.ndarray | None = None
    exchange: Callable[[Task], Messages] | None = None
    back: np.ndarray | None = None
    turned: Callable[[Task], Messages] | None = None
    one_port: bool = False


@dataclass(frozen=True)
class Phase:
    """What a phase takes.

    Parameters
    ----------
    level
        1 within hosts, 2 between them.
    steps
        How many latencies.
    nbytes
        Bytes one after the other.
    text
        As it is written.
    """

    level: int
    steps: int
    nbytes: float
    text: str


@dataclass(frozen=True)
class Among:
    """Those who deal with one another in a phase.

    Parameters
    ----------
    level
        1 within hosts, 2 between them.
    letter
        Of their number in formulas.
    count
        Their number.
    algorithm
        How they do it.
    """

    level: int
    letter: str
    count: int
    algorithm: Algorithm

    def to_all(self, nbytes: float, text: str) -> Phase:
        """Each sends so many bytes to each other, the same or others; `text` writes them."""
        level, letter = self.level, self.letter
        begin, each = f"α{level}", f"{text} β{level}"
        written = {
            "direct": f"{begin} + ({letter}-1) {each}",
            "ring": f"({letter}-1) ({begin} + {each})",
            "doubling": f"log2 {letter} {begin} + ({letter}-1) {each}",
        }
        steps = {"direct": 1, "ring": self.count - 1, "doubling": self.count.bit_length() - 1}
        return Phase(
            level, steps[self.algorithm], (self.count - 1) * nbytes, written[self.algorithm]
        )

    def down(self, nbytes: float, text: str, *, chunks: int) -> Phase:
        """One sends so many bytes to all others, in so many chunks."""
        level, letter = self.level, self.letter
        if self.algorithm == "direct":
            return self.to_all(nbytes, text)
        if self.algorithm == "ring":
            steps = self.count + chunks - 2
            written = f"({letter} + {chunks} - 2) (α{level} + {text} β{level}/{chunks})"
            return Phase(level, steps, steps * nbytes / chunks, written)
        steps = math.ceil(math.log2(self.count))
        return Phase(level, steps, steps * nbytes, f"⌈log2 {letter}⌉ (α{level} + {text} β{level})")

    def through_one(self, nbytes: float, text: str) -> Phase:
        """So many bytes reach or leave one of them, all at once."""
        return Phase(self.level, 1, nbytes, f"α{self.level} + {text} β{self.level}")


def summed(phases: Sequence[Phase], *, twice: bool) -> Formula:
    """Return the formula of phases one after the other, or of all that there and back."""
    many = 2 if twice else 1
    text = " + ".join(phase.text for phase in phases)

    def by_host(alpha1: float, beta1: float, alpha2: float, beta2: float) -> float:
        cost = {1: (alpha1, beta1), 2: (alpha2, beta2)}
        return many * sum(
            phase.steps * cost[phase.level][0] + phase.nbytes * cost[phase.level][1]
            for phase in phases
        )

    return Formula(
        f"2 ({text})" if twice else text,
        lambda alpha, beta: by_host(alpha, beta, alpha, beta),
        by_host,
    )
