"""What reads and writes the formats of others: a module each, which has a READER, a WRITER or both.

A reader says what it took, what it assumed and what it left out (`Report`); where only the user
knows, it asks (`Question`) and is called again with the answer. A writer says what its format
cannot carry (`Written.lost`). `interchange.formats.catalogue` finds the modules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ccl.errors import FormatError, ProblemError, ScheduleError
from ccl.problem import Problem
from ccl.result import Plan
from ccl.serialization.documents import Document, Kind
from ccl.serialization.sketches import Sketch
from ccl.simulate import simulate
from ccl.timeline import Timeline
from ccl.topology import Topology
from ccl.verify import verify
from interchange.programs import Program


@dataclass(frozen=True, slots=True)
class Overlay:
    """Ways over a topology, which plan nothing by themselves.

    Parameters
    ----------
    title
        What they are: ``NCCL ring, 2 channels at 20 GB/s inside``.
    paths
        Names of the devices along each way, in order.
    labels
        A word for each way.
    """

    title: str
    paths: tuple[tuple[str, ...], ...]
    labels: tuple[str, ...]

    def check(self, topology: Topology) -> None:
        """Check it against a topology.

        Raises
        ------
        ProblemError
            If it names a device that is not there.
        """
        for path, label in zip(self.paths, self.labels, strict=True):
            for name in path:
                if name not in topology.index:
                    raise ProblemError(
                        f"{label} of {self.title} goes over {name}, which {topology} does not have"
                    )


LONGEST = 1000
"""Signs of an error; a name in it may be as long as the file."""


@dataclass(frozen=True, slots=True)
class Report:
    """What an import made of a file, in sentences for the user.

    Parameters
    ----------
    taken
        What the file said and is kept: ``8 GPUs, 32 links of NVLink 2``.
    assumed
        What the file does not say and was chosen, with the value and its unit.
    left_out
        What the file says and is not kept.
    """

    taken: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def joined(self, other: Report) -> Report:
        """Return this report with another after it."""
        return Report(
            self.taken + other.taken, self.assumed + other.assumed, self.left_out + other.left_out
        )


@dataclass
class Remarks:
    """The sentences of a report while a file is read."""

    taken: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def report(self) -> Report:
        """Return what was noted."""
        return Report(tuple(self.taken), tuple(self.assumed), tuple(self.left_out))


class Question(FormatError):
    """A file has more than one reading, and only the user knows which is right.

    Parameters
    ----------
    message
        The sentence for the user, which says what is in doubt.
    key
        Name of the setting that answers it (`Request.settings`).
    choices
        What may be answered, with words for each.
    """

    def __init__(self, message: str, *, key: str, choices: Mapping[str, str]) -> None:
        super().__init__(message)
        self.key = key
        self.choices = dict(choices)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is known beside the content of a file.

    Parameters
    ----------
    name
        Of the file; errors begin with it.
    topology
        The cluster that the file is about, for formats that hold none; None if none is open.
    settings
        Answers to questions and other settings, by name, as typed.
    """

    name: str = "file"
    topology: Topology | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def stem(self) -> str:
        """The name of the file without its folder and endings, or empty."""
        return self.name.rpartition("/")[2].partition(".")[0].strip()


@dataclass(frozen=True)
class Imported:
    """What a reader made of a file.

    Parameters
    ----------
    document
        The topology, and as much more as the file holds: a problem, a plan of it.
    report
        What was taken, assumed and left out.
    sketch
        The sketch that it holds, or None.
    program
        The program that the plan was read from, or None.
    overlay
        Ways over the topology to be drawn above it, or None.
    """

    document: Document
    report: Report
    sketch: Sketch | None = None
    program: Program | None = None
    overlay: Overlay | None = None


