"""Small parts of the page: icons, headings, attributes.

Messages that float in for a while: what went wrong, what was restored.

How the figures of Plotly behave on our pages.

The quantities of links, wherever they can be typed.

Colours and shapes: the Mantine theme.

Identity is Okabe-Ito; vermillion is kept for bottlenecks and never the only mark of one.

What the palette offers: kinds of devices and types of links, one direction each.

Bandwidths are data-sheet figures; the latencies are of the order that models use. Sources:
NVIDIA data sheets and TE-CCL's and TACCL's topologies for NVLink, the InfiniBand and Ethernet
line rates divided by eight, PCIe's raw rate of 16 lanes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dash import html

from ccl import text


def icon(name: str, **props: Any) -> html.I:
    """Return the icon called `name`; a screen reader passes over it."""
    return html.I(className=f"ico ico-{name}", **attributes(aria_hidden="true", **props))


def heading(text: str, *extra: Any) -> html.Div:
    """Return the small heading of a section, with controls at its right."""
    return html.Div([html.H2(text), *extra], className="ds-heading")


def attributes(**values: Any) -> dict[str, Any]:
    """Return attributes whose names have hyphens: ``aria_label`` becomes ``aria-label``."""
    return {name.replace("_", "-"): value for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class Extra:
    """A view that is there for whoever asked for it.

    Parameters
    ----------
    name, label
        In the choice of views.
    pane
        What it shows.
    stores
        What the page keeps of it.
    """

    name: str
    label: str
    pane: Any
    stores: Sequence[Any]


Tone = Literal["bad", "good", "plain"]
_LOOK: dict[Tone, tuple[str, str, str]] = {
    "bad": ("orange", "warning", "Not applied"),
    "good": ("teal", "check", "Done"),
    "plain": ("azure", "info", "Note"),
}
_numbers = itertools.count()


def note(sentence: str, tone: Tone = "bad", *, title: str = "") -> list[dict[str, Any]]:
    """Return a notification for the container; a bad one stays longer."""
    colour, picture, usual = _LOOK[tone]
    return [
        {
            "action": "show",
            "id": f"note-{next(_numbers)}",
            "title": title or usual,
            "message": text.sentence(sentence),
            "color": colour,
            "icon": icon(picture),
            "autoClose": 20_000 if tone == "bad" else 6000,
            "withBorder": True,
        }
    ]


CONFIG: Any = {"displayModeBar": False, "responsive": True}


LINK_QUANTITIES: dict[str, dict[str, Any]] = {
    "bandwidth": {"kind": "bandwidth", "what": "bandwidth", "above": 0},
    "alpha": {"kind": "latency", "what": "latency", "least": 0},
    "count": {"kind": "count", "what": "number of links", "least": 1},
}
"""What the fields take, as `widgets.QuantityField` and `ccl.serialization.quantity` have it."""
MOST_HOSTS = 64
"""Hosts that one is repeated to at most."""


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


@dataclass(frozen=True, slots=True)
class LinkType:
    """A type of link: GB/s one way and µs.

    Parameters
    ----------
    key
        Value of the choice.
    medium
        What the link is called on the drawing.
    note
        How the bandwidth comes about, for the tooltip.
    ports
        Links that are counted as one, such as all those of a GPU; 0 where the name says it.
    """

    key: str
    medium: str
    bandwidth: float
    alpha: float
    note: str
    ports: int = 0

    @property
    def label(self) -> str:
        """What the choice is called: ``NVLink 4 ×18`` is a whole GPU's worth."""
        return f"{self.medium} ×{self.ports}" if self.ports else self.medium

    @property
    def width(self) -> float:
        """Thickness of the sample in pixels, as on the canvas: it grows with the logarithm."""
        steps = max(0, int(self.bandwidth / 12.5)).bit_length()
        return 1.5 + 0.9 * steps

    def preset(self) -> dict[str, Any]:
        """Return what the canvas gives to the next link that is drawn."""
        return {"bandwidth": self.bandwidth, "alpha": self.alpha, "medium": self.medium}


LINK_TYPES: tuple[LinkType, ...] = (
    LinkType("nvlink5", "NVLink 5", 900.0, 0.7, "all links of a B200, 50 GB/s each", 18),
    LinkType("nvlink4", "NVLink 4", 450.0, 0.7, "all links of an H100, 25 GB/s each", 18),
    LinkType("nvlink3", "NVLink 3", 300.0, 0.7, "all links of an A100, 25 GB/s each", 12),
    LinkType("nvlink2", "NVLink 2", 25.0, 0.7, "one link of a V100, which has six", 1),
    LinkType("ndr", "InfiniBand NDR", 50.0, 1.3, "400 Gb/s"),
    LinkType("hdr", "InfiniBand HDR", 25.0, 1.3, "200 Gb/s"),
    LinkType("edr", "InfiniBand EDR", 12.5, 1.3, "100 Gb/s"),
    LinkType("pcie5", "PCIe 5 ×16", 64.0, 1.0, "16 lanes of 32 GT/s"),
    LinkType("pcie4", "PCIe 4 ×16", 32.0, 1.0, "16 lanes of 16 GT/s"),
    LinkType("eth400", "Ethernet 400G", 50.0, 4.0, "400 Gb/s, RoCE"),
)
DEFAULT_LINK = "nvlink4"


@dataclass(frozen=True, slots=True)
class DeviceType:
    """A kind of device on the palette, with the key that adds it on the canvas."""

    kind: str
    label: str
    key: str
    note: str


DEVICE_TYPES: tuple[DeviceType, ...] = (
    DeviceType("gpu", "GPU", "G", "has a rank; stores, copies and reduces"),
    DeviceType("switch", "Switch", "S", "passes data on; may copy or reduce if you say so"),
    DeviceType("memory", "Memory", "M", "host memory: stores and copies, has no rank"),
    DeviceType("nic", "NIC", "N", "passes data on between a host and a network"),
)

COLLECTIVE_LABELS: dict[str, str] = {
    "all-gather": "AllGather",
    "all-reduce": "AllReduce",
    "reduce-scatter": "ReduceScatter",
    "all-to-all": "AllToAll",
    "broadcast": "Broadcast",
    "reduce": "Reduce",
    "gather": "Gather",
    "scatter": "Scatter",
}
"""Collectives that can be asked for by name; a custom one comes from a file."""
ROOTED = ("broadcast", "reduce", "gather", "scatter")


def link_type(key: str) -> LinkType:
    """Return the link type with this key, or the default one."""
    by_key = {each.key: each for each in LINK_TYPES}
    return by_key.get(key, by_key[DEFAULT_LINK])
