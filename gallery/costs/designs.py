"""Counts of published designs: folded Clos networks, SuperPOD, rail-only; LIBRA's network cost.

Nothing here is drawn. `gallery.costs.bill` counts what a drawing has; these count what a rule of
ports asks for, as papers and vendors publish it.

Sources: Clos, Bell System Technical Journal 32 (1953), and Al-Fares et al., SIGCOMM 2008, for the
networks; NVIDIA, DGX SuperPOD reference architecture, table of larger SuperPODs; Wang et al.,
rail-only, arXiv 2307.12169; Won et al., LIBRA, arXiv 2109.11762, whose released cost model this is.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ccl import text
from ccl.errors import ProblemError

UNIT_HOSTS = 32
"""Hosts of a unit of a SuperPOD; each has 8 GPUs and a leaf for each of these."""


@dataclass(frozen=True, slots=True)
class Network:
    """Switches and links of each tier, from the GPUs up.

    Parameters
    ----------
    switches
        Of each tier.
    links
        Below each tier: those of the first end at GPUs.
    """

    switches: tuple[int, ...]
    links: tuple[int, ...]

    @property
    def transceivers(self) -> int:
        """One at each end of each link."""
        return 2 * sum(self.links)

    def times(self, count: int) -> "Network":
        """Return so many networks beside one another."""
        return Network(
            tuple(count * each for each in self.switches),
            tuple(count * each for each in self.links),
        )


def clos(ports: int, radix: int) -> Network:
    """Return the least tiers of switches that join ports and block nothing.

    One switch up to `radix` ports; then 2 n / R leaves and n / R spines up to R^2 / 2; then 2 n / R
    of both and n / R cores up to R^3 / 4.

    Raises
    ------
    ProblemError
        If three tiers do not suffice, or a number is out of range.
    """
    if ports < 1 or radix < 2:
        raise ProblemError(f"{ports:,} ports of switches of {radix} ports; give 1 or more of 2")
    if ports <= radix:
        return Network((1,), (ports,))
    leaves, half = math.ceil(2 * ports / radix), math.ceil(ports / radix)
    if 2 * ports <= radix * radix:
        return Network((leaves, half), (ports, ports))
    if 4 * ports > radix**3:
        raise ProblemError(
            f"{ports:,} ports need more than three tiers of switches of {radix} ports, which "
            f"join {radix**3 // 4:,}; give a larger radix"
        )
    return Network((leaves, leaves, half), (ports, ports, ports))


def superpod(units: int) -> Network:
    """Return the switches and cables of a SuperPOD of so many units of 256 GPUs.

    A leaf for each rail of a unit, so 8 of them; half as many spines up to 8 units, then as many
    spines and half as many cores: 64-port switches with half of their ports down.
    """
    gpus, leaves = units * UNIT_HOSTS * 8, units * 8
    if gpus <= 2048:
        return Network((leaves, leaves // 2), (gpus, gpus))
    return Network((leaves, leaves, leaves // 2), (gpus, gpus, gpus))


def rail_only(gpus: int, domain: int, radix: int) -> Network:
    """Return a network of rails: one for each place in a domain of NVLink, none joined.

    A rail of few ports shares its switch with others; one of many is a folded Clos network.

    Raises
    ------
    ProblemError
        If the domains are not full, or as `clos`.
    """
    if domain < 1 or gpus % domain:
        raise ProblemError(f"{gpus:,} GPUs are no whole number of domains of {domain} GPUs")
    ports = gpus // domain
    if ports > radix:
        return clos(ports, radix).times(domain)
    return Network((math.ceil(domain / (radix // ports)),), (gpus,))


def saving(before: Network, after: Network, share: float) -> float:
    """Return the share of cost or power that is saved, if switches are `share` of it.

    The rest goes with the transceivers. With 0.74 of cost and 0.58 of power this is what rail-only
    publishes for 32,768 GPUs in domains of 256: 38 % and 37 % with 64-port switches, 77 % and 75 %
    with 128; the paper gives no shares, so these are inferred from its counts.
    """
    switches = 1 - sum(after.switches) / sum(before.switches)
    return share * switches + (1 - share) * (1 - after.transceivers / before.transceivers)


def compare_rail_only(gpus: int, domain: int, radix: int, *, share: float = 0.74) -> str:
    """Say in a sentence what rails alone save against a Clos network; errors as `rail_only`.

    Parameters
    ----------
    gpus, domain, radix
        GPUs, those of a domain of NVLink, ports of a switch.
    share
        Share of the switches in the cost of the network.
    """
    before, after = clos(gpus, radix), rail_only(gpus, domain, radix)
    saved = saving(before, after, share)
    counts = (
        f"{sum(after.switches):,} switches against {sum(before.switches):,} and "
        f"{after.transceivers:,} transceivers against {before.transceivers:,}"
    )
    ports = gpus // domain
    if saved > 0:
        rest = f"if switches are {text.share(share)} of the cost of the network"
        return f"Rails alone take {counts}: {text.share(saved)} less, {rest}."
    if ports <= radix:
        return f"Rails alone take {counts}: nothing is saved."
    return (
        f"Rails alone take {counts}: nothing is saved, as a rail has {ports:,} ports and a switch "
        f"{radix}, so that each rail is a network of {len(after.switches)} tiers of its own."
    )


Block = Literal["ring", "mesh", "switch"]
"""How the places of a dimension are joined: in a ring, each to each, or by a switch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """A dimension of a network as LIBRA counts it.

    Parameters
    ----------
    block
        How its places are joined.
    size
        How many there are.
    bandwidth
        GB/s of each NPU in this dimension.
    link, switch, card
        Dollars per GB/s of a link, of a switch's port and of a network card; the last two count
        where a switch joins.
    """

    block: Block
    size: int
    bandwidth: float
    link: float
    switch: float = 0.0
    card: float = 0.0


def libra_dollars(dimensions: Sequence[Dimension]) -> list[float]:
    """Return what each dimension of a network costs by LIBRA's model.

    Blocks times links times GB/s of a link times dollars: of k places a ring has 2 k links of half
    the bandwidth, a full mesh k (k - 1) links of the bandwidth over k - 1; there is one for each k
    of all NPUs. A switch joins all NPUs up to its dimension, by a link each.
    """
    npus = math.prod(each.size for each in dimensions)
    costs, below = [], 1
    for each in dimensions:
        below *= each.size
        if each.block == "ring":
            blocks, links, bandwidth = npus // each.size, 2 * each.size, each.bandwidth / 2
        elif each.block == "mesh":
            blocks, links = npus // each.size, each.size * (each.size - 1)
            bandwidth = each.bandwidth / (each.size - 1)
        else:
            blocks, links, bandwidth = npus // below, below, each.bandwidth
        rate = each.link + (each.switch + each.card if each.block == "switch" else 0.0)
        costs.append(blocks * links * bandwidth * rate)
    return costs
