"""Timelines: what a replay says, why each of its transfers started when it did, and its metrics."""

from ccl.timeline.causes import Cause, Reason, causes, find_last_needed, trace_critical
from ccl.timeline.metrics import (
    algbw,
    bus_factor,
    busbw,
    critical_path,
    finish_times,
    link_load,
    link_utilisation,
)
from ccl.timeline.transfers import After, Ends, Slices, Terms, Timeline, Transfer, Transfers, among

__all__ = [
    "After",
    "Cause",
    "Ends",
    "Reason",
    "Slices",
    "Terms",
    "Timeline",
    "Transfer",
    "Transfers",
    "algbw",
    "among",
    "bus_factor",
    "busbw",
    "causes",
    "critical_path",
    "find_last_needed",
    "finish_times",
    "link_load",
    "link_utilisation",
    "trace_critical",
]
