"""Inputs of TE-CCL (microsoft/TE-CCL:teccl/input_data.py): a cluster by name, and what to solve.

Sizes are GB, times seconds; ``time_limit`` is hours. The cluster is the one that TE-CCL means by
the name; where its released code slips, the report says so. What it says of the solve has no place
in a problem: the report says what it is called here, to be typed at ``te-ccl-milp`` (all-gather) or
``te-ccl-lp`` (all-to-all).

`Settings` are what a reader of TE-CCL's schedules can be given.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from msgspec import Meta, Struct

from ccl.collective import CHUNK_LIMIT, all_gather, all_to_all
from ccl.errors import FormatError
from ccl.options import option
from ccl.problem import Problem
from ccl.serialization.documents import Document, document
from ccl.serialization.text import decode_json
from ccl.topology import Device, Topology
from interchange.formats.fields import number, select_sentences, whole
from interchange.formats.format import Imported, Reader, Report, Request, Writer, Written, one_file
from interchange.formats.synthesizers.te_ccl.demand import CLUSTERS, Named, cluster, out_of_range

Seconds = Annotated[float, Meta(ge=0.0, le=1e6)]
Count = Annotated[int, Meta(ge=1, le=CHUNK_LIMIT)]


class _Topology(Struct):
    """Which cluster."""

    name: str
    chassis: Annotated[int, Meta(ge=-1, le=1_000_000)] = 1
    chunk_size: Annotated[float, Meta(gt=0.0, le=1e9)] = 1.0
    alpha: Annotated[list[Seconds], Meta(max_length=2)] | Seconds = 0.0
    side_length: Annotated[int, Meta(ge=1, le=1_000_000)] = 4


class _Instance(Struct, frozen=True):
    """What is solved, and how; what is not here is of no concern to a problem."""

    collective: Annotated[int, Meta(ge=1, le=2)] = 1
    num_chunks: Count = 1
    epoch_type: Annotated[int, Meta(ge=1, le=3)] = 1
    epoch_duration: Annotated[float, Meta(ge=-1.0, le=1e6)] = -1.0
    epoch_multiplier: Annotated[float, Meta(ge=0.0, le=1e6)] = 1.0
    num_epochs: Annotated[int, Meta(ge=-1, le=10_000_000)] = -1
    alpha_threshold: float = 0.1
    alpha_epoch_duration_ratio_max: float = 200.0
    switch_copy: bool = True
    switch_to_gpu_link_on: bool = False
    objective_type: Annotated[int, Meta(ge=1, le=4)] = 3
    solution_method: Annotated[int, Meta(ge=1, le=2)] = 1


class _Solver(Struct, frozen=True):
    """Limits of the solver."""

    time_limit: float | None = None
    mip_gap: float | None = None


class _Input(Struct):
    """The whole file."""

    TopologyParams: _Topology
    InstanceParams: _Instance = _Instance()
    GurobiParams: _Solver = _Solver()


class _Blocks(Struct):
    """The same, to see which keys there are."""

    InstanceParams: dict[str, Any] = {}
    GurobiParams: dict[str, Any] = {}


ALL_GATHER, ALL_TO_ALL = 1, 2
MOST_DEMANDS = 4_000_000
"""GPUs that want a chunk, over all chunks."""

A_STAR = 4
"""Its kind of objective that is another solver."""


def _recognises(content: bytes) -> bool:
    begins = content.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"
    return begins and b'"TopologyParams"' in content


def _read(content: bytes, _asked: Request) -> Imported:
    said: _Input = decode_json(content, _Input)
    params, instance = said.TopologyParams, said.InstanceParams
    named = Named(
        name=params.name,
        chassis=max(params.chassis, 1),
        side=params.side_length,
        alpha=_alphas(params),
        copies=instance.switch_copy,
    )
    wrong = out_of_range(named)
    if wrong is not None:
        raise FormatError(f"at TopologyParams: {wrong}")
    topology, mended = cluster(named)
    problem = _problem(said, topology)
    options, unkept = _options(said)
    blocks: _Blocks = decode_json(content, _Blocks)
    left = [*unkept, *_others(blocks)]
    report = Report((*_taken(said, problem), *options), (*_guessed(params), *mended), tuple(left))
    return Imported(document(problem), report)


def _alphas(params: _Topology) -> tuple[float, float]:
    given = params.alpha if isinstance(params.alpha, list) else [params.alpha]
    values = [_clean(1e6 * each) for each in given] or [0.0]
    return values[0], values[-1]


def _clean(value: float) -> float:
    """Return a number without the last digits that were lost by another unit."""
    return float(f"{value:.15g}")


def _problem(said: _Input, topology: Topology) -> Problem:
    ranks, chunks = len(topology.ranks), said.InstanceParams.num_chunks
    gathers = said.InstanceParams.collective == ALL_GATHER
    make = all_gather if gathers else all_to_all
    if ranks * ranks * chunks > MOST_DEMANDS:
        raise FormatError(
            f"at InstanceParams.num_chunks: {chunks:,} chunks of {ranks} GPUs for all others are "
            f"more than {MOST_DEMANDS:,} that are kept; give fewer"
        )
    size = ranks * chunks * _clean(said.TopologyParams.chunk_size * 1e9)
    return Problem(topology, make(ranks, size, chunks=chunks))


def _taken(said: _Input, problem: Problem) -> Iterator[str]:
    topology, chunks = problem.topology, said.InstanceParams.num_chunks
    hosts = f" of {len(topology.hosts)} hosts" if len(topology.hosts) > 1 else ""
    yield f"{topology.name}{hosts}: {len(topology.ranks)} GPUs and {len(topology.links)} links"
    each = "shard" if problem.collective.kind == "all-gather" else "pair"
    many = f"{chunks} chunk{'' if chunks == 1 else 's'} a {each}"
    nbytes = said.TopologyParams.chunk_size * 1e9
    yield (
        f"{problem.collective.kind} of {problem.collective.size:,.0f} bytes, {many} of "
        f"{nbytes:,.0f} bytes ({said.TopologyParams.chunk_size:g} GB)"
    )


def _guessed(params: _Topology) -> Iterator[str]:
    """Say which latencies count."""
    fixed = {"DGX2": "0.35 and 2.6 µs", "NDv2": "0.7 and 1.3 µs"}.get(params.name)
    link, switch = _alphas(params)
    if fixed is not None:
        yield f"latencies of NVLinks and between chassis are {fixed}, as TE-CCL has them"
    else:
        yield f"latencies are {link:g} µs, {switch:g} µs of links of switches"


def _options(said: _Input) -> tuple[list[str], list[str]]:
    """Say what its options are called here, and which have no counterpart."""
    instance, solver = said.InstanceParams, said.GurobiParams
    names = {ALL_GATHER: "te-ccl-milp", ALL_TO_ALL: "te-ccl-lp"}
    method = names[instance.collective]
    if instance.objective_type == A_STAR and instance.collective == ALL_GATHER:
        method = "te-ccl-astar"
    multiplier = instance.epoch_multiplier
    early = instance.objective_type == 3 and instance.solution_method == 1
    objective = instance.objective_type != A_STAR and method == "te-ccl-milp"
    limit, gap = solver.time_limit, solver.mip_gap
    words = select_sentences(
        (True, _epoch(instance)),
        (multiplier != 1 and instance.epoch_duration < 0, f"epoch_multiplier={multiplier:g}"),
        (instance.num_epochs > 0, f"horizon={instance.num_epochs}"),
        (objective, f"objective={'early-arrivals' if early else 'fewest-epochs'}"),
        (limit is not None, f"a time limit of {(limit or 0) * 3600:g} s"),
        (gap is not None, f"a gap of {gap or 0:g}"),
    )
    notes = [f"to solve it alike: {method} with {', '.join(words)}"]
    threshold, ratio = instance.alpha_threshold, instance.alpha_epoch_duration_ratio_max
    short = "no latency is dropped here, short ones lengthen the epoch"
    long = "epochs get longer here where a latency is more than 200 of them"
    copies = "what crosses a switch here does so without a stop"
    return notes, select_sentences(
        (threshold != 0, f"alpha_threshold {threshold:g}: {short}"),
        (ratio != 200, f"alpha_epoch_duration_ratio_max {ratio:g}: {long}"),
        (instance.switch_to_gpu_link_on, f"switch_to_gpu_link_on: {copies}"),
    )


def _epoch(instance: _Instance) -> str:
    if instance.epoch_duration > 0:
        return f"epoch_duration={instance.epoch_duration * 1e6:g} µs"
    return f"epoch={'slowest' if instance.epoch_type == 2 else 'fastest'}"


def _others(blocks: _Blocks) -> Iterator[str]:
    """Name what only its own program or solver needs."""
    own = [key for key in blocks.InstanceParams if key not in _Instance.__struct_fields__]
    solver = [key for key in blocks.GurobiParams if key not in _Solver.__struct_fields__]
    for what, keys in (("of its program", own), ("of its solver", solver)):
        if keys:
            more = ", ..." if len(keys) > 6 else ""
            shown = ", ".join(key[:40] for key in keys[:6])
            yield f"{len(keys)} options {what}: {shown}{more}"


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the file says of the solve."""

    slow_epochs: bool = option(
        False, "Slow epochs", "An epoch is a chunk on the slowest link instead of the fastest"
    )


