"""Colours and shapes: the Mantine theme.

Identity is Okabe-Ito; vermillion is kept for bottlenecks and never the only mark of one.
"""

from __future__ import annotations

from typing import Any

FONT = '"Inter Variable", Inter, system-ui, -apple-system, "Segoe UI", sans-serif'

THEME: dict[str, Any] = {
    "fontFamily": FONT,
    "fontFamilyMonospace": 'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, monospace',
    "primaryColor": "azure",
    "primaryShade": {"light": 6, "dark": 7},
    "defaultRadius": "md",
    "cursorType": "pointer",
    "colors": {
        "azure": [
            "#e7f3ff", "#cfe5ff", "#9ccaff", "#6ab0ff", "#4aa3ff",
            "#2f8ef2", "#1474d4", "#0f6ccb", "#0059b3", "#00479a",
        ],
        "dark": [
            "#dfe7ef", "#b6c2cf", "#93a2b3", "#62748a", "#3b4a5c",
            "#2b3746", "#1d2733", "#161e28", "#10161e", "#0b0f15",
        ],
    },
}  # fmt: skip
