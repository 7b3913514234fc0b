"""A closed form for one problem: an order of the ranks, messages, and the published formula."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from formulations.engines.closed_forms.messages import Messages, Task


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
