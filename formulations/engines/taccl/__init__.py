"""TACCL's three steps: paths of chunks, their order on links, and what is sent contiguously.

`formulations.models.taccl` has the mathematics and the decisions.
"""
