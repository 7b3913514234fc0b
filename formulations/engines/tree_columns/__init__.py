"""Column generation with trees: the best rate of what spreads or adds up, with its trees."""

CROSSINGS = 60_000
"""Of paths by all pieces whose images stand for themselves: what makes more is not cut so finely,
or not tried."""

SENDS = 1_100_000
"""Crossings of all images together above which it is likewise."""
