"""Closed forms and constructive methods, one file each."""
