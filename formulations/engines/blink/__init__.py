"""Blink: spanning trees of one root, packed exactly or by multiplicative weights, many or few.

`roots` chooses the root of an all-reduce, `halves` parts links between its two halves, `weights`
packs by multiplicative weights, `few` chooses few trees, `plans` does all of it.

Source: Wang et al., Blink: Fast and Generic Collectives for Distributed ML, MLSys 2020.
"""
