"""Solves and studies that run while pages are used, in a fair queue, found again after a reload."""
