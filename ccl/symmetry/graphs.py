"""igraph, without what it loads to draw.

igraph loads matplotlib where it is installed, to paint graphs: half a second for each process that
only wants flows and automorphisms. Here it is imported as if there were none, by this thread
alone; who prints imports matplotlib as ever.
"""

import sys
import threading
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any


class _Without(MetaPathFinder):
    """Refuses a package to the thread that has made it."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._thread = threading.get_ident()

    def find_spec(self, fullname: str, *_: Any) -> ModuleSpec | None:
        """Raise ImportError for the package; leave all others to the usual finders."""
        if fullname == self._package and threading.get_ident() == self._thread:
            raise ImportError(f"{fullname} is not loaded for this")
        return None


_without = _Without("matplotlib")
sys.meta_path.insert(0, _without)
try:
    import igraph
finally:
    sys.meta_path.remove(_without)

__all__ = ["igraph"]
