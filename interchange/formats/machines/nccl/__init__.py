"""NCCL and RCCL: the topologies that they print and take, and the channels that they plan."""

from interchange.formats.machines.nccl import graph, system

READERS = (system.READER, graph.READER)
WRITERS = (system.WRITER,)
