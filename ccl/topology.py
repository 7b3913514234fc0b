"""Devices, links and shared limits: the cluster that is drawn.

Bandwidths are in GB/s (10^9 bytes a second) and one way, latencies in µs. Positions on a drawing
are not part of a topology (`ccl.layout`): two topologies are equal when they carry data alike.

An `Interchange` or a `Permutation` declares what the builder of a cluster knows of its symmetry;
`ccl.symmetry` checks it before it is used. A declaration is only a hint: it may have become wrong
by an edit of the cluster, and what is wrong is left out, generator by generator.

`many_links` makes links by the million: a full mesh of a thousand GPUs has as many, and a file is
read at once.
"""

from __future__ import annotations

import gc
import math
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter, eq
from typing import Literal, get_args

import numpy as np

from ccl.display import mime_bundle
from ccl.errors import ProblemError


@dataclass(frozen=True, slots=True)
class Interchange:
    """Blocks of devices that may be permuted among one another at will.

    Parameters
    ----------
    blocks
        Names of the devices of each block, all equally many; devices at the same place of two
        blocks take each other's place.
    inner
        What may be permuted inside a block, said with the names of the first one; it holds in
        every block on its own.

    Raises
    ------
    ProblemError
        If there is no block, or they are not equally long.
    """

    blocks: tuple[tuple[str, ...], ...]
    inner: tuple[Declared, ...] = ()

    def __post_init__(self) -> None:
        if len(set(map(len, self.blocks))) != 1 or not self.blocks[0]:
            raise ProblemError(
                "an interchange needs blocks that have equally many devices, and at least one"
            )


@dataclass(frozen=True, slots=True)
class Permutation:
    """One permutation of devices; those that are not named stay where they are.

    Parameters
    ----------
    names
        Devices that move.
    images
        Where each of them goes: the same names in another order.

    Raises
    ------
    ProblemError
        If there are not as many images as names.
    """

    names: tuple[str, ...]
    images: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.names) != len(self.images):
            raise ProblemError(
                f"a permutation of {len(self.names)} devices has {len(self.images)} images"
            )


Declared = Interchange | Permutation


def declares_interchanges_only(declared: Declared) -> bool:
    """Return whether only interchanges are declared, so that it is known what fixes a device."""
    return isinstance(declared, Interchange) and all(
        map(declares_interchanges_only, declared.inner)
    )


DeviceKind = Literal["gpu", "switch", "memory", "nic"]
KINDS: tuple[DeviceKind, ...] = get_args(DeviceKind)

ABILITIES: dict[DeviceKind, tuple[bool, bool, bool]] = {
    "gpu": (True, True, True),
    "memory": (True, True, False),
    "switch": (False, False, False),
    "nic": (False, False, False),
}
"""What a device of a kind does unless it says otherwise: (stores, copies, reduces)."""

LEAST, MOST = 1e-30, 1e30
"""Bandwidths and sizes that are computed with, and the largest latency: products of a few stay
numbers, and nothing that is measured lies beyond."""

_SAME_RATE = 1e-9
"""Rates closer than this share are the same: a limit that is as much as its links never binds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A vertex of the topology.

    Parameters
    ----------
    name
        Unique in its topology; it is the identifier.
    kind
        ``gpu``, ``switch``, ``memory`` or ``nic``; only GPUs have a rank.
    host
        Server, box or chassis that holds it, or None.
    stores, copies, reduces
        The sets V_b, V_c and V_r of the thesis, chapter 3: whether it keeps what it received,
        sends it out more than once, and adds contributions together.
    buffer_bytes
        How much it can keep, in bytes; None means no limit.
    """

    name: str
    kind: DeviceKind
    host: str | None
    stores: bool
    copies: bool
    reduces: bool
    buffer_bytes: float | None = None

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ProblemError(
                f"a {self.kind} has an empty name; give it one, such as {self.kind}0"
            )
        if self.kind not in KINDS:
            raise ProblemError(
                f"device {self.name} is of kind {self.kind!r}; kinds are {', '.join(KINDS)}"
            )
        if self.kind == "gpu" and not self.stores:
            raise ProblemError(f"GPU {self.name} does not store; a GPU must keep what it receives")
        if self.buffer_bytes is not None and not self.buffer_bytes > 0:
            raise ProblemError(
                f"device {self.name} has a buffer of {self.buffer_bytes} bytes; "
                "give a positive number, or none for no limit"
            )


