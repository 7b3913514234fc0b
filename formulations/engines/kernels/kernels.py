"""How functions become searches: those that Python calls, and those that only these call.

All are compiled by numba. A `kernel` is kept on disk and is compiled outside every time limit
(`formulations.core.preparing`); functions that only kernels call have no doors from Python, which
take as long to compile as they do. For a constant numba compiles a function once more than for a
variable, so constants are handed on as numbers of numpy.

Numba counts the references to every array that a function is given, those in tuples too: with
forty of them that took nine tenths of the time of list scheduling, and two thirds of compiling it.
Who calls holds them all, so an `inner` function does not count; it cannot make arrays or lists or
take a list, which numba refuses, and must not return one that it was given. Those that do so are
`allocating`.
"""

from __future__ import annotations

from functools import wraps
from types import FunctionType
from typing import Any

from numba import njit
from numba.core.dispatcher import Dispatcher

from formulations.core.preparing import compiling, interpreting, ready, wait

_BARE: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

_UNCOUNTED: dict[str, Any] = {"_nrt": False, **_BARE}

inner = njit(**_UNCOUNTED)

allocating = njit(**_BARE)


def kernel(function):
    """Return a function that calls `function` compiled, once all are, or else as it is written."""
    compiled = njit(cache=True)(function)
    called: Any = None
    plain: Any = None

    @wraps(function)
    def call(*args):
        nonlocal called, plain
        if called is not None:
            return called(*args)
        if interpreting() and not ready():
            plain = plain or as_written(compiled)
            return plain(*args)
        wait()
        with compiling():
            found = compiled(*args)
        called = compiled
        return found

    call.__dict__["compiled"] = compiled
    return call


def as_written(compiled):
    """Return the Python function of a compiled one, which calls Python functions only."""
    return _as_written(compiled, {})


def _as_written(compiled, made):
    if compiled not in made:
        function = compiled.py_func
        names = dict(function.__globals__)
        made[compiled] = FunctionType(
            function.__code__, names, function.__name__, function.__defaults__
        )
        for name in function.__code__.co_names:
            if isinstance(names.get(name), Dispatcher):
                names[name] = _as_written(names[name], made)
    return made[compiled]
