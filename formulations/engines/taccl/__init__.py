"""TACCL's three steps: ways of chunks, their order on links, and what is sent contiguously.

`formulations.models.taccl` has the mathematics and the decisions.
"""
