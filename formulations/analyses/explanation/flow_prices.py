"""What rooms are worth to the linear program of amounts: `formulations.models.te_ccl_lp`.

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

from formulations.engines.te_ccl.flow_lp import FlowModel


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