def _write(content: Document, options: Options) -> Written:
    """Write a problem on one of TE-CCL's clusters.

    Raises
    ------
    FormatError
        If the cluster or the collective is none of TE-CCL's.
    """
    problem = content.problem
    if problem is None:
        raise FormatError("an input of TE-CCL says what to solve; give a problem")
    collective = problem.collective
    kinds = {"all-gather": ALL_GATHER, "all-to-all": ALL_TO_ALL}
    if collective.kind not in kinds:
        raise FormatError(
            f"TE-CCL solves all-gather and all-to-all, and this is a {collective.kind}"
        )
    named = _named(problem.topology)
    shards = collective.ranks * (collective.ranks - 1 if collective.kind == "all-to-all" else 1)
    params: dict[str, Any] = {
        "name": named.name,
        "chassis": named.chassis,
        "chunk_size": collective.chunk_size * 1e-9,
        "alpha": [each * 1e-6 for each in named.alpha],
    }
    if named.name == "Mesh":
        params["side_length"] = named.side
    value = {
        "TopologyParams": params,
        "GurobiParams": {},
        "InstanceParams": {
            "collective": kinds[collective.kind],
            "num_chunks": len(collective.chunks) // shards,
            "epoch_type": 2 if options.slow_epochs else 1,
            "switch_copy": named.copies,
        },
    }
    lost = select_sentences(
        (True, "names of devices and media of links"),
        (problem.windows, f"{len(problem.windows)} windows of less bandwidth"),
        (content.plan is not None, "the plan; the TE-CCL schedule has it"),
    )
    return one_file(json.dumps(value, indent=2) + "\n", ending="json", lost=tuple(lost))


