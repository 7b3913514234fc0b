"""The cheapest upgrade of a cluster with which collectives reach a target.

`formulations.analyses.expansion.master` has the program, `formulations.analyses.expansion.rates`
the cuts it lives on.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np

from ccl.costs import Costs
from ccl.errors import Infeasible, ProblemError
from ccl.problem import Problem
from formulations.analyses.expansion.nouns import Gain, Upgrade
from formulations.analyses.expansion.rates import Found, Rates, rates_of
from formulations.analyses.expansion.sale import By, Sale, sale_of

Target = float | str
"""GB/s of algbw, or a factor over today's best such as ``1.5x``."""

SHOWN = 1e-4
"""Links with a smaller share of what holds a collective down are not named."""


def cheapest_upgrade(
    problems: Problem | Sequence[Problem],
    costs: Costs,
    *,
    target: Target | Sequence[Target],
    by: By = "kind",
    time_limit: float | None = None,
) -> Upgrade:
    """Return the cheapest upgrade with which the best steady state of each problem is fast enough.

    Parameters
    ----------
    problems
        Collectives on one topology.
    costs
        What more bandwidth costs.
    target
        algbw in GB/s or a factor such as ``"1.5x"``, of all problems or of each.
    by
        ``kind``: links of one bandwidth and medium get the same; ``orbit``: only those that
        symmetries of the cluster exchange do, which can be cheaper.
    time_limit
        Seconds.

    Raises
    ------
    ProblemError
        If there is no problem, they are on several topologies, one is refused, or a target or
        the costs make no sense.
    Infeasible
        If nothing that is for sale is enough.
    LimitReached
        If the time limit came first.
    """
    asked = (problems,) if isinstance(problems, Problem) else tuple(problems)
    engines, sale, today = prepared(asked, costs, by=by)
    targets = targets_of(target, today=[each.algbw for each in today])
    from formulations.analyses.expansion.master import Goal, Search  # noqa: PLC0415  it loads CVXPY

    before = np.array([each.algbw for each in today])
    base = np.maximum(targets, before)
    deadline = math.inf if time_limit is None else time.perf_counter() + time_limit
    search = Search(sale, engines, base, np.zeros(len(base)), deadline)
    for number, found in enumerate(today):
        search.add(number, found)
    try:
        bought = search.settle(Goal(largest=1.0))
    except Infeasible:
        raise Infeasible(_too_much(engines, sale, today, base=base)) from None
    return upgrade_of(
        engines,
        sale,
        bought.extra,
        today=today,
        targets=targets,
        bound=bought.bound * search.unit,
        currency=costs.currency,
    )


def prepared(
    problems: Sequence[Problem], costs: Costs, *, by: By
) -> tuple[list[Rates], Sale, list[Found]]:
    """Return an engine for each problem, what is for sale, and the best rates of today."""
    if not problems:
        msg = "there is no collective to upgrade for; give one at least"
        raise ProblemError(msg)
    topology = problems[0].topology
    for each in problems[1:]:
        if each.topology != topology:
            msg = f"the collectives are on {topology} and on {each.topology}; give them one cluster"
            raise ProblemError(msg)
    sale = sale_of(topology, costs, by=by)
    engines = [rates_of(each, sale) for each in problems]
    none = np.zeros(len(sale.goods))
    return engines, sale, [each.at(none) for each in engines]


def targets_of(target: Target | Sequence[Target], *, today: Sequence[float]) -> np.ndarray:
    """Return targets in GB/s, shape (problems,).

    Parameters
    ----------
    target
        One for all, or one for each.
    today
        algbw in GB/s of each problem.

    Raises
    ------
    ProblemError
        If one is no positive number, or there are not as many as problems.
    """
    given = [target] * len(today) if isinstance(target, (int, float, str)) else list(target)
    if len(given) != len(today):
        msg = f"there are {len(given)} targets for {len(today)} collectives; give one, or as many"
        raise ProblemError(msg)
    return np.array([_gigabytes(each, now) for each, now in zip(given, today, strict=True)])


def upgrade_of(
    engines: Sequence[Rates],
    sale: Sale,
    extra: np.ndarray,
    *,
    today: Sequence[Found],
    targets: np.ndarray,
    bound: float,
    currency: str,
) -> Upgrade:
    """Return what amounts come to, asked of the engines once more.

    Parameters
    ----------
    engines, sale
        Of the problems and their cluster.
    extra
        GB/s more of each of the goods, shape (goods,).
    today
        Rates of the problems as the cluster is.
    targets
        algbw in GB/s of each that was asked for.
    bound
        Lower bound on the cost.
    currency
        Its unit.
    """
    rounded = sale.rounded(extra)
    gains = []
    for engine, now, target in zip(engines, today, targets.tolist(), strict=True):
        found = engine.at(rounded)
        kind = engine.problem.collective.kind
        held = tuple(_held(sale, found))
        gains.append(Gain(kind, now.algbw, found.algbw, target, found.cut, held))
    return Upgrade(
        cost=sale.cost(rounded),
        bound=max(bound, 0.0),
        changes=sale.changes(rounded),
        topology=sale.upgraded(rounded),
        gains=tuple(gains),
        currency=currency,
        factor=min(each.target / each.before for each in gains),
    )


def _held(sale: Sale, found: Found) -> list[tuple[str, float]]:
    """Return classes of links with their shares of what holds a collective down."""
    shares: dict[str, float] = {}
    topology = sale.topology
    for row in np.flatnonzero(found.shares > 0).tolist():
        number = int(sale.rows[row])
        if number >= 0:
            words = sale.goods[number].words
        elif row < len(topology.links):
            link = topology.links[row]
            words = f"{link.medium or 'links'} at {link.bandwidth:g} GB/s"
        else:
            limit = topology.limits[row - len(topology.links)]
            words = f"limit {limit.name} at {limit.bandwidth:g} GB/s"
        shares[words] = shares.get(words, 0.0) + float(found.shares[row])
    kept = [(words, share) for words, share in shares.items() if share > SHOWN]
    return sorted(kept, key=lambda each: -each[1])


def _gigabytes(target: Target, today: float) -> float:
    text = str(target).strip()
    factor = text[-1:] in "x×" and text != ""
    try:
        number = float(text[:-1] if factor else text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        msg = f"target {text!r} is no algbw; give GB/s such as 300, or a factor such as 1.5x"
        raise ProblemError(msg)
    return number * today if factor else number


def _too_much(
    engines: Sequence[Rates], sale: Sale, today: Sequence[Found], *, base: np.ndarray
) -> str:
    """Say which target is out of reach, what the most is, and what holds it there."""
    from formulations.analyses.expansion.master import Goal, Search  # noqa: PLC0415  it loads CVXPY

    for engine, now, need in zip(engines, today, base.tolist(), strict=True):
        one = np.array([need])
        search = Search(sale, [engine], one, one)
        search.add(0, now)
        best = search.settle(Goal(worth=0.0, reward=1.0, least=0.0, largest=1.0))
        if best.factor < 1 - 1e-6:
            held = _held(sale, engine.at(best.extra))
            return (
                f"nothing that is for sale brings {engine.problem.collective.kind} on "
                f"{sale.topology} to {need:.6g} GB/s: {best.factor * need:.6g} GB/s is the most, "
                f"held by {held[0][0]}; sell more of these, or ask for less"
            )
    return f"what is for sale on {sale.topology} reaches each target, and not all of them together"
