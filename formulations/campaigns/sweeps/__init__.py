"""Hundreds of candidate clusters overnight: `formulations.sweep` is the front door.

``spec`` is what is asked, ``listed`` reads its lists and ranges, ``clusters`` opens and changes
clusters, ``tasks`` makes the product. ``child`` solves in a process that ``pool`` keeps for each
worker, ``cluster`` has the workers, ``running`` feeds them. ``rows`` is what a row says, ``kept``
the folder in which rows are safe.
"""
