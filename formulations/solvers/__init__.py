"""Solvers behind CVXPY: loading them, and what keeps two of them from sharing a process.

`cp` is CVXPY, loaded by its first use: it takes half a second, and nothing but a model needs it. It
would take a second with `scipy.stats`, of which it wants one function for quantum entropies: that
function loads it when it is called.

The wheels of OR-tools and of HiGHS each carry a library called libhighs.so.1, in versions that
differ. The loader knows libraries by that name, so a process has the one that came first, and
whichever of the two packages comes second misses symbols. OR-tools is never loaded by us but in
processes of its own (`formulations.engines.cp_sat.worker`, `formulations.engines.sccl.worker`).
Where somebody else has loaded it here, HiGHS comes second, and a solve has a process of its own.
"""

import sys
import threading
from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["OUT", "cp", "file_of", "shut_out"]

if TYPE_CHECKING:
    import cvxpy as cp
else:

    class _Later:
        """A module that is loaded when something of it is requested."""

        def __getattr__(self, name: str) -> Any:
            return getattr(_cvxpy(), name)

    cp = _Later()

_LOADING = threading.Lock()


def _cvxpy() -> ModuleType:
    """Return CVXPY, loaded without `scipy.stats` where nobody has loaded either."""
    with _LOADING:
        if "cvxpy" in sys.modules or "scipy.stats" in sys.modules:
            return import_module("cvxpy")
        instead = ModuleType("scipy.stats")
        instead.__dict__["__getattr__"] = _when_called
        sys.modules["scipy.stats"] = instead
        try:
            return import_module("cvxpy")
        finally:
            del sys.modules["scipy.stats"]


def _when_called(name: str) -> Callable[..., Any]:
    """Return a function of `scipy.stats` that loads it when it is called."""
    if name.startswith("__"):
        raise AttributeError(name)
    return partial(_called, name)


def _called(name: str, *args: Any, **named: Any) -> Any:
    return getattr(import_module("scipy.stats"), name)(*args, **named)


OUT = (
    "HiGHS cannot be loaded into this process, which has loaded OR-tools before: both carry a "
    "library called libhighs in different versions, and a process has one of them; import highspy "
    "before ortools, or leave this to formulations.solve, which then uses a process of its own"
)


def shut_out() -> bool:
    """Test if HiGHS can no longer be loaded here, as OR-tools' library has taken its name."""
    if "highspy" in sys.modules:
        return False
    loaded = (file_of(name) for name in list(sys.modules) if name.startswith("ortools."))
    return any(file.endswith((".so", ".pyd", ".dylib")) for file in loaded)


def file_of(module: str) -> str:
    """Return the file of a module that is loaded, empty where it has none."""
    return getattr(sys.modules.get(module), "__file__", None) or ""
