"""Whether a flow takes every chunk from its holder to its destination."""

from __future__ import annotations

from collections import defaultdict

from ccl.errors import ScheduleError
from ccl.flow import Flow
from ccl.problem import Problem
from ccl.verify.order import TOLERANCE


def verify_flow(problem: Problem, flow: Flow) -> None:
    """Check that of each chunk one unit leaves its holder and as much leaves a device as enters.

    Raises
    ------
    ScheduleError
        If a link does not exist, a chunk cannot flow, or conservation fails at a device.
    """
    topology, chunks = problem.topology, problem.collective.chunks
    balance: defaultdict[tuple[int, str], float] = defaultdict(float)
    for rate in flow.rates:
        if not 0 <= rate.chunk < len(chunks):
            msg = f"there is no chunk {rate.chunk}; they go from 0 to {len(chunks) - 1}"
            raise ScheduleError(msg, where=rate.src)
        if (rate.src, rate.dst) not in topology.link_index:
            where = f"{rate.src}->{rate.dst}"
            msg = f"chunk {rate.chunk} takes {where}, which is not a link of {topology}"
            raise ScheduleError(msg, where=where)
        balance[rate.chunk, rate.src] -= rate.amount
        balance[rate.chunk, rate.dst] += rate.amount
    for number, chunk in enumerate(chunks):
        if chunk.in_place:
            continue
        holder, destination = (
            topology.ranks[chunk.holders[0]],
            topology.ranks[chunk.destinations[0]],
        )
        if chunk.reduced or len(chunk.holders) > 1 or len(chunk.destinations) > 1:
            msg = f"chunk {number} has several ends and cannot be a flow; use a schedule or forest"
            raise ScheduleError(msg, where=holder)
        balance[number, holder] += 1
        balance[number, destination] -= 1
    for (number, device), surplus in sorted(balance.items()):
        if abs(surplus) > TOLERANCE:
            what = "stays in" if surplus > 0 else "is missing in"
            msg = (
                f"{abs(surplus):g} of chunk {number} {what} {device}; as much must leave as enters"
            )
            raise ScheduleError(msg, where=device)
