"""Devices and links that can change places, told in words and as marks on the drawing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ccl.symmetry import Group
from ccl.topology import Topology

Ends = tuple[str, str]

MOST_NAMES = 3
"""Names in the words of a class."""


@dataclass(frozen=True, slots=True)
class Alike:
    """What an automorphism of the cluster can exchange for one another.

    Parameters
    ----------
    badge
        Its letter: A, B, ... Z, AA, ...
    devices
        Names of its devices.
    links
        Ends of its links, both ways.
    words
        What it has: ``8 GPUs: g0, g1, g2 and 5 more``.
    """

    badge: str
    devices: tuple[str, ...] = ()
    links: tuple[Ends, ...] = ()
    words: str = ""


def gpu_classes(topology: Topology, group: Group) -> tuple[Alike, ...]:
    """Return the classes of GPUs, the largest first; lone ones are classes too."""
    label = group.orbits()
    members: dict[int, list[str]] = {}
    for name in topology.ranks:
        members.setdefault(int(label[topology.index[name]]), []).append(name)
    ordered = sorted(members.values(), key=lambda each: -len(each))
    return tuple(
        Alike(
            letters(i), devices=tuple(names), words=f"{counted(len(names), 'GPU')}: {some(names)}"
        )
        for i, names in enumerate(ordered)
    )


def link_classes(topology: Topology, group: Group) -> tuple[Alike, ...]:
    """Return the classes of links, the largest first; a link belongs with its opposite."""
    label = group.link_orbits().tolist()
    place = topology.link_index
    members: dict[tuple[int, ...], list[Ends]] = {}
    for number, link in enumerate(topology.links):
        back = place.get((link.dst, link.src))
        both = {label[number]} if back is None else {label[number], label[back]}
        members.setdefault(tuple(sorted(both)), []).append(link.ends)
    ordered = sorted(members.values(), key=lambda each: -len(each))
    return tuple(
        Alike(letters(i), links=tuple(ends), words=link_words(topology, ends))
        for i, ends in enumerate(ordered)
    )


def link_words(topology: Topology, links: Sequence[Ends]) -> str:
    """Say what links have in common: ``32 links of 25 GB/s, GPU to rail (InfiniBand)``."""
    lines = {(min(ends), max(ends)) for ends in links}
    first = topology.link(*links[0])
    kinds = {topology.link(*ends).medium for ends in links}
    between = {tuple(sorted(stem(topology, name) for name in ends)) for ends in lines}
    rates = {topology.link(*ends).bandwidth for ends in links}
    words = counted(len(lines), "link")
    if len(rates) == 1:
        words += f" of {first.bandwidth:.4g} GB/s"
    if len(between) == 1:
        one, other = between.pop()
        words += f", {one} to {other}"
    return f"{words} ({kinds.pop()})" if len(kinds) == 1 and first.medium else words


def stem(topology: Topology, name: str) -> str:
    """Return what a device is called without its number: ``GPU``, ``nvswitch``, ``rail``."""
    found = topology.device(name)
    if found.kind == "gpu":
        return "GPU"
    own = name.removeprefix(found.host or "").strip(" /.:_-")
    return re.sub(r"[\d\s._-]+$", "", own) or found.kind


def class_marks(classes: Sequence[Alike], *, title: str) -> dict[str, Any] | None:
    """Return the marks of classes (`widgets.shown.scene`); lone members are left as they are."""
    groups = [
        {
            "tone": {"class": i},
            "devices": list(each.devices),
            "links": [list(ends) for ends in each.links],
            "badge": each.badge,
            "label": each.words,
        }
        for i, each in enumerate(classes)
        if len(each.devices) != 1
    ]
    return {"title": title, "groups": groups} if groups else None


def letters(number: int) -> str:
    """Return A for 0, Z for 25, AA for 26."""
    text = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        text = chr(ord("A") + digit) + text
    return text


def counted(number: int, what: str) -> str:
    """Write ``1 GPU``, ``16 GPUs``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def some(names: Iterable[str]) -> str:
    """Write ``a, b, c and 5 more``."""
    listed = list(names)
    if len(listed) <= MOST_NAMES + 1:
        return ", ".join(listed)
    return f"{', '.join(listed[:MOST_NAMES])} and {len(listed) - MOST_NAMES} more"
