"""Prices of links and of shared limits, from the duals of linear programs (`ccl.bound`).

The program of a fluid (`formulations.engines.orbit_lp.program`) has for each orbit i of links or
limits the row  busy[i] . W <= R,  in which busy divides by b[i] |i|: its dual, the share of i, says
by how much of itself R falls for a little more bandwidth of all of i's members, and the shares add
up to 1, as R stands in no other row. A member has an equal part of the share: the average of any
optimal duals over the symmetries is optimal too. With T in µs, share s and b in GB/s the price of a
row is

    -dT/db = T s / b,

Of a device that may not copy there is a vertex for each next stop, whatever the cluster looks
like: programs without them are as good only while what enters a switch can leave it
(`formulations.engines.orbit_lp.lp.relays_suffice`), and one link changed alone would break that.

What rooms are worth to the linear program of amounts: `formulations.models.te_ccl_lp`.

K epochs of tau are kept, with all delays in them, and rooms are made larger or smaller together
until everything just fits:

    minimise    rho
    subject to  the rows of the model but for its objective
                sum over s of f[k, e, s] <= rho room[e] share[k, e];  shared limits likewise

Then K tau rho is the time in which epochs that are rho times as long send it all, latencies left
as they are in epochs. Rooms grow with bandwidths, and rho stands in no other row; so the duals y
of these rows have sum of y room = 1, and -d(K tau rho)/db of a link is K tau rho times its sum of
y room over all epochs, over b. Rows of limited buffers are left out.
"""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from ccl.bound import Prices
from ccl.errors import Infeasible, ProblemError
from ccl.problem import Problem
from ccl.topology import Topology
from formulations.bounds import quick_bounds
from formulations.core.registry import formulation
from formulations.core.run import Run
from formulations.engines.epoch_grid.arcs import link_hops
from formulations.engines.epoch_grid.decompose import commodities
from formulations.engines.epoch_grid.epochs import EpochGrid
from formulations.engines.epoch_grid.grid_bound import by_hops, too_short
from formulations.engines.steady_state.demands import demands_of, refusal
from formulations.engines.te_ccl.flow_lp import FlowModel

SENDING = 0.95
"""Least share of an epoch in which a link sends, as `formulations.models.te_ccl_lp` begins with."""

FLUID = "linear program of a fluid, latencies hidden"
_CLASS = ", best of all plans that add up at roots and spread from there"


def prices(
    problem: Problem,
    *,
    horizon: int | None = None,
    epoch_duration: float | None = None,
    time_limit: float | None = None,
) -> Prices:
    """Return what a little more bandwidth of each link would save of the best steady state.

    Parameters
    ----------
    problem
        What is asked; chunks may be split.
    horizon
        Epochs in which all has to be there, where the linear program of amounts on epochs is to be
        priced instead of the steady state (`formulations.analyses.explanation.pricing`).
    epoch_duration
        µs of one, with `horizon`; by default so long that `horizon` of them are the lower bound.
    time_limit
        Seconds for the solver, or None.

    Raises
    ------
    ProblemError
        If fluid models cannot say the problem, or nothing has to move.
    Infeasible
        If a rank cannot be reached.
    LimitReached
        If the time limit came first.
    """
    if horizon is not None:
        return _on_epochs(problem, horizon, epoch_duration, time_limit=time_limit)
    why = _why_not(problem)
    if why is not None:
        msg = f"links have no prices for {problem.collective.kind} on {problem.topology}: {why}"
        raise ProblemError(msg)
    # CVXPY takes most of a second to load.
    from formulations.engines.orbit_lp.lp import orbit_program  # noqa: PLC0415
    from formulations.solvers.cvxpy_highs import Backend  # noqa: PLC0415

    pairs = demands_of(problem).only_pairs
    made = orbit_program(problem, copies="auto" if pairs else "exact")
    makespan = made.program.fastest(Backend(), time_limit)
    number = made.program.rows
    share = made.program.prices[number] / np.bincount(number)[number]
    model = FLUID + (_CLASS if problem.adds_for_several else "")
    return _priced(problem.topology, makespan, share, model=model, exact=made.exact)


