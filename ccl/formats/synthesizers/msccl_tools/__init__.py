"""MSCCL-tools, with what SCCL and TACCL write in its format."""

from ccl.formats.synthesizers.msccl_tools.format import READER, WRITER

__all__ = ["READER", "WRITER"]
