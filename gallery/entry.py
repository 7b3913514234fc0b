"""Entry of the gallery: the source of a cluster, and what each figure rests on."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args, get_origin, get_type_hints

from ccl.topology import Topology

Standing = Literal["spec", "planned by NCCL", "measured", "assumed"]
"""What a figure rests on: the vendor's print, the library's plan, a test by its vendor, us."""

ParameterKind = Literal["int", "float", "bool", "choice", "shape"]

MEANINGS: dict[str, str] = {
    "alpha": "latency of each link in µs",
    "bandwidth": "GB/s of each link, one way",
    "board": "rows and columns of GPUs on each board, such as 2x2",
    "bus_bandwidth": "GB/s of the link between a GPU and its NIC, one way; 0 for PCIe 5 ×16, "
    "or as its port where a GPU stands alone",
    "chord_bandwidth": "GB/s of links between GPUs that are not neighbours; 0 is none",
    "concentration": "GPUs of each router; 0 puts a GPU in place of each router",
    "copies": "whether switches, or the memory drawn, can send out copies of what came in once",
    "degree": "links out of each device; on average where their number varies",
    "dimension": "number of dimensions; there are 2 to the power of it GPUs",
    "fabric": "how the hosts are joined",
    "gpus": "number of GPUs; in a cluster of hosts, in each host",
    "group_leaves": "leaves in each group",
    "group_spines": "spines in each group",
    "groups": "number of groups",
    "hosts": "number of hosts",
    "jumps": "places on to which each GPU has a link, joined by x",
    "joined": "how the GPUs of a host are joined",
    "leaf_radix": "ports of each leaf",
    "leaves": "number of leaves; 0 for as few as fit",
    "memory_bandwidth": "GB/s that a host memory reads and writes in all; 0 is no limit",
    "network_alpha": "latency of each network link in µs",
    "network_bandwidth": "GB/s of each GPU's link into the network",
    "nics": "number of NICs in each host",
    "nvlink": "whether the GPUs of a host are also joined by an NVSwitch",
    "one_way": "whether links go one way, along closed walks, rather than both ways",
    "order": "order of the finite field, a power of a prime",
    "oversubscription": "bandwidth into a leaf over that to the spines, at most",
    "planes": "whether every switch chip is drawn, rather than one for all in a host",
    "planned": "whether NVLink counts with the rate that NCCL plans with, not the data sheet's",
    "achieved": "whether links count with the rate their vendor reaches, not the data sheet's",
    "radix": "ports of each switch",
    "rails": "whether NIC i of each host goes to a leaf of rail i, or all of a host to one leaf",
    "reduces": "whether switches can add contributions together",
    "routers": "number of routers in each group",
    "seed": "which of all random networks",
    "shape": "GPUs, routers or boards along each dimension, such as 4x4",
    "spines": "number of spines",
    "spine_bandwidth": "GB/s of each link from a leaf to a spine, one way",
    "spine_radix": "ports of each spine",
    "spread": "how many times as wide as the narrowest link one can be",
    "switches": "number of switches",
    "trunk": "parallel links from each leaf to each spine",
    "trunks": "parallel links along each dimension, joined by x, or one number for all",
    "twists": "shift of each dimension along each later one, joined by x, row by row",
    "unit_hosts": "hosts in each unit",
    "units": "number of units of hosts",
    "uplinks": "links of each router to other groups",
    "used": "which links are there: NVLink and ports, PCIe with memory and ports, or all",
    "vertices": "number of GPUs, or of routers where these have GPUs",
    "wide": "number of GPUs, from the first, with links of another bandwidth",
    "wide_bandwidth": "GB/s of each link of those GPUs, one way",
}
"""What each argument means, for forms and messages."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that an entry rests on.

    Parameters
    ----------
    what
        What it is the number of.
    value
        With its unit.
    standing
        What it rests on.
    """

    what: str
    value: str
    standing: Standing


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument that an entry takes.

    Parameters
    ----------
    name
        As written before the equals sign.
    kind
        ``int``, ``float``, ``bool``, ``choice`` or ``shape`` (whole numbers joined by x).
    default
        Its value when it is not given.
    choices
        The values of a ``choice``.
    meaning
        What it means, in words.
    """

    name: str
    kind: ParameterKind
    default: Any
    choices: tuple[str, ...]
    meaning: str


@dataclass(frozen=True)
class Entry:
    """A ready cluster.

    Parameters
    ----------
    name
        What opens it, such as ``ndv2``.
    title
        Its name for people.
    family
        Under which it is listed.
    summary
        One sentence on how it is built.
    source
        Where the structure and its figures come from.
    figures
        The numbers and what each rests on.
    make
        The function that makes it; its keyword arguments are the parameters.
    """

    name: str
    title: str
    family: str
    summary: str
    source: str
    figures: tuple[Figure, ...]
    make: Callable[..., Topology]

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The arguments that it takes, typed as in the function's signature."""
        types = get_type_hints(self.make)
        return tuple(
            _parameter(each.name, types[each.name], each.default)
            for each in inspect.signature(self.make).parameters.values()
        )


def _parameter(name: str, hint: Any, default: Any) -> Parameter:
    kinds: dict[Any, ParameterKind] = {int: "int", float: "float", bool: "bool"}
    choices: tuple[str, ...] = ()
    kind: ParameterKind
    if get_origin(hint) is Literal:
        kind, choices = "choice", get_args(hint)
    elif get_origin(hint) is tuple:
        kind = "shape"
    else:
        kind = kinds[hint]
    return Parameter(name, kind, default, choices, MEANINGS[name])
