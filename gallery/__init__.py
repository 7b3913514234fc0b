"""Ready clusters as functions that return a topology, each with its source and figures."""

from gallery.entry import Entry, Figure, Parameter
from gallery.registry import catalog, entry, open_cluster

__all__ = ["Entry", "Figure", "Parameter", "catalog", "entry", "open_cluster"]
