"""Compile everything once, so that no first solve has to wait: ``python -m formulations.compiled``.

The compiled functions are kept beside their sources or, where these cannot be written to, in the
user's cache; they are compiled again when a source changes.
"""

from __future__ import annotations

from ccl.collective import all_gather
from ccl.problem import Problem
from ccl.topology import Topology, device, duplex
from formulations import solve

if __name__ == "__main__":
    gpus = tuple(device("gpu", f"g{number}") for number in range(2))
    pair = Topology("pair", gpus, duplex("g0", "g1", bandwidth=1.0))
    for name in ("list", "orbit-trees"):
        solve(Problem(pair, all_gather(2, 1.0)), name)
