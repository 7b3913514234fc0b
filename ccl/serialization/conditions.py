"""The conditions of a problem as a person writes them: tenants, and windows of less bandwidth.

Tenants, several jobs that share a cluster, are YAML (`read_tenants`)::

    tenants:
      - name: training
        collective: all-reduce
        size: 1GB
        ranks: [gpu0, gpu1, gpu2, gpu3]
        priority: 3
      - name: serving
        collective: broadcast
        size: 20MB
        ranks: 4-7
        root: 5
        chunks: 2

Ranks are names of GPUs, numbers of ranks or ranges of them, by default all of the cluster; the
root is one of them, by default the first. Without a priority it is 1, without chunks one a shard.

Windows are one text each, on command lines too: ``gpu0->gpu1@0..50us=0.5`` (`parse_window`). Before
``@`` stand links, by commas: ``a->b`` one way, ``a<->b`` both, or a device with all of its links.
Then from when to when, in us, ms or s, and what share of the bandwidth is left, ``0.5`` or ``50%``.
"""

import re
from typing import Annotated, cast

from msgspec import Meta, Struct

from ccl.collective import COLLECTIVES, CollectiveKind, Tenant, make_collective
from ccl.errors import FormatError
from ccl.problem import Window
from ccl.serialization import topoloom as nouns
from ccl.serialization.quantity import parse_size
from ccl.serialization.text import Integer, yaml_in
from ccl.topology import Topology

MOST_TENANTS = 1_000
"""Tenants of one cluster."""

_RANGE = re.compile(r"(\d{1,7})\s*-\s*(\d{1,7})")


class _Tenant(Struct, forbid_unknown_fields=True):
    """One of them, as it is written."""

    name: str
    collective: str
    size: str | float | Integer
    ranks: str | Integer | list[str | Integer] | None = None
    root: str | Integer | None = None
    chunks: Annotated[int, Meta(ge=1, le=10_000)] = 1
    priority: float = 1.0


class _Tenants(Struct, forbid_unknown_fields=True):
    """The file."""

    tenants: Annotated[list[_Tenant], Meta(min_length=1, max_length=MOST_TENANTS)]


def read_tenants(
    content: bytes, topology: Topology, *, name: str = "tenants"
) -> tuple[Tenant, ...]:
    """Read the tenants of a cluster.

    Parameters
    ----------
    content
        YAML.
    topology
        Whose GPUs they name.
    name
        What the sentences of errors begin with.

    Raises
    ------
    FormatError
        If it is no YAML or not of the shape, with the place.
    ProblemError
        If a rank or a collective does not exist, or a number is out of range.
    """
    made: _Tenants = nouns.shaped(yaml_in(content, name=name), _Tenants, name)
    return tuple(_tenant(each, topology, f"{name}, tenant {each.name}") for each in made.tenants)


def _tenant(given: _Tenant, topology: Topology, where: str) -> Tenant:
    kinds = [each for each in COLLECTIVES if each != "custom"]
    if given.collective not in kinds:
        raise FormatError(
            f"{where}: collective {given.collective!r} is unknown; there are {', '.join(kinds)}"
        )
    ranks = _ranks(given.ranks, topology, where)
    if len(ranks) < 2:
        raise FormatError(f"{where}: a collective needs 2 ranks or more, got {len(ranks)}")
    root = ranks[0] if given.root is None else _rank(given.root, topology, where)
    if root not in ranks:
        name = topology.ranks[root]
        raise FormatError(f"{where}: the root {name} is not one of its ranks; name one of them")
    made = make_collective(
        cast(CollectiveKind, given.collective),
        len(ranks),
        parse_size(str(given.size)),
        chunks=given.chunks,
        root=ranks.index(root),
    )
    return Tenant(given.name, made, ranks, given.priority)


def _ranks(
    given: str | int | list[str | int] | None, topology: Topology, where: str
) -> tuple[int, ...]:
    """Return ranks by their numbers, in the order in which names, numbers and ranges stand."""
    if given is None:
        return tuple(range(len(topology.ranks)))
    found: list[int] = []
    for each in given if isinstance(given, list) else str(given).split(","):
        pair = _RANGE.fullmatch(str(each).strip())
        if pair is None or str(each) in topology.rank:
            found.append(_rank(each, topology, where))
            continue
        first, last = (_rank(int(end), topology, where) for end in pair.groups())
        found += range(first, last + 1)
    return tuple(found)


def _rank(given: str | int, topology: Topology, where: str) -> int:
    name = str(given).strip()
    if name in topology.rank:
        return topology.rank[name]
    if name.isdecimal() and int(name) < len(topology.ranks):
        return int(name)
    last = len(topology.ranks) - 1
    raise FormatError(
        f"{where}: {name!r} is no GPU of {topology}; give a name or a rank from 0 to {last}"
    )


_UNITS = {"us": 1.0, "µs": 1.0, "μs": 1.0, "ms": 1e3, "s": 1e6}
_NUMBER = r"\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+"
_UNIT = "|".join(_UNITS)
_TIMES = re.compile(
    rf"\s*({_NUMBER})\s*({_UNIT})?\s*\.\.\s*({_NUMBER})\s*({_UNIT})?\s*", re.IGNORECASE
)
_SHARE = re.compile(rf"\s*({_NUMBER})\s*(%)?\s*", re.IGNORECASE)


def parse_window(text: str, topology: Topology) -> Window:
    """Return the window that a text such as ``gpu0->gpu1@0..50us=0.5`` means.

    Parameters
    ----------
    text
        Links, times and the share that is left.
    topology
        The cluster, whose links the text names.

    Raises
    ------
    FormatError
        If it is not written like this.
    ProblemError
        If there is no such link or device, no time is covered, or the share is out of range.
    """
    where, _, rest = text.rpartition("@")
    when, _, share = rest.rpartition("=")
    times, left = _TIMES.fullmatch(when), _SHARE.fullmatch(share)
    if not where.strip() or times is None or left is None:
        raise FormatError(f"window {text!r} cannot be read; write it like gpu0->gpu1@0..50us=0.5")
    begin, begins, end, ends = times.groups()
    unit = (ends or begins or "us").lower()
    return Window(
        links=tuple(dict.fromkeys(_links(where, topology))),
        begin=float(begin) * _UNITS[(begins or unit).lower()],
        end=float(end) * _UNITS[unit],
        share=float(left[1]) * (0.01 if left[2] else 1.0),
    )


def _links(where: str, topology: Topology) -> list[tuple[str, str]]:
    """Return the ends of each link that is named."""
    found: list[tuple[str, str]] = []
    for each in (part.strip() for part in where.split(",")):
        if "<->" in each:
            first, _, second = (end.strip() for end in each.partition("<->"))
            found += [topology.link(first, second).ends, topology.link(second, first).ends]
        elif "->" in each:
            src, _, dst = (end.strip() for end in each.partition("->"))
            found.append(topology.link(src, dst).ends)
        else:
            name = topology.device(each).name
            both = (*topology.links_out[name], *topology.links_in[name])
            found += [link.ends for link in both]
    return found
