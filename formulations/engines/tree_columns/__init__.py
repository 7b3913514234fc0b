"""Column generation with trees: the best rate of what spreads or adds up, with its trees."""
