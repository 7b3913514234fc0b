"""What is compiled at set-up: everything, so that no first solve waits for it."""

import subprocess
import sys
from dataclasses import replace

import pytest

from ccl.collective import make_collective
from ccl.problem import Problem
from formulations import solve
from formulations.core.preparing import clock, wait
from formulations.engines.kernels import placing, precedence
from formulations.engines.kernels.arrays import kernel
from gallery import open_cluster

PROGRAM = """
import pkgutil
from importlib import import_module

import formulations.engines.kernels
from formulations.solving.compile_kernels import PARTS, compile_part

for part in range(len(PARTS)):
    compile_part(part)
names = [each.name for each in pkgutil.iter_modules(formulations.engines.kernels.__path__)]
kept = {
    f"{name}.{key}": value
    for name in names
    if name != "__main__"
    for key, value in vars(import_module(f"formulations.engines.kernels.{name}")).items()
    if hasattr(value, "compiled")
}
assert len(kept) >= 10, kept
print(*[name for name, function in kept.items() if not function.compiled.signatures])
"""


def test_set_up_calls_every_function_that_is_kept():
    """A function with a cache is one that Python calls; in a process of its own, each has been."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == []


@pytest.mark.parametrize("name", ["list", "chains"])
def test_sizes_in_whole_bytes_need_no_compilation_of_their_own(name):
    """Who writes 1000000 in a file does not wait ten seconds for what 1e6 has at once."""
    wait()
    kernels = [each.__dict__["compiled"] for each in (placing.place, precedence.ordered)]
    problem = Problem(open_cluster("hypercube"), make_collective("all-reduce", 8, 8e6, chunks=2))
    chunks = tuple(replace(each, size=int(each.size)) for each in problem.collective.chunks)
    solve(problem, name, time_limit=5)
    known = [len(each.signatures) for each in kernels]
    solve(replace(problem, collective=replace(problem.collective, chunks=chunks)), name)

    assert [len(each.signatures) for each in kernels] == known


def test_the_first_search_of_a_process_counts_in_the_time_limit():
    """Only loading and compiling it do not; one on 128 GPUs went on for half a minute."""

    @kernel
    def busy(steps):
        state = 1
        for _ in range(steps):
            state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
        return state

    seconds = []
    for _ in range(2):
        begin = clock()
        busy(50_000_000)
        seconds.append(clock() - begin)

    assert seconds[0] > seconds[1] / 4 > 0.001
