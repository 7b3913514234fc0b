"""Parts of the page: boxes, headings, buttons, tables, choices, menus, dialogs.

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

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import dash_mantine_components as dmc
from dash import Output, dcc, html

from ccl import text


def icon(name: str, **props: Any) -> html.I:
    """Return the icon called `name`; a screen reader passes over it."""
    return html.I(className=f"ico ico-{name}", **attributes(aria_hidden="true", **props))


def heading(text: str, *extra: Any) -> html.Div:
    """Return the small heading of a section, with controls at its right."""
    return html.Div([html.H2(text), *extra], className="ds-heading")


def folding(text: str, *extra: Any) -> html.Div:
    """Return the heading of a card of a column, which folds it; assets/panels.js remembers."""
    button = html.Button(
        [icon("chevron"), text],
        type="button",
        className="ds-fold-button",
        **attributes(aria_expanded="true"),
    )
    return html.Div([html.H2(button), *extra], className="ds-heading")


def attributes(**values: Any) -> dict[str, Any]:
    """Return attributes whose names have hyphens: ``aria_pressed=True`` is ``aria-pressed="true"``.

    All others stay as they are.
    """
    found = {}
    for name, value in values.items():
        own = name.startswith(("aria_", "data_"))
        found[name.replace("_", "-") if own else name] = (
            str(value).lower() if own and isinstance(value, bool) else value
        )
    return found


def div(look: str | None, /, *children: Any, **props: Any) -> html.Div:
    """Return a box of a class around its children; attributes as for `attributes`."""
    inside = children[0] if len(children) == 1 else list(children)
    return html.Div(inside, className=look, **attributes(**props))


def section(label: str, /, *children: Any, **props: Any) -> html.Section:
    """Return a region of the page that a screen reader calls by its label."""
    return html.Section(list(children), **attributes(aria_label=label, **props))


def headed(title: str, /, *children: Any, **props: Any) -> html.Section:
    """Return a region with its label as the small heading."""
    return section(title, heading(title), *children, **props)


def card(title: str, /, *children: Any, **props: Any) -> html.Section:
    """Return a region of a column, whose heading folds it."""
    return section(title, folding(title), *children, **props)


def button(words: Any, key: Any, picture: str = "", /, **props: Any) -> dmc.Button:
    """Return a button of the theme with an id, and with an icon before its words."""
    left = {"leftSection": icon(picture)} if picture else {}
    return dmc.Button(words, id=key, **left, **attributes(**props))


def quiet(words: Any, key: Any, picture: str = "", /, **props: Any) -> dmc.Button:
    """Return a small button without a frame, for what stands beside a heading."""
    return button(words, key, picture, size="compact-xs", variant="subtle", color="gray", **props)


def press(children: Any, key: Any, look: str | None = None, /, **props: Any) -> html.Button:
    """Return a plain button with an id, whose look is that of a class."""
    return html.Button(children, id=key, type="button", className=look, **attributes(**props))


def table(caption: str, look: str, /, heads: Sequence[Any], rows: Sequence[html.Tr]) -> html.Table:
    """Return a table of a class; heads are words or cells of their own."""
    cells = [each if isinstance(each, html.Th) else html.Th(each, scope="col") for each in heads]
    return html.Table(
        [
            html.Caption(caption, className="ds-unseen"),
            html.Thead(html.Tr(cells)),
            html.Tbody(rows),
        ],
        className=look,
    )


def sorter(words: str, key: Any, order: str, /, **props: Any) -> html.Th:
    """Return the head of a column with the button that sorts by it, and how it is sorted now."""
    arrow = {"none": "", "ascending": " ↑", "descending": " ↓"}[order]
    return html.Th(
        press(f"{words}{arrow}", key, **props), scope="col", **attributes(aria_sort=order)
    )


def banner(picture: str, tone: str, sentence: Any, /) -> html.Div:
    """Return a sentence in a box with an icon; `tone` is ``good``, ``bad`` or ``plain``."""
    return div(f"ds-banner ds-{tone}", icon(picture), html.Span(sentence))


def graph(key: str, /, **props: Any) -> html.Div:
    """Return the place of a plot, without the buttons of Plotly, for what `figure` is given.

    The plot is made with its first figure (assets/designer.js): Plotly takes as long to load as a
    third of the page, and many pages never have a plot.
    """
    look = {"config": CONFIG, "responsive": True, **props}
    return div(
        "ds-plot",
        html.Div(id=plot_part(key, "place"), className="ds-plot"),
        dcc.Store(id=plot_part(key, "figure")),
        dcc.Store(id=plot_part(key, "look"), data=look),
    )


def plot_part(key: Any, part: Literal["place", "figure", "look"]) -> dict[str, Any]:
    """Return the id of a part of a plot: where it comes to be, its figure, how it looks."""
    return {"plot": key, "part": part}


def figure(key: str) -> Output:
    """Return where the figure of a plot goes."""
    return Output(plot_part(key, "figure"), "data")


def options(choices: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the entries of a choice by their values."""
    return [{"value": value, "label": words} for value, words in choices.items()]


