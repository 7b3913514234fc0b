"""Geometry of a drawing: where boxes stand, how links run, what is outlined, how large names are.

What the canvas computes, too: `buses`, `folding`, `names` and `own_wires` are its modules of these
names (`widgets/js/src`), `outlines` is its ``region.js``, `grid` its ``block_grid.js``, `tiers` its
``pods.js`` and ``link_classes.js``; `routes` and `stage` say which are theirs. A change on one side
is one on both (`widgets/js/test/drawings.json` has what both must find). Nothing here knows a
colour or paints.
"""
