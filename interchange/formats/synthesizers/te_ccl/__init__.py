"""TE-CCL: its input (`input`), and the schedules that it prints, read and written.

Schedules (microsoft/TE-CCL:teccl/solvers) are read, replayed and held to what they say. A file
names devices by number and holds no cluster: it is about the one that is open or that the setting
``cluster`` names; without either its links are made of its flows. Its chunk is the one from which
its bandwidth follows. The plan is a schedule in the epochs of the file where these hold, with
epochs a little longer where TE-CCL drops latencies, or else in the order of the file. The report
says what the file states, what the replay takes, and which rule explains a difference of more than
an epoch. A file that breaks a rule whatever latencies count for is refused with the rule, the
epoch and the link, or with ``lenient`` played in order, each send when it can go.

`write_schedule` writes a schedule as TE-CCL does; every figure is made of the plan again.
"""

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ccl.errors import FormatError, ScheduleError
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.result import Plan
from ccl.serialization.documents import Document, document
from ccl.simulate.transmissions import plan_sends
from ccl.topology import Topology, binding_limits
from ccl.verify import verify
from interchange.formats import format as formats
from interchange.formats.fields import select_sentences
from interchange.formats.format import Imported, Reader, Report, Request, Writer, Written
from interchange.formats.synthesizers.te_ccl import demand, input, timing
from interchange.formats.synthesizers.te_ccl import file as te
from interchange.formats.synthesizers.te_ccl import moves as sending


def write_schedule(content: Document) -> Written:
    """Write the plan of a document.

    Raises
    ------
    FormatError
        If the plan is no schedule, or a chunk is not one that TE-CCL has.
    """
    problem, plan, _ = formats.replayed(content)
    schedule = _schedule(problem, plan)
    made = _Writer(problem, schedule)
    value = made.value()
    if content.result is not None:
        value["Solver_Time"] = content.result.solve_time
    text = json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n"
    return formats.one_file(text, ending="json", lost=_lost(problem))


def _schedule(problem: Problem, plan: Plan) -> Schedule:
    """Return the schedule that can be written."""
    if not isinstance(plan, Schedule):
        kind = type(plan).__name__.lower()
        raise FormatError(
            f"a TE-CCL schedule says what travels in which epoch, and a {kind} has no epochs; "
            "solve with te-ccl-milp or te-ccl-lp"
        )
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
            raise FormatError(f"chunk {number} of the {problem.collective.kind} {wrong}")
    return plan


def _lost(problem: Problem) -> tuple[str, ...]:
    kind, windows = problem.collective.kind, len(problem.windows)
    last = len(problem.topology.devices) - 1
    marked = [each.priority != 1 or each.tenant for each in problem.collective.chunks]
    return (
        f"the cluster: devices are numbers 0 to {last} in the order of their list",
        *select_sentences(
            (kind not in demand.USUAL, f"that it is a {kind}; who wants what is kept"),
            (any(marked), "priorities and tenants of chunks"),
            (windows, f"{windows} windows of less bandwidth"),
        ),
    )


class _Writer:
    """Numbers, times and texts of one schedule."""

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        self.problem, self.tau = problem, schedule.epoch_duration
        planned = plan_sends(problem, schedule, binding_limits(problem.topology))
        self.sends, self.ends = planned.sends, planned.ends.tolist()
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
        """Return the paths of the amounts of a chunk by where they end."""
        at = self.number
        hops = [
            te.Hop(at[e.src], at[e.dst], e.epoch, tuple(at[n] for n in e.via), e.fraction)
            for _, e in sends
        ]
        names = [each.name for each in self.problem.topology.devices]
        followed = sending.fifo_routes(hops, at[self.source[number]], [])
        return {
            names[end]: [
                [[hop.epoch, self._text(self._part(hop, number, amount))] for hop in way]
                for amount, way in parts
            ]
            for end, parts in followed.items()
        }

    def _part(self, hop: te.Hop, number: int, amount: float) -> Send:
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


_LAST_ROUND = "; of several rounds TE-CCL's A* writes the flows of the last only"
"""What may be wrong with a file that has neither Demand_Met nor Chunk paths."""


def _read(content: bytes, request: Request) -> Imported:
    output = te.parse_output(content)
    if not output.flows:
        raise FormatError("it has no flows, so there is no plan in it")
    settings = input.settings_of(request)
    on, nbytes, notes = _cluster(output, request.topology, settings)
    want = demand.wanted(output, on, nbytes)
    moves = sending.moves_of(output, on, want)
    timed = _timed(output, on, (want, moves, settings.lenient))
    report = timing.Findings(output, want, moves, timed).report()
    assumed = (*notes, *on.notes, *want.notes, *report.assumed)
    return Imported(
        document(want.problem, plan=timed.schedule), Report(report.taken, assumed, report.left_out)
    )


