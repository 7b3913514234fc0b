"""NCCL and RCCL: the topologies that they print and take, and the channels that they plan."""

from interchange.formats.machines.nccl import channels, system, writing

READERS = (system.READER, channels.READER)
WRITERS = (writing.WRITER,)
