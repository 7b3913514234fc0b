"""A replay as a Chrome trace, which Perfetto and chrome://tracing open.

Every source device is a process, every link of its own a thread, every crossing of a link a slice
("X") in µs, from its first byte entering to its last one arriving. The latency of a crossing
overlaps the crossing after it, and slices of a thread must not overlap, so a link has as many
threads as it has crossings under way at once. Arrows ("s", "t", "f" of one id) follow a chunk from
slice to slice; each is bound to a slice by its beginning. Counters ("C") show over time the share
of links that are sending, and how full limited buffers are (`busy_links`, `buffered_bytes`). Of a
symmetric plan the representatives are shown, and `images` in the metadata says how many each stands
for.

Arrows lead from a transfer to those that take on what it brought, as the
replay says (`ccl.timeline.Timeline.after`); of a sum a transfer takes on what none before it did,
or else the last. They are laid end to end (`chains`), so that each chain goes through as many
transfers as it can: viewers draw a chain as one flow with one beginning and one end.

Reference: Trace Event Format; the complete, flow, counter and metadata events.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any

import numpy as np

from ccl.options import option
from ccl.problem import Problem
from ccl.serialization.documents import Document
from ccl.timeline import Timeline, Transfer
from interchange.formats.fields import select_sentences
from interchange.formats.format import Writer, Written, one_file, replayed


def chains(problem: Problem, timeline: Timeline) -> list[list[int]]:
    """Return chains of two or more transfers, by their places; each arrow is in one of them."""
    after: defaultdict[int, list[int]] = defaultdict(list)
    before: defaultdict[int, list[int]] = defaultdict(list)
    taken: set[int] = set()
    for then, brought in enumerate(timeline.after):
        # Without latency two may seem to bring each other; the later one brings nothing.
        fresh = [first for first in brought if first < then]
        if problem.collective.chunks[timeline.transfers[then].chunk].reduced:
            fresh = [first for first in fresh if first not in taken] or fresh[-1:]
        taken.update(fresh)
        for first in fresh:
            after[first].append(then)
            before[then].append(first)
    onward: dict[tuple[int, int], int] = {}
    begun: list[tuple[int, int]] = []
    for place in sorted(after):
        came = iter(before[place])
        for then in after[place]:
            reached = next(came, None)
            if reached is None:
                begun.append((place, then))
            else:
                onward[reached, place] = then
    found = []
    for first, then in begun:
        chain = [first, then]
        while (further := onward.get((chain[-2], chain[-1]))) is not None:
            chain.append(further)
        found.append(chain)
    return found


MOST_STEPS = 2000
"""Of a curve; one that changes more often is shown by its mean in so many slots of time."""

Curve = list[tuple[float, float]]
"""Times in µs, and the value from there on."""


def busy_links(problem: Problem, timeline: Timeline) -> Curve:
    """Return the share of links that are sending; each counts with those that it stands for."""
    if not timeline.transfers:
        return []
    stands: defaultdict[tuple[str, str], int] = defaultdict(int)
    for link in problem.topology.links:
        stands[timeline.place(*link.ends)] += 1
    changes = []
    for each in timeline.transfers:
        weight = stands[timeline.place(each.src, each.dst)]
        changes += [(each.start, weight), (each.sent, -weight)]
    curve = _summed(changes)
    links = len(problem.topology.links)
    return _thinned([(time, value / links) for time, value in curve])


def buffered_bytes(problem: Problem, timeline: Timeline) -> dict[str, Curve]:
    """Return the bytes that each device with a limited buffer keeps.

    A device keeps a chunk from its arrival until its last transfer of it starts, and for ever
    where it is a destination; parts of a chunk are kept as amounts. Of a symmetric timeline, which
    shows representatives alone, nothing is known.
    """
    if timeline.images > 1 or timeline.orbits:
        return {}
    limited = [
        each.name
        for each in problem.topology.devices
        if each.stores and each.buffer_bytes is not None
    ]
    moves: dict[str, defaultdict[int, tuple[list[Transfer], list[Transfer]]]] = {
        name: defaultdict(lambda: ([], [])) for name in limited
    }
    for each in timeline.transfers:
        if each.dst in moves:
            moves[each.dst][each.chunk][0].append(each)
        if each.src in moves:
            moves[each.src][each.chunk][1].append(each)
    curves = {}
    for name, of_chunk in moves.items():
        changes = [
            change
            for number in range(len(problem.collective.chunks))
            for change in _changes(problem, name, number=number, moves=of_chunk[number])
        ]
        curves[name] = _thinned(_summed(changes))
    return curves


def _changes(
    problem: Problem, name: str, *, number: int, moves: tuple[list[Transfer], list[Transfer]]
) -> Iterable[tuple[float, float]]:
    """Return when a device begins or ceases to keep how many bytes of a chunk."""
    chunk, rank = problem.collective.chunks[number], problem.topology.rank.get(name, -1)
    holds, needs = rank in chunk.holders, rank in chunk.destinations
    came, left = moves
    if not left and not needs:
        return []
    changes = [(0.0, chunk.size)] if holds else []
    if any(each.nbytes < chunk.size * (1 - 1e-6) for each in (*came, *left)):
        changes += [] if holds and chunk.reduced else [(each.end, each.nbytes) for each in came]
        return changes + ([] if needs else [(each.start, -each.nbytes) for each in left])
    if not holds and came:
        changes.append((min(each.end for each in came), chunk.size))
    if not needs:
        changes.append((max(each.start for each in left), -chunk.size))
    return changes


def _summed(changes: Iterable[tuple[float, float]]) -> Curve:
    """Add up changes; those of one moment are one."""
    at: defaultdict[float, float] = defaultdict(float)
    for time, change in changes:
        at[time] += change
    times = sorted(at)
    return list(zip(times, accumulate(at[time] for time in times), strict=True))


def _thinned(curve: Curve) -> Curve:
    """Return the curve, or its mean in equal slots of time where it has too many steps."""
    if len(curve) <= MOST_STEPS:
        return curve
    times, values = (np.array(each) for each in zip(*curve, strict=True))
    area = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(times))])
    moments = np.linspace(times[0], times[-1], MOST_STEPS)
    means = np.diff(np.interp(moments, times, area)) / np.diff(moments)
    return [*zip(moments[:-1].tolist(), means.tolist(), strict=True), curve[-1]]


DIGITS = 3
"""Of a µs; viewers count in whole ns."""

MOST_WITH_ARROWS = 50_000
"""Transfers of which the arrows are drawn: a replay of a forest or flow has no more."""

_Event = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a trace shows beside the crossings of links."""

    arrows: bool = option(True, "Arrows", "Along the way of a chunk, from link to link.")
    counters: bool = option(True, "Counters", "Share of links that are busy, limited buffers.")