def segments(key: Any, label: str, choices: Mapping[str, str], /, **props: Any) -> Any:
    """Return a choice between a few values side by side, of which the first is chosen."""
    props = {"value": next(iter(choices)), "size": "xs", "aria_label": label, **props}
    return dmc.SegmentedControl(id=key, data=options(choices), **attributes(**props))


def select(key: Any, choices: Mapping[str, str] | Sequence[Any], /, **props: Any) -> dmc.Select:
    """Return a menu of values, one of which is always chosen."""
    data = options(choices) if isinstance(choices, Mapping) else list(choices)
    props = {"allowDeselect": False, "size": "xs", **props}
    return dmc.Select(id=key, data=data, **attributes(**props))


def modal(key: Any, title: str, size: int, /, *children: Any, **props: Any) -> dmc.Modal:
    """Return a dialog, closed; what is in it is there before it is opened."""
    return dmc.Modal(list(children), id=key, title=title, size=size, **{**DIALOG, **props})


DIALOG: dict[str, Any] = {
    "keepMounted": True,
    "classNames": {"title": "ds-modal-title"},
    "closeButtonProps": {"aria-label": "Close"},
}
"""What dialogs have in common."""


def fold(summary: Any, /, *children: Any, look: str = "ds-fold", **props: Any) -> html.Details:
    """Return what is seen once its summary is pressed."""
    return html.Details([html.Summary(summary), *children], className=look, **props)


def menu(target: Any, entries: Sequence[Any]) -> dmc.Menu:
    """Return a menu of entries that a button opens."""
    return dmc.Menu(
        [dmc.MenuTarget(target), dmc.MenuDropdown(entries)],
        position="bottom-end",
        width=268,
        shadow="md",
    )


def menu_entry(key: Any, picture: str, title: str, note: str, why: str = "") -> dmc.MenuItem:
    """Return an entry with an icon, and a note below its title; `why` instead while it is grey."""
    words = [html.Div(title), html.Small(note)]
    if why:
        words.append(html.Small(why, className="ds-menu-why"))
    return dmc.MenuItem(words, id=key, leftSection=icon(picture), className="ds-menu-item")


@dataclass(frozen=True, slots=True)
class Extra:
    """A view that is there where it was requested.

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
    "bad": ("red", "warning", "Not applied"),
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
    "alpha": {"kind": "latency", "what": "alpha", "least": 0},
    "count": {"kind": "count", "what": "number of parallel links", "least": 1},
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
    kind: kind.capitalize()
    for kind in (
        "all-gather",
        "all-reduce",
        "reduce-scatter",
        "all-to-all",
        "broadcast",
        "reduce",
        "gather",
        "scatter",
    )
}
"""Collectives that have a name; a custom one comes from a file."""
ROOTED = ("broadcast", "reduce", "gather", "scatter")


def link_type(key: str) -> LinkType:
    """Return the link type with this key, or the default one."""
    by_key = {each.key: each for each in LINK_TYPES}
    return by_key.get(key, by_key[DEFAULT_LINK])
