"""Programs: what a runtime of collectives does, thread block by thread block."""

from interchange.programs.program import (
    BUFFERS,
    OPERATIONS,
    PROTOCOLS,
    Buffer,
    Operation,
    Program,
    Protocol,
    RankProgram,
    Slot,
    Step,
    ThreadBlock,
)

__all__ = [
    "BUFFERS",
    "OPERATIONS",
    "PROTOCOLS",
    "Buffer",
    "Operation",
    "Program",
    "Protocol",
    "RankProgram",
    "Slot",
    "Step",
    "ThreadBlock",
]
