"""Plans as Chakra execution traces, a file for each rank, with the network for ASTRA-sim.

Every message between two ranks is a node that sends in the one's trace and one that receives in
the other's, with a tag of their own. A send depends on the receipts without which its sender had
not what it sends; a link that is busy is the simulator's business. What goes through switches and
memories goes from rank to rank (`interchange.programs.lowering.hops`). The shares of forests
and flows are cut into parts, as their replay does.

The files:

====================  ==========================================================================
``plan.N.et``         what rank N does; a workload by itself, or an implementation of a collective
``workload.N.et``     one collective, for the kinds of which ASTRA-sim takes implementations
``system.json``       says that ``plan`` is the implementation; its path is from the working folder
``network.yml``       the analytical network, where the cluster is one
``network.txt``       else that for ns-3, with ``logical.json``
====================  ==========================================================================

The messages of the traces are made here rather than generated (`metadata`, `node`). Numbers and
names of fields are those of mlcommons/chakra, schema/protobuf/et_def.proto; of the kinds of values
that an attribute may have, those that are written. A trace is one message after the other, each
after its length as a varint.

Sources: mlcommons/chakra, schema/protobuf/et_def.proto; astra-sim/astra-sim,
astra-sim/workload/Workload.cc and system/astraccl/custom_collectives/CustomAlgorithm.cc.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ccl import text
from ccl.errors import FormatError
from ccl.options import option
from ccl.plans import Forest, Schedule
from ccl.problem import Problem
from ccl.result import Plan
from ccl.serialization.documents import Document
from ccl.timeline import Timeline
from interchange.formats.fields import select_sentences
from interchange.formats.format import Writer, Written, replayed
from interchange.formats.simulators import astra_analytical, astra_ns3
from interchange.programs.lowering.hops import OWN, Hops, Message, Messages, hops_of, messages_of

VERSION = "0.0.4"
"""Of the schema, as traces of ASTRA-sim say."""

SEND, RECEIVE, COLLECTIVE = 5, 6, 7
"""Types of nodes: COMM_SEND_NODE, COMM_RECV_NODE, COMM_COLL_NODE."""

COLLECTIVES = {"all-reduce": 0, "all-gather": 2, "all-to-all": 6, "reduce-scatter": 7}
"""Types of collectives that ASTRA-sim simulates by traces of their own."""

_Field = tuple[str, int, str]
_MESSAGES: Mapping[str, tuple[_Field, ...]] = {
    "AttributeProto": (
        ("name", 1, "string"),
        ("int32_val", 7, "int32"),
        ("int64_val", 9, "int64"),
        ("bool_val", 27, "bool"),
        ("string_val", 29, "string"),
    ),
    "GlobalMetadata": (("version", 1, "string"), ("attr", 2, "AttributeProto")),
    "Node": (
        ("id", 1, "uint64"),
        ("name", 2, "string"),
        ("type", 3, "int32"),  # an enumeration is written as its number
        ("ctrl_deps", 4, "uint64*"),
        ("data_deps", 5, "uint64*"),
        ("attr", 10, "AttributeProto"),
    ),
}
_VALUES = {int: "int32_val", bool: "bool_val", str: "string_val"}


class Bytes(int):
    """A number of bytes, which readers expect in 64 bits."""


@cache
def _classes() -> dict[str, Any]:
    """Make the classes of the messages."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: PLC0415  heavy, and used by traces alone

    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="et_def.proto", package="ChakraProtoMsg", syntax="proto3"
    )
    for title, rows in _MESSAGES.items():
        message = file.message_type.add(name=title)
        if title == "AttributeProto":
            message.oneof_decl.add(name="value")
        for name, number, kind in rows:
            many = kind.endswith("*") or kind in _MESSAGES
            field = message.field.add(name=name, number=number)
            field.label = kinds.LABEL_REPEATED if many else kinds.LABEL_OPTIONAL
            if kind in _MESSAGES:
                field.type = kinds.TYPE_MESSAGE
                field.type_name = f".ChakraProtoMsg.{kind}"
            else:
                field.type = kinds.Type.Value(f"TYPE_{kind.rstrip('*').upper()}")
            if name.endswith("_val"):
                field.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        title: message_factory.GetMessageClass(
            pool.FindMessageTypeByName(f"ChakraProtoMsg.{title}")
        )
        for title in _MESSAGES
    }


