"""Compile everything once, so that no first solve has to wait: ``python -m formulations.compiled``.

The compiled functions are kept beside their sources or, where these cannot be written to, in the
user's cache; they are compiled again when a source changes.
"""

from __future__ import annotations

from typing import Any

from ccl.collective import all_gather
from ccl.problem import Problem
from ccl.topology import Topology, device, duplex
from formulations import solve

CALLED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("list", {}),
    ("recursive-doubling", {}),
    ("orbit-trees", {}),
    ("tacos", {}),
    ("forestcoll", {}),
    ("forestcoll", {"trees_per_root": 1}),
)
"""Formulations with options that together call every compiled function."""


def compile_all() -> None:
    """Solve a small problem with a switch by everything that has compiled functions."""
    names = [f"g{number}" for number in range(4)]
    devices = (*(device("gpu", name) for name in names), device("switch", "switch"))
    links = tuple(link for name in names for link in duplex(name, "switch", bandwidth=1.0))
    problem = Problem(Topology("star", devices, links), all_gather(4, 4.0))
    for name, options in CALLED:
        solve(problem, name, options=options)


if __name__ == "__main__":
    compile_all()
