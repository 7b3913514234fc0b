"""Communication sketches: what a user wants a synthesizer to use of a cluster, and their JSON.

A sketch, as in TACCL (NSDI 2023, sections 3 and 4.2), narrows what is searched; it is no part of a
topology, and every plan found with one is a plan without it. GPUs are named as in the topology, so
that one sketch serves every size of chunk.

Our own plain form (`sketch_to_json`, `sketch_from_json`) has a key for each field of `Sketch` and
leaves out what says nothing; it is what the options of a result hold.

TACCL's files (section 3 and listing 1; `read_taccl_sketch`) count the GPUs of a host from 0 in the
order of their ranks, so that they are read for a topology; what cannot be carried over is said.
``internode_conn`` names, for each GPU that sends to other hosts, those that receive there, alike
for every pair of hosts; ``chunk_to_relay_map`` [r1, r2] lets what GPU g has leave its host through
(g // r1) * r1 + r2, and ``gpus_to_sender_rev_map`` names the same one by one. What speaks of
bandwidths and sizes is left out: the topology and the request have those.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, Struct

from ccl.errors import FormatError, ProblemError
from ccl.serialization.text import Integer, decode_json
from ccl.serialization.topoloom import noun_of, shaped
from ccl.serialization.wire import Ends
from ccl.text import count
from ccl.topology import Topology

Inclination = Literal["all", "uc-min", "uc-max"]
INCLINATIONS: tuple[Inclination, ...] = get_args(Inclination)

Pair = tuple[str, str]
"""A GPU that sends and one that receives."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """A communication sketch.

    Parameters
    ----------
    between
        Pairs of GPUs in different hosts that may send to each other; None for every pair that a
        path joins. Which physical links these are, the topology says.
    without
        Links of the topology, by their ends, that are not used.
    forced
        Pairs of GPUs whose path must carry at least one chunk.
    relays
        Pairs (GPU, relay): what the GPU has for other hosts leaves its host from the relay.
    switches
        Of GPUs that meet at devices which cannot store: whether every pair is as good as another
        (``all``), or few (``uc-min``, for large chunks) or many (``uc-max``, for small ones)
        different pairs are preferred.
    offsets
        Pairs (by, block): the plan looks the same when in every block of `block` consecutive ranks
        each rank is replaced by the one `by` further on, around the block.
    chunks
        Chunks per shard, or None for as many as the request says.
    instances
        Neighbouring chunks that take the same path one after the other, as parts of one.

    Raises
    ------
    ProblemError
        If a number is not positive, or a pair names one GPU twice.
    """

    between: tuple[Pair, ...] | None = None
    without: tuple[Pair, ...] = ()
    forced: tuple[Pair, ...] = ()
    relays: tuple[Pair, ...] = ()
    switches: Inclination = "all"
    offsets: tuple[tuple[int, int], ...] = ()
    chunks: int | None = None
    instances: int = 1

    def __post_init__(self) -> None:
        if self.switches not in INCLINATIONS:
            raise ProblemError(
                f"a sketch has switches {self.switches!r}; choose {', '.join(INCLINATIONS)}"
            )
        for src, dst in (*(self.between or ()), *self.without, *self.forced):
            if src == dst:
                raise ProblemError(f"a sketch joins {src} with itself; name two different devices")
        for by, block in self.offsets:
            if not 0 < by < block:
                raise ProblemError(
                    f"a sketch moves ranks by {by} in blocks of {block}; give 1 to block - 1"
                )
        if self.instances < 1 or (self.chunks is not None and self.chunks < 1):
            raise ProblemError("a sketch needs 1 chunk and 1 instance or more")

    def check(self, topology: Topology) -> None:
        """Check it against a topology.

        Raises
        ------
        ProblemError
            If it names what is not there, or its blocks do not divide the ranks.
        """
        pairs = (*(self.between or ()), *self.forced, *self.relays)
        for name in (each for pair in pairs for each in pair):
            if name not in topology.rank:
                raise ProblemError(f"the sketch names {name}, which is no GPU of {topology}")
        for src, dst in self.without:
            if (src, dst) not in topology.link_index:
                raise ProblemError(
                    f"the sketch leaves out the link {src}->{dst}, which {topology} does not have"
                )
        for by, block in self.offsets:
            if len(topology.ranks) % block:
                raise ProblemError(
                    f"the sketch moves ranks by {by} in blocks of {block}, which do not divide the "
                    f"{len(topology.ranks)} GPUs of {topology}"
                )


Local = Annotated[int, Meta(ge=0, le=9_999)]
Locals = Annotated[list[Local], Meta(max_length=10_000)]
Positive = Annotated[int, Meta(ge=1, le=10_000)]


class _Inside(Struct):
    """How the GPUs of a host use what joins them."""

    strategy: Literal["switch", "minmax", "maxmin", "none"] = "none"
    switches: Annotated[list[Locals], Meta(max_length=1_000)] = []
    switch_hyperedge_strategy: Annotated[list[str], Meta(max_length=1_000)] = []


class _Between(Struct):
    """Who sends to other hosts, and through whom."""

    strategy: Literal["relay", "fully-connected", "none"] = "none"
    internode_conn: dict[str, Locals] | str | None = None
    beta_split: Any = None
    chunk_to_relay_map: tuple[Positive, Local] | None = None
    gpus_to_sender_rev_map: dict[str, Locals] | None = None
    enforce_ordering: Any = None


class _Numbers(Struct):
    """Chunks per shard, and for which size the sketch was written."""

    input_chunkup: Positive | None = None
    input_size: Any = None


class _Taccl(Struct):
    """The whole file."""

    nnodes: Positive | None = None
    intranode_sketch: _Inside | None = None
    internode_sketch: _Between | None = None
    symmetry_offsets: Annotated[list[tuple[Integer, Integer]], Meta(max_length=100)] = []
    hyperparameters: _Numbers | None = None


KEYS: Mapping[str, tuple[str, ...]] = {
    "": _Taccl.__struct_fields__,
    "intranode_sketch": _Inside.__struct_fields__,
    "internode_sketch": _Between.__struct_fields__,
    "hyperparameters": _Numbers.__struct_fields__,
}
"""What is read, by the place where it stands."""


def sketch_of_taccl(
    content: bytes | str, topology: Topology, *, most: int
) -> tuple[Sketch, tuple[str, ...]]:
    """Read a sketch; errors as `read_taccl_sketch`.

    Parameters
    ----------
    content
        The text of the file.
    topology
        Whose hosts it speaks of.
    most
        Pairs of GPUs that it may make.
    """
    file = decode_json(content, _Taccl)
    reader = _Reader(topology, most)
    reader.hosts_said(file.nnodes)
    between, relays = reader.between(file.internode_sketch or _Between())
    return Sketch(
        between=between,
        relays=relays,
        switches=reader.switches(file.intranode_sketch or _Inside()),
        offsets=reader.offsets(file.symmetry_offsets, file.nnodes),
        chunks=reader.chunks(file.hyperparameters or _Numbers()),
    ), tuple(reader.told)


class _Reader:
    """Carries the parts of a sketch over, and notes what becomes of each."""

    def __init__(self, topology: Topology, most: int) -> None:
        self.topology = topology
        self.most = most
        self.told: list[str] = []
        self.hosts = _hosts(topology)
        self.fewest = min(len(each) for each in self.hosts)

    def hosts_said(self, said: int | None) -> None:
        """Compare the number of hosts."""
        have = len(self.hosts)
        if not self.topology.hosts:
            self.told.append("assumed: all GPUs are in one host, because none names its host")
        if said is not None and said != have:
            self.told.append(
                f"assumed: what it says of {count(said, 'host')} holds for the "
                f"{have} of {self.topology}"
            )

    def between(self, part: _Between) -> tuple[tuple[Pair, ...] | None, tuple[Pair, ...]]:
        """Return who may send to other hosts, and the relays."""
        if part.beta_split is not None:
            self._left("beta_split", "links have the bandwidths of the topology")
        if part.enforce_ordering:
            self._left("enforce_ordering", "the order of sends is left to the planner")
        if len(self.hosts) == 1:
            return None, ()
        connected = self._connected(part)
        relays = self._relays(part, connected)
        if connected is None:
            self.told.append("taken: every GPU may send to every GPU of another host")
            return None, relays
        pairs = self._pairs(connected)
        whom = ", ".join(f"{src} to {_listing(dsts)}" for src, dsts in list(connected.items())[:8])
        more = ", ..." if len(connected) > 8 else ""
        self.told.append(f"taken: {len(pairs)} pairs between hosts, by number {whom}{more}")
        return pairs, relays

    def switches(self, part: _Inside) -> Inclination:
        """Return the inclination of GPUs that meet at a device which cannot store."""
        if part.strategy in ("minmax", "maxmin"):
            self._left(f"strategy {part.strategy!r}", "no load of links is aimed at here")
        if part.strategy != "switch":
            return "all"
        groups = [self._known(group, "intranode_sketch.switches") for group in part.switches]
        crossed = self._crossed()
        lost = [group for group in groups if not any(set(group) <= each for each in crossed)]
        if lost:
            self._left(
                f"the switch of GPUs {_listing(lost[0])}",
                f"{self.topology} has none that joins them in each host",
            )
        if groups and len(lost) == len(groups):
            return "all"
        return self._inclination(part.switch_hyperedge_strategy)

    def offsets(
        self, said: Sequence[tuple[int, int]], nhosts: int | None
    ) -> tuple[tuple[int, int], ...]:
        """Return the symmetries of ranks; one of all hosts is one of all hosts that are there."""
        ranks = [self.topology.rank[name] for host in self.hosts for name in host]
        local = len(self.hosts[0])
        if said and (ranks != sorted(ranks) or any(len(each) != local for each in self.hosts)):
            self._left("symmetry_offsets", "hosts do not have consecutive and equally many ranks")
            return ()
        taken = []
        for by, block in said:
            size = len(ranks) if nhosts is not None and block == nhosts * local else block
            if by >= size and block != size:
                self._left(f"the offset [{by}, {block}]", "there is no second host to move to")
                continue
            if size != block:
                self.told.append(f"assumed: the block of {block} ranks is all {size}")
            taken.append((by, size))
        if taken:
            whole = ", ".join(f"by {by} in blocks of {block}" for by, block in taken)
            self.told.append(f"taken: symmetry of ranks {whole}")
        return tuple(taken)

    def chunks(self, part: _Numbers) -> int | None:
        """Return the chunks per shard."""
        if part.input_size is not None:
            self._left("input_size", "the request says the size")
        if part.input_chunkup is not None:
            self.told.append(f"taken: {count(part.input_chunkup, 'chunk')} per shard")
        return part.input_chunkup

    def _left(self, what: str, why: str) -> None:
        self.told.append(f"left out: {what}, because {why}")

    def _known(self, numbers: Sequence[int], place: str) -> Sequence[int]:
        """Check that every host has GPUs of these numbers."""
        for number in numbers:
            if number >= self.fewest:
                raise ProblemError(
                    f"at {place}: it names GPU {number} of a host, and {self.topology} has a host "
                    f"of {count(self.fewest, 'GPU')}; give 0 to {self.fewest - 1}"
                )
        return numbers

    def _connected(self, part: _Between) -> dict[int, list[int]] | None:
        """Return who receives what each GPU sends to other hosts, None where everybody may."""
        said = part.internode_conn
        if said is None and part.strategy == "relay":
            self.told.append("assumed: any GPU may send to other hosts, for no internode_conn says")
        if said is None or said == "fully-connected":
            return None
        place = "internode_sketch.internode_conn"
        if said == "direct-map":
            return {number: [number] for number in range(self.fewest)}
        if isinstance(said, str):
            raise FormatError(
                f"at {place}: {said!r} is unknown; there are fully-connected and direct-map"
            )
        connected = _numbered(said, place)
        for src, dsts in connected.items():
            self._known([src, *dsts], place)
        return connected

    def _pairs(self, connected: Mapping[int, Sequence[int]]) -> tuple[Pair, ...]:
        each = sum(len(set(dsts)) for dsts in connected.values())
        total = each * len(self.hosts) * (len(self.hosts) - 1)
        if total > self.most:
            raise ProblemError(
                f"it makes {total:,} pairs of GPUs, and {self.most:,} at most are kept"
            )
        return tuple(
            (here[src], there[dst])
            for here in self.hosts
            for there in self.hosts
            if here is not there
            for src, dsts in connected.items()
            for dst in dict.fromkeys(dsts)
        )

    def _relays(
        self, part: _Between, connected: Mapping[int, Sequence[int]] | None
    ) -> tuple[Pair, ...]:
        named = self._relays_said(part)
        if not named:
            return ()
        for number, relay in named:
            self._known([number, relay], "internode_sketch, its relays")
            if connected is not None and not connected.get(relay):
                senders = _listing([each for each, dsts in connected.items() if dsts])
                raise ProblemError(
                    f"at internode_sketch: what GPU {number} has goes through GPU {relay}, which "
                    f"sends to no other host; relay through {senders or 'a GPU that sends'}"
                )
        relays = list(dict.fromkeys(relay for _, relay in named))
        self.told.append(f"taken: relays {_listing(relays)} of each host")
        return tuple((host[number], host[relay]) for host in self.hosts for number, relay in named)

    def _relays_said(self, part: _Between) -> list[tuple[int, int]]:
        """Return each GPU's relay, by number."""
        if part.gpus_to_sender_rev_map is not None:
            if part.chunk_to_relay_map is not None:
                self._left("chunk_to_relay_map", "gpus_to_sender_rev_map names its relays")
            senders = _numbered(
                part.gpus_to_sender_rev_map, "internode_sketch.gpus_to_sender_rev_map"
            )
            return [(number, relay) for relay, numbers in senders.items() for number in numbers]
        if part.chunk_to_relay_map is None:
            return []
        each, place = part.chunk_to_relay_map
        return [(number, number // each * each + place) for number in range(self.fewest)]

    def _crossed(self) -> list[set[int]]:
        """Return, by number, the GPUs that meet at a device which cannot store in every host."""
        found = [
            {
                frozenset(
                    number
                    for number, gpu in enumerate(host)
                    if (gpu, hub.name) in self.topology.link_index
                )
                for hub in self.topology.devices
                if not hub.stores
            }
            for host in self.hosts
        ]
        return [set(group) for group in found[0] if all(group in each for each in found)]

    def _inclination(self, said: Sequence[str]) -> Inclination:
        first = said[0] if said else ""
        if any(each != first for each in said):
            self.told.append(f"assumed: {first} for all switches, where they differ")
        inclination = next((each for each in INCLINATIONS if each == first), None)
        if inclination is not None:
            self.told.append(f"taken: {inclination} where GPUs meet at a switch")
        elif first:
            self._left(f"switch_hyperedge_strategy {first!r}", "there are uc-min and uc-max")
        return inclination or "all"


def _hosts(topology: Topology) -> list[list[str]]:
    """Return the GPUs of each host in the order of their ranks."""
    hosts: dict[str | None, list[str]] = {}
    for name in topology.ranks:
        hosts.setdefault(topology.device(name).host, []).append(name)
    if not hosts:
        raise ProblemError(f"{topology} has no GPU, and a sketch speaks of GPUs")
    if None in hosts and len(hosts) > 1:
        raise ProblemError(
            f"GPU {hosts[None][0]} is in no host, and the sketch counts host by host; give it one"
        )
    return list(hosts.values())


def _numbered(said: Mapping[str, list[int]], place: str) -> dict[int, list[int]]:
    """Read the numbers of GPUs that are keys."""
    for key in said:
        if not (key.isascii() and key.isdigit() and len(key) <= 4):
            raise FormatError(
                f"at {place}: {key[:20]!r} is no number of a GPU; count those of a host from 0"
            )
    return {int(key): numbers for key, numbers in said.items()}


def _listing(numbers: Sequence[int]) -> str:
    shown = ", ".join(str(each) for each in numbers[:8])
    return f"{shown}, ..." if len(numbers) > 8 else shown


Json = dict[str, Any]

MOST_BYTES = 4_000_000
"""Bytes of a file; one with more holds something else."""

MOST_PAIRS = 100_000
"""Pairs of devices of one kind that a sketch may name."""

Pairs = Annotated[list[Ends], Meta(max_length=MOST_PAIRS)]
Count = Annotated[int, Meta(ge=1, le=10_000)]


class SketchJson(Struct, forbid_unknown_fields=True):
    """The plain form; pairs are lists of two names."""

    between: Pairs | None = None
    without: Pairs = []
    forced: Pairs = []
    relays: Pairs = []
    switches: Inclination = "all"
    offsets: Annotated[list[tuple[Integer, Integer]], Meta(max_length=100)] = []
    chunks: Count | None = None
    instances: Count = 1


class _Head(Struct):
    """Keys that distinguish TACCL's sketches from ours."""

    nnodes: Any = None
    intranode_sketch: Any = None
    internode_sketch: Any = None
    hyperparameters: Any = None


def sketch_to_json(sketch: Sketch) -> Json:
    """Return the plain form of a sketch, without what says nothing."""
    usual, said = Sketch(), ((name, getattr(sketch, name)) for name in SketchJson.__struct_fields__)
    kept = {name: value for name, value in said if value != getattr(usual, name)}
    return {
        name: [list(pair) for pair in value] if isinstance(value, tuple) else value
        for name, value in kept.items()
    }


def sketch_from_json(value: Any) -> Sketch:
    """Read the plain form.

    Raises
    ------
    FormatError
        If the shape is wrong, with the place.
    ProblemError
        If it has the shape of a sketch and is invalid.
    """
    if isinstance(value, dict) and not value.keys() <= set(SketchJson.__struct_fields__):
        wrong = next(key for key in value if key not in SketchJson.__struct_fields__)
        known = ", ".join(SketchJson.__struct_fields__)
        raise FormatError(
            f"{wrong!r} is no part of a sketch; there are {known}, or those of TACCL's files"
        )
    return noun_of(Sketch, shaped(value, SketchJson, "sketch"))


def read_sketch(
    content: bytes | str, topology: Topology, *, name: str = "sketch"
) -> tuple[Sketch, tuple[str, ...]]:
    """Read the content of a file called `name`, in our form or TACCL's, for a topology.

    Returns
    -------
        The sketch, and in sentences what was taken, assumed and left out.

    Raises
    ------
    FormatError
        If it is not JSON, neither form, or too large.
    ProblemError
        If it names what the topology does not have.
    """
    try:
        _bounded(content)
        head = decode_json(content, _Head)
        if any(getattr(head, key) is not None for key in _Head.__struct_fields__):
            return read_taccl_sketch(content, topology)
        sketch = sketch_from_json(decode_json(content, Json))
        sketch.check(topology)
    except (FormatError, ProblemError) as error:
        raise type(error)(f"{name}: {error}") from None
    return sketch, ()


def read_taccl_sketch(content: bytes | str, topology: Topology) -> tuple[Sketch, tuple[str, ...]]:
    """Read the text of one of TACCL's sketches for a topology.

    Returns
    -------
        The sketch, and in sentences what was taken, assumed and left out.

    Raises
    ------
    FormatError
        If it is not JSON, not a sketch, or too large.
    ProblemError
        If it counts GPUs that a host does not have, or contradicts itself.
    """
    _bounded(content)
    unknown = _unknown(decode_json(content, Json))
    sketch, sentences = sketch_of_taccl(content, topology, most=MOST_PAIRS)
    sketch.check(topology)
    return sketch, (*sentences, *unknown)


def _bounded(content: bytes | str) -> None:
    nbytes = len(content)
    if nbytes > MOST_BYTES:
        raise FormatError(f"it has {nbytes:,} bytes, and a sketch has {MOST_BYTES:,} at most")


def _unknown(value: Json, place: str = "") -> list[str]:
    """Name the keys that nobody reads here."""
    known = KEYS[place]
    return [
        f"left out: {key!r}{f' of {place}' if place else ''}, which is not known here"
        for key in value
        if key not in known
    ] + [
        sentence
        for key, each in value.items()
        if key in KEYS and isinstance(each, dict)
        for sentence in _unknown(each, key)
    ]
