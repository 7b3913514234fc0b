"""Writing a schedule as TE-CCL does; every figure is made of the plan again."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ccl.errors import FormatError
from ccl.problem import Problem
from ccl.result import Plan
from ccl.schedule import Schedule, Send
from ccl.serialization.documents import Document
from ccl.simulate.engine import binding
from ccl.simulate.plan import plan_sends
from interchange.formats.format import NoOptions, Written, one_file, replayed
from interchange.formats.synthesizers.te_ccl.file import Hop
from interchange.formats.synthesizers.te_ccl.moves import fifo_ways

USUAL = ("all-gather", "all-to-all")
"""Collectives that TE-CCL knows."""


def write_schedule(content: Document, _options: NoOptions) -> Written:
    """Write the plan of a document.

    Raises
    ------
    FormatError
        If the plan is no schedule, or a chunk is not one that TE-CCL has.
    """
    problem, plan, _ = replayed(content)
    schedule = _schedule(problem, plan)
    made = _Writer(problem, schedule)
    value = made.value()
    if content.result is not None:
        value["Solver_Time"] = content.result.solve_time
    text = json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n"
    return one_file(text, ending="json", lost=_lost(problem))


def _schedule(problem: Problem, plan: Plan) -> Schedule:
    """Return the schedule that can be written."""
    if not isinstance(plan, Schedule):
        kind = type(plan).__name__.lower()
        msg = (
            f"a TE-CCL schedule says what travels in which epoch, and a {kind} has no epochs; "
            "solve with te-ccl-milp or te-ccl-lp"
        )
        raise FormatError(msg)
    size = problem.collective.chunk_size
    for number, chunk in enumerate(problem.collective.chunks):
        wrong = None
        if chunk.reduced:
            wrong = "is a sum, and TE-CCL's chunks are not added up"
        elif len(chunk.holders) > 1:
            wrong = f"starts at {len(chunk.holders)} GPUs, and TE-CCL's chunks start at one"
        elif abs(chunk.size - size) > 1e-9 * size:
            wrong = f"has {chunk.size:g} bytes and another {size:g}; TE-CCL's are of one size"
        if wrong is not None:
            msg = f"chunk {number} of the {problem.collective.kind} {wrong}"
            raise FormatError(msg)
    return plan


def _lost(problem: Problem) -> tuple[str, ...]:
    topology, collective = problem.topology, problem.collective
    count = len(topology.devices)
    lost = [f"the cluster: devices are numbers 0 to {count - 1} in the order of their list"]
    if collective.kind not in USUAL:
        lost.append(f"that it is a {collective.kind}; who wants what is kept")
    if any(chunk.priority != 1 or chunk.tenant for chunk in collective.chunks):
        lost.append("priorities and tenants of chunks")
    if problem.windows:
        lost.append(f"{len(problem.windows)} windows of less bandwidth")
    return tuple(lost)


class _Writer:
    """Numbers, times and texts of one schedule."""

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        self.problem, self.tau = problem, schedule.epoch_duration
        planned = plan_sends(problem, schedule, binding(problem.topology))
        self.sends, self.ends = planned.sends, planned.ends
        self.fluid = any(send.fraction < 1 for send in self.sends)
        self.number = problem.topology.index
        ranks = problem.topology.ranks
        self.source = [ranks[chunk.holders[0]] for chunk in problem.collective.chunks]
        self.piece = _pieces(problem)

    def value(self) -> dict[str, Any]:
        """Return the whole file."""
        met = self._met()
        last = max(send.epoch + 1 for send in self.sends)
        epochs = max([last, *(epoch for ends in met for epoch in ends.values())])
        seconds = self.tau * 1e-6
        collective = self.problem.collective
        wants: dict[str, dict[str, dict[str, float]]] = {}
        for number, ends in enumerate(met):
            source = self.number[self.source[number]]
            for name, epoch in ends.items():
                at = wants.setdefault(f"GPU {self.number[name]}", {})
                chunk = f"Chunk {self.piece[number]}"
                at.setdefault(f"GPU {source}", {})[chunk] = epoch * seconds
        return {
            "1-Epoch_Duration": seconds,
            "2-Expected_Epoch_Duration": seconds,
            "3-Epochs_Required": epochs,
            "4-Collective_Finish_Time": epochs * seconds,
            # The whole of it, where TE-CCL counts one chunk of each GPU.
            "5-Algo_Bandwidth": collective.size * 1e-9 / (epochs * seconds),
            "6-Demand_Met": wants,
            "7-Flows": [
                f"Chunk {self.piece[send.chunk]} from {self.number[self.source[send.chunk]]} "
                f"traveled over {self._text(send)}"
                for send in self.sends
            ],
            "8-Chunk paths": self._paths(met),
            "9-Chunk_Size": collective.chunk_size * 1e-9,
        }

    def _text(self, send: Send) -> str:
        number = self.number
        volume = f" with volume {float(send.fraction)!r}" if self.fluid else ""
        arrow = "->" if self.fluid else " -> "
        switches = arrow.join(str(number[name]) for name in send.via)
        via = f" via switches {switches}" if send.via else ""
        return f"{number[send.src]}->{number[send.dst]}{volume} in epoch {send.epoch}{via}"

    def _met(self) -> list[dict[str, int]]:
        """Return for each chunk by which epoch each destination has all of it."""
        came: defaultdict[tuple[int, str], list[float]] = defaultdict(list)
        split = {send.chunk for send in self.sends if send.fraction < 1}
        for send, end in zip(self.sends, self.ends, strict=True):
            came[send.chunk, send.dst].append(end)
        met = []
        for number, chunk in enumerate(self.problem.collective.chunks):
            when = max if number in split else min
            names = [self.problem.topology.ranks[rank] for rank in chunk.destinations]
            met.append(
                {
                    name: max(1, math.ceil(when(came[number, name]) / self.tau * (1 - 1e-9)))
                    for name in names
                    if came[number, name]
                }
            )
        return met

    def _paths(self, met: Sequence[Mapping[str, int]]) -> dict[str, Any]:
        paths: dict[str, Any] = {}
        sends: defaultdict[int, list[tuple[float, Send]]] = defaultdict(list)
        for send, end in zip(self.sends, self.ends, strict=True):
            sends[send.chunk].append((end, send))
        for number, ends in enumerate(met):
            its = sends[number]
            split = self._ways(number, its) if self.fluid else {}
            for name, epoch in ends.items():
                key = (
                    f"Demand at {self.number[name]} for chunk {self.piece[number]} from "
                    f"{self.number[self.source[number]]} met by epoch {epoch - 1}"
                )
                paths[key] = split.get(name, []) if self.fluid else self._way(number, its, name)
        return paths

    def _way(self, number: int, sends: Sequence[tuple[float, Send]], end: str) -> list[str]:
        """Return the hops that bring a whole chunk to a device, from its source on."""
        texts: list[str] = []
        before, name = math.inf, end
        while name != self.source[number] and len(texts) <= len(sends):
            stores = self.problem.topology.device(name).stores
            came = [each for each in sends if each[1].dst == name]
            if not stores:
                came = [each for each in came if each[1].epoch < before]
            if not came:
                break
            # A switch sends on what came last, a GPU has what came first.
            _, send = (min if stores else max)(came, key=lambda each: each[0])
            texts.append(self._text(send))
            before, name = send.epoch, send.src
        return texts[::-1]

    def _ways(
        self, number: int, sends: Sequence[tuple[float, Send]]
    ) -> dict[str, list[list[list[Any]]]]:
        """Return the ways of the amounts of a chunk by where they end."""
        at = self.number
        hops = [
            Hop(at[e.src], at[e.dst], e.epoch, tuple(at[n] for n in e.via), e.fraction)
            for _, e in sends
        ]
        names = [each.name for each in self.problem.topology.devices]
        followed = fifo_ways(hops, at[self.source[number]], [])
        return {
            names[end]: [
                [[hop.epoch, self._text(self._part(hop, number, amount))] for hop in way]
                for amount, way in parts
            ]
            for end, parts in followed.items()
        }

    def _part(self, hop: Hop, number: int, amount: float) -> Send:
        names = [each.name for each in self.problem.topology.devices]
        via = tuple(names[each] for each in hop.via)
        return Send(hop.epoch, number, names[hop.src], names[hop.dst], via, min(1.0, amount))


def _pieces(problem: Problem) -> list[int]:
    """Return the number of each chunk among those of its source, as TE-CCL counts.

    In an all-to-all it is that of the destination, and more by the GPUs for each further chunk.
    """
    collective = problem.collective
    counts: defaultdict[tuple[int, ...], int] = defaultdict(int)
    pieces = []
    for chunk in collective.chunks:
        (source,) = chunk.holders
        if collective.kind == "all-to-all":
            (end,) = chunk.destinations
            pieces.append(end + counts[source, end] * collective.ranks)
            counts[source, end] += 1
        else:
            pieces.append(counts[source,])
            counts[source,] += 1
    return pieces
