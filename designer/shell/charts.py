"""How the figures of Plotly behave on our pages."""

from __future__ import annotations

from typing import Any

CONFIG: Any = {"displayModeBar": False, "responsive": True}
