"""Solving: the question, the cards of a solve, what was found and how it is explained."""
