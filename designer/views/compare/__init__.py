"""The Compare view: methods over sizes, beside one another and side by side.

``asked`` reads what is to be compared, ``running`` keeps the comparisons while they run, ``page``
is the view, ``table`` and ``detail`` show the rows, ``exports`` writes them into files.
"""
