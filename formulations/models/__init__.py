"""Optimization models, one file or folder per formulation of a paper."""
