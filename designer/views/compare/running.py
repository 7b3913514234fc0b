"""Comparisons that run while the page is used: started, watched, stopped, found again.

What is to be compared is methods, sizes and seconds, and whether it is what is drawn now. As with
solves (`designer.jobs`), each comparison has a thread here that reads its news, so a reload finds
it again, and one whose page is gone is ended. What was found is kept for a while.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ccl.errors import CclError, ProblemError
from ccl.problem import Problem
from ccl.serialization.quantity import format_size, parse_size
from designer.jobs import JobRegistry, Watched
from designer.session import topology_of
from designer.shell import ui
from designer.shell.request import Request, problem_of, read_request
from formulations import DEFAULT, Formulation, available, formulation
from formulations.analyses.comparison import Comparison, Method, News

USUAL_SIZES = "1KB to 1GB by 10"
"""What the field for sizes says at first."""
USUAL_SECONDS = 5.0
"""Seconds for each solve at first."""
FACTOR = 4.0
"""From one size to the next, where a range does not say."""
MOST_SIZES = 32
"""More points than this run into one another on an axis."""

NOTHING = "no method is chosen; tick at least one that can take this problem"
"""What is said where nothing is left to compare."""

_RANGE = re.compile(
    r"(?P<low>\S.*?)\s+to\s+(?P<high>\S.*?)(?:\s+(?:by|x|×)\s*(?P<factor>[\d.]+))?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question as the page asked it.

    Parameters
    ----------
    problem
        At the first size.
    request
        The header's settings as plain values.
    methods
        Formulations with their options.
    sizes
        Bytes, ascending.
    seconds
        For each solve.
    """

    problem: Problem
    request: Mapping[str, Any]
    methods: tuple[Method, ...]
    sizes: tuple[float, ...]
    seconds: float

    def taken(self) -> Question:
        """Return the same without the methods that refuse the problem.

        What the page greys out may still be that of the problem before.

        Raises
        ------
        ProblemError
            If all of them refuse it.
        """
        able = [each for each in self.methods if not self._refused(each)]
        if not able:
            raise ProblemError(NOTHING)
        return replace(self, methods=tuple(able))

    def _refused(self, method: Method) -> str | None:
        return formulation(method.formulation).why_not(self.problem)