def _named(topology: Topology) -> Named:
    """Find which of TE-CCL's clusters a topology is, whatever its devices are called.

    Raises
    ------
    FormatError
        If it is malformed.
    """
    gpus = len(topology.ranks)
    switched = {each.name for each in topology.devices if each.kind == "switch"}
    copies = any(each.copies for each in topology.devices if each.kind == "switch")
    alphas = {False: 0.0, True: 0.0}
    for link in topology.links:
        alphas[bool(switched & {link.src, link.dst})] = link.alpha
    side = round(gpus**0.5)
    tried = [
        Named(name="DGX1"),
        Named(name="DGX2", chassis=max(gpus // 16, 1)),
        Named(name="NDv2", chassis=max(gpus // 8, 1)),
        Named(name="AMD", chassis=max(gpus // 16, 1)),
        Named(name="Mesh", side=side),
    ]
    for each in tried:
        named = replace(each, copies=copies, alpha=(alphas[False], alphas[True]))
        if out_of_range(named) is None and _alike(cluster(named)[0], topology):
            return named
    raise FormatError(
        f"{topology.name} is none of the clusters that TE-CCL knows by name: DGX1, DGX2, NDv2, "
        "AMD and Mesh with their figures"
    )


def _alike(known: Topology, topology: Topology) -> bool:
    """Say whether two clusters are the same when GPUs and switches are paired in their order."""
    if len(known.devices) != len(topology.devices) or topology.limits:
        return False
    names: dict[str, str] = {}
    for mine, other in zip(_ordered(known), _ordered(topology), strict=True):
        if _able(mine) != _able(other):
            return False
        names[mine.name] = other.name
    links = {(names[e.src], names[e.dst]): (e.bandwidth, e.alpha) for e in known.links}
    return links == {each.ends: (each.bandwidth, each.alpha) for each in topology.links}


def _ordered(topology: Topology) -> list[Device]:
    """Return GPUs, then switches of hosts, then those between hosts."""
    return sorted(topology.devices, key=lambda each: (each.kind != "gpu", each.host is None))


def _able(device: Device) -> tuple[str, bool, bool, float | None]:
    return device.kind, device.stores, device.copies, device.buffer_bytes


READER = Reader("te-ccl-input", "TE-CCL input", ("json",), _recognises, _read)
WRITER = Writer("te-ccl-input", "TE-CCL input", "json", "problem", _write, Options)


SETTINGS = {
    "cluster": f"the cluster that it is about: {', '.join(CLUSTERS)}, with its number of chassis "
    "or its side as in NDv2:2, or flows for the links that it uses",
    "chassis": "number of chassis, where the cluster does not say it; 1 unless given",
    "side_length": "GPUs along a side of a Mesh, 4 unless given",
    "alpha": "latencies in seconds of links and of links of switches, where the cluster leaves "
    "them open: 7e-7,1.3e-6",
    "chunk_size": "GB of a chunk, where the bandwidth of the file does not tell",
    "lenient": "true plays a file that breaks a rule in its order, each send when it can go",
}

FIXED = ("DGX2", "NDv2")
"""Clusters whose latencies TE-CCL fixes."""


@dataclass(frozen=True)
class Settings:
    """What was typed.

    Parameters
    ----------
    named
        The cluster of TE-CCL, or None.
    flows
        Whether the cluster is to be made of the flows.
    chunk_size
        Bytes, or None.
    lenient
        Whether broken rules are only told.
    notes
        What is assumed about the cluster.
    """

    named: Named | None
    flows: bool
    chunk_size: float | None
    lenient: bool
    notes: tuple[str, ...] = ()


def settings_of(request: Request) -> Settings:
    """Read the settings.

    Raises
    ------
    FormatError
        If one is not what it should be.
    """
    typed = request.settings
    text = typed.get("cluster", "").strip()
    flows = text.lower() == "flows"
    named = _known_setting(text, typed) if text and not flows else None
    notes: tuple[str, ...] = ()
    if named is not None and named.name not in FIXED and not typed.get("alpha", "").strip():
        notes = ("no link has a latency; set alpha if TE-CCL was given one",)
    size = number(request, "chunk_size", 0.0, most=1e9, unit="GB") * 1e9 or None
    lenient = typed.get("lenient", "").strip().lower() in ("true", "yes", "1")
    return Settings(named, flows, size, lenient, notes)


def _known_setting(text: str, typed: Mapping[str, str]) -> Named:
    name, _, count = text.partition(":")
    key = "side_length" if name.strip().lower() == "mesh" else "chassis"
    numbers = Request(settings={**typed, key: count} if count else typed)
    link, switch = _given_alphas(typed.get("alpha", ""))
    named = Named(
        name={each.lower(): each for each in CLUSTERS}.get(name.strip().lower(), name.strip()),
        chassis=whole(numbers, "chassis", 1, most=10**6),
        side=whole(numbers, "side_length", 4, most=10**6),
        alpha=(link, switch),
        copies=False,
    )
    wrong = out_of_range(named)
    if wrong is not None:
        raise FormatError(wrong)
    return named


def _given_alphas(text: str) -> tuple[float, float]:
    if not text.strip():
        return 0.0, 0.0
    parts = text.strip(" []()").split(",")
    if len(parts) > 2:
        raise FormatError(
            f"setting alpha is {text[:40]!r}; give seconds of links and of links of switches"
        )
    each = (Request(settings={"alpha": part}) for part in parts)
    values = [_clean(1e6 * number(one, "alpha", 0.0, most=1e6, zero=True)) for one in each]
    return values[0], values[-1]
