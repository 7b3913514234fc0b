"""A question answered: a formulation or the portfolio run, its proofs, plans under windows."""
