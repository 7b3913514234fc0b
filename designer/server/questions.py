"""What a page may ask: the callbacks there are, their inputs, and the shapes of what is in them.

Dash hands on whatever is posted. Here a question has to be one of the application's, with the
values that a page can have, before a callback sees it; so what a callback raises after that is a
bug, or a value that was made up with care and leads nowhere. Shapes are enough that callbacks meet
no surprise; what a value means whoever reads it says in a sentence for the user.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Annotated, Any, Literal, NoReturn, TypeGuard

import msgspec
from dash._utils import clean_property_name, stringify_id
from msgspec import Meta, Struct, ValidationError, convert

from designer.server.guard import Refused
from designer.session import Store, Stored
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


class StoredResult(Struct):
    """A result that the browser has kept."""

    result: Object
    asked: Request | None = None
    course: Object | None = None


class Sending(Struct):
    """What a page stores."""

    kind: Literal["topology", "result"]
    fingerprint: Word
    value: Object


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


class Rows(Struct):
    """Rows of the tables that are chosen."""

    device: list[str] = []
    link: list[str] = []


class TableAct(Struct):
    """What is done to rows of a table, at a cell."""

    act: Literal["paste", "fill", "copy"]
    table: Literal["device", "link"]
    n: Count
    row: Line = ""
    key: Word = ""
    text: str = ""


class Overlay(Struct):
    """A path over the cluster."""

    label: str
    devices: list[str]


class Overlays(Struct):
    """Paths of others over the cluster."""

    title: str
    ways: list[Overlay]


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

SHAPES: tuple[tuple[str, Any, tuple[str, ...]], ...] = (
    ("drawing", Drawing, (ids.CANVAS,)),
    ("picked", Object | None, (ids.CANVAS,)),
    ("scene", Object | None, (ids.CANVAS,)),
    ("cuts", list[Object] | None, (ids.CANVAS,)),
    ("selection", Selection | None, (ids.CANVAS,)),
    ("data", Request | None, (ids.REQUEST,)),
    ("data", Problem | None, (ids.PROBLEM,)),
    ("data", Question | None, (ids.LIVE,)),
    ("data", Solve | None, (ids.JOB,)),
    ("data", Job | None, (ids.COMPARE_JOB,)),
    ("data", Seen | None, (ids.COMPARE_SEEN,)),
    ("value", list[Word] | None, (ids.COMPARE_METHODS,)),
    ("data", Word | None, (ids.COMPARE_OPENED, ids.EXPORT_CHOSEN, ids.LAYER)),
    ("chosen", list[Word] | None, (ids.COMPARE_PAIR,)),
    ("data", File | None, (ids.FILE,)),
    ("data", Linked | None, (ids.LINKED,)),
    ("data", Count | None, (
        ids.LINK_FILE, ids.REMEDY, ids.BEAT, ids.COMPARE_BEAT, ids.TREE_NUMBER,
    )),
    ("data", dict[str, Object] | None, (ids.OPTIONS, ids.SKETCH)),
    ("data", StoredResult | None, (ids.PERSISTED,)),
    ("data", Object | None, (
        ids.RESULT, ids.SUMMARY, ids.LOAD_DATA, ids.ASSESSMENT, ids.EXPORT_ENOUGH, ids.SKETCHING,
        ids.SKETCH_ACT, ids.WHATIF_REQUEST, ids.WHATIF_TODAY,
    )),
    ("data", Optimum | None, (ids.OPTIMUM, ids.DUALS)),
    ("data", Sorting, (ids.SORTING,)),
    ("data", Rows | None, (ids.ROWS,)),
    ("data", TableAct | None, (ids.TABLE_ACT,)),
    ("data", Overlays | None, (ids.PATHS,)),
    ("value", Word | None, (
        ids.PATHS_CHOICE, ids.LINK_TYPE, ids.VIEW, ids.TREE_ROOT, ids.TREE_HALF,
        ids.COMPARE_QUANTITY, ids.TABLE_KIND,
    )),
    ("value", Word, (ids.FORMULATION,)),
    ("data", list[Object] | None, (ids.FORMULATION,)),
    ("value", Line | None, (
        ids.GALLERY_SEARCH, ids.EXPORT_SEARCH, ids.COMPARE_SIZES, ids.TABLE_FILTER,
    )),
    ("value", float | Word | None, (ids.COMPARE_SECONDS,)),
    ("data-show", Word | None, (ids.COMPARE_PANE,)),
    ("data", About, (ids.ABOUT_REQUEST,)),
    ("data", Word | Count | None, (ids.CUT,)),
    ("data", Literal["dark", "light"] | None, (ids.SCHEME_NOW,)),
)  # fmt: skip
"""What a property holds, and of which components; see `shape_of`."""

BY_PLACE = {f"{name}.{what}": shape for what, shape, names in SHAPES for name in names}
"""By the component and its property; all else goes by the property, or has any shape."""


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


Json = Mapping[str, Any]


def check(body: Any, known: Mapping[str, Json], resolve: Callable[[Any], Any]) -> None:
    """Refuse what is no question of a page; put what it refers to into its place.

    Parameters
    ----------
    body
        As it was posted.
    known
        The callbacks, as Dash keeps them.
    resolve
        Gives a value with what its reference stands for; raises `NotStored` where nothing does.

    Raises
    ------
    Refused
        If it is malformed.
    """
    asked = known.get(body.get("output") or "") if _of_words(body) else None
    if asked is None or "callback" not in asked:
        _refuse("This asks for nothing that the application has")
    given = list(_given(asked, body))
    changed = body.get("changedPropIds", [])
    names = {f"{stringify_id(each['id'])}.{each['property']}" for each in given}
    if not isinstance(changed, list) or not all(
        isinstance(each, str) and each in names for each in changed
    ):
        _refuse("This says of something else that it has changed")
    if not asked.get("no_output") and not _answers(asked["output"], body.get("outputs")):
        _refuse("This wants the answer elsewhere")
    for each in given:
        if "value" in each:  # a property that nobody has set has none
            each["value"] = resolve(each["value"])
        _check_value(each)


def _given(asked: Json, body: Json) -> Iterator[dict[str, Any]]:
    """Yield every input and state that is given, which have to be those of the callback."""
    for part in ("inputs", "state"):
        given = body.get(part, [])
        if not isinstance(given, list) or len(given) != len(asked[part]):
            _refuse("This has other inputs than the application asks for")
        for wanted, one in zip(asked[part], given, strict=True):
            yield from _matching(wanted, one)


def _matching(wanted: Json, given: Any) -> list[dict[str, Any]]:
    """Return what is given for an input: one, or each that a pattern matches."""
    pattern = json.loads(wanted["id"]) if wanted["id"].startswith("{") else None
    listed = given if pattern is not None and isinstance(given, list) else [given]
    for each in listed:
        if not _of_words(each) or each.get("property") != wanted["property"]:
            _refuse("This has other inputs than the application asks for")
        name = each.get("id")
        fits = name == wanted["id"] if pattern is None else _fits(pattern, name)
        if not fits:
            _refuse("This has other inputs than the application asks for")
    if pattern is not None and not isinstance(given, list):
        _refuse("This has other inputs than the application asks for")
    return listed


def _fits(pattern: Json, name: Any) -> bool:
    """Whether the name of a component is one of a pattern."""
    return (
        isinstance(name, dict)
        and name.keys() == pattern.keys()
        and all(
            isinstance(name[key], str | int | float)
            and (isinstance(value, list) or name[key] == value)
            for key, value in pattern.items()
        )
    )


def _answers(outputs: Any, given: Any) -> bool:
    """Whether the answer is wanted where the callback gives it."""
    several = isinstance(outputs, list | tuple)
    if several != isinstance(given, list):
        return False
    pairs = list(zip(outputs, given, strict=False)) if several else [(outputs, given)]
    return (not several or len(outputs) == len(given)) and all(
        _same(output, each)
        for output, one in pairs
        for each in (one if isinstance(one, list) else [one])
    )


def _same(output: Any, given: Any) -> bool:
    if not _of_words(given) or not isinstance(given.get("property"), str):
        return False
    name, wanted = given.get("id"), output.component_id
    fits = (
        _fits({k: v if isinstance(v, str | int) else [] for k, v in wanted.items()}, name)
        if isinstance(wanted, dict)
        else name == wanted
    )
    return fits and clean_property_name(given["property"]) == output.component_property


def _check_value(given: Json) -> None:
    """Refuse a value of another shape than that component can have."""
    name, value = given["id"], given.get("value")
    if isinstance(value, dict) and isinstance(value.get("topology"), Stored):
        value["topology"].made(_checked)
        value = {**value, "topology": {"name": "", "devices": [], "links": []}}
    try:
        msgspec.convert(value, shape_of(name, given["property"]))
    except msgspec.ValidationError as error:
        what = name if isinstance(name, str) else stringify_id(name)
        told = f"{what}.{given['property']} is not what a page has there: {error}"
        _refuse(told[:300])


def put(body: Any, store: Store, session: str, *, nbytes: int) -> None:
    """Store what the questions of a page will refer to.

    Raises
    ------
    Refused
        If it is nothing that a page stores.
    """
    try:
        sent = convert(body, Sending)
    except ValidationError as error:
        _refuse(f"This is nothing that a page stores: {error}"[:300])
    if sent.kind == "topology":
        _checked(sent.value)
    store.put((session, sent.kind, sent.fingerprint), sent.value, nbytes)


def _checked(topology: Json) -> None:
    """Refuse a stored value that is no topology."""
    try:
        msgspec.convert(topology, Topology)
    except msgspec.ValidationError as error:
        _refuse(f"This is no topology as a page draws it: {error}"[:300])


def _of_words(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether this is an object; its output, if any, is a word."""
    return isinstance(value, dict) and isinstance(value.get("output", ""), str)


def _refuse(sentence: str) -> NoReturn:
    raise Refused(HTTPStatus.BAD_REQUEST, f"{sentence}.") from None
