"""In what two clusters differ, in sentences, where devices of one are known in the other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from ccl.topology import Device, Link, Topology
from interchange.formats.machines._told import count


def difference(
    drawn: Topology, back: Topology, called: Mapping[str, str]
) -> tuple[int, tuple[str, ...]]:
    """Compare a cluster with what was read back.

    Parameters
    ----------
    drawn
        The cluster.
    back
        What was read.
    called
        What the devices of the first that were written are called in the second.

    Returns
    -------
    int
        How much differs but for names and latencies.
    tuple of str
        Sentences; none only if the two are equal.
    """
    told: list[str] = []
    kept = {name: to for name, to in called.items() if to in back.index}
    differing = _devices(drawn, back, kept, told) + _links(drawn, back, kept, told)
    if drawn.limits:
        told.append(f"{count(len(drawn.limits), 'shared limit')}")
    renamed = [name for name, to in kept.items() if name != to]
    if renamed:
        told.append(
            f"the names of {count(len(renamed), 'device')}, such as {renamed[0]}, which becomes "
            f"{kept[renamed[0]]}"
        )
    elif not told and drawn != back:
        told.append("the name of the cluster, the order of devices and links, or last digits")
    return differing + len(drawn.limits), tuple(told)


def _devices(drawn: Topology, back: Topology, kept: Mapping[str, str], told: list[str]) -> int:
    gone = [each.name for each in drawn.devices if each.name not in kept]
    if gone:
        told.append(
            f"{count(len(gone), 'device')} of other hosts, the network or no kind of NCCL's"
            f": {_some(gone)}"
        )
    new = sorted(set(back.index) - set(kept.values()), key=back.index.__getitem__)
    if new:
        told.append(f"places are invented that NCCL wants: {_some(new)}")
    changed = [
        each.name
        for each in drawn.devices
        if each.name in kept and not _same(each, back.device(kept[each.name]))
    ]
    if changed:
        told.append(
            f"host, kind, abilities or buffer of {count(len(changed), 'device')}: {_some(changed)}"
        )
    return len(gone) + len(new) + len(changed)


def _same(drawn: Device, back: Device) -> bool:
    return replace(drawn, name=back.name) == back


def _links(drawn: Topology, back: Topology, kept: Mapping[str, str], told: list[str]) -> int:
    known = [link for link in drawn.links if link.src in kept and link.dst in kept]
    ends = {(kept[link.src], kept[link.dst]) for link in known}
    pairs = [
        (link, back.links[back.link_index[kept[link.src], kept[link.dst]]])
        for link in known
        if (kept[link.src], kept[link.dst]) in back.link_index
    ]
    there = {link.ends for link, _ in pairs}
    gone = [link for link in known if link.ends not in there]
    if gone:
        told.append(f"{count(len(gone), 'link')} that the format cannot say: {_some(gone)}")
    old = set(kept.values())
    new = [
        link for link in back.links if link.ends not in ends and link.src in old and link.dst in old
    ]
    if new:
        told.append(f"{count(len(new), 'link')} that NCCL takes to be there: {_some(new)}")
    other = [(a, b) for a, b in pairs if not math.isclose(a.bandwidth, b.bandwidth)]
    if other:
        first, read = other[0]
        told.append(
            f"the bandwidth of {count(len(other), 'link')}, such as {first}: {first.bandwidth:.8g} "
            f"GB/s becomes {read.bandwidth:.8g} GB/s"
        )
    late = [(a, b) for a, b in pairs if a.alpha != b.alpha]
    if late:
        first, read = late[0]
        told.append(
            f"the latency of {count(len(late), 'link')}, such as {first}: {first.alpha:g} µs "
            f"becomes {read.alpha:g} µs"
        )
    worded = [a for a, b in pairs if (a.medium, a.count) != (b.medium, b.count)]
    if worded:
        told.append(f"medium or number of {count(len(worded), 'link')}: {_some(worded)}")
    return len(gone) + len(new) + len(other) + len(worded)


def _some(what: list[str] | list[Link]) -> str:
    """Name at most four of many."""
    named = ", ".join(str(each) for each in what[:4])
    return named if len(what) <= 4 else f"{named} and {len(what) - 4:,} more"