def device(
    kind: DeviceKind,
    name: str,
    *,
    host: str | None = None,
    stores: bool | None = None,
    copies: bool | None = None,
    reduces: bool | None = None,
    buffer_bytes: float | None = None,
) -> Device:
    """Make a device whose abilities are those of its kind unless given.

    Raises
    ------
    ProblemError
        If the kind is unknown, the name is empty or the buffer is not positive.
    """
    if kind not in ABILITIES:
        raise ProblemError(f"device {name} is of kind {kind!r}; kinds are {', '.join(KINDS)}")
    usual = ABILITIES[kind]
    return Device(
        name=name,
        kind=kind,
        host=host,
        stores=usual[0] if stores is None else stores,
        copies=usual[1] if copies is None else copies,
        reduces=usual[2] if reduces is None else reduces,
        buffer_bytes=buffer_bytes,
    )


@dataclass(frozen=True, slots=True)
class Link:
    """A one-way link; sending n bytes takes ``alpha + n * beta`` microseconds.

    Parameters
    ----------
    src, dst
        Names of the devices it leaves and enters.
    bandwidth
        GB/s, one direction, of all `count` parallel links together.
    alpha
        Latency in µs, paid once per send; it does not occupy the link.
    medium
        Its medium, for people: ``NVLink 3``, ``InfiniBand``, ``PCIe 4``.
    count
        Number of parallel links that it stands for.
    """

    src: str
    dst: str
    bandwidth: float
    alpha: float = 0.0
    medium: str = ""
    count: int = 1

    def __post_init__(self) -> None:
        if self.src == self.dst:
            raise ProblemError(
                f"link {self} enters the device it leaves; link two different devices"
            )
        if not LEAST <= self.bandwidth <= MOST:
            raise ProblemError(
                f"link {self} needs a positive bandwidth, got {self.bandwidth} GB/s{_far(self)}"
            )
        if not 0 <= self.alpha <= MOST:
            raise ProblemError(f"link {self} needs an alpha of zero or more, got {self.alpha} µs")
        if self.count < 1:
            raise ProblemError(f"link {self} stands for {self.count} links; give 1 or more")

    @property
    def ends(self) -> tuple[str, str]:
        """``(src, dst)``, which identifies a link in its topology."""
        return self.src, self.dst

    @property
    def beta(self) -> float:
        """Time per byte in µs, the inverse of the bandwidth."""
        return 1e-3 / self.bandwidth

    def transfer_time(self, nbytes: float) -> float:
        """Time in µs until the last of `nbytes` has arrived."""
        return self.alpha + nbytes * self.beta

    def __str__(self) -> str:
        return f"{self.src}->{self.dst}"


def duplex(
    first: str,
    second: str,
    *,
    bandwidth: float,
    alpha: float = 0.0,
    medium: str = "",
    count: int = 1,
) -> tuple[Link, Link]:
    """Return two opposite links with `bandwidth` GB/s in each direction."""
    there = Link(first, second, bandwidth, alpha, medium, count)
    return there, Link(second, first, bandwidth, alpha, medium, count)


