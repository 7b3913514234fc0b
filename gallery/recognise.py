"""Recognition of a gallery cluster in a topology, so that code and files can name it.

A name is given only where opening it makes an equal topology. Sizes are looked for among the
numbers of the topology's own name and counts, figures among those of its links; an edited cluster
is usually distinguished by its name or its counts, before much is made.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice, product
from typing import Any

from ccl.errors import ProblemError
from ccl.topology import Topology
from gallery.entry import Entry, Parameter
from gallery.registry import catalog, written

MOST_LINKS = 20_000
"""Of a topology that is looked up; larger ones take seconds to make."""
MOST_TRIES = 120
"""Clusters that are made of one entry."""

_IN_NAME = ("int", "shape", "choice")
"""Kinds of arguments that the name of a cluster may contain."""


def spec_of(topology: Topology) -> str | None:
    """Return what `open_cluster` makes this topology of, such as ``dgx-a100:hosts=2``, or None."""
    if not topology.devices or len(topology.links) > MOST_LINKS:
        return None
    letters = _letters(topology.name)
    for entry in catalog():
        if _usual_letters(entry) != letters:
            continue
        for arguments in _fitting(entry, topology):
            return spec(entry, arguments)
    return None


def spec(entry: Entry, arguments: Mapping[str, Any]) -> str:
    """Return the name of a cluster with the arguments that are not the usual ones."""
    usual = {each.name: each.default for each in entry.parameters}
    parts = [
        f"{name}={written(value)}" for name, value in arguments.items() if value != usual[name]
    ]
    return f"{entry.name}:{','.join(parts)}" if parts else entry.name


def _letters(name: str) -> str:
    """Return the part of a cluster's name that its arguments do not determine."""
    return "".join(re.findall("[a-z]", re.sub(r"\d+(x\d+)*", "", name.lower().partition("(")[0])))


@cache
def _usual_letters(entry: Entry) -> str:
    return _letters(entry.make().name)


def _fitting(entry: Entry, topology: Topology) -> Iterator[dict[str, Any]]:
    """Yield the arguments with which an entry makes the topology."""
    sizes = [each for each in entry.parameters if each.kind in _IN_NAME]
    others = [each for each in entry.parameters if each.kind not in _IN_NAME]
    named = [chosen for chosen, made in _made(entry, sizes, topology) if made.name == topology.name]
    for chosen in named:
        for figures, made in _made(entry, others, topology, beside=chosen):
            if made == topology:
                yield {**chosen, **figures}


def _made(
    entry: Entry,
    parameters: list[Parameter],
    topology: Topology,
    *,
    beside: Mapping[str, Any] | None = None,
) -> Iterator[tuple[dict[str, Any], Topology]]:
    """Make clusters with values that the topology suggests, the usual ones first."""
    values = [_values(each, topology) for each in parameters]
    for chosen in islice(_nearest(values), MOST_TRIES):
        arguments = {each.name: value for each, value in zip(parameters, chosen, strict=True)}
        try:
            yield arguments, entry.make(**(beside or {}), **arguments)
        except ProblemError:  # there is no such cluster
            continue


def _nearest(values: list[list[Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield choices of one value each, those that differ from the first ones in fewer before."""
    places = product(*(range(len(each)) for each in values))
    ordered = sorted(islice(places, 20_000), key=lambda each: (sum(map(bool, each)), each))
    for each in ordered:
        yield tuple(row[place] for row, place in zip(values, each, strict=True))


def _values(parameter: Parameter, topology: Topology) -> list[Any]:
    """Return what an argument may have been, its default first."""
    found: list[Any] = [parameter.default]
    numbers = [int(each) for each in re.findall(r"\d{1,6}", topology.name)]
    if parameter.kind == "int":
        hosts = {each.host for each in topology.devices if each.host is not None}
        gpus = len(topology.ranks)
        found += [len(hosts), gpus, gpus // max(1, len(hosts)), *numbers, *range(1, 4)]
        found += [gpus.bit_length() - 1] if parameter.name == "dimension" else []
        found = [each for each in found if each >= 0]
    elif parameter.kind == "shape":
        shapes = re.findall(r"\d+(?:x\d+)+", topology.name)
        found += [tuple(map(int, each.split("x"))) for each in shapes]
        if len(parameter.default) == 1:
            found += [(number,) for number in numbers]
    elif parameter.kind == "bool":
        found.append(not parameter.default)
    elif parameter.kind == "choice":
        found += parameter.choices
    else:
        what = "alpha" if "alpha" in parameter.name else "bandwidth"
        found += sorted({getattr(each, what) for each in topology.links})[:6]
    return list(dict.fromkeys(found))
