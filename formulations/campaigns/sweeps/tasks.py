"""The tasks of a sweep: the product of its lists, each with a key that stays.

A key is the digest of what a row depends on: cluster, collective, method, limits and version. So
the same question has the same key tomorrow and in another sweep, and one that is asked twice,
under two names, is one task.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import msgspec

from ccl import __version__
from ccl.collective import COLLECTIVES
from ccl.errors import ProblemError
from ccl.options import option_fields
from ccl.serialization.quantity import format_size
from formulations.analyses.comparison.table import Method, checked_method, parse_method
from formulations.campaigns.sweeps.clusters import (
    Cluster,
    Source,
    clusters_of,
    digest,
    sizes_of,
    texts_of,
    values_of,
)
from formulations.campaigns.sweeps.spec import Kind, Solver, Spec
from formulations.core.registry import formulation

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
        What makes the cluster again (`formulations.campaigns.sweeps.clusters.made`).
    digest
        Of the cluster that it has to make; empty where there is none.
    gpus, hosts
        How many; None where there is no such cluster.
    collective, size, chunks, root
        What is asked, the size in bytes, chunks per shard that stay whole or None.
    formulation, options
        Who is asked, with options that differ from the default.
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
        """Who is asked."""
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
    asked = _Asked(
        tuple(each for given in spec.clusters for each in clusters_of(given)),
        tuple(each for given in spec.collectives for each in _collectives(given)),
        sizes_of(spec.sizes),
        tuple(dict.fromkeys(spec.chunks)),
        _methods(spec),
    )
    many = 1
    for each in asked:
        many *= len(each)
    if many > MOST_TASKS:
        msg = f"the sweep has {many:,} tasks; make it at most {MOST_TASKS:,}"
        raise ProblemError(msg)
    tasks: dict[str, Task] = {}
    for task in _product(asked, spec):
        tasks.setdefault(task.key, task)
    return tuple(tasks.values())


class _Asked(NamedTuple):
    """The lists."""

    clusters: tuple[Cluster, ...]
    collectives: tuple[tuple[str, int], ...]
    sizes: tuple[float, ...]
    chunks: tuple[int | None, ...]
    methods: tuple[Method, ...]


def _product(asked: _Asked, spec: Spec) -> Iterator[Task]:
    for cluster in asked.clusters:
        topology = cluster.topology
        made = "" if topology is None else digest(topology)
        gpus = None if topology is None else len(topology.ranks)
        named = () if topology is None else {each.host for each in topology.devices} - {None}
        for (kind, root), size, chunks, method in product(*asked[1:]):
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
    asked = Kind(kind=given) if isinstance(given, str) else given
    if asked.kind not in COLLECTIVES or asked.kind == "custom":
        named = ", ".join(each for each in COLLECTIVES if each != "custom")
        msg = f"collective {asked.kind!r} is not one to sweep over; there are {named}"
        raise ProblemError(msg)
    return tuple((asked.kind, int(root)) for root in values_of(asked.root))


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