@dataclass(frozen=True, slots=True)
class SharedLimit:
    """A cap on the sum of what a set of links carries at any moment.

    A memory bus, a PCIe root, a NIC shared by two GPUs, an upload limit: b(L) of the thesis.

    Parameters
    ----------
    name
        Unique in its topology.
    links
        The ends ``(src, dst)`` of its links.
    bandwidth
        GB/s, of all of them together.
    """

    name: str
    links: tuple[tuple[str, str], ...]
    bandwidth: float

    def __post_init__(self) -> None:
        if not LEAST <= self.bandwidth <= MOST:
            got = f"{self.bandwidth} GB/s{_far(self)}"
            raise ProblemError(f"limit {self.name} needs a positive bandwidth, got {got}")
        if not self.links:
            raise ProblemError(f"limit {self.name} covers no link; name at least one")
        if len(set(self.links)) < len(self.links):
            raise ProblemError(f"limit {self.name} names a link twice; name each once")


@dataclass(frozen=True)
class Topology:
    """Devices with their links and shared limits, checked once when it is made.

    The GPUs in their order are the ranks. Links with the same ends become one: bandwidths and
    counts add up, the larger alpha stays. What is declared of its symmetry is no part of what a
    cluster is: equal clusters may differ in it.

    Raises
    ------
    ProblemError
        If a name is used twice or a link or limit names what is not there.
    """

    name: str
    devices: tuple[Device, ...]
    links: tuple[Link, ...]
    limits: tuple[SharedLimit, ...] = field(default=())
    declared: tuple[Declared, ...] = field(default=(), compare=False, repr=False)

    _repr_mimebundle_ = mime_bundle

    def __post_init__(self) -> None:
        object.__setattr__(self, "links", _merged(self.links))
        _no_twins("device", [each.name for each in self.devices])
        _no_twins("limit", [each.name for each in self.limits])
        known = self.index
        for link in self.links:
            if link.src not in known or link.dst not in known:
                end = link.dst if link.src in known else link.src
                raise ProblemError(f"link {link} names {end}, which is not a device of {self.name}")
        for limit in self.limits:
            for src, dst in limit.links:
                if (src, dst) not in self.link_index:
                    raise ProblemError(
                        f"limit {limit.name} names the link {src}->{dst}, which does not exist"
                    )

    @cached_property
    def index(self) -> dict[str, int]:
        """Position in `devices` of each device name."""
        return {each.name: i for i, each in enumerate(self.devices)}

    @cached_property
    def link_index(self) -> dict[tuple[str, str], int]:
        """Position in `links` of each pair of ends."""
        return {(each.src, each.dst): i for i, each in enumerate(self.links)}

    @cached_property
    def ends(self) -> np.ndarray:
        """Positions in `devices` of where each link leaves and enters, shape (2, links)."""
        index = self.index
        places = [index[name] for each in self.links for name in (each.src, each.dst)]
        return np.array(places, dtype=np.int64).reshape(-1, 2).T.copy()

    @cached_property
    def ranks(self) -> tuple[str, ...]:
        """Names of the GPUs; a GPU's place here is its rank."""
        return tuple(each.name for each in self.devices if each.kind == "gpu")

    @cached_property
    def rank(self) -> dict[str, int]:
        """Rank of each GPU by name."""
        return {name: i for i, name in enumerate(self.ranks)}

    @cached_property
    def links_out(self) -> dict[str, tuple[Link, ...]]:
        """Links that leave each device."""
        out: dict[str, list[Link]] = {each.name: [] for each in self.devices}
        for link in self.links:
            out[link.src].append(link)
        return {name: tuple(links) for name, links in out.items()}

    @cached_property
    def links_in(self) -> dict[str, tuple[Link, ...]]:
        """Links that enter each device."""
        into: dict[str, list[Link]] = {each.name: [] for each in self.devices}
        for link in self.links:
            into[link.dst].append(link)
        return {name: tuple(links) for name, links in into.items()}

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """Names of the hosts, in the order in which they first appear."""
        return tuple(dict.fromkeys(each.host for each in self.devices if each.host is not None))

    def device(self, name: str) -> Device:
        """Return the device called `name`.

        Raises
        ------
        ProblemError
            If there is no such link.
        """
        try:
            return self.devices[self.index[name]]
        except KeyError:
            raise ProblemError(f"{self.name} has no device called {name}") from None

    def link(self, src: str, dst: str) -> Link:
        """Return the link from `src` to `dst`.

        Raises
        ------
        ProblemError
            If there is no such device.
        """
        try:
            return self.links[self.link_index[src, dst]]
        except KeyError:
            raise ProblemError(f"{self.name} has no link {src}->{dst}") from None

    def reversed(self) -> Topology:
        """Return the same cluster with every link turned round.

        A plan on it, read backwards in time, is a plan of the reversed collective here. What
        copies there must reduce here, so the two abilities change places.
        """
        return Topology(
            name=self.name,
            devices=tuple(
                replace(each, copies=each.reduces, reduces=each.copies) for each in self.devices
            ),
            links=tuple(replace(each, src=each.dst, dst=each.src) for each in self.links),
            limits=tuple(
                replace(each, links=tuple((dst, src) for src, dst in each.links))
                for each in self.limits
            ),
            declared=self.declared,
        )

    def __str__(self) -> str:
        return self.name


