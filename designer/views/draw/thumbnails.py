"""Small pictures of clusters: a mask for a list, each device of a small one, a large one by tiers.

A fabric too large to draw whole has spines above leaves above hosts. The first group of hosts has
its leaves, its first host with all that is in it, and a few of the others; of each further group
that is shown there is a box for its leaves and its hosts below. At the left stands how many there
are of everything and how fast the links between two tiers are, in the colours that the canvas has
for them.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple
from urllib.parse import quote

from dash import html

from ccl import text
from ccl.layout import SIZES, layout
from ccl.topology import Link, Topology
from designer.shell import ui
from gallery import entry
from gallery.leaf_spine import Fabric, Plan
from widgets.print.geometry.tiers import link_classes
from widgets.print.sheet import Rect, around
from widgets.print.style import DARK, LIGHT

Size = tuple[float, float]

LINES = 160
"""Lines of a thumbnail; in 36 pixels more are a blot."""
PICTURE = (440.0, 250.0)
"""Pixels of a picture of each device."""
MOST_LINES = 1500
"""Lines of a picture of each device; more are a blot."""
MARGIN = 28.0
"""Room around the devices of a host, as far as the canvas leaves."""
SIZE = (440.0, 300.0)
"""Of a picture of tiers, in pixels where there is room."""
MOST = 8
"""Devices of a row that are shown; of more the first ones and the last."""
LEFT, RIGHT = 96.0, 430.0
"""Where the tiers begin and end; how many there are stands before."""
SPINES, LEAVES, HOSTS, FOOT = 27.0, 97.0, 156.0, 290.0
"""Heights: the middle of spines and leaves, the top and the bottom of hosts."""
LOOKS = {"spine": "ds-switch", "leaf": "ds-switch", "nic": "ds-nic", "g": "ds-gpu"}
"""Of devices by what their names begin with."""
HOST = "ds-tier-host"
"""Look of a host; lines go over it."""
NICS, GPUS, INNER, NAME = 179.0, 217.0, 255.0, 277.0
"""Heights inside the host that is shown whole."""


def counted(topology: Topology) -> str:
    """Say what a topology has, such as ``16 GPUs · 4 switches · 20 links``."""
    kinds = [each.kind for each in topology.devices]
    switches = kinds.count("switch")
    parts = [text.count(kinds.count("gpu"), "GPU")]
    if switches:
        parts.append(text.count(switches, "switch", "switches"))
    parts.append(text.count(drawn_links(topology), "link"))
    return " · ".join(parts)


def drawn_links(topology: Topology) -> int:
    """Return how many links are drawn: those of both directions between two devices are one."""
    return len({tuple(sorted(each.ends)) for each in topology.links})


@cache
def thumbnail(name: str) -> str:
    """Return a data address with the picture of the entry's usual cluster, as a mask."""
    topology = entry(name).make()
    places = scaled(topology, layout(topology), (36.0, 36.0), margin=4.0)
    radius = max(0.7, min(2.4, 7 / math.sqrt(len(places))))
    dots = "".join(
        "<circle cx='{:.1f}' cy='{:.1f}' r='{:.1f}'/>".format(
            *places[each.name], radius * (1 if each.kind == "gpu" else 0.7)
        )
        for each in topology.devices
    )
    lines = lines_between(topology.links, places, most=LINES)
    look = "stroke='#000' stroke-opacity='.45' stroke-width='.8'"
    return mask(f"<g {look}>{lines}</g><g>{dots}</g>", (36.0, 36.0))


def scaled(
    topology: Topology, places: Mapping[str, Size], size: Size, *, margin: float
) -> dict[str, Size]:
    """Return where devices stand in a picture of a size, as large as fits and in its middle."""
    xs, ys = [x for x, _ in places.values()], [y for _, y in places.values()]
    wide, high = max(xs) - min(xs), max(ys) - min(ys)
    by = min((size[0] - 2 * margin) / max(wide, 1.0), (size[1] - 2 * margin) / max(high, 1.0))
    left, top = (size[0] - wide * by) / 2, (size[1] - high * by) / 2
    return {
        each.name: (
            left + (places[each.name][0] - min(xs)) * by,
            top + (places[each.name][1] - min(ys)) * by,
        )
        for each in topology.devices
    }


