"""The shapes of what components of the page hold: enough that callbacks meet no surprise.

What a value means is not looked at here; whoever reads it says so in a sentence for the user.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, ValidationError, convert

from designer.shell import ids
from interchange.formats import catalogue

Word = Annotated[str, Meta(max_length=200)]
Line = Annotated[str, Meta(max_length=20_000)]
Count = Annotated[int, Meta(ge=-(2**53), le=2**53)]
Plain = bool | float | Line | None
"""What a field of a form holds."""

Object = dict[str, Any]
Ends = tuple[str, str]
Clicks = Count | None


class Device(Struct):
    """A device as every reader of a drawing takes it for granted."""

    name: str
    kind: str
    host: str | None = None
    stores: bool | None = None
    copies: bool | None = None
    reduces: bool | None = None
    buffer_bytes: float | None = None


class Link(Struct):
    """A link, likewise."""

    src: str
    dst: str
    bandwidth: float
    alpha: float = 0.0
    medium: str | None = None
    count: float = 1


class Limit(Struct):
    """A shared limit, likewise."""

    name: str
    links: list[Ends]
    bandwidth: float


class Topology(Struct):
    """What is drawn."""

    name: str
    devices: list[Device]
    links: list[Link]
    limits: list[Limit] = []


class Selection(Struct):
    """What of it is chosen."""

    devices: list[str] = []
    links: list[Ends] = []
    hosts: list[str] = []


class Drawing(Struct):
    """What is drawn, and where."""

    topology: Topology
    positions: dict[str, tuple[float, float]] = {}


class Request(Struct):
    """What stands in the header."""

    collective: Word | None = None
    size: Word | float | None = None
    chunks: float | Word | None = None
    root: float | Word | None = None
    formulation: Word | None = None
    options: Object | None = None
    time_limit: float | Word | None = None
    gap: float | Word | None = None
    custom: Object | None = None


class Problem(Struct):
    """What is drawn and asked."""

    topology: Topology
    request: Request


class Question(Problem):
    """The same with its number and the page that asks."""

    page: Word
    n: Count


class Job(Struct):
    """A comparison."""

    key: Word


class Solve(Job):
    """A solve, and how many of its plans the page has seen."""

    found: Count


class Seen(Struct):
    """How far a comparison was when the page last looked."""

    key: Word
    turn: Count
    running: bool
    plans: Count


class File(Struct):
    """A file, and what is to be done with it."""

    name: Line
    contents: str
    settings: dict[str, Line]
    act: Literal["read", "take", "add"]


class Linked(Struct):
    """A link that was opened."""

    fragment: str


class Kept(Struct):
    """A result that the browser has kept."""

    result: Object
    asked: Request | None = None
    course: Object | None = None


class About(Struct):
    """The formulation that the page tells of."""

    name: Word


class Optimum(Struct):
    """The best rate, as far as other callbacks look at it."""

    n: Count | None = None
    trouble: str | None = None
    cuts: list[Object] = []


class Sorted(Struct):
    """How a table is sorted."""

    key: Word
    down: bool
    page: Count


class Sorting(Struct):
    """How both are."""

    device: Sorted
    link: Sorted


class Way(Struct):
    """A way over the cluster."""

    label: str
    devices: list[str]


class Ways(Struct):
    """Ways of others over the cluster."""

    title: str
    ways: list[Way]


BY_PROPERTY: dict[str, Any] = {
    "n_clicks": Clicks,
    "checked": bool | None,
    "opened": bool | None,
    "aria-pressed": Word | None,
    "contents": str | None,
    "filename": Line | None,
    "name": Line | None,
    "value": Plain | list[Plain],
    "stale": bool | None,
}

BY_PLACE: dict[str, Any] = {
    f"{ids.CANVAS}.drawing": Drawing,
    f"{ids.CANVAS}.picked": Object | None,
    f"{ids.CANVAS}.scene": Object | None,
    f"{ids.CANVAS}.cuts": list[Object] | None,
    f"{ids.CANVAS}.selection": Selection | None,
    f"{ids.REQUEST}.data": Request | None,
    f"{ids.PROBLEM}.data": Problem | None,
    f"{ids.LIVE}.data": Question | None,
    f"{ids.JOB}.data": Solve | None,
    f"{ids.COMPARE_JOB}.data": Job | None,
    f"{ids.COMPARE_SEEN}.data": Seen | None,
    f"{ids.COMPARE_METHODS}.value": list[Word] | None,
    f"{ids.COMPARE_OPENED}.data": Word | None,
    f"{ids.COMPARE_PAIR}.chosen": list[Word] | None,
    f"{ids.FILE}.data": File | None,
    f"{ids.LINKED}.data": Linked | None,
    f"{ids.LINK_FILE}.data": Count | None,
    f"{ids.OPTIONS}.data": dict[str, Object] | None,
    f"{ids.SKETCH}.data": dict[str, Object] | None,
    f"{ids.KEPT}.data": Kept | None,
    f"{ids.RESULT}.data": Object | None,
    f"{ids.SUMMARY}.data": Object | None,
    f"{ids.LOAD_DATA}.data": Object | None,
    f"{ids.ASSESSMENT}.data": Object | None,
    f"{ids.OPTIMUM}.data": Optimum | None,
    f"{ids.DUALS}.data": Optimum | None,
    f"{ids.REMEDY}.data": Count | None,
    f"{ids.SORTING}.data": Sorting,
    f"{ids.WAYS}.data": Ways | None,
    f"{ids.WAYS_CHOICE}.value": Word | None,
    f"{ids.FORMULATION}.value": Word,
    f"{ids.FORMULATION}.data": list[Object] | None,
    f"{ids.LINK_TYPE}.value": Word | None,
    f"{ids.VIEW}.value": Word | None,
    f"{ids.TREE_ROOT}.value": Word | None,
    f"{ids.TREE_HALF}.value": Word | None,
    f"{ids.GALLERY_SEARCH}.value": Line | None,
    f"{ids.EXPORT_SEARCH}.value": Line | None,
    f"{ids.EXPORT_CHOSEN}.data": Word | None,
    f"{ids.EXPORT_ENOUGH}.data": Object | None,
    f"{ids.COMPARE_SIZES}.value": Line | None,
    f"{ids.COMPARE_SECONDS}.value": float | Word | None,
    f"{ids.COMPARE_QUANTITY}.value": Word | None,
    f"{ids.COMPARE_PANE}.data-show": Word | None,
    f"{ids.ABOUT_ASKED}.data": About,
    f"{ids.SKETCHING}.data": Object | None,
    f"{ids.WHATIF_ASKED}.data": Object | None,
    f"{ids.WHATIF_TODAY}.data": Object | None,
    f"{ids.LAYER}.data": Word | None,
    f"{ids.CUT}.data": Word | Count | None,
    f"{ids.SCHEME_NOW}.data": Literal["dark", "light"] | None,
    f"{ids.BEAT}.data": Count | None,
    f"{ids.COMPARE_BEAT}.data": Count | None,
    f"{ids.TREE_NUMBER}.data": Count | None,
}
"""By the component and what of it is asked; all else goes by the property, or has any shape."""


def settle() -> None:
    """Let msgspec look at every shape there is, before threads do.

    It looks at a class when it first meets one, and two threads that meet it at once end the
    process.
    """
    catalogue.readers()  # theirs are there only now
    waiting = [*Struct.__subclasses__()]
    while waiting:
        each = waiting.pop()
        waiting += each.__subclasses__()
        with suppress(ValidationError):
            convert(None, each)


def shape_of(name: Any, what: str) -> Any:
    """Return the type of what a component holds.

    Parameters
    ----------
    name
        Of the component; a pattern's is an object.
    what
        Its property.
    """
    place = f"{name}.{what}" if isinstance(name, str) else ""
    return BY_PLACE.get(place, BY_PROPERTY.get(what, Any))
