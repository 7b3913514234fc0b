"""Spanning trees at the best rate, exactly: the bottleneck cut, switches split off, trees packed.

The three steps of ForestColl (Zhao et al., arXiv 2402.06787): `search` finds the rate and its cut
on the cluster in whole numbers (`search.Network`), `splitting` replaces switches by direct
connections between GPUs and fills these with trees (`splitting.pack`); `plans` does all three.
"""
