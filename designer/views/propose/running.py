"""Searches for networks: what the fields say, and what has been found so far.

Each search is a study (`designer.studies`), in a process of `designer.views.propose.worker`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ccl.errors import CclError
from ccl.serialization.quantity import KINDS, format_size, parse_quantity
from designer.studies import Found, Studies

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Field:
    """A number of a request.

    Parameters
    ----------
    label
        Above it.
    kind
        One of `ccl.serialization.quantity.KINDS`.
    value
        What it begins with; empty for what may stay so.
    least, most
        What it takes.
    note
        For its tooltip.
    """

    label: str
    kind: str
    value: Any
    least: float
    most: float | None = None
    note: str = ""


FIELDS: dict[str, Field] = {
    "gpus": Field("GPUs", "count", 64, 4, 4096),
    "ports": Field("Ports of a GPU", "count", 4, 1, 64, "network ports, NVLink not counted"),
    "bandwidth": Field("Bandwidth of a port", "bandwidth", 50.0, 0.001, note="one way"),
    "alpha": Field("Alpha of a link", "latency", 0.7, 0),
    "radix": Field("Ports of a switch", "count", "", 0, 1024, "empty: no switches"),
    "seconds": Field("Time to search", "duration", 25.0, 1, 3600),
}
"""The fields of a request, by their names in `formulations.proposals.Request`."""

USES: dict[str, tuple[str, str, float]] = {
    "all-to-all": ("All-to-all", "256MB", 1),
    "all-gather": ("All-gather", "256MB", 1),
    "all-reduce": ("All-reduce", "256MB", 1),
    "latency": ("Short messages", "8KB", 100),
}
"""Of each use in a mix its label, and the size and the times that it begins with."""

ALONE = "none"
"""The host of GPUs that stand alone."""


def read_question(
    values: Mapping[str, Any], *, host: str, one_way: bool, mix: Mapping[str, tuple[Any, Any]]
) -> Json:
    """Return a request for the worker.

    Parameters
    ----------
    values
        Of `FIELDS`.
    host
        A cluster of the gallery, or `ALONE`.
    one_way
        Whether links may go one way.
    mix
        Of each of `USES` its size and how often it runs; what never runs is left out.

    Raises
    ------
    CclError
        If a number cannot be read or is out of range, or nothing is wanted.
    """
    from formulations.proposals import Request, host_of, read_mix  # noqa: PLC0415  a compiler

    request: Json = {}
    for name, each in FIELDS.items():
        given = values.get(name)
        if name == "radix" and given in {None, ""}:
            given = 0
        number = parse_quantity(
            given, KINDS[each.kind], what=each.label.lower(), least=each.least, most=each.most
        )
        request[name] = int(number) if each.kind == "count" else number
    uses = [
        {"collective": kind, "size": size, "times": times}
        for kind, (size, times) in mix.items()
        if times
    ]
    request |= {"host": None if host == ALONE else host, "one_way": one_way, "mix": uses}
    host_of(Request(**{**request, "mix": read_mix(uses)}))  # it may not divide the GPUs
    return request


def as_typed(request: Mapping[str, Any]) -> tuple[Json, dict[str, tuple[str, float]]]:
    """Return the values of `FIELDS` of a request, and of each of `USES` its size and times.

    It is the inverse of `read_question`. Of several lines of a kind in a mix, which only a file can
    have, the last is said.
    """
    values = {name: request.get(name, each.value) for name, each in FIELDS.items()}
    uses = {each["collective"]: each for each in request["mix"]}
    mix = {}
    for kind, (_, usual, _) in USES.items():
        use = uses.get(kind, {"size": usual, "times": 0})
        size = use["size"] if isinstance(use["size"], str) else format_size(use["size"])
        mix[kind] = size, use.get("times", 1)
    return values | {"radix": request.get("radix") or ""}, mix


def field_of(error: CclError) -> str:
    """Return the field that a sentence of `read_question` is about, or nothing."""
    words = str(error).removeprefix("propose: ").lower()
    if "need switches" in words:
        return "radix"
    for name, each in FIELDS.items():
        if words.startswith((f"{name} is", each.label.lower())):
            return name
    return "host" if words.startswith("host ") or "no whole hosts" in words else ""


@dataclass(frozen=True)
class Standing:
    """Where a search stands.

    Parameters
    ----------
    found
        As its process told it.
    networks
        What counts now, the best at the mix first, by key.
    front
        The last report of them all; empty before the first.
    """

    found: Found
    networks: Mapping[str, Json]
    front: Json

    def best(self, first: str, second: str) -> list[str]:
        """Return the keys of those than which no other is better in both respects."""
        from formulations.proposals import undominated  # noqa: PLC0415  it loads a compiler

        places = {
            key: (each["values"][first], each["values"][second])
            for key, each in self.networks.items()
            if None not in {each["values"].get(first), each["values"].get(second)}
        }
        keys = list(places)
        return [keys[i] for i in undominated(list(places.values()))]

    @property
    def parts(self) -> dict[str, Json]:
        """The parts of all networks, by name."""
        return parts_of(self.networks)

    def own(self, prices: Mapping[str, float]) -> dict[str, float]:
        """Return those of the prices that are not the usual ones."""
        usual = {name: part["dollars"][1] for name, part in self.parts.items()}
        return {name: price for name, price in prices.items() if price != usual.get(name)}

    def priced(self, prices: Mapping[str, float]) -> "Standing":
        """Return the same at other prices of parts, in dollars; typical ones keep their span."""
        own = self.own(prices)
        networks = {key: _priced(each, own) for key, each in self.networks.items()}
        return replace(self, networks=networks)

    @property
    def trouble(self) -> str:
        """Why it ended before its time, or nothing."""
        return str(self.found.last("error") or "")


def parts_of(networks: Mapping[str, Json]) -> dict[str, Json]:
    """Return the parts of all networks, by name."""
    return {part["part"]: part for each in networks.values() for part in each["parts"]}


def _priced(network: Json, prices: Mapping[str, float]) -> Json:
    if not network["parts"]:
        return network
    low, typical, high = (
        sum(
            part["count"] * prices.get(part["part"], part["dollars"][place])
            for part in network["parts"]
        )
        for place in range(3)
    )
    values = {**network["values"], "dollars": typical}
    return {**network, "values": values, "spans": {"dollars": (low, high)}}


def standing(studies: Studies, key: str | None) -> Standing | None:
    """Return where a search stands, None if there is none with this key.

    Raises
    ------
    CclError
        If its process ended in the middle.
    """
    found = studies.found(key)
    if found is None:
        return None
    known = {e["candidate"]["key"]: e["candidate"] for e in found.events if "candidate" in e}
    front = found.last("front") or {}
    return Standing(found, {each: known[each] for each in front.get("order", ())}, front)
