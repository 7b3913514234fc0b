"""A replay as a Chrome trace, which Perfetto and chrome://tracing open.

Every source device is a process, every link of its own a thread, every crossing of a link a slice
("X") in µs, from its first byte entering to its last one arriving. The latency of a crossing
overlaps the crossing after it, and slices of a thread must not overlap, so a link has as many
threads as it has crossings under way at once. Of a symmetric plan the representatives are shown,
and `images` in the metadata says how many each stands for.

Reference: Trace Event Format, the complete and metadata events.
"""

from __future__ import annotations

import json
from typing import Any

from ccl.problem import Problem
from ccl.timeline import Timeline, Transfer

DIGITS = 3
"""Of a µs; viewers count in whole ns."""


def chrome_trace(problem: Problem, timeline: Timeline) -> str:
    """Return the trace of a replay as JSON text."""
    topology, collective = problem.topology, problem.collective
    lanes: dict[tuple[str, str], list[float]] = {link.ends: [] for link in topology.links}
    slices = []
    for each in sorted(timeline.transfers, key=lambda transfer: transfer.start):
        begin, end = round(each.start, DIGITS), round(each.end, DIGITS)
        slices.append((each, _lane(lanes[each.src, each.dst], begin, end)))
    threads: dict[tuple[str, str, int], int] = {}
    for ends, busy in lanes.items():
        for lane in range(len(busy)):
            threads[(*ends, lane)] = len(threads) + 1
    events = _names(threads, topology.index)
    events += [
        _slice(each, topology.index[each.src], threads[each.src, each.dst, lane])
        for each, lane in slices
    ]
    trace = {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {
            "topology": topology.name,
            "collective": collective.kind,
            "size": collective.size,
            "makespan_us": timeline.makespan,
            **({"images": timeline.images} if timeline.images > 1 else {}),
        },
    }
    return json.dumps(trace, ensure_ascii=False, allow_nan=False) + "\n"


def _lane(busy: list[float], begin: float, end: float) -> int:
    """Return the first lane that is free at `begin`, and hold it until `end`."""
    for lane, until in enumerate(busy):
        if until <= begin:
            busy[lane] = end
            return lane
    busy.append(end)
    return len(busy) - 1


def _names(threads: dict[tuple[str, str, int], int], index: dict[str, int]) -> list[dict[str, Any]]:
    """Name processes and threads, and sort the processes as the topology does."""
    events: list[dict[str, Any]] = []
    for src in dict.fromkeys(src for src, _, _ in threads):
        events += [
            _meta("process_name", index[src], 0, {"name": src}),
            _meta("process_sort_index", index[src], 0, {"sort_index": index[src]}),
        ]
    for (src, dst, lane), thread in threads.items():
        more = f" ({lane + 1})" if lane else ""
        events.append(_meta("thread_name", index[src], thread, {"name": f"{src} → {dst}{more}"}))
    return events


def _meta(what: str, process: int, thread: int, told: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": told}


def _slice(each: Transfer, process: int, thread: int) -> dict[str, Any]:
    begin, end = round(each.start, DIGITS), round(each.end, DIGITS)
    told: dict[str, Any] = {"dst": each.dst, "bytes": each.nbytes, "sent_us": each.sent}
    if each.epoch >= 0:
        told["epoch"] = each.epoch
    return {
        "ph": "X",
        "name": f"chunk {each.chunk}",
        "cat": "transfer",
        "pid": process,
        "tid": thread,
        "ts": begin,
        "dur": round(end - begin, DIGITS),
        "args": told,
    }