def lines_between(links: Iterable[Link], places: Mapping[str, Size], *, most: int) -> str:
    """Return paths of SVG for linked pairs, every so many where there are more than `most`."""
    pairs = sorted({(min(each.ends), max(each.ends)) for each in links})
    every = max(1, -(-len(pairs) // most))
    return "".join(
        "<path d='M{:.1f} {:.1f}L{:.1f} {:.1f}'/>".format(*places[a], *places[b])
        for a, b in pairs[::every]
    )


def mask(shapes: str, size: Size) -> str:
    """Return a data address with shapes of SVG, to be coloured by what lies behind."""
    box = f"viewBox='0 0 {size[0]:g} {size[1]:g}'"
    picture = f"<svg xmlns='http://www.w3.org/2000/svg' {box}>{shapes}</svg>"
    return "data:image/svg+xml," + quote(picture, safe="/:= '")


def picture(topology: Topology, places: Mapping[str, tuple[float, float]]) -> html.Div:
    """Return the drawing in small, in the colours that the canvas has for a large one."""
    at = scaled(topology, places, PICTURE, margin=16.0)
    spans = [max(each) - min(each) for each in zip(*places.values(), strict=True)]
    by = min((PICTURE[0] - 32) / max(spans[0], 1.0), (PICTURE[1] - 32) / max(spans[1], 1.0), 0.35)
    sides = {kind: tuple(max(1.6, by * side) for side in size) for kind, size in SIZES.items()}
    boxes = {each.name: _rect(at[each.name], *sides[each.kind]) for each in topology.devices}
    of_host: dict[str, list[Rect]] = {}
    for each in topology.devices:
        if each.host is not None:
            of_host.setdefault(each.host, []).append(boxes[each.name])
    hosts = [around(each).grown(max(2.0, by * MARGIN)) for each in of_host.values()]
    layers = [_layer("ds-wizard-hosts", map(_shape, hosts)), *_links(topology, at)]
    for kind in ("gpu", "nic", "switch"):
        alike = [boxes[each.name] for each in topology.devices if each.kind == kind]
        layers.append(_layer(f"ds-{kind}", map(_shape, alike)))
    return ui.div("ds-wizard-picture", layers, role="img", aria_label=counted(topology))


def _rect(middle: tuple[float, float], wide: float, high: float) -> Rect:
    x, y = middle
    return Rect(x - wide / 2, y - high / 2, x + wide / 2, y + high / 2)


def _shape(rect: Rect) -> str:
    return (
        f"<rect x='{rect.x1:.1f}' y='{rect.y1:.1f}' width='{rect.width:.1f}' "
        f"height='{rect.height:.1f}' rx='{min(rect.height / 5, 4):.1f}'/>"
    )


def _links(topology: Topology, at: Mapping[str, tuple[float, float]]) -> Iterator[html.I]:
    """Yield the links of each class, one over the other."""
    classes = link_classes(topology, least=0)
    titles = list(dict.fromkeys(classes.values())) or [""]
    width = 1.0 if len(topology.links) < MOST_LINES else 0.4
    for number, title in enumerate(titles):
        links = [each for each in topology.links if classes.get(each.ends, "") == title]
        most = math.ceil(MOST_LINES * len(links) / len(topology.links))
        lines = lines_between(links, at, most=most)
        kind = f"light-dark({LIGHT.links[number]}, {DARK.links[number]})"
        stroke = f"<g stroke='#000' stroke-width='{width}'>{lines}</g>"
        yield _layer("ds-wizard-lines", [stroke], kind)


def _layer(look: str, shapes: Iterable[str], kind: str | None = None) -> html.I:
    style = {"--thumb": f'url("{mask("".join(shapes), PICTURE)}")'}
    return html.I(className=look, style=style | ({"--kind": kind} if kind else {}))


class Box(NamedTuple):
    """What stands for a device or for several: words, a look, its middle and its sides."""

    words: str
    look: str
    x: float
    y: float
    wide: float
    high: float


class Tie(NamedTuple):
    """Two places, and how wide the line between them is."""

    x1: float
    y1: float
    x2: float
    y2: float
    width: float


@dataclass(slots=True)
class Drawn:
    """What is drawn: boxes, and lines by what they join."""

    boxes: list[Box] = field(default_factory=list)
    ties: dict[str, list[Tie]] = field(default_factory=lambda: defaultdict(list))
    leaves: list[tuple[float, float]] = field(default_factory=list)
    """Where a line to the spines begins, and how wide it is."""


def some_of(number: int, most: int = MOST) -> list[int | None]:
    """Return which of a row are shown: all, or the first ones, None for a gap, and the last."""
    if number <= most:
        return list(range(number))
    return [*range(most - 2), None, number - 1]


def tiers(plan: Plan, fabric: Fabric, made: Topology, words: str) -> html.Div:
    """Return the picture of a plan.

    Parameters
    ----------
    words
        What it has, for those who do not see it.
    """
    drawn = Drawn()
    _groups(drawn, plan, fabric)
    _spines(drawn, fabric)
    colours = _colours(plan, made)
    return ui.div(
        "ds-wizard-picture ds-tiers",
        *(_box(each) for each in drawn.boxes if each.look == HOST),
        *(_lines(colours[what], drawn.ties[what]) for what in colours),
        *(_box(each) for each in drawn.boxes if each.look != HOST),
        *_counts(plan, fabric, colours),
        role="img",
        aria_label=words,
    )


def _groups(drawn: Drawn, plan: Plan, fabric: Fabric) -> None:
    """Draw the first group whole, and of the others the second and the last."""
    number = len(fabric.groups)
    wide = (RIGHT - LEFT) if number == 1 else 248.0 if number == 2 else 208.0
    _first_group(drawn, plan, fabric, LEFT + wide)
    others = some_of(number, 3)[1:]
    if not others:
        return
    begin = LEFT + wide + 8
    each = (RIGHT - begin - (14.0 if None in others else 0.0)) / sum(g is not None for g in others)
    for group in others:
        if group is None:
            drawn.boxes += [Box("…", "ds-gap", begin + 7, y, 14, 16) for y in (LEAVES, 214.0)]
            begin += 14
        else:
            _other_group(drawn, plan, fabric, group, (begin + 4, begin + each))
            begin += each


def _first_group(drawn: Drawn, plan: Plan, fabric: Fabric, right: float) -> None:
    """Draw the leaves of the first group, its first host, and some of its others."""
    hosts = fabric.groups[0]
    among = right - 52 if hosts > 1 else right
    number = plan.nics if plan.rails else 1
    leaves = _row(drawn, "leaf", some_of(number), (LEFT, right), LEAVES)
    drawn.leaves += [(x, 0.7) for x in leaves.values()]
    _host(drawn, plan, (LEFT, among), leaves)
    if hosts > 1:
        middle = (among + right) / 2 + 3
        top = _stack(drawn, range(1, hosts), (among + 8, right))
        width = 0.7 if plan.rails else 2.4
        drawn.ties["port"] += [Tie(middle, top, x, LEAVES + 9, width) for x in leaves.values()]


def _row(
    drawn: Drawn, name: str, which: Sequence[int | None], span: tuple[float, float], y: float
) -> dict[int, float]:
    """Draw a row of devices and return where each stands; only a wide box has its name."""
    step = (span[1] - span[0]) / len(which)
    wide = min(step - 5, 64.0)
    at = {}
    for place, each in enumerate(which):
        x = span[0] + (place + 0.5) * step
        if each is None:
            drawn.boxes.append(Box("…", "ds-gap", x, y, step, 16))
            continue
        at[each] = x
        words = f"{name}{each}" if wide > 11 + 6 * len(name) else f"{each}" if wide > 14 else ""
        drawn.boxes.append(Box(words, LOOKS[name], x, y, wide, 18))
    return at


def _host(drawn: Drawn, plan: Plan, span: tuple[float, float], leaves: Mapping[int, float]) -> None:
    """Draw the first host with its NICs, its GPUs and what joins them."""
    middle, high = sum(span) / 2, FOOT - HOSTS
    drawn.boxes.append(Box("", HOST, middle, HOSTS + high / 2, span[1] - span[0] - 2, high))
    inside = (span[0] + 6, span[1] - 6)
    nics = _row(drawn, "nic", some_of(plan.nics), inside, NICS)
    gpus = _row(drawn, "g", some_of(plan.gpus), inside, GPUS)
    for nic, x in nics.items():
        to = leaves.get(nic if plan.rails else 0)
        if to is not None:
            drawn.ties["port"].append(Tie(x, NICS - 9, to, LEAVES + 9, 1.2))
        first = nic * plan.gpus // plan.nics
        own = range(first, first + max(1, plan.gpus // plan.nics))
        drawn.ties["bus"] += [
            Tie(x, NICS + 9, gpus[gpu], GPUS - 9, 1.2) for gpu in own if gpu in gpus
        ]
    drawn.boxes.append(Box("h0", "ds-tier-name", middle, NAME, 40, 14))
    if plan.gpus > 1:
        words, look = {
            "switch": ("switch", "ds-switch"),
            "mesh": ("each GPU to each", "ds-tier-join"),
            "ring": ("a ring of GPUs", "ds-tier-join"),
        }[plan.joined]
        drawn.boxes.append(Box(words, look, middle, INNER, inside[1] - inside[0] - 8, 18))
        drawn.ties["inner"] += [Tie(x, GPUS + 9, x, INNER - 9, 1.2) for x in gpus.values()]


def _stack(drawn: Drawn, hosts: range, span: tuple[float, float]) -> float:
    """Draw hosts as a column of boxes with their names, and return where it begins."""
    which = some_of(len(hosts), 5)
    step = (FOOT - HOSTS) / max(5, len(which))
    for place, each in enumerate(which):
        middle, y = sum(span) / 2, HOSTS + (place + 0.5) * step
        if each is None:
            drawn.boxes.append(Box("⋮", "ds-gap", middle, y, 20, 16))
        else:
            words = f"h{hosts[each]}"
            drawn.boxes.append(Box(words, HOST, middle, y, span[1] - span[0], step - 5))
    return HOSTS + 2.5


def _other_group(
    drawn: Drawn, plan: Plan, fabric: Fabric, group: int, span: tuple[float, float]
) -> None:
    """Draw the leaves of a group as one box, its hosts below."""
    first = sum(fabric.groups[:group])
    words = f"{plan.nics} leaves" if plan.rails and plan.nics > 1 else f"leaf{group}"
    middle = sum(span) / 2
    drawn.boxes.append(Box(words, "ds-switch", middle, LEAVES, span[1] - span[0], 18))
    drawn.leaves.append((middle, 2.4))
    top = _stack(drawn, range(first, first + fabric.groups[group]), span)
    drawn.ties["port"].append(Tie(middle, top, middle, LEAVES + 9, 2.4))


def _spines(drawn: Drawn, fabric: Fabric) -> None:
    """Draw the spines and what joins each to all leaves that are shown."""
    if not fabric.spines:
        return
    which = some_of(fabric.spines, 6)
    half = min((RIGHT - LEFT) / 2, 38.0 * len(which))
    middle = (LEFT + RIGHT) / 2
    at = _row(drawn, "spine", which, (middle - half, middle + half), SPINES)
    drawn.ties["uplink"] += [
        Tie(x, SPINES + 9, leaf, LEAVES - 9, width)
        for x in at.values()
        for leaf, width in drawn.leaves
    ]


def _colours(plan: Plan, made: Topology) -> dict[str, str]:
    """Return the colour of each kind of links, as the canvas has it."""
    classes = link_classes(made, least=0)
    titles = list(dict.fromkeys(classes.values()))
    ends = {
        "uplink": ("leaf0", "spine0"),
        "port": ("leaf0", "nic0"),
        "bus": ("nic0", "g0"),
        "inner": ("g0", "nvswitch0" if plan.joined == "switch" else "g1"),
    }
    numbers = {
        what: titles.index(classes[pair]) if pair in classes else 0 for what, pair in ends.items()
    }
    return {
        what: f"light-dark({LIGHT.links[number]}, {DARK.links[number]})"
        for what, number in numbers.items()
    }


def _counts(plan: Plan, fabric: Fabric, colours: Mapping[str, str]) -> Iterator[html.Span]:
    """Yield what stands at the left: how many of each tier, and how fast what joins them is."""
    boxes = plan.hosts if plan.joined == "switch" and plan.gpus > 1 else 0
    rows = (
        (SPINES, text.count(fabric.spines, "spine") if fabric.spines else "No spines", ""),
        (62.0, _rate(fabric.parallel, plan.uplink.bandwidth) if fabric.spines else "", "uplink"),
        (LEAVES, text.count(fabric.leaves, "leaf", "leaves"), ""),
        (138.0, _rate(1, plan.port.bandwidth), "port"),
        (NICS, text.count(plan.hosts * plan.nics, "NIC"), ""),
        (198.0, _rate(1, plan.bus.bandwidth), "bus"),
        (GPUS, text.count(plan.hosts * plan.gpus, "GPU"), ""),
        (236.0, _rate(1, plan.inner.bandwidth) if plan.gpus > 1 else "", "inner"),
        (INNER, text.count(boxes, "switch", "switches") if boxes else "", ""),
        (NAME, text.count(plan.hosts, "host"), ""),
    )
    for y, words, what in rows:
        if words:
            key = html.I(style={"background": colours[what]}) if what else None
            look = "ds-tier-rate" if what else "ds-tier-count"
            yield html.Span([key, words], className=look, style={"top": _part(y, SIZE[1])})


def _rate(links: int, bandwidth: float) -> str:
    each = f"{text.digits(bandwidth)} GB/s"
    return f"{links} × {each}" if links > 1 else each


def _part(length: float, whole: float) -> str:
    return f"{100 * length / whole:.3g}%"


def _box(box: Box) -> html.Span:
    wide, high = SIZE
    return html.Span(
        box.words,
        className=f"ds-tier {box.look}",
        style={
            "left": _part(box.x - box.wide / 2, wide),
            "top": _part(box.y - box.high / 2, high),
            "width": _part(box.wide, wide),
            "height": _part(box.high, high),
        },
    )


def _lines(colour: str, ties: Iterable[Tie]) -> html.I:
    """Return lines of one colour; what is behind shows through where there are many."""
    drawn = "".join(
        f"<path d='M{each.x1:.1f} {each.y1:.1f}L{each.x2:.1f} {each.y2:.1f}' "
        f"stroke-width='{each.width:g}'/>"
        for each in ties
    )
    thumb = mask(f"<g stroke='#000'>{drawn}</g>", SIZE)
    return html.I(className="ds-tier-lines", style={"--thumb": f'url("{thumb}")', "--kind": colour})
