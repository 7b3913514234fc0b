"""Solving a problem: a formulation or the portfolio run, its proofs, plans under windows."""
