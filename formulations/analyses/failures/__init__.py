"""Failures and stragglers: the loss of a collective when a part of its cluster fails or lags.

`study` computes the cost of every single failure (N-1) and of every straggler, each on a cluster
that `degradation` makes; both take one of each class of parts that symmetries exchange, and yield
the rows of `nouns`.
"""
