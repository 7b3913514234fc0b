"""Column generation with trees: the best rate of what spreads or adds up, with its trees."""

CROSSINGS = 60_000
"""Of links' paths by all pieces together: what makes more is not cut so finely, or not tried."""
