"""Failures and stragglers: the loss of a collective when a part of its cluster fails or lags.

`study` computes the cost of every single failure (N-1) and of every straggler; both take one
of each class of things that symmetries exchange (`parts`), and yield the rows of `nouns`.
"""
