"""Tenants as YAML: several jobs that share a cluster, as a person writes them down.

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
"""

from __future__ import annotations

import re
from typing import Annotated, cast

from msgspec import Meta, Struct

from ccl.collective import COLLECTIVES, CollectiveKind, make_collective
from ccl.errors import FormatError
from ccl.serialization.plain_yaml import yaml_in
from ccl.serialization.size import parse_size
from ccl.serialization.text import Integer
from ccl.serialization.topoloom import shaped
from ccl.tenants import Tenant
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
    made: _Tenants = shaped(yaml_in(content, name=name), _Tenants, name)
    return tuple(_tenant(each, topology, f"{name}, tenant {each.name}") for each in made.tenants)


def _tenant(given: _Tenant, topology: Topology, where: str) -> Tenant:
    kinds = [each for each in COLLECTIVES if each != "custom"]
    if given.collective not in kinds:
        msg = f"{where}: collective {given.collective!r} is unknown; there are {', '.join(kinds)}"
        raise FormatError(msg)
    ranks = _ranks(given.ranks, topology, where)
    if len(ranks) < 2:
        msg = f"{where}: a collective needs 2 ranks or more, got {len(ranks)}"
        raise FormatError(msg)
    root = ranks[0] if given.root is None else _rank(given.root, topology, where)
    if root not in ranks:
        told = topology.ranks[root]
        msg = f"{where}: the root {told} is none of its ranks; name one of them"
        raise FormatError(msg)
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
    msg = f"{where}: {name!r} is no GPU of {topology}; give a name or a rank from 0 to {last}"
    raise FormatError(msg)
