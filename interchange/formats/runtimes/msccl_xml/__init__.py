"""MSCCL XML, which the executors of MSCCL load."""

from interchange.formats.runtimes.msccl_xml.format import (
    READER,
    WRITER,
    Options,
    program_from_xml,
    program_to_xml,
)

__all__ = ["READER", "WRITER", "Options", "program_from_xml", "program_to_xml"]
