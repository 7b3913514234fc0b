"""Compilation of every kernel, so that no first solve has to wait: a program of its own.

The compiled functions are cached beside their sources or, where these cannot be written to, in the
user's cache; they are compiled again when a source changes. A function is cached as soon as it is
compiled: where this is ended, the next goes on from there. Two processes share the work.
"""

import os
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import formulations.engines.kernels
from ccl.collective import all_gather, all_reduce
from ccl.problem import Problem
from ccl.topology import Topology, device, duplex
from formulations.core.preparing import WITHOUT, alone, anew, done, ready, wait
from formulations.solving.api import solve

PARTS: tuple[tuple[tuple[str, dict[str, Any]], ...], ...] = (
    (("list", {}), ("recursive-doubling", {}), ("tacos", {})),
    (("forestcoll", {}), ("forestcoll", {"trees_per_root": 1}), ("orbit-trees", {})),
)
"""Formulations with options that together call every compiled function, for each process."""


def compile_part(part: int) -> None:
    """Solve a small problem with a switch by what calls some of the compiled functions."""
    names = [f"g{number}" for number in range(4)]
    devices = (*(device("gpu", name) for name in names), device("switch", "switch"))
    links = tuple(
        link for name in names for link in duplex(name, "switch", bandwidth=1.0, alpha=0.1)
    )
    star = Topology("star", devices, links)
    for name, options in PARTS[part]:
        solve(Problem(star, all_gather(4, 4.0)), name, options=options)
    if part == 0:
        # A plan that meets its bound is not put into a better order; that of a sum does not.
        solve(Problem(star, all_reduce(4, 4.0)), "list", options={"passes": 1})


def prepare() -> None:
    """Compile everything that is not, unless another process does, which is waited for.

    Raises
    ------
    subprocess.CalledProcessError
        If a part fails.
    """
    if ready():
        return
    with alone() as mine:
        if not mine:
            wait()
            return
        if anew():
            for path in _stale():
                path.unlink(missing_ok=True)
        command = [sys.executable, "-m", "formulations.solving.compile_kernels"]
        environment = {**os.environ, WITHOUT: "1"}
        begun = [
            subprocess.Popen([*command, str(part)], env=environment) for part in range(len(PARTS))
        ]
        for process in begun:
            if process.wait():
                raise subprocess.CalledProcessError(process.returncode, process.args)
        done()


def _stale() -> Iterator[Path]:
    """Yield what was compiled of other sources: numba looks at that of the function itself only."""
    package = formulations.engines.kernels
    for each in pkgutil.iter_modules(package.__path__):
        if each.name.startswith("__"):
            continue
        for value in vars(import_module(f"{package.__name__}.{each.name}")).values():
            function = getattr(value, "compiled", None)
            if function is not None:
                yield from Path(function._cache.cache_path).glob(f"{each.name}.*.nb[ci]")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        compile_part(int(sys.argv[1]))
    else:
        prepare()
