"""NCCL and RCCL: the topologies that they print and take, and the channels that they plan."""

from interchange.formats.machines.nccl import shape, system

READERS = (system.READER, shape.READER)
WRITERS = (system.WRITER,)