@dataclass(frozen=True)
class Reader:
    """A format that is read.

    Parameters
    ----------
    name
        As typed on a command line: ``nvidia-smi``.
    title
        As shown in a menu.
    endings
        Of file names, without a dot; a hint for file dialogs.
    recognises
        Says from the content alone, cheaply and without raising, whether it is of this format.
    parse
        Reads the content. Raises `Question` where it must ask, `FormatError` with the place in the
        file where it is wrong, `ProblemError` where it has the shape and means nothing,
        `ScheduleError` where its plan breaks a rule.
    settings
        What it can be given, by name, with a sentence each.
    """

    name: str
    title: str
    endings: tuple[str, ...]
    recognises: Callable[[bytes], bool]
    parse: Callable[[bytes, Request], Imported]
    settings: Mapping[str, str] = field(default_factory=dict)

    def read(self, content: bytes, request: Request) -> Imported:
        """Read content.

        Raises
        ------
        Question, FormatError, ProblemError
            As of `parse`, beginning with the name of the file; a broken plan is a `FormatError`.
        """
        try:
            return self.parse(content, request)
        except Question as question:
            named = _named(request, question)
            raise Question(named, key=question.key, choices=question.choices) from None
        except (FormatError, ProblemError) as error:
            raise type(error)(_named(request, error)) from None
        except ScheduleError as error:
            raise FormatError(f"{request.name}: its plan breaks a rule: {error}") from None


def _named(request: Request, error: Exception) -> str:
    """Begin a sentence with the name of the file, and cut what an endless name in it makes long."""
    told = str(error).removeprefix(f"{request.name}: ")
    half = LONGEST // 2
    return (
        f"{request.name}: {told if len(told) <= LONGEST else f'{told[:half]} ... {told[-half:]}'}"
    )


@dataclass(frozen=True)
class Written:
    """What a writer made.

    Parameters
    ----------
    files
        Content by file name; most formats are one file, whose name counts only for its ending.
    lost
        What the format cannot carry and the document has, in sentences.
    """

    files: Mapping[str, bytes]
    lost: tuple[str, ...] = ()

    @property
    def content(self) -> bytes:
        """The only file's."""
        (content,) = self.files.values()
        return content


@dataclass(frozen=True, kw_only=True)
class NoOptions:
    """A writer that has nothing to choose."""


@dataclass(frozen=True)
class Writer:
    """A format that is written.

    Parameters
    ----------
    name, title
        As of a `Reader`.
    ending
        Of the file, without a dot.
    needs
        The least that a document must hold.
    make
        Writes a document, told the options where there are some. Raises `FormatError` where the
        format cannot say it.
    options
        Frozen keyword-only dataclass with the metadata of `ccl.options`.
    annotated
        Whether it holds the notes and frames of a drawing.
    """

    name: str
    title: str
    ending: str
    needs: Kind
    make: Callable[..., Written]
    options: type = NoOptions
    annotated: bool = False

    def write(self, content: Document, options: object) -> Written:
        """Write a document; errors as of `make`, where a problem has none a `FormatError`."""
        chosen = () if self.options is NoOptions else (options,)
        try:
            made = self.make(content, *chosen)
        except ProblemError as error:
            raise FormatError(str(error)) from None
        if content.annotations and not self.annotated:
            return replace(made, lost=(*made.lost, "notes and frames of the drawing"))
        return made


def one_file(text: str | bytes, *, ending: str, lost: tuple[str, ...] = ()) -> Written:
    """Return what a writer of a single file made."""
    content = text if isinstance(text, bytes) else text.encode()
    return Written({f"export.{ending}": content}, lost)


def replayed(content: Document) -> tuple[Problem, Plan, Timeline]:
    """Return the plan of a document with its problem and replay, verified.

    Raises
    ------
    FormatError
        If there is no plan.
    ScheduleError
        If the plan breaks a rule.
    """
    if content.problem is None or content.plan is None:
        raise FormatError(f"a {content.kind} document has no plan; give a result, or solve it")
    if content.result is not None:
        return content.problem, content.plan, content.result.timeline
    verify(content.problem, content.plan)
    return content.problem, content.plan, simulate(content.problem, content.plan)
