"""The tasks of a sweep: the product of its lists, each with a key that stays.

A key is the digest of what a row depends on: cluster, collective, method, limits and version. So
the same question has the same key tomorrow and in another sweep, and one that is requested twice,
under two names, is one task.

A `Cluster` is a candidate, opened by name or from a document, with classes of links changed. Its
source says in a few plain values what makes a cluster again, so that a task is small whatever the
cluster's size, and what is solved knows all that the gallery declares of it. Its digest shows
whether another process has made the same.

Lists and ranges are as people write them: ``[2,4,8]``, ``2..8``, ``2..64 x2``, ``1KB..1GB x4``.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import entry_points
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ccl import __version__
from ccl.collective import COLLECTIVES
from ccl.errors import CclError, FormatError, ProblemError
from ccl.options import option_fields
from ccl.serialization.documents import read_document
from ccl.serialization.quantity import format_size, parse_size
from ccl.serialization.topoloom import topology_from_json, topology_to_json
from ccl.topology import Link, Topology
from formulations.analyses.comparison.table import Method, checked_method, parse_method
from formulations.campaigns.sweeps.spec import Candidate, Kind, LinkChange, Solver, Spec
from formulations.core.registry import formulation

MOST_VALUES = 10_000
"""Of one range."""

_RANGE = re.compile(r"\s*(?P<low>.+?)\s*\.\.\s*(?P<high>.+?)(?:\s+x\s*(?P<factor>[\d.]+))?\s*")
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")


def sizes_of(given: list[str | float]) -> tuple[float, ...]:
    """Return bytes, ascending and each once, of sizes and of ranges such as ``1KB..1GB x4``.

    Raises
    ------
    FormatError
        If one is no number of bytes, or a range has no factor above 1.
    """
    found: set[float] = set()
    for each in given:
        text = str(each)
        if ".." in text and _RANGE.fullmatch(text) is None:
            raise FormatError(f"the sizes {text!r} are no range; write it like 1KB..1GB x4")
        found.update(_range(text, parse_size, usual=None) or (parse_size(text),))
    return tuple(sorted(found))


def texts_of(text: str) -> tuple[str, ...]:
    """Return every text that one with lists stands for: ``a:n=[1,2]`` is ``a:n=1`` and ``a:n=2``.

    Raises
    ------
    ProblemError
        If a list is empty or a range is malformed.
    """
    pieces = _BRACKETS.split(text)
    # Every second piece was in brackets.
    choices = [_items(each) if place % 2 else (each,) for place, each in enumerate(pieces)]
    return tuple("".join(chosen) for chosen in product(*choices))


def values_of(given: Any) -> tuple[Any, ...]:
    """Return the values of a list, of a range such as ``2..8``, or of one value alone.

    Raises
    ------
    ProblemError
        If it has no value.
    """
    if isinstance(given, list):
        values = tuple(value for each in given for value in values_of(each))
        if not values:
            raise ProblemError("a list of values is empty; give at least one")
        return values
    if isinstance(given, str):
        return _range(given, _whole, usual=1) or (given,)
    return (given,)


def _items(text: str) -> tuple[str, ...]:
    parts = [each.strip() for each in text.split(",") if each.strip()]
    if not parts:
        raise ProblemError("a list in brackets is empty; give at least one value, such as [2,4,8]")
    return tuple(str(value) for part in parts for value in values_of(part))


def _range(text: str, read: Callable[[str], float], *, usual: int | None) -> tuple[Any, ...] | None:
    """Return the numbers of a range, None where the text is not a range.

    `usual` is what is added where no factor is given; None where a factor has to be.
    """
    found = _RANGE.fullmatch(text)
    if found is None:
        return None
    low, high = read(found["low"]), read(found["high"])
    if low > high:
        raise ProblemError(f"the range {text!r} is empty; give the smaller end first")
    if found["factor"] is None:
        if usual is None:
            msg = f"the range {text!r} has no factor; write it like {found['low']}.."
            msg += f"{found['high']} x4"
            raise FormatError(msg)
        return _few(text, iter(range(int(low), int(high) + 1, usual)))
    factor = float(found["factor"])
    if not factor > 1:
        raise FormatError(
            f"the range {text!r} has the factor {factor:g}; give more than 1, such as x2"
        )
    return _few(text, _growing(low, high, factor))


def _growing(low: float, high: float, factor: float) -> Iterator[float]:
    if low <= 0:
        raise ProblemError(f"a range with a factor begins at {low:g}; begin above 0")
    for power in range(MOST_VALUES + 1):
        value = low * factor**power
        if value > high * (1 + 1e-9):
            return
        whole = isinstance(low, int) and value == math.floor(value)
        yield int(value) if whole else value


def _few(text: str, values: Iterator[Any]) -> tuple[Any, ...]:
    found = tuple(value for value, _ in zip(values, range(MOST_VALUES + 1), strict=False))
    if len(found) > MOST_VALUES:
        raise FormatError(f"the range {text!r} has more than {MOST_VALUES:,} values; give fewer")
    return found


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ProblemError(
            f"a range has the end {text!r}; give whole numbers, such as 2..8 or 2..64 x2"
        ) from None


GROUP = "topoloom.openers"
"""Of the entry points that open clusters by name: functions of a text, or a `CclError`."""

ALL, BETWEEN, WITHIN = "all", "between hosts", "within hosts"

Source = dict[str, Any]
"""Plain values: ``open`` or ``topology``, and ``links``, a list of (class, bandwidth, alpha)."""


@dataclass(frozen=True)
class Cluster:
    """A candidate.

    Parameters
    ----------
    label
        Its name with the changes.
    source
        What makes it again, `made`.
    topology
        What it is, or None if it does not exist.
    why_not
        Why it does not exist; else empty.
    """

    label: str
    source: Source
    topology: Topology | None
    why_not: str = ""


def clusters_of(given: str | Candidate) -> tuple[Cluster, ...]:
    """Return every cluster that an entry of a spec stands for; some of several may not exist.

    Raises
    ------
    CclError
        If none of them exists: that of the first.
    """
    candidate = Candidate(open=given) if isinstance(given, str) else given
    if bool(candidate.open) == (candidate.topology is not None):
        msg = (
            f"cluster {candidate.open!r} has {'both' if candidate.open else 'neither'} of open and "
        )
        msg += "topology; give one"
        raise ProblemError(msg)
    found, errors = [], []
    for label, source in _sources(candidate):
        try:
            found.append(Cluster(label, source, made(source)))
        except CclError as error:
            errors.append(error)
            found.append(Cluster(label, source, None, str(error)))
    if len(errors) == len(found):
        raise errors[0]
    return tuple(found)


def made(source: Source) -> Topology:
    """Return the cluster that a source makes.

    Raises
    ------
    CclError
        If it does not exist, or a class of links does not.
    """
    name = source.get("open")
    topology = topology_from_json(source["topology"]) if name is None else opened(name)
    for of, bandwidth, alpha in source["links"]:
        topology = _changed(topology, of, bandwidth, alpha)
    return topology


@lru_cache(maxsize=64)
def opened(name: str) -> Topology:
    """Open a cluster by its name, by who offers to.

    Raises
    ------
    CclError
        If nobody knows it: what the first says.
    """
    openers = entry_points(group=GROUP)
    if not openers:
        raise ProblemError(
            f"the cluster {name!r} cannot be opened: nothing installed opens clusters by name; "
            "install Topoloom again (pip install -e .)"
        )
    errors: list[CclError] = []
    for each in openers:
        try:
            topology: Topology = each.load()(name)
        except CclError as error:
            errors.append(error)
        else:
            return topology
    raise errors[0]


def digest(topology: Topology) -> str:
    """Return sixteen digits, equal for clusters that move data alike, whatever their names."""
    content = topology_to_json(topology) | {"name": ""}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _sources(candidate: Candidate) -> Iterator[tuple[str, Source]]:
    """Yield labels and sources of the product of names, arguments and changes."""
    bases: list[tuple[str, Source]] = []
    if candidate.topology is not None:
        name = str(candidate.topology.get("name", "")) or "drawn"
        bases = [(name, {"topology": candidate.topology})]
    elif candidate.open.lower().endswith(".json"):
        topology = topology_to_json(read_document(candidate.open).topology)
        bases = [(Path(candidate.open).name, {"topology": topology})]
    else:
        names = (_with(text, candidate.vary) for text in texts_of(candidate.open))
        bases = [(name, {"open": name}) for several in names for name in several]
    if candidate.vary and "open" not in bases[0][1]:
        msg = f"cluster {bases[0][0]} varies {', '.join(candidate.vary)}, but only names of the"
        msg += " gallery have arguments; leave out vary"
        raise ProblemError(msg)
    for (name, source), changes in product(bases, product(*map(_factors, candidate.links))):
        texts = [_text(each) for each in changes if each[1:] != (1.0, 1.0)]
        label = f"{name} with {'; '.join(texts)}" if texts else name
        yield label, source | {"links": [list(each) for each in changes if each[1:] != (1.0, 1.0)]}


def _with(text: str, vary: dict[str, Any]) -> Iterator[str]:
    """Yield a name with each combination of further arguments."""
    for chosen in product(*(values_of(each) for each in vary.values())):
        parts = [f"{name}={_written(value)}" for name, value in zip(vary, chosen, strict=True)]
        joint = "," if ":" in text else ":"
        yield f"{text}{joint}{','.join(parts)}" if parts else text


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


Change = tuple[str, float, float]
"""Class of links, factor of the bandwidth, factor of the latency."""


def _factors(change: LinkChange) -> tuple[Change, ...]:
    bandwidths, alphas = values_of(change.bandwidth), values_of(change.alpha)
    for what, factors, least in (("bandwidth", bandwidths, "more than 0"), ("alpha", alphas, "0")):
        for each in factors:
            if not (math.isfinite(each) and (each > 0 or (what == "alpha" and each == 0))):
                msg = f"links of {change.of} have {what} times {each:g}; give {least} or more"
                raise ProblemError(msg.replace("more than 0 or more", "more than 0"))
    return tuple((change.of, float(b), float(a)) for b, a in product(bandwidths, alphas))


def _text(change: Change) -> str:
    of, bandwidth, alpha = change
    parts = [f"bandwidth x{bandwidth:g}"] * (bandwidth != 1) + [f"alpha x{alpha:g}"] * (alpha != 1)
    return f"{'links' if of == ALL else of} {', '.join(parts)}"


def _changed(topology: Topology, of: str, bandwidth: float, alpha: float) -> Topology:
    """Return a cluster with the links of a class changed, and limits that hold only those."""
    chosen = {each.ends for each in topology.links if _belongs(topology, each, of)}
    if not chosen:
        media = ", ".join(sorted({each.medium for each in topology.links if each.medium}))
        msg = f"{topology} has no links of {of!r}; there are {ALL}, {BETWEEN}, {WITHIN}"
        raise ProblemError(msg + (f" and the media {media}" if media else ""))
    links = tuple(
        replace(each, bandwidth=each.bandwidth * bandwidth, alpha=each.alpha * alpha)
        if each.ends in chosen
        else each
        for each in topology.links
    )
    limits = tuple(
        replace(each, bandwidth=each.bandwidth * bandwidth)
        if chosen.issuperset(each.links)
        else each
        for each in topology.limits
    )
    return replace(topology, links=links, limits=limits)


def _belongs(topology: Topology, link: Link, of: str) -> bool:
    if of == ALL:
        return True
    if of in (BETWEEN, WITHIN):
        hosts = {topology.device(each).host for each in link.ends}
        return (len(hosts) == 1 and None not in hosts) == (of == WITHIN)
    return link.medium.lower().startswith(of.lower())


MOST_TASKS = 1_000_000
"""Of one sweep; a million at a second each on ten cores take a day."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One question to one method.

    Parameters
    ----------
    key
        Sixteen hexadecimal digits.
    cluster
        The label.
    source
        What makes the cluster again (`made`).
    digest
        Of the cluster that it has to make; else empty.
    gpus, hosts
        How many; None where there is no such cluster.
    collective, size, chunks, root
        The problem, the size in bytes, chunks per shard that stay whole or None.
    formulation, options
        The method, with options that differ from the default.
    time_limit
        Seconds, or None.
    memory
        Bytes, or None.
    gap
        Share above the bound that is good enough, or None.
    retries
        How often it is tried again when its process dies.
    why_not
        Why it need not be tried; else empty.
    """

    key: str
    cluster: str
    source: Source
    digest: str
    gpus: int | None
    hosts: int | None
    collective: str
    size: float
    chunks: int | None
    root: int
    formulation: str
    options: dict[str, Any]
    time_limit: float | None
    memory: float | None
    gap: float | None
    retries: int
    why_not: str

    @property
    def method(self) -> Method:
        """Name of the method."""
        return Method(self.formulation, self.options)

    def __str__(self) -> str:
        several = "" if self.chunks == 1 else "s"
        chunks = "" if self.chunks is None else f" in {self.chunks} chunk{several}"
        root = f" at {self.root}" if self.root else ""
        what = f"{self.collective}{root} of {format_size(self.size)}{chunks}"
        return f"{what} on {self.cluster} by {self.method}"


def tasks_of(spec: Spec) -> tuple[Task, ...]:
    """Return the tasks of a sweep, each once, in the order of its lists.

    Raises
    ------
    CclError
        If a cluster, a collective, a formulation or an option does not exist, or there are more
        than `MOST_TASKS`.
    """
    lists = _Lists(
        tuple(each for given in spec.clusters for each in clusters_of(given)),
        tuple(each for given in spec.collectives for each in _collectives(given)),
        sizes_of(spec.sizes),
        tuple(dict.fromkeys(spec.chunks)),
        _methods(spec),
    )
    many = 1
    for each in lists:
        many *= len(each)
    if many > MOST_TASKS:
        raise ProblemError(f"the sweep has {many:,} tasks; make it at most {MOST_TASKS:,}")
    tasks: dict[str, Task] = {}
    for task in _product(lists, spec):
        tasks.setdefault(task.key, task)
    return tuple(tasks.values())


class _Lists(NamedTuple):
    """The lists."""

    clusters: tuple[Cluster, ...]
    collectives: tuple[tuple[str, int], ...]
    sizes: tuple[float, ...]
    chunks: tuple[int | None, ...]
    methods: tuple[Method, ...]


def _product(lists: _Lists, spec: Spec) -> Iterator[Task]:
    for cluster in lists.clusters:
        topology = cluster.topology
        made = "" if topology is None else digest(topology)
        gpus = None if topology is None else len(topology.ranks)
        named = () if topology is None else {each.host for each in topology.devices} - {None}
        for (kind, root), size, chunks, method in product(*lists[1:]):
            yield Task(
                key=_key(made or cluster.label, (kind, root, size, chunks), method, spec),
                cluster=cluster.label,
                source=cluster.source,
                digest=made,
                gpus=gpus,
                hosts=None if topology is None else max(1, len(named)),
                collective=kind,
                size=size,
                chunks=chunks,
                root=root,
                formulation=method.formulation,
                options=dict(method.options),
                time_limit=spec.time_limit,
                memory=spec.memory,
                gap=spec.gap,
                retries=spec.retries,
                why_not=cluster.why_not,
            )


def _key(cluster: str, what: tuple[Any, ...], method: Method, spec: Spec) -> str:
    who = (method.formulation, dict(method.options))
    content = [cluster, what, who, spec.time_limit, spec.memory, spec.gap, __version__]
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _collectives(given: str | Kind) -> tuple[tuple[str, int], ...]:
    """Return kinds with their roots."""
    collective = Kind(kind=given) if isinstance(given, str) else given
    if collective.kind not in COLLECTIVES or collective.kind == "custom":
        named = ", ".join(each for each in COLLECTIVES if each != "custom")
        raise ProblemError(
            f"collective {collective.kind!r} is not one to sweep over; there are {named}"
        )
    return tuple((collective.kind, int(root)) for root in values_of(collective.root))


def _methods(spec: Spec) -> tuple[Method, ...]:
    """Return every method once, seeded."""
    found = (each for given in spec.formulations for each in _variants(given))
    return tuple({str(each): each for each in (_seeded(one, spec.seed) for one in found)}.values())


def _variants(given: str | Solver) -> Iterator[Method]:
    if isinstance(given, str):
        yield from (parse_method(each) for each in texts_of(given))
        return
    chosen = formulation(given.name)
    known = {each.name: each.kind for each in option_fields(chosen.options)}
    lists = [
        # A range is of numbers; other options are texts with dots of their own.
        values_of(value) if isinstance(value, list) or known.get(name) == "int" else (value,)
        for name, value in given.options.items()
    ]
    for values in product(*lists):
        options = dict(zip(given.options, values, strict=True))
        yield checked_method(chosen, options)


def _seeded(method: Method, seed: int | None) -> Method:
    chosen = formulation(method.formulation)
    rows = {each.name for each in option_fields(chosen.options)}
    if seed is None or "seed" not in rows or "seed" in method.options:
        return method
    return checked_method(chosen, {**method.options, "seed": seed})
