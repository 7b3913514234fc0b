"""Breadth-first broadcasts: a linear program for each step, and the trees that its shares are.

`program` has the linear programs of Zhao et al. (BFB, arXiv 2202.03356); `refinement` makes trees.
"""
