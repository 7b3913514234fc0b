"""ForestColl: trees with whole weights."""

from ccl.formats.synthesizers.forestcoll.format import READER, WRITER

__all__ = ["READER", "WRITER"]