def write(content: Document, options: Options) -> Written:
    """Write the replay of a document's plan."""
    problem, _, timeline = replayed(content)
    many = options.arrows and len(timeline.transfers) > MOST_WITH_ARROWS
    parted = timeline.chunks > 1 and options.arrows
    lost = select_sentences(
        (True, "the cluster but for the names of devices, and where each chunk is needed"),
        (many, f"arrows, because there are more than {MOST_WITH_ARROWS:,} transfers"),
        (timeline.images > 1, f"that each slice stands for {timeline.images:,} alike"),
        (parted, "which part of a chunk is which: arrows take parts of a size in their order"),
    )
    return one_file(chrome_trace(problem, timeline, options), ending="json", lost=tuple(lost))


def chrome_trace(problem: Problem, timeline: Timeline, options: Options | None = None) -> str:
    """Return the trace of a replay as JSON text."""
    request = options or Options()
    topology, collective = problem.topology, problem.collective
    slices, threads = _slices(problem, timeline)
    events = _names(threads, topology.index)
    arrows: dict[int, list[_Event]] = {}
    if request.arrows and len(slices) <= MOST_WITH_ARROWS:
        arrows = _arrows(problem, timeline, slices)
    for place, each in enumerate(slices):
        events += [each, *arrows.get(place, ())]
    if request.counters:
        events += _counters(problem, timeline)
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


