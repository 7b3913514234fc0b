"""ForestColl: trees with whole weights."""

from interchange.formats.synthesizers.forestcoll.format import READER, WRITER

__all__ = ["READER", "WRITER"]
