"""Foundations of every formulation: the registry, a run with its limits, refusals, objectives."""
