"""Print: pictures of a drawing, films of a plan and plots, drawn by matplotlib without a browser.

`geometry` says where everything stands, as the canvas does; `view` makes shapes of a sheet of it,
`painter` draws them as SVG, PDF and pixels; `plots` has axes of its own.
"""
