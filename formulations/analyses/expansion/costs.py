"""Costs of more bandwidth and of devices, read from a few lines of YAML.

::

    currency: $
    links:                          # the first line that fits a link counts
      - {between: [[gpu0, switch0]], cost: 90}
      - {medium: InfiniBand, cost: 400, step: 12.5, most: 100}
      - {medium: NVLink 3, cost: 60, step: link}
      - {limits: [pcie0], cost: 20}
    devices: {gpu: 15000, switch: 9000, nic: 1200}

A cost of links is of 1 GB/s more on one link, both directions together; ``step`` is the least that
can be bought, in GB/s or as whole links, ``most`` the largest bandwidth that a link may get.
Links that no line fits are not for sale.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from ccl.errors import FormatError, ProblemError
from ccl.serialization.text import describe_misfit, read_bytes, yaml_in
from ccl.topology import KINDS, Link, SharedLimit, Topology

WholeLinks = Literal["link"]
"""A step of one more of the parallel links that a link stands for."""

Ends = tuple[str, str]


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What more bandwidth of some links costs.

    Parameters
    ----------
    cost
        Of 1 GB/s more on one link, both directions together; of a shared limit, on one limit.
    medium
        Only links whose medium is this or begins with this word; None for all.
    bandwidth
        Only links that have this many GB/s today; None for all.
    between
        Only the links between these pairs of devices; empty for all.
    limits
        Names of shared limits; the price is then theirs and of no link.
    step
        The least that can be bought, in GB/s of a link, or ``link`` for whole links of those that
        run in parallel; None where any amount can be.
    most
        GB/s that a link may have afterwards; None for any.
    """

    cost: float
    medium: str | None = None
    bandwidth: float | None = None
    between: tuple[Ends, ...] = ()
    limits: tuple[str, ...] = ()
    step: float | str | None = None
    most: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.cost < math.inf:
            raise ProblemError(f"{self} is {self.cost:g} per GB/s; give a number above 0")
        if isinstance(self.step, str) and self.step not in get_args(WholeLinks):
            raise ProblemError(
                f"{self} has a step of {self.step!r}; give GB/s, or link for whole links"
            )
        for what in ("step", "most", "bandwidth"):
            value = getattr(self, what)
            if isinstance(value, (int, float)) and not 0 < value < math.inf:
                raise ProblemError(f"{self} has a {what} of {value:g} GB/s; give more than 0 GB/s")
        if self.limits and (self.medium is not None or self.bandwidth or self.between):
            raise ProblemError(f"{self} names shared limits and links; give them a line each")
        if self.limits and self.step == "link":
            raise ProblemError(f"{self} has a step of whole links, and a limit has none; give GB/s")

    def fits(self, link: Link) -> bool:
        """Return whether it is the price of a link."""
        if self.limits:
            return False
        medium = link.medium.casefold()
        wanted = None if self.medium is None else self.medium.casefold()
        return (
            (wanted is None or medium == wanted or medium.startswith(f"{wanted} "))
            and (self.bandwidth is None or math.isclose(link.bandwidth, self.bandwidth))
            and (not self.between or link.ends in self.between or link.ends[::-1] in self.between)
        )

    def __str__(self) -> str:
        if self.limits:
            return f"the price of limit {', '.join(self.limits)}"
        if self.between:
            named = ", ".join("-".join(ends) for ends in self.between[:3])
            return f"the price of {named}{' and others' if len(self.between) > 3 else ''}"
        what = "links" if self.medium is None else (self.medium or "links of no medium")
        at = "" if self.bandwidth is None else f" at {self.bandwidth:g} GB/s"
        return f"the price of {what}{at}"


class Costs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What more bandwidth costs, and what devices do.

    Parameters
    ----------
    links
        Prices; the first that fits a link is its price.
    devices
        Cost of one device by kind; kinds left out cost nothing.
    currency
        Unit of all costs, for people.
    """

    links: tuple[Price, ...]
    devices: Mapping[str, float] = msgspec.field(default_factory=dict)
    currency: str = ""

    def __post_init__(self) -> None:
        if not self.links:
            raise ProblemError(
                "costs name no price of links; give one at least, such as {cost: 1} for all links"
            )
        for kind, cost in self.devices.items():
            if kind not in KINDS:
                raise ProblemError(
                    f"costs name devices of kind {kind!r}; kinds are {', '.join(KINDS)}"
                )
            if not 0 <= cost < math.inf:
                raise ProblemError(f"a {kind} costs {cost:g}; give a number of 0 or more")

    def of_link(self, link: Link) -> int | None:
        """Return the place of a link's price in `links`, or None where it is not for sale."""
        return next((i for i, each in enumerate(self.links) if each.fits(link)), None)

    def of_limit(self, limit: SharedLimit) -> int | None:
        """Return the place of a shared limit's price, or None where it is not for sale."""
        return next((i for i, each in enumerate(self.links) if limit.name in each.limits), None)

    def today(self, topology: Topology) -> float:
        """Return what the cluster costs: its devices, and all bandwidth of links with a price.

        The two directions of a link are paid once, by the wider.
        """
        widest: dict[frozenset[str], tuple[float, float]] = {}
        for link in topology.links:
            place = self.of_link(link)
            if place is not None:
                pair = frozenset(link.ends)
                mine = link.bandwidth, self.links[place].cost
                widest[pair] = max(widest.get(pair, mine), mine)
        total = sum(bandwidth * cost for bandwidth, cost in widest.values())
        return total + sum(self.devices.get(each.kind, 0.0) for each in topology.devices)

    def named(self, topology: Topology) -> None:
        """Refuse names that the cluster does not have.

        Raises
        ------
        ProblemError
            If a price names a link or limit that is not there.
        """
        limits = {each.name for each in topology.limits}
        for price in self.links:
            for src, dst in price.between:
                if not {(src, dst), (dst, src)} & topology.link_index.keys():
                    raise ProblemError(
                        f"costs name the link {src}-{dst}, which {topology} does not have"
                    )
            for name in price.limits:
                if name not in limits:
                    raise ProblemError(
                        f"costs name the limit {name}, which {topology} does not have"
                    )


EVEN = Costs(links=(Price(cost=1.0),), currency="GB/s")
"""Every GB/s more costs the same: what counts is how much bandwidth is added in all."""


def read_costs(source: str | Path | Mapping[str, Any]) -> Costs:
    """Read costs from a YAML file, or from the plain values of one.

    Parameters
    ----------
    source
        Path of a file, or a mapping.

    Raises
    ------
    FormatError
        If it cannot be read, is no YAML or not of the shape, with the place.
    ProblemError
        If a number is out of range or a kind of devices is unknown.
    """
    if isinstance(source, Mapping):
        return _costs(dict(source), "costs")
    return costs_of(read_bytes(source), name=str(source))


def costs_of(content: bytes, *, name: str = "costs") -> Costs:
    """Read costs from the bytes of a YAML file; errors as of `read_costs`.

    Parameters
    ----------
    content
        YAML.
    name
        What the sentences of errors begin with.
    """
    return _costs(yaml_in(content, name=name), name)


def _costs(value: Any, name: str) -> Costs:
    try:
        return msgspec.convert(value, Costs)
    except msgspec.ValidationError as error:
        raise FormatError(f"{name}, {describe_misfit(error)}") from None
