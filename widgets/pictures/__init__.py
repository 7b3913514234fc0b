"""Pictures of a drawing and films of a plan, painted without a browser.

`view` computes what is drawn from a topology, places and a scene, `stage` and `film` turn it into
shapes, `svg` and `raster` paint the same shapes as text and as pixels.
"""
