"""A cluster written out as Python code: runs of devices and of links that are alike as loops."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from ccl.topology import ABILITIES, Device, Link, Topology
from interchange.formats.own._python_text import (
    INDENT,
    WIDTH,
    Code,
    Group,
    Script,
    call,
    lines,
    one_line,
    tall,
)

_NUMBERED = re.compile(r"([A-Za-z_.\-]*)(0|[1-9][0-9]{0,8})")


def add_topology(code: Script, topology: Topology) -> None:
    """Write out a cluster: runs of devices and of links that are alike as one."""
    code.uses("ccl.topology", "Topology")
    if topology.devices:
        code.uses("ccl.topology", "device")
    code.add(lines(tall(_devices(topology.devices)), before="devices = "))
    code.add("links = []")
    for run in _runs(topology.links):
        code.uses("ccl.topology", "duplex" if run[0].both else "Link")
        code.add(_linked(run))
    parts = [topology.name, Code("tuple(devices)"), Code("tuple(links)")]
    if topology.limits:
        code.uses("ccl.topology", "SharedLimit")
        limits = (
            call("SharedLimit", each.name, each.links, each.bandwidth) for each in topology.limits
        )
        code.add(lines(tall(limits), before="limits = "))
        parts.append(Code("tuple(limits)"))
    code.add(lines(call("Topology", *parts), before="topology = "))


def _devices(devices: Sequence[Device]) -> Iterator[Any]:
    """Yield each device, or those that are alike and numbered in one line."""
    place = 0
    while place < len(devices):
        run = _numbered(devices, place)
        found = _NUMBERED.fullmatch(devices[place].name)
        if run >= 3 and found is not None:
            first = int(found[2])
            span = f"{first}, {first + run}" if first else f"{run}"
            made = one_line(_device(devices[place], Code(f'f"{found[1]}{{i}}"')))
            line = f"*({made} for i in range({span}))"
            if len(line) + len(INDENT) < WIDTH:
                yield Code(line)
                place += run
                continue
        yield _device(devices[place], devices[place].name)
        place += 1


def _numbered(devices: Sequence[Device], place: int) -> int:
    """Return how many devices from a place on are alike but for the numbers of their names."""
    first = _NUMBERED.fullmatch(devices[place].name)
    if first is None:
        return 1
    count, number = 1, int(first[2])
    while place + count < len(devices):
        wanted = replace(devices[place], name=f"{first[1]}{number + count}")
        if devices[place + count] != wanted:
            break
        count += 1
    return count


def _device(each: Device, name: str | Code) -> Group:
    able = {"stores": each.stores, "copies": each.copies, "reduces": each.reduces}
    usual = zip(able.items(), ABILITIES[each.kind], strict=True)
    named: dict[str, Any] = {} if each.host is None else {"host": each.host}
    named |= {key: value for (key, value), default in usual if value != default}
    if each.buffer_bytes is not None:
        named["buffer_bytes"] = each.buffer_bytes
    return call("device", each.kind, name, **named)


@dataclass(frozen=True)
class _Pair:
    """A link, or two opposite ones, that follow each other; equal `named` are alike."""

    link: Link
    both: bool

    @property
    def named(self) -> dict[str, Any]:
        """Everything but the ends."""
        link = self.link
        named: dict[str, Any] = {"bandwidth": link.bandwidth}
        if repr(link.alpha) != "0.0":
            named["alpha"] = link.alpha
        if link.medium:
            named["medium"] = link.medium
        if link.count != 1:
            named["count"] = link.count
        return named


def _runs(links: Sequence[Link]) -> Iterator[list[_Pair]]:
    """Yield links that follow each other and are alike, two opposite ones as one."""
    pairs = []
    place = 0
    while place < len(links):
        one = links[place]
        both = links[place + 1 : place + 2] == (replace(one, src=one.dst, dst=one.src),)
        pairs.append(_Pair(one, both))
        place += 1 + both
    for _, run in groupby(pairs, key=lambda each: (each.both, repr(each.named))):
        yield list(run)


def _linked(run: Sequence[_Pair]) -> str:
    """Return the lines that add a run of links: a loop over the ends where there are several."""
    first = run[0]
    what = "duplex" if first.both else "Link"
    if len(run) == 1:
        made = call(what, *first.link.ends, **first.named)
        if first.both:
            return lines(made, before="links += ")
        return lines(Group("links.append(", (("", made),), ")"))
    made = call(what, Code("src"), Code("dst"), **first.named)
    head = lines(tall(each.link.ends for each in run), before="for src, dst in ", after=":")
    if first.both:
        return f"{head}\n{lines(made, before='links += ', indent=INDENT)}"
    return f"{head}\n{lines(Group('links.append(', (('', made),), ')'), indent=INDENT)}"
