"""What is compiled at set-up: everything, so that no first solve waits for it."""

import subprocess
import sys

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
