"""Schedules of TE-CCL (microsoft/TE-CCL:teccl/solvers): read, replayed and held to what they say.

A file names devices by number and holds no cluster: it is about the one that is open or that the
setting ``cluster`` names; without either its links are made of its flows. Its chunk is the one from
which its bandwidth follows. The plan is a schedule in the epochs of the file where these hold, with
epochs a little longer where TE-CCL drops latencies, or else in the order of the file. The report
says what the file states, what the replay takes, and which rule explains a difference of more than
an epoch. A file that breaks a rule whatever latencies count for is refused with the rule, the
epoch and the link, or with ``lenient`` played in order, each send when it can go.
"""

from __future__ import annotations

from collections.abc import Sequence

from ccl.errors import FormatError, ProblemError, ScheduleError
from ccl.problem import Problem
from ccl.schedule import Schedule, Send
from ccl.serialization.documents import document
from ccl.topology import Topology
from ccl.verify import verify
from interchange.formats.format import Asked, Imported, Question, Reader, Report, Writer
from interchange.formats.synthesizers.te_ccl.clusters import Named, as_released, cluster, slip
from interchange.formats.synthesizers.te_ccl.demand import Wanted, chunk_bytes, wanted
from interchange.formats.synthesizers.te_ccl.devices import (
    Cluster,
    able,
    crossed_gpus,
    derived,
    placed,
    sources_and_ends,
)
from interchange.formats.synthesizers.te_ccl.file import Output, looks_like_output, parse_output
from interchange.formats.synthesizers.te_ccl.moves import Moves, moves_of, plain_sends
from interchange.formats.synthesizers.te_ccl.report import Findings
from interchange.formats.synthesizers.te_ccl.rules import Rules
from interchange.formats.synthesizers.te_ccl.settings import SETTINGS, Settings, settings_of
from interchange.formats.synthesizers.te_ccl.timing import Timed, in_turn, lengthened, on_grid
from interchange.formats.synthesizers.te_ccl.write import write_schedule

_LAST_ROUND = "; of several rounds TE-CCL's A* writes the flows of the last only"
"""What may be wrong with a file that has neither Demand_Met nor Chunk paths."""


def _read(content: bytes, asked: Asked) -> Imported:
    try:
        return _imported(content, asked)
    except Question as question:
        msg = f"{asked.name}: {question}"
        raise Question(msg, key=question.key, choices=question.choices) from None
    except ScheduleError as error:
        msg = f"{asked.name}: {error}"
        raise FormatError(msg) from None
    except (FormatError, ProblemError) as error:
        msg = f"{asked.name}: {error}"
        raise type(error)(msg) from None


def _imported(content: bytes, asked: Asked) -> Imported:
    output = parse_output(content)
    if not output.flows:
        msg = "it has no flows, so there is no plan in it"
        raise FormatError(msg)
    settings = settings_of(asked.settings)
    on, nbytes, told = _cluster(output, asked.topology, settings)
    want = wanted(output, on, nbytes)
    moves = moves_of(output, on, want)
    timed = _timed(output, on, (want, moves, settings.lenient))
    report = Findings(output, want, moves, timed).report()
    assumed = (*told, *on.told, *want.told, *report.assumed)
    return Imported(
        document(want.problem, plan=timed.schedule),
        Report(report.taken, assumed, report.left_out),
    )


