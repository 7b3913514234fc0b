"""A cut in words, by whole hosts where it is made of them."""

from __future__ import annotations

from ccl.bound import Cut, across
from ccl.topology import Topology
from widgets import text


def cut_words(cut: Cut, topology: Topology) -> str:
    """Say what crosses a cut: ``200 GB/s out of h0``; the side that the canvas outlines."""
    where, names = across(cut, topology)
    return f"{text.bandwidth(cut.bandwidth)} {where} {text.listing(names, 2)}"