def _cluster(
    output: te.Output, topology: Topology | None, settings: input.Settings
) -> tuple[te.Cluster, float, tuple[str, ...]]:
    """Return the cluster, the bytes of a chunk, and what of these is assumed."""
    tried: list[tuple[Topology, tuple[str, ...]]] = []
    if settings.named is not None:
        clean, mended = demand.cluster(settings.named)
        mended = (*mended, *settings.notes)
        slips = f"the cluster is as TE-CCL's released code builds it: {demand.slip(settings.named)}"
        tried = [(clean, mended), (demand.as_released(settings.named), (slips, *settings.notes))]
    elif topology is not None and not settings.flows:
        tried = [(topology, ())]
    counted = len(tried[0][0].ranks if tried else te.sources_and_ends(output))
    nbytes, size_told = demand.chunk_bytes(output, max(counted, 1), given=settings.chunk_size)
    if not tried:
        return te.able(output, te.derived(output, nbytes)), nbytes, (size_told,)
    lacks = ""
    for each, notes in tried:
        found = te.placed(output, each)
        # TE-CCL's own plans may cross what its released code takes for a switch.
        last = each is tried[-1][0]
        if isinstance(found, te.Cluster) and (last or not te.crossed_gpus(output, found)):
            return te.able(output, found), nbytes, (size_told, *notes)
        lacks = lacks or str(found)
    raise formats.Question(
        f"{lacks}, which {tried[0][0].name} has not; open the cluster that it is about, or name it",
        key="cluster",
        choices=_fitting(output),
    )


def _fitting(output: te.Output) -> dict[str, str]:
    """Return the clusters of TE-CCL on which a file is possible, as settings."""
    chassis = {"DGX1": (1,), "DGX2": (2,), "NDv2": (1, 2, 3, 4), "AMD": (1, 2)}
    tried = [demand.Named(name=name, chassis=n) for name, many in chassis.items() for n in many]
    tried += [demand.Named(name="Mesh", side=side) for side in range(2, 9)]
    choices = {}
    for each in tried:
        if isinstance(te.placed(output, demand.as_released(each)), te.Cluster):
            count = each.side if each.name == "Mesh" else each.chassis
            choices[f"{each.name}:{count}"] = f"TE-CCL's {demand.cluster(each)[0].name}"
    return choices | {"flows": "the links that its flows use, and nothing else"}


def _timed(
    output: te.Output, on: te.Cluster, about: tuple[demand.Wanted, sending.Moves, bool]
) -> timing.Timed:
    """Return the schedule.

    Raises
    ------
    FormatError
        If it breaks a rule and may not, or so that no order of its sends is a plan.
    ScheduleError
        If that order is none.
    """
    want, moves, lenient = about
    problem, tau = want.problem, output.epoch_duration
    rules = sending.Rules(problem, tau, output.fluid)
    epochs = output.epochs or 1
    joined = [move.send for move in moves.moves]
    plain = sending.plain_sends(output, on, want)
    for sends in (plain, joined) if not moves.short else (plain,):
        found = _verified(problem, sends, tau=tau, epochs=epochs)
        if found is not None:
            return timing.Timed(found)
    breaches = rules.breaches(moves.moves, moves.short)
    fatal = [each for each in breaches if not lenient or "demand not met" in each.sentence]
    if fatal or moves.short:
        more = f" (and {len(breaches) - 1} more)" if len(breaches) > 1 else ""
        rounds = "" if output.demands or output.fluid else _LAST_ROUND
        raise FormatError(f"{(fatal or breaches)[0].sentence}{more}{rounds}")
    longer = timing.lengthened(rules, moves.moves)
    found = None if breaches else _verified(problem, joined, tau=longer, epochs=epochs)
    if found is not None:
        notes = f"epochs are {longer:g} µs instead of {tau:g} µs, for what TE-CCL does not count"
        return timing.Timed(found, notes)
    made = timing.in_turn(problem, moves.moves)
    verify(problem, made)
    notes = (
        f"sends keep their order and go as early as they can, in epochs of "
        f"{made.epoch_duration:g} µs: those of the file, {tau:g} µs, do not hold them"
    )
    broken = tuple(f"a rule is broken: {each.sentence}" for each in breaches[:3])
    return timing.Timed(made, notes, in_turn=True, broken=broken)


def _verified(
    problem: Problem, sends: Sequence[Send], *, tau: float, epochs: int
) -> Schedule | None:
    """Return a schedule if it is a plan, with more epochs where the last send needs them."""
    try:
        made = timing.on_grid(problem, sends, tau=tau, epochs=epochs)
        verify(problem, made)
    except ScheduleError:
        return None
    return made


READER = Reader(
    "te-ccl-schedule", "TE-CCL schedule", ("json",), te.looks_like_output, _read, input.SETTINGS
)
READERS = (input.READER,)

WRITER = Writer("te-ccl-schedule", "TE-CCL schedule", "json", "plan", write_schedule)
WRITERS = (input.WRITER,)