def _cluster(
    output: Output, topology: Topology | None, settings: Settings
) -> tuple[Cluster, float, tuple[str, ...]]:
    """Return the cluster, the bytes of a chunk, and what of these is assumed."""
    tried: list[tuple[Topology, tuple[str, ...]]] = []
    if settings.named is not None:
        clean, mended = cluster(settings.named)
        mended = (*mended, *settings.told)
        slips = f"the cluster is as TE-CCL's released code builds it: {slip(settings.named)}"
        tried = [(clean, mended), (as_released(settings.named), (slips, *settings.told))]
    elif topology is not None and not settings.flows:
        tried = [(topology, ())]
    counted = len(tried[0][0].ranks if tried else sources_and_ends(output))
    nbytes, size_told = chunk_bytes(output, max(counted, 1), given=settings.chunk_size)
    if not tried:
        return able(output, derived(output, nbytes)), nbytes, (size_told,)
    lacks = ""
    for each, told in tried:
        found = placed(output, each)
        # TE-CCL's own plans may cross what its released code takes for a switch.
        last = each is tried[-1][0]
        if isinstance(found, Cluster) and (last or not crossed_gpus(output, found)):
            return able(output, found), nbytes, (size_told, *told)
        lacks = lacks or str(found)
    msg = (
        f"{lacks}, which {tried[0][0].name} has not; open the cluster that it is about, or name it"
    )
    raise Question(msg, key="cluster", choices=_fitting(output))


def _fitting(output: Output) -> dict[str, str]:
    """Return the clusters of TE-CCL on which a file is possible, as settings."""
    chassis = (
        ("DGX2", 2),
        ("NDv2", 1),
        ("NDv2", 2),
        ("NDv2", 3),
        ("NDv2", 4),
        ("AMD", 1),
        ("AMD", 2),
    )
    tried = [Named(name="DGX1"), *(Named(name=name, chassis=many) for name, many in chassis)]
    tried += [Named(name="Mesh", side=side) for side in range(2, 9)]
    choices = {}
    for each in tried:
        if isinstance(placed(output, as_released(each)), Cluster):
            count = each.side if each.name == "Mesh" else each.chassis
            choices[f"{each.name}:{count}"] = f"TE-CCL's {cluster(each)[0].name}"
    return choices | {"flows": "the links that its flows use, and nothing else"}


def _timed(output: Output, on: Cluster, about: tuple[Wanted, Moves, bool]) -> Timed:
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
    rules = Rules(problem, tau, output.fluid)
    epochs = output.epochs or 1
    joined = [move.send for move in moves.moves]
    plain = plain_sends(output, on, want)
    for sends in (plain, joined) if not moves.short else (plain,):
        found = _verified(problem, sends, tau=tau, epochs=epochs)
        if found is not None:
            return Timed(found)
    breaches = rules.breaches(moves.moves, moves.short)
    fatal = [each for each in breaches if not lenient or "demand not met" in each.sentence]
    if fatal or moves.short:
        more = f" (and {len(breaches) - 1} more)" if len(breaches) > 1 else ""
        rounds = "" if output.demands or output.fluid else _LAST_ROUND
        msg = f"{(fatal or breaches)[0].sentence}{more}{rounds}"
        raise FormatError(msg)
    longer = lengthened(rules, moves.moves)
    found = None if breaches else _verified(problem, joined, tau=longer, epochs=epochs)
    if found is not None:
        told = f"epochs are {longer:g} µs instead of {tau:g} µs, for what TE-CCL does not count"
        return Timed(found, told)
    made = in_turn(problem, moves.moves, tau)
    verify(problem, made)
    told = (
        f"sends keep their order and go as early as they can, in epochs of "
        f"{made.epoch_duration:g} µs: those of the file, {tau:g} µs, do not hold them"
    )
    broken = tuple(f"a rule is broken: {each.sentence}" for each in breaches[:3])
    return Timed(made, told, in_turn=True, broken=broken)


def _verified(
    problem: Problem, sends: Sequence[Send], *, tau: float, epochs: int
) -> Schedule | None:
    """Return a schedule if it is a plan."""
    made = on_grid(problem, sends, tau=tau, epochs=epochs)
    try:
        verify(problem, made)
    except ScheduleError:
        return None
    return made


READER = Reader(
    name="te-ccl-schedule",
    title="TE-CCL schedule",
    endings=("json",),
    recognises=looks_like_output,
    read=_read,
    settings=SETTINGS,
)

WRITER = Writer(
    name="te-ccl-schedule",
    title="TE-CCL schedule",
    ending="json",
    needs="plan",
    write=write_schedule,
)
