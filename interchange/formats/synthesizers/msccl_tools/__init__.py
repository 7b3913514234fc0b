"""MSCCL-tools, with what SCCL and TACCL write in its format."""

from interchange.formats.synthesizers.msccl_tools.format import READER, WRITER

__all__ = ["READER", "WRITER"]
