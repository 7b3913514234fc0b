"""The quantities of links, wherever they can be typed."""

from __future__ import annotations

from typing import Any

LINK_QUANTITIES: dict[str, dict[str, Any]] = {
    "bandwidth": {"kind": "bandwidth", "what": "bandwidth", "above": 0},
    "alpha": {"kind": "latency", "what": "latency", "least": 0},
    "count": {"kind": "count", "what": "number of links", "least": 1},
}
"""What the fields take, as `widgets.QuantityField` and `ccl.serialization.quantity` have it."""
MOST_HOSTS = 64
"""Hosts that one is repeated to at most."""
