"""Spanning trees at the best rate, exactly: the bottleneck cut, switches split off, trees packed.

The three steps of ForestColl (Zhao et al., arXiv 2402.06787): `search` finds the rate and its cut,
`splitting` replaces switches by direct connections between GPUs, `packing` fills these with trees;
`plans` does all three. `network` is the cluster in whole numbers.
"""
