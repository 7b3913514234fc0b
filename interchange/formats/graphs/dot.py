"""Topologies as a drawing in DOT, the language of Graphviz.

Hosts are clusters, kinds are shapes, links that are alike in both directions are one line with two
heads. Where every device has a place on our drawing it keeps it (``pos="x,y!"``, in inches, y up,
72 of our units to the inch) and neato draws it, which keeps places and frames clusters; otherwise
the layout is left to Graphviz.

Source: graphviz.org, "DOT Language" and "escString".
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ccl import text
from ccl.serialization.documents import Document
from ccl.topology import ABILITIES, Device, DeviceKind, Link, Topology
from interchange.formats.fields import select_sentences
from interchange.formats.format import Writer, Written, one_file
from interchange.formats.graphs._graph import lost_of

UNITS_PER_INCH = 72.0

_SHAPES: dict[DeviceKind, str] = {
    "gpu": "box",
    "switch": "hexagon",
    "memory": "cylinder",
    "nic": "ellipse",
}
_TOKEN = re.compile(r"[A-Za-z0-9._-]+")


def write(content: Document) -> Written:
    """Write the topology and where it is drawn."""
    return one_file(dot_text(content), ending="dot", lost=_lost(content))


def dot_text(content: Document) -> str:
    """Return the drawing of a document's topology as the text of a file."""
    topology = content.topology
    placed = all(each.name in content.positions for each in topology.devices)
    lines = [
        f"digraph {_quoted(topology.name)} {{",
        f"  label={_quoted(topology.name)};",
        *(["  layout=neato;"] if placed else []),
        "  node [fontsize=10];",
        "  edge [fontsize=8];",
    ]
    ids = _ids(topology)
    hosts: dict[str | None, list[Device]] = {}
    for each in topology.devices:
        hosts.setdefault(each.host, []).append(each)
    for number, (host, devices) in enumerate(hosts.items()):
        rows = [_node(each, content, ids[each.name]) for each in devices]
        if host is None:
            lines += [f"  {row}" for row in rows]
        else:
            lines += [f"  subgraph cluster_{number} {{", f"    label={_quoted(host)};"]
            lines += [*(f"    {row}" for row in rows), "  }"]
    lines += [f"  {row}" for row in _edges(topology, ids)]
    return "\n".join([*lines, "}"]) + "\n"


def _ids(topology: Topology) -> dict[str, str]:
    """Return what each device is called in the file: its name where all names are plain."""
    names = [each.name for each in topology.devices]
    if all(_TOKEN.fullmatch(name) for name in names):
        return {name: f'"{name}"' for name in names}
    return {name: f"d{number}" for number, name in enumerate(names)}


def _node(each: Device, content: Document, name: str) -> str:
    words = [f"shape={_SHAPES[each.kind]}", f"label={_quoted(each.name)}"]
    if each.name in content.positions:
        x, y = content.positions[each.name]
        words.append(f'pos="{x / UNITS_PER_INCH:.6g},{-y / UNITS_PER_INCH:.6g}!"')
    return f"{name} [{', '.join(words)}];"


def _edges(topology: Topology, ids: Mapping[str, str]) -> Iterator[str]:
    index = topology.link_index
    for place, link in enumerate(topology.links):
        back = index.get((link.dst, link.src))
        opposite = replace(link, src=link.dst, dst=link.src)
        same = back is not None and topology.links[back] == opposite
        if same and back is not None and back < place:
            continue
        words = [f"label={_quoted(f'{link.bandwidth:.6g} GB/s')}"]
        if same:
            words.append("dir=both")
        words.append(f"tooltip={_quoted(_told(link))}")
        yield f"{ids[link.src]} -> {ids[link.dst]} [{', '.join(words)}];"


def _told(link: Link) -> str:
    """Return what a pointer over a link shows."""
    medium = [f"{link.count} x {link.medium}" if link.count > 1 else link.medium]
    return ", ".join([*filter(None, medium), f"alpha {link.alpha:.6g} µs"])


def _quoted(text: str) -> str:
    r"""Return a text as a label, in which ``\``, ``"`` and ``&`` mean something."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
    lines = escaped.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return '"' + "\\n".join(lines).replace("\0", "\N{REPLACEMENT CHARACTER}") + '"'


def _lost(content: Document) -> tuple[str, ...]:
    topology = content.topology
    unusual = sum(
        (each.stores, each.copies, each.reduces) != ABILITIES[each.kind]
        or each.buffer_bytes is not None
        for each in topology.devices
    )
    limits = len(topology.limits)
    able = f"what {text.count(unusual, 'device')} can do unlike others of its kind"
    lost = select_sentences((limits, text.count(limits, "shared limit")), (unusual, able))
    return (*lost, *lost_of(content))


WRITER = Writer("dot", "Graphviz (DOT)", "dot", "topology", write)
