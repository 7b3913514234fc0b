"""The fluid optimum: rates of a steady state, and what proves them."""
