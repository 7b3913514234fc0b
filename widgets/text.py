"""Quantities as people read them; they stand in `ccl.text`."""

from __future__ import annotations

from ccl.text import NONE, bandwidth, digits, duration, listing, scaled, seconds, share, size

__all__ = [
    "NONE",
    "bandwidth",
    "digits",
    "duration",
    "listing",
    "scaled",
    "seconds",
    "share",
    "size",
]
