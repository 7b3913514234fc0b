"""Hundreds of candidate clusters overnight: `formulations.sweep` is the front door.

``spec`` is the request with its lists and ranges, ``tasks`` opens and changes clusters and makes
the product, ``pool`` solves in a child process of each worker, ``running`` feeds the workers.
``rows`` is the content of a row, ``store`` the folder in which rows are safe.
"""