def _merged(links: tuple[Link, ...]) -> tuple[Link, ...]:
    """Make one link of those with the same ends."""
    if len(set(map(attrgetter("src", "dst"), links))) == len(links):
        return links
    merged: dict[tuple[str, str], Link] = {}
    for link in links:
        have = merged.get(link.ends)
        merged[link.ends] = (
            link
            if have is None
            else replace(
                have,
                bandwidth=have.bandwidth + link.bandwidth,
                alpha=max(have.alpha, link.alpha),
                count=have.count + link.count,
            )
        )
    return tuple(merged.values())


def _no_twins(what: str, names: list[str]) -> None:
    """Refuse a name that is used twice."""
    if len(set(names)) == len(names):
        return
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ProblemError(f"two {what}s are called {name}; each needs a name of its own")
        seen.add(name)


def _far(given: Link | SharedLimit) -> str:
    """Return the message that a bandwidth is positive and no use all the same, if it is."""
    positive = 0 < given.bandwidth < math.inf
    return f"; give {LEAST:g} to {MOST:g} GB/s" if positive else ""


def binding_limits(topology: Topology) -> tuple[SharedLimit, ...]:
    """Return the limits that are below the sum of their links: the others never slow anything."""
    return tuple(
        limit
        for limit in topology.limits
        if limit.bandwidth
        < sum(topology.link(*ends).bandwidth for ends in limit.links) * (1 - _SAME_RATE)
    )


def many_links(
    src: Sequence[str],
    dst: Sequence[str],
    *,
    bandwidth: Sequence[float],
    alpha: Sequence[float],
    medium: Sequence[str],
    count: Sequence[int],
) -> tuple[Link, ...]:
    """Return links given by columns, all of them equally long.

    Raises
    ------
    ProblemError
        If one of them is malformed.
    """
    rates, lates = np.array(bandwidth, dtype=float), np.array(alpha, dtype=float)
    sound = ((rates > 0) & (rates < math.inf) & (lates >= 0) & (lates < math.inf)).all()
    columns = (src, dst, bandwidth, alpha, medium, count)
    if not sound or min(count, default=1) < 1 or any(map(eq, src, dst)):
        return tuple(map(Link, *columns))  # one of which says what is wrong with it
    links = [Link.__new__(Link) for _ in src]
    for name, column in zip(Link.__slots__, columns, strict=True):
        # What a link checks was checked above; its slots are filled as its constructor would.
        deque(map(getattr(Link, name).__set__, links, column), maxlen=0)
    return tuple(links)


@contextmanager
def no_collection() -> Iterator[None]:
    """Leave cyclic garbage alone for a time in which much is made that lives on.

    The collector would look through all of it again and again, for as long as making it takes.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
