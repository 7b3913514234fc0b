"""Questions that take several solves: comparison, sensitivity, expansion, failures, explanation."""