def metadata(attributes: Mapping[str, str]) -> bytes:
    """Return the first message of a trace, with its length."""
    return _sized(_classes()["GlobalMetadata"](version=VERSION, attr=_attributes(attributes)))


def node(
    number: int,
    name: str,
    *,
    kind: int,
    after: Iterable[int] = (),
    attributes: Mapping[str, int | bool | str],
) -> bytes:
    """Return a node that waits for the data of others, with its length."""
    made = _classes()["Node"](
        id=number, name=name, type=kind, data_deps=after, attr=_attributes(attributes)
    )
    return _sized(made)


def _attributes(attributes: Mapping[str, int | bool | str]) -> list[Any]:
    attribute = _classes()["AttributeProto"]
    return [
        attribute(name=name, **{_VALUES.get(type(value), "int64_val"): value})
        for name, value in attributes.items()
    ]


def _sized(message: Any) -> bytes:
    """Return a message after its length, seven bits a byte, the lowest first."""
    content: bytes = message.SerializeToString(deterministic=True)
    length, head = len(content), bytearray()
    while length >= 0x80:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    head.append(length)
    return bytes(head) + content


MOST_MESSAGES = 500_000
"""Of a trace; each is two nodes of about 150 bytes."""

USUAL_MESSAGES = 100_000
"""Forests and flows are cut into fewer parts if they would have more."""

_NOTHING = 1e-6
"""Bytes that are errors of rounding."""

_MOST_PIECES = 2**16
"""To which shares of chunks are rounded where they are no simple fractions."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a plan becomes traces."""

    parts: int | None = option(
        None,
        "Parts of a share",
        "Of forests and flows: more are closer to the steady state; as replayed.",
        min=1,
        max=1024,
    )


def write(content: Document, options: Options) -> Written:
    """Write the traces of a plan.

    Raises
    ------
    FormatError
        If it has more than `MOST_MESSAGES`, or moves what no messages between ranks say.
    """
    problem, plan, timeline = replayed(content)
    hops, messages = _messages(problem, plan)
    parts = _parts(plan, timeline, len(messages.messages), request=options.parts)
    traces = _Traces(problem, hops, messages, parts=parts)
    files = traces.files() | _implementation(problem)
    network = _network(content)
    return Written(files | dict(network.files), (*traces.lost(), *network.lost))


def _messages(problem: Problem, plan: Plan) -> tuple[Hops, Messages]:
    if isinstance(plan, Forest):
        routes = sum(len(tree.routes) for tree in (*plan.trees, *plan.spread)) * plan.images
        if routes > MOST_MESSAGES:
            raise FormatError(
                f"the forest has {routes:,} routes; traces of {MOST_MESSAGES:,} are written"
            )
    hops = hops_of(problem, plan, most_pieces=_MOST_PIECES)
    return hops, messages_of(problem, hops)


