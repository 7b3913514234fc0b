"""Exact search in continuous time by constraint programming, in a process of its own."""