def _slices(
    problem: Problem, timeline: Timeline
) -> tuple[list[_Event], dict[tuple[str, str, int], int]]:
    """Return a slice for each transfer, and the thread of each lane of a link."""
    index = problem.topology.index
    lanes: dict[tuple[str, str], list[float]] = {link.ends: [] for link in problem.topology.links}
    held = []
    for each in timeline.transfers:
        begin, end = round(each.start, DIGITS), round(each.end, DIGITS)
        held.append(_lane(lanes[each.src, each.dst], begin, end))
    threads: dict[tuple[str, str, int], int] = {}
    for ends, busy in lanes.items():
        for lane in range(len(busy)):
            threads[(*ends, lane)] = len(threads) + 1
    slices = [
        _slice(each, index[each.src], threads[each.src, each.dst, lane])
        for each, lane in zip(timeline.transfers, held, strict=True)
    ]
    return slices, threads


def _lane(busy: list[float], begin: float, end: float) -> int:
    """Return the first lane that is free at `begin`, and hold it until `end`."""
    for lane, until in enumerate(busy):
        if until <= begin:
            busy[lane] = end
            return lane
    busy.append(end)
    return len(busy) - 1


def _names(threads: dict[tuple[str, str, int], int], index: dict[str, int]) -> list[_Event]:
    """Name processes and threads, and sort the processes as the topology does."""
    events: list[_Event] = []
    for src in dict.fromkeys(src for src, _, _ in threads):
        events += [
            _meta("process_name", index[src], 0, {"name": src}),
            _meta("process_sort_index", index[src], 0, {"sort_index": index[src]}),
        ]
    for (src, dst, lane), thread in threads.items():
        more = f" ({lane + 1})" if lane else ""
        events.append(_meta("thread_name", index[src], thread, {"name": f"{src} → {dst}{more}"}))
    return events


def _meta(what: str, process: int, thread: int, told: dict[str, Any]) -> _Event:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": told}


def _slice(each: Transfer, process: int, thread: int) -> _Event:
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


def _arrows(problem: Problem, timeline: Timeline, slices: list[_Event]) -> dict[int, list[_Event]]:
    """Return the events of arrows, by the slice after which they are listed.

    A slice shorter than a ns is closed before anything is bound to it, so an arrow ends before it
    and another begins after it.
    """
    events: dict[int, list[_Event]] = {}
    number = 0
    for chain in chains(problem, timeline):
        for lasts, run in groupby(chain, key=lambda place: bool(slices[place]["dur"] > 0)):
            shown = list(run)
            if not lasts or len(shown) < 2:
                continue
            number += 1
            for place in shown:
                kind = "s" if place == shown[0] else "f" if place == shown[-1] else "t"
                event = _arrow(slices[place], kind, number)
                events.setdefault(place, []).append(event)
    return events


def _arrow(under: _Event, kind: str, number: int) -> _Event:
    """Return where an arrow begins, goes on or ends: at the beginning of a slice."""
    event = {"ph": kind, "name": under["name"], "cat": "way", "id": number}
    event |= {key: under[key] for key in ("pid", "tid", "ts")}
    return event if kind == "s" else event | {"bp": "e"}


def _counters(problem: Problem, timeline: Timeline) -> list[_Event]:
    """Return counters: of all links as a process of its own, of a buffer in its device's."""
    index = problem.topology.index
    found = _counter("links busy", len(index), "share", busy_links(problem, timeline))
    if found:
        found.insert(0, _meta("process_name", len(index), 0, {"name": "All links"}))
    for name, curve in buffered_bytes(problem, timeline).items():
        found += _counter("buffer", index[name], "bytes", curve)
    return found


def _counter(name: str, process: int, key: str, curve: Curve) -> list[_Event]:
    return [
        {
            "ph": "C",
            "name": name,
            "pid": process,
            "ts": round(time, DIGITS),
            "args": {key: round(value, 6)},
        }
        for time, value in curve
    ]


WRITER = Writer(
    "chrome-trace", "Trace for Perfetto and chrome://tracing (JSON)", "json", "plan", write, Options
)
