"""Bandwidth sensitivity: the best rate of a cluster under other bandwidths of its links.

A package of its own, whose name is no public function's: `formulations.sensitivity` and
`formulations.rate_curve` are loaded from here when they are requested.
"""
