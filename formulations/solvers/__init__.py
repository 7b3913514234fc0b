"""Solvers behind CVXPY: names, limits, progress and standard termination statuses.

`cp` is CVXPY, loaded by its first use: it takes a second, and nothing but a model needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import cvxpy as cp
else:

    class _Later:
        """A module that is loaded when something of it is requested."""

        def __getattr__(self, name: str) -> Any:
            return getattr(import_module("cvxpy"), name)

    cp = _Later()

__all__ = ["cp"]
