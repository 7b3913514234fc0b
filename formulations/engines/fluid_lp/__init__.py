"""Fluid optimum: rates of a steady state, and their proofs."""
