"""What several formulations refuse, in the same words."""

from __future__ import annotations

from ccl.problem import Problem


def no_stores(problem: Problem) -> str | None:
    """Say which device keeps less than a formulation counts on: everything, and copies of it."""
    for device in problem.topology.devices:
        if device.buffer_bytes is not None:
            return f"{device.name} has a limited buffer, and here buffers are unlimited"
        if device.stores and not device.copies:
            return f"{device.name} stores and cannot copy, and here all that stores copies"
    return None
