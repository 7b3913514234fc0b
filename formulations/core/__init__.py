"""What every formulation shares: the registry, a run with its limits, the portfolio, windows."""
