"""Solvers behind CVXPY: names, limits, progress and standard termination statuses."""
