"""TACCL: topologies, and sketches of what is to be used of one."""

from interchange.formats.synthesizers.taccl import sketch, topology

READERS = (topology.READER, *sketch.READERS)
