"""Our figures beside the published ones, printed as tables."""