def _parts(plan: Plan, timeline: Timeline, messages: int, *, request: int | None) -> int:
    """Return in how many parts each share is cut."""
    parts = 1
    if not isinstance(plan, Schedule):
        usual = min(timeline.chunks, USUAL_MESSAGES // max(1, messages))
        parts = max(1, usual) if request is None else request
    if messages * parts > MOST_MESSAGES:
        raise FormatError(
            f"the plan has {messages * parts:,} messages; at most {MOST_MESSAGES:,} are written, "
            "so ask for fewer chunks or parts"
        )
    return parts


class _Traces:
    """Nodes by rank."""

    def __init__(self, problem: Problem, hops: Hops, messages: Messages, *, parts: int) -> None:
        self._problem = problem
        self._hops = hops
        self._messages = messages
        self._parts = parts
        self._sizes = [self._size(part.chunk, part.count) for part in hops.parts]

    def files(self) -> dict[str, bytes]:
        """Return the traces of all ranks."""
        collective = self._problem.collective
        attributes = {"topology": self._problem.topology.name, "collective": collective.kind}
        traces = [bytearray(metadata(attributes)) for _ in self._problem.topology.ranks]
        for rank, each in self._nodes():
            traces[rank] += each
        return {f"plan.{rank}.et": bytes(trace) for rank, trace in enumerate(traces)}

    def lost(self) -> tuple[str, ...]:
        """Say what the traces do not carry."""
        others = [each for each in self._problem.topology.devices if each.kind != "gpu"]
        meeting = [each.kind == "switch" and (each.copies or each.reduces) for each in others]
        sizes = [self._sizes[each.part] for each in self._messages.messages]
        odd = sum(abs(size - round(size)) > _NOTHING for size in sizes) * self._parts
        pieces, sums = self._hops.pieces, self._problem.collective.reduces
        rows = (
            (True, "epochs and times: the simulator finds its own"),
            (others, "the path of each message through switches, which the network chooses"),
            (any(meeting), "copies and sums made in switches: each copy is a message of its own"),
            (self._hops.rounded, f"shares of chunks as they are: they are rounded to 1/{pieces}"),
            (odd, f"fractions of a byte: {text.count(odd, 'message')} of a rounded size"),
            (sums, "what is added up: a receipt does not say what happens to it"),
        )
        return tuple(select_sentences(*rows))

    def _size(self, chunk: int, count: int) -> float:
        """Return the bytes of a part of a share."""
        whole = self._problem.collective.chunks[chunk].size
        return whole * count / self._hops.pieces / self._parts

    def _nodes(self) -> Iterator[tuple[int, bytes]]:
        """Yield the nodes with their ranks: parts one after the other, each in a possible order."""
        listed = self._messages.messages
        for part in range(self._parts):
            first = part * len(listed)
            held: defaultdict[tuple[int, int, int], list[int]] = defaultdict(list)
            for event in self._messages.events:
                message = listed[event.message]
                number = first + event.message
                of, named = message.part, message.named
                if event.sends:
                    taken = [OWN] if named is None else sorted(named.taken)
                    after = [each for value in taken for each in held[of, message.src, value]]
                    yield message.src, self._send(number, event.message, after)
                    continue
                yield message.dst, self._receive(number, event.message)
                value = OWN if named is None else named.value
                self._keep(held[of, message.dst, value], message, _received(number))

    def _keep(self, held: list[int], message: Message, receipt: int) -> None:
        """Note that a rank holds a part by a receipt: in place of others, or beside them."""
        chunk = self._problem.collective.chunks[self._hops.parts[message.part].chunk]
        if not chunk.reduced and (held or message.dst in chunk.holders):
            return  # it came before, or was there
        if chunk.reduced and not message.adds and message.named is None:
            held.clear()
        held.append(receipt)

    def _send(self, number: int, place: int, after: list[int]) -> bytes:
        message = self._messages.messages[place]
        name = f"send chunk {self._hops.parts[message.part].chunk} to {message.dst}"
        attributes = self._told(number, place)
        return node(2 * number + 1, name, kind=SEND, after=after, attributes=attributes)

    def _receive(self, number: int, place: int) -> bytes:
        message = self._messages.messages[place]
        name = f"receive chunk {self._hops.parts[message.part].chunk} from {message.src}"
        return node(_received(number), name, kind=RECEIVE, attributes=self._told(number, place))

    def _told(self, number: int, place: int) -> Mapping[str, int | bool]:
        """Return the attributes; older feeders take what is not said to be no CPU's for one's."""
        message = self._messages.messages[place]
        return {
            "is_cpu_op": False,
            "comm_src": message.src,
            "comm_dst": message.dst,
            "comm_size": Bytes(max(1, round(self._sizes[message.part]))),
            "comm_tag": number,
        }


def _received(number: int) -> int:
    """Return the number of the node that receives a message; the one before sends it."""
    return 2 * number + 2


def _implementation(problem: Problem) -> dict[str, bytes]:
    """Return a workload of the collective alone, and the system that does it by the plan."""
    kind = problem.collective.kind
    if kind not in COLLECTIVES:
        return {}
    system = {
        "scheduling-policy": "FIFO",
        "preferred-dataset-splits": 1,
        f"{kind}-implementation-custom": ["plan"],
        "local-mem-bw": 50,
    }
    attributes = {
        "is_cpu_op": False,
        "comm_type": Bytes(COLLECTIVES[kind]),
        "comm_size": Bytes(max(1, round(problem.collective.size))),
    }
    trace = metadata({}) + node(1, kind, kind=COLLECTIVE, attributes=attributes)
    files = {f"workload.{rank}.et": trace for rank in range(len(problem.topology.ranks))}
    return files | {"system.json": (json.dumps(system, indent=2) + "\n").encode()}


def _network(content: Document) -> Written:
    """Return the network for the analytical backend, or that for ns-3."""
    try:
        written = astra_analytical.write(content)
    except FormatError:
        return astra_ns3.write(content)
    return Written({"network.yml": written.content}, written.lost)


WRITER = Writer("chakra", "Chakra execution traces for ASTRA-sim", "zip", "plan", write, Options)
