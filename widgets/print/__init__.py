"""Print: pictures of a drawing, films of a plan and plots, drawn by matplotlib without a browser.

`stage` and `view` turn a topology, places and a scene into shapes of a sheet, `painter` draws them
as SVG, PDF and pixels; `plots` has axes of its own.
"""
