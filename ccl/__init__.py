"""The nouns of collective communication: clusters, collectives, plans, bounds and their checks."""

__version__ = "0.1.0"
