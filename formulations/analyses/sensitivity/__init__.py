"""What limits a cluster: what other bandwidths of some of its links would do to its best rate.

A package of its own, whose name is no public function's: `formulations.sensitivity` and
`formulations.rate_curve` are loaded from here when they are requested.
"""
