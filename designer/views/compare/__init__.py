"""The Compare view: methods over sizes, beside one another and side by side.

``running`` reads what is to be compared and keeps the comparisons while they run, ``page`` is the
view, ``table`` shows the rows, ``callbacks`` answers the page and writes files.
"""
