"""Several methods on one question, cell by cell: `comparison` is its front door.

``nouns`` has what a comparison is and answers, ``crossing`` where another method becomes the
fastest, ``asked`` which methods and sizes, ``cells`` solves one after the other, ``jobs`` does so
in a child process (``child``), ``kept`` is its JSON.
"""