def _on_epochs(
    problem: Problem, horizon: int, tau: float | None, *, time_limit: float | None
) -> Prices:
    """Price the links in the linear program of amounts on a grid of epochs."""
    chosen = formulation("te-ccl-lp")
    why = chosen.why_not(problem)
    if why is not None:
        msg = f"links have no prices in epochs for {problem.collective.kind}: {why}"
        raise ProblemError(msg)

    bounds = quick_bounds(problem)
    run = Run(
        problem=problem, formulation=chosen.name, options={}, bounds=bounds, time_limit=time_limit
    )
    size = problem.collective.chunk_size
    duration = bounds[0].makespan / horizon if tau is None else tau
    grid = EpochGrid(problem.topology, size, duration, fluid=SENDING, windows=problem.windows)
    model = PricedFlow(link_hops(grid), run, commodities(problem, size, symmetric=True))
    pairs = zip(model.flows.sources[model.flows.source], model.flows.goal, strict=True)
    need = by_hops(model.hops.distance, list(pairs), problem.topology)
    if horizon < need.many:
        raise Infeasible(too_short(horizon, need, each=duration))
    stretch, share = model.stretched(horizon)
    words = f"linear program of amounts in {horizon} epochs, which are stretched until all fits"
    makespan = horizon * duration * stretch
    return _priced(problem.topology, makespan, share, model=words, exact=False)


def _priced(
    topology: Topology, makespan: float, share: np.ndarray, *, model: str, exact: bool
) -> Prices:
    """Return prices from the shares of links, then limits, which add up to 1."""
    rates = [each.bandwidth for each in topology.links]
    rates += [each.bandwidth for each in topology.limits]
    price = (makespan * share / np.array(rates)).tolist()
    own = dict(zip((each.ends for each in topology.links), price, strict=False))
    return Prices(
        topology=topology,
        makespan=makespan,
        links=own,
        limits={
            each.name: value for each, value in zip(topology.limits, price[len(own) :], strict=True)
        },
        model=model,
        exact=exact,
    )


def _why_not(problem: Problem) -> str | None:
    if problem.windows:
        return "links have less bandwidth for a time, and a steady state knows no time"
    why = refusal(problem)
    if why is not None:
        return why
    demands = demands_of(problem)
    if not (demands.spreads or demands.sums or demands.free):
        return "all that is wanted is where it is wanted already, and nothing has to move"
    return None


class PricedFlow(FlowModel):
    """The model of amounts with rooms that stretch."""

    def stretched(self, horizon: int) -> tuple[float, np.ndarray]:
        """Return the least factor rho for all rooms, and what each link and limit is of it.

        Parameters
        ----------
        horizon
            K.

        Returns
        -------
        tuple
            rho, and by how much of itself it falls for a little more room of each link and then
            each limit in all epochs, where that is unique; these add up to 1.

        Raises
        ------
        Infeasible
            If hops take more epochs.
        LimitReached
            If the time limit came first.
        """
        cells = self._cells(horizon)
        sent, held, read = (
            cp.Variable(int(table.max(initial=-1)) + 1, nonneg=True)
            for table in (cells.sent, cells.held, cells.read)
        )
        stretch = cp.Variable(nonneg=True)
        found = list(self._rooms(cells, sent.size))
        fits: list[Any] = [matrix @ sent <= room * stretch for matrix, room, _ in found]
        balance = self._balance(cells, sent, held, read)
        model = cp.Problem(cp.Minimize(stretch), [*balance, *fits])
        outcome = self.run.backend.solve(model, time_limit=self.run.left, method="simplex")
        worth = [
            np.abs(np.asarray(rule.dual_value)) * room
            for rule, (_, room, _) in zip(fits, found, strict=True)
        ]
        links = len(self.hops.topology.links)
        shares = np.zeros(links + len(self.hops.topology.limits))
        np.add.at(shares, found[0][2], worth[0])
        # One stands for all of its images, which have equal parts of its price.
        orbit = self.flows.links.min(axis=0)
        shares[:links] = shares[orbit] / np.bincount(orbit, minlength=links)[orbit]
        for each, (_, _, members) in zip(worth[1:], found[1:], strict=True):
            shares[members] = each.sum() / len(members)
        return outcome.objective, shares
