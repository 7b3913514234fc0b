"""Difference of two plans of one problem, whoever found them.

Plans are compared by what they bring between devices that store: a chunk, from where to where, over
which switches, and when. So a schedule can be compared with a forest, whose parts count together.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from ccl.display import MimeBundle, mime_bundle
from ccl.errors import ProblemError
from ccl.explain.narration import MOST_UNFOLDED, PlanReport, report
from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.result import Result
from ccl.text import bounded, count, enumerate_words, number, size

_SAME_TIME = 1e-6
"""Times closer than this share of the makespan are the same."""

_SAME_SHARE = 1e-6
"""Likewise shares of a chunk and bytes of a link."""


class Kind(StrEnum):
    """How a delivery differs."""

    ONLY_FIRST = "only in the first"
    ONLY_SECOND = "only in the second"
    PATH = "over another path"
    SHARE = "another share"
    TERMS = "other contributions"
    TIME = "at another time"


@dataclass(frozen=True, slots=True)
class Delivery:
    """Data of a chunk that a plan brings from one device that stores to another.

    Parameters
    ----------
    way
        Switches that it crosses.
    epochs
        Of the plan, one for each part; empty where it has none.
    start, end
        µs at which it sets out and is there; of parts, the first and the last.
    share
        Of the chunk.
    terms
        Of each part the ranks whose contributions to a sum it carries, where the plan names them;
        empty where it names none.
    """

    way: tuple[str, ...]
    epochs: tuple[int, ...]
    start: float
    end: float
    share: float
    terms: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Differing:
    """A delivery that differs: of the chunk `chunk` from `src` to `dst`; None if absent."""

    kind: Kind
    chunk: int
    src: str
    dst: str
    first: Delivery | None
    second: Delivery | None

    @property
    def start(self) -> float:
        """µs at which the earlier of the two sets out."""
        return min(each.start for each in (self.first, self.second) if each is not None)


@dataclass(frozen=True)
class Difference:
    """What differs between two plans; make it with `difference`.

    Parameters
    ----------
    names
        What the two are called.
    problem
        What both answer.
    makespans
        Of the two in µs.
    rows
        The deliveries that differ, in order of time.
    same
        How many deliveries are the same in both.
    links
        Bytes that each plan sends over the links on which that differs, by ends.
    labels
        The chunks by their names for people.
    """

    names: tuple[str, str]
    problem: Problem
    makespans: tuple[float, float]
    rows: tuple[Differing, ...]
    same: int
    links: Mapping[tuple[str, str], tuple[float, float]]
    labels: tuple[str, ...]

    @property
    def parts_at(self) -> float | None:
        """µs at which the two begin to differ, None where they do not."""
        return min((row.start for row in self.rows), default=None)

    def text(self) -> str:
        """Describe the difference in lines: at most `ccl.text.MOST_LINES` of a kind."""
        lines = [self._makespans()]
        if not self.rows:
            return "\n".join([*lines, f"They move the same: {count(self.same, 'send')}."])
        lines.append(
            f"The same in both: {count(self.same, 'send')}; the first that differs sets out at "
            f"{number(self.parts_at or 0.0)} µs."
        )
        for kind in Kind:
            those = [row for row in self.rows if row.kind is kind]
            if those:
                lines.append(f"{self._titled(kind)}: {count(len(those), 'send')}")
                lines += bounded([f"  {self._text(row)}" for row in those], "send")
        if self.links:
            lines.append("Bytes of links:")
            sent = [
                f"  {src} → {dst}: {size(first)}, {self.names[1]}: {size(second)}"
                for (src, dst), (first, second) in self.links.items()
            ]
            lines += bounded(sent, "link")
        return "\n".join(lines)

    def as_rows(self) -> list[dict[str, Any]]:
        """Return the deliveries that differ as plain values, for a view or a file.

        Terms are left out where there are none.
        """
        rows = []
        for row in self.rows:
            plain = {**asdict(row), "kind": row.kind.value, "label": self.labels[row.chunk]}
            for side in (plain["first"], plain["second"]):
                if side is not None and not side["terms"]:
                    del side["terms"]
            rows.append(plain)
        return rows

    def _makespans(self) -> str:
        first, second = self.makespans
        more = second - first
        totals = f"{self.names[0]}: {number(first)} µs, {self.names[1]}: {number(second)} µs"
        if abs(more) <= _SAME_TIME * max(first, second):
            return f"{totals}, the same."
        share = f" ({number(100 * abs(more) / first, 3)} %)" if first else ""
        return f"{totals}, {number(abs(more))} µs {'more' if more > 0 else 'less'}{share}."

    def _titled(self, kind: Kind) -> str:
        if kind is Kind.ONLY_FIRST:
            return f"Only in {self.names[0]}"
        if kind is Kind.ONLY_SECOND:
            return f"Only in {self.names[1]}"
        return kind.value.capitalize()

    def _text(self, row: Differing) -> str:
        what = f"{self.labels[row.chunk]} from {row.src} to {row.dst}"
        both = (self.names[0], row.first), (self.names[1], row.second)
        sides = [(name, _side(each, row.kind)) for name, each in both if each is not None]
        if len(sides) == 1:
            return f"{what} {sides[0][1]}"
        return ", ".join([what, *(f"{name}: {side}" for name, side in sides)])

    def __str__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> MimeBundle:
        return mime_bundle(self, include, exclude) or ({"text/plain": self.text()}, {})


def _side(delivery: Delivery, kind: Kind) -> str:
    when = f"at {number(delivery.start)} µs"
    if delivery.epochs:
        epochs = enumerate_words([str(each) for each in delivery.epochs])
        when += f" (epoch{'s' if len(delivery.epochs) > 1 else ''} {epochs})"
    if kind is Kind.TIME:
        return when
    if kind is Kind.SHARE:
        return f"{number(100 * delivery.share, 3)} %"
    if kind is Kind.TERMS:
        return " and ".join(map(_named, delivery.terms)) or "all that is added up"
    return f"over {' → '.join(delivery.way)} {when}" if delivery.way else when


def _named(ranks: Sequence[int]) -> str:
    listed = enumerate_words([str(rank) for rank in ranks], 16)
    return f"that of rank {listed}" if len(ranks) == 1 else f"those of ranks {listed}"


def difference(
    one: Result | PlanReport,
    other: Result | PlanReport,
    *,
    names: tuple[str, str] = ("first", "second"),
) -> Difference:
    """Compare two plans of one problem, delivery by delivery.

    Where both have epochs of the same duration, the same time means the same epoch; else the same
    µs of the replay.

    Raises
    ------
    ProblemError
        If they answer different problems, or have too many transfers to be compared.
    """
    first, second = (
        report(each.problem, each.plan, each.timeline) if isinstance(each, Result) else each
        for each in (one, other)
    )
    _same_problem(first.problem, second.problem)
    for each, name in zip((first, second), names, strict=True):
        if each.timeline.images > 1:
            raise ProblemError(
                f"{name} has more than the {MOST_UNFOLDED:,} transfers that can be compared; "
                "compare plans of a smaller cluster"
            )
    rows, same = _compared(first, second)
    return Difference(
        names=names,
        problem=first.problem,
        makespans=(first.timeline.makespan, second.timeline.makespan),
        rows=tuple(sorted(rows, key=lambda row: (row.start, row.chunk, row.src, row.dst))),
        same=same,
        links=_links(first, second),
        labels=first.labels,
    )


def _same_problem(one: Problem, other: Problem) -> None:
    if one is other or one.fingerprint == other.fingerprint:
        return
    called = [
        f"{each.collective.kind} of {size(each.collective.size)} on {each.topology}"
        for each in (one, other)
    ]
    unlike = " and ".join(called) if called[0] != called[1] else f"two that are both {called[0]}"
    raise ProblemError(f"these are plans of different problems, {unlike}; compare plans of one")


_Deliveries = dict[tuple[int, str, str], dict[tuple[str, ...], Delivery]]
"""By chunk and ends, and by path."""


def deliveries_of(described: PlanReport) -> _Deliveries:
    """Return what a plan brings between devices that store; parts over one path are one."""
    found: _Deliveries = {}
    for last, own in enumerate(described.transfers):
        if own.dst not in described.stores:
            continue
        share = own.nbytes / described.sizes[own.chunk]
        for first, path, part in _origins(described, last):
            begin = described.transfers[first]
            paths = found.setdefault((own.chunk, begin.src, own.dst), {})
            epochs = (begin.epoch,) if begin.epoch >= 0 else ()
            ranks = described.timeline.terms[first] if described.timeline.terms else None
            terms = () if ranks is None else (tuple(sorted(ranks)),)
            delivery = Delivery(path, epochs, begin.start, own.end, share * part, terms)
            paths[path] = _joined(paths[path], delivery) if path in paths else delivery
    return found


def _origins(described: PlanReport, i: int) -> Iterator[tuple[int, tuple[str, ...], float]]:
    """Yield the transfers with which what one brings set out, the switches since, and its part.

    The parts of a sum are whole each; what was cut is divided by its bytes.
    """
    own = described.transfers[i]
    after = () if own.src in described.stores else described.timeline.after[i]
    if not after:
        yield i, (), 1.0
        return
    reduced = described.problem.collective.chunks[own.chunk].reduced
    whole = sum(described.transfers[j].nbytes for j in after)
    for j in after:
        part = 1.0 if reduced else described.transfers[j].nbytes / whole
        for first, path, share in _origins(described, j):
            yield first, (*path, own.src), share * part


def _joined(one: Delivery, other: Delivery) -> Delivery:
    return Delivery(
        one.way,
        tuple(sorted(one.epochs + other.epochs)),
        min(one.start, other.start),
        max(one.end, other.end),
        one.share + other.share,
        tuple(sorted(one.terms + other.terms)),
    )


def _compared(one: PlanReport, other: PlanReport) -> tuple[list[Differing], int]:
    """Return the deliveries that differ, and how many do not."""
    first, second = deliveries_of(one), deliveries_of(other)
    clock = _Clock(one, other)
    rows: list[Differing] = []
    same = 0
    for key in {**first, **second}:
        ours, theirs = dict(first.get(key, {})), dict(second.get(key, {}))
        for path in [path for path in ours if path in theirs]:
            kind = clock.differs(ours[path], theirs[path])
            if kind is None:
                same += 1
            else:
                rows.append(Differing(kind, *key, ours[path], theirs[path]))
            del ours[path], theirs[path]
        # The same send over another path, as far as there are some of both.
        left, right = list(ours.values()), list(theirs.values())
        both = min(len(left), len(right))
        pairs = zip(left[:both], right[:both], strict=True)
        rows += [Differing(Kind.PATH, *key, ours_, theirs_) for ours_, theirs_ in pairs]
        rows += [Differing(Kind.ONLY_FIRST, *key, each, None) for each in left[both:]]
        rows += [Differing(Kind.ONLY_SECOND, *key, None, each) for each in right[both:]]
    return rows, same


class _Clock:
    """A test of whether two deliveries over one path are the same."""

    def __init__(self, one: PlanReport, other: PlanReport) -> None:
        plans = one.plan, other.plan
        durations = {each.epoch_duration for each in plans if isinstance(each, Schedule)}
        both = all(isinstance(each, Schedule) for each in plans)
        self._epochs = both and len(durations) == 1
        self._slack = _SAME_TIME * max(one.timeline.makespan, other.timeline.makespan)

    def differs(self, one: Delivery, other: Delivery) -> Kind | None:
        if abs(one.share - other.share) > _SAME_SHARE:
            return Kind.SHARE
        if one.terms != other.terms:
            return Kind.TERMS
        if self._epochs:
            return None if one.epochs == other.epochs else Kind.TIME
        return None if abs(one.start - other.start) <= self._slack else Kind.TIME


def _links(one: PlanReport, other: PlanReport) -> dict[tuple[str, str], tuple[float, float]]:
    """Return the bytes of both on each link on which they differ."""
    sent: dict[tuple[str, str], list[float]] = {}
    for side, described in enumerate((one, other)):
        for each in described.transfers:
            sent.setdefault((each.src, each.dst), [0.0, 0.0])[side] += each.nbytes
    return {
        ends: (first, second)
        for ends, (first, second) in sent.items()
        if abs(first - second) > _SAME_SHARE * max(first, second)
    }