def read_question(
    topology: Mapping[str, Any],
    request: Mapping[str, Any] | None,
    *,
    methods: Sequence[str],
    sizes: str,
    seconds: float | str | None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> Question:
    """Make a question of what the page has.

    Parameters
    ----------
    topology
        As the canvas draws it.
    request
        The header's settings; the size among them does not matter.
    methods, sizes, seconds
        As they stand in the form.
    options
        What the user has set, by formulation and option.

    Raises
    ------
    CclError
        If something is missing or cannot be read.
    """
    if not methods:
        raise ProblemError(NOTHING)
    found = sizes_of(sizes)
    given = {**(request or {}), "size": format_size(found[0])}
    read: Request = read_request({**given, "time_limit": seconds})
    if read.time_limit is None:
        raise ProblemError("seconds per solve is empty; give a number above 0 s")
    problem = problem_of(topology, read)
    chosen = tuple(Method(each, (options or {}).get(each, {})) for each in _in_turn(methods))
    return Question(problem, given, chosen, found, read.time_limit)


def _in_turn(methods: Sequence[str]) -> tuple[str, ...]:
    """Put what takes no time first and the one that tries others last, to see much soon."""
    names = [each.name for each in available()]
    quick = {each.name for each in available() if is_construction(each)}

    def turn(name: str) -> tuple[bool, bool, int]:
        return name == DEFAULT, name not in quick, names.index(name)

    return tuple(sorted({each for each in methods if each in names}, key=turn))


def sizes_of(words: str) -> tuple[float, ...]:
    """Read sizes in bytes, ascending: ``16KB, 1MB``, or ``1KB to 1GB by 10``, or both.

    Raises
    ------
    CclError
        If a part cannot be read, or there are none or too many.
    """
    found: set[float] = set()
    for part in filter(None, (each.strip() for each in re.split(r"[,;\n]", words))):
        fits = _RANGE.fullmatch(part)
        found.update({parse_size(part)} if fits is None else _range(part, fits))
    if not found:
        raise ProblemError(
            "no size is given; write some like 16KB, 1MB or a range like 1KB to 1GB by 10"
        )
    if len(found) > MOST_SIZES:
        raise ProblemError(f"these are {len(found)} sizes; give at most {MOST_SIZES}")
    return tuple(sorted(found))


def _range(part: str, fits: re.Match[str]) -> set[float]:
    low, high = parse_size(fits["low"]), parse_size(fits["high"])
    try:
        factor = float(fits["factor"] or FACTOR)
    except ValueError:
        factor = 0.0
    if factor <= 1:
        raise ProblemError(
            f"the sizes {part!r} grow by a factor of {fits['factor']}; give more than 1"
        )
    if high < low:
        raise ProblemError(
            f"the sizes {part!r} end below where they begin; give the smaller one first"
        )
    found = {low}
    while (low := low * factor) <= high * (1 + 1e-9) and len(found) <= MOST_SIZES:
        found.add(low)
    return found


def sizes_words(words: str) -> tuple[str, str]:
    """Return what a text about sizes means, and what is wrong with it; one of them is empty."""
    try:
        found = [format_size(each) for each in sizes_of(words)]
    except CclError as error:
        return "", str(error)
    shown = found if len(found) <= 7 else [*found[:3], "…", *found[-2:]]
    return f"{len(found)} of them: {', '.join(shown)}" if len(found) > 1 else found[0], ""


def is_construction(method: Formulation) -> bool:
    """Whether a formulation searches nothing and builds no model, so that it takes no time."""
    return method.run.__module__.startswith("formulations.schedules")


def usual_methods() -> list[str]:
    """Return what is ticked at first: all that take little time, and the one that tries many."""
    return [each.name for each in available() if is_construction(each) or each.name == DEFAULT]


def changed_since(
    question: Question, topology: Mapping[str, Any], request: Mapping[str, Any] | None
) -> str:
    """Say what has changed since a comparison began: ``the drawing``, or nothing."""
    before = question.problem.topology
    try:
        now = topology_of(topology)
    except CclError:
        return "the drawing"
    if replace(now, name=before.name) != before:
        return "the drawing"
    keys = ["collective", "chunks", "custom"]
    if question.request.get("collective") in ui.ROOTED:
        keys.append("root")
    same = all(question.request.get(key) == (request or {}).get(key) for key in keys)
    return "" if same else "the request"


MOST_STORED = 8
"""Finished ones of all pages that can still be looked at."""


class Job(Protocol):
    """A running comparison; `formulations.start_comparison` makes one."""

    def __iter__(self) -> Iterator[News]:
        """Read the news as they come."""

    def comparison(self) -> Comparison:
        """Return what there is so far."""

    def cancel(self) -> None:
        """End it now; what there is stays."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a comparison stands.

    Parameters
    ----------
    question
        What is compared.
    comparison
        What there is so far.
    running, cancelled
        Whether it goes on, and whether the user ended it.
    turn
        Grows with every row and with every solve that begins, which distinguishes news from old.
    now
        The last news, None before the first.
    seconds
        Since it began.
    fault
        Why it ended before its time, or empty.
    waiting
        Its place in line, 1 for who is next; 0 when it has begun.
    """

    question: Question
    comparison: Comparison
    running: bool
    cancelled: bool
    turn: int
    now: News | None
    seconds: float
    fault: str = ""
    waiting: int = 0


@dataclass
class _Watch(Watched):
    """One comparison with what it has said so far."""

    turn: int = 0
    now: News | None = None

    def take(self, said: News) -> None:
        """Keep the news."""
        self.now = said
        self.turn += said.progress is None

    def standing(self, place: int) -> Standing:
        """Return where it stands, its place in line included."""
        running, fault = False, ""
        try:
            running = self.ask()
        except CclError as error:
            fault = str(error)
        return Standing(
            question=self.question,
            comparison=self._so_far(),
            running=running,
            cancelled=self.cancelled,
            turn=self.turn + (self.end is not None),
            now=self.now,
            seconds=self.seconds,
            fault=fault,
            waiting=place,
        )

    def _so_far(self) -> Comparison:
        if self.job is None:
            return Comparison(self.question.problem, self.question.methods, (), (), ())
        found: Comparison = self.job.comparison()
        return found


class Comparisons(JobRegistry[_Watch]):
    """The comparisons of all pages of one application, by key.

    `start` starts one as `formulations.start_comparison` does.
    """

    what = "comparison"
    stored = MOST_STORED

    def start(self, question: Question, *, owner: str = "") -> str:
        """Begin a comparison, or let it wait for its turn, and return its key.

        Parameters
        ----------
        question
            What is compared.
        owner
            Who asks; turns are shared fairly among those who do.

        Raises
        ------
        ProblemError
            If as many wait as may, or nothing is to be compared.
        """

        def begin() -> Any:
            return self._start(
                question.problem,
                question.methods,
                sizes=question.sizes,
                time_limit=question.seconds,
                memory=self.limits.memory_each(),
            )

        return self._add(_Watch(begin, question), owner)

    def standing(self, key: str | None) -> Standing | None:
        """Return where a comparison stands, or None if there is none with this key.

        One that a bug has ended raises it once and is forgotten.
        """
        watch = self._watches.get(key or "")
        try:
            return None if watch is None else watch.standing(self._place(key or ""))
        except Exception:
            self._drop(key or "")
            raise
