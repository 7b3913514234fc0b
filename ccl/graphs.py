"""igraph, the library of graphs and flows, loaded without what draws them.

Where matplotlib is installed igraph loads `matplotlib.pyplot` as well, half a second in every
process that solves; nothing here draws with it. Whoever has loaded matplotlib before keeps both.
"""

from __future__ import annotations

import sys

__all__ = ["igraph"]

_hidden = "igraph" not in sys.modules and "matplotlib" not in sys.modules
if _hidden:
    sys.modules["matplotlib"] = None  # type: ignore[assignment]  # as if it were not installed
try:
    import igraph
finally:
    if _hidden:
        del sys.modules["matplotlib"]
