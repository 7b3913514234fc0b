"""The messages of Chakra's execution traces, made here rather than generated.

Numbers and names of fields are those of mlcommons/chakra, schema/protobuf/et_def.proto; of the
kinds of values that an attribute may have, those that are written. A trace is one message after
the other, each after its length as a varint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

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
    from google.protobuf import (  # noqa: PLC0415  heavy, and used by traces alone
        descriptor_pb2,
        descriptor_pool,
        message_factory,
    )

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


def metadata(told: Mapping[str, str]) -> bytes:
    """Return the first message of a trace, with its length."""
    return _sized(_classes()["GlobalMetadata"](version=VERSION, attr=_attributes(told)))


def node(
    number: int,
    name: str,
    *,
    kind: int,
    after: Iterable[int] = (),
    told: Mapping[str, int | bool | str],
) -> bytes:
    """Return a node that waits for the data of others, with its length."""
    made = _classes()["Node"](
        id=number, name=name, type=kind, data_deps=after, attr=_attributes(told)
    )
    return _sized(made)


def _attributes(told: Mapping[str, int | bool | str]) -> list[Any]:
    attribute = _classes()["AttributeProto"]
    return [
        attribute(name=name, **{_VALUES.get(type(value), "int64_val"): value})
        for name, value in told.items()
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
