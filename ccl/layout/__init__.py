"""Default layout of a drawing that nobody has arranged yet.

Positions are centres in pixels, y down. They are not part of a topology: equal topologies may be
drawn differently, and what a user has dragged stays where it is.
"""

from ccl.layout.drawing import layout
from ccl.layout.shapes import SIZES

__all__ = ["SIZES", "layout"]
