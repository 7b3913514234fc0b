"""Ready clusters as functions that return a topology."""
