"""The shapes of format ``topoloom/1``, from which its JSON Schema is generated.

A document says ``"format": "topoloom/1"`` and its ``kind``: topology, problem, plan or result.
Positions on a drawing lie beside a topology, never in it. GB/s, µs and bytes throughout.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from ccl.bound import BoundKind
from ccl.collective import CollectiveKind
from ccl.topology import DeviceKind

MOST = 2**53
"""A whole number that every program reads as written; none that counts something is larger."""

Positive = Annotated[float, Meta(gt=0)]
Whole = Annotated[int, Meta(ge=0, le=MOST)]
Rank = Annotated[int, Meta(ge=0, le=2**20)]
Number = Annotated[int, Meta(ge=-MOST, le=MOST)]
Share = Annotated[float, Meta(gt=0, le=1)]
Ends = tuple[str, str]
Positions = dict[str, tuple[float, float]]


class DeviceJson(Struct, forbid_unknown_fields=True):
    """A device; abilities that are absent are those of its kind."""

    name: str
    kind: DeviceKind = "gpu"
    host: str | None = None
    stores: bool | None = None
    copies: bool | None = None
    reduces: bool | None = None
    buffer_bytes: Positive | None = None


class LinkJson(Struct, forbid_unknown_fields=True):
    """A one-way link: GB/s of all its `count` parallel links together, alpha in µs."""

    src: str
    dst: str
    bandwidth: float
    alpha: float = 0.0
    medium: str = ""
    count: Number = 1


class LimitJson(Struct, forbid_unknown_fields=True):
    """A cap in GB/s on the sum over some links, given by their ends."""

    name: str
    links: list[Ends]
    bandwidth: float


class TopologyJson(Struct, forbid_unknown_fields=True):
    """Devices in the order of their ranks, links, shared limits."""

    name: str
    devices: list[DeviceJson]
    links: list[LinkJson]
    limits: list[LimitJson] = field(default_factory=list)


class ChunkJson(Struct, forbid_unknown_fields=True):
    """A chunk of a custom collective: bytes, ranks that have it, ranks that want it.

    `priority` weighs it among the others; `tenant` names the job that it belongs to.
    """

    size: float
    holders: list[Whole]
    destinations: list[Whole]
    reduced: bool = False
    priority: Positive = 1.0
    tenant: str = ""


class CollectiveJson(Struct, forbid_unknown_fields=True):
    """A collective by name and size in bytes, or with its chunks if it is custom.

    `chunks` counts chunks per shard, which `whole` says are to stay whole; `root` is a rank where
    there is a root.
    """

    kind: CollectiveKind
    size: float
    chunks: Number | list[ChunkJson] = 1
    root: Number = 0
    whole: bool = False


class WindowJson(Struct, forbid_unknown_fields=True):
    """Links, given by their ends, that have a share of their bandwidth between two times in µs."""

    links: list[Ends]
    begin: float
    end: float
    share: float


class ProblemJson(Struct, forbid_unknown_fields=True):
    """A collective on a topology, some of whose links may have less bandwidth for a time."""

    topology: TopologyJson
    collective: CollectiveJson
    windows: list[WindowJson] = field(default_factory=list)


class ScheduleJson(Struct, forbid_unknown_fields=True, tag="schedule", tag_field="plan"):
    """Sends as (epoch, chunk, route from device to device, fraction).

    Where sends name what they carry of a sum, `terms` has for each its ranks or null.
    """

    epoch_duration: Positive
    horizon: Annotated[int, Meta(ge=1, le=MOST)]
    sends: list[tuple[Whole, Whole, list[str], Share]]
    chunks: Annotated[int, Meta(ge=1, le=MOST)] | None = None
    terms: list[list[Rank] | None] = field(default_factory=list)


class TreeJson(Struct, forbid_unknown_fields=True):
    """A tree: rank of its root, routes, weight as a fraction such as ``"1/3"``."""

    root: Whole
    routes: list[list[str]]
    weight: str


class SymmetryJson(Struct, forbid_unknown_fields=True):
    """A group that leaves no GPU in its place, by its generators.

    `generators` gives for each the places of the images of all devices, `powers` how many powers
    of each there are; the elements are their products, the power of the last one outermost.
    """

    generators: list[list[Whole]]
    powers: list[Annotated[int, Meta(ge=2, le=MOST)]]


class ForestJson(Struct, forbid_unknown_fields=True, tag="forest", tag_field="plan"):
    """Trees of every root, of one root in every orbit where there is a symmetry.

    `spread` are the out-trees of an all-reduce, whose `trees` are in-trees.
    """

    trees: list[TreeJson]
    reduces: bool = False
    spread: list[TreeJson] = field(default_factory=list)
    symmetry: SymmetryJson | None = None


class FlowJson(Struct, forbid_unknown_fields=True, tag="flow", tag_field="plan"):
    """Rates as (chunk, src, dst, amount)."""

    rates: list[tuple[Whole, str, str, float]]


PlanJson = ScheduleJson | ForestJson | FlowJson


class CutJson(Struct, forbid_unknown_fields=True, tag="cut", tag_field="witness"):
    """A set of devices, the links that leave it and their GB/s."""

    inside: list[str]
    links: list[Ends]
    bandwidth: float


class PathJson(Struct, forbid_unknown_fields=True, tag="path", tag_field="witness"):
    """Devices along a path."""

    devices: list[str]


class BoundJson(Struct, forbid_unknown_fields=True):
    """A lower bound in µs with what proves it."""

    makespan: Positive
    kind: BoundKind
    reference: str
    witness: CutJson | PathJson | None = None
    whole_chunks: bool = False
    steady: bool = False


class SizeJson(Struct, forbid_unknown_fields=True):
    """Size of the largest model solved."""

    variables: Number
    constraints: Number
    nonzeros: Number


class ClosedFormJson(Struct, forbid_unknown_fields=True):
    """A published formula and what becomes of it on the graph, in µs and µs per byte."""

    expression: str
    alpha: Annotated[float, Meta(ge=0)]
    beta: Annotated[float, Meta(ge=0)]
    makespan: Annotated[float, Meta(ge=0)]
    alone: Annotated[float, Meta(ge=0)]
    in_steps: Annotated[float, Meta(ge=0)]
    steps: Whole
    busiest: Ends | None = None
    crowd: Whole = 1
    elsewhere: bool = False


class ResultJson(Struct, forbid_unknown_fields=True):
    """A solved problem; makespan and the like follow from the plan and are for people."""

    problem: ProblemJson
    plan: PlanJson
    bounds: list[BoundJson]
    stop: str
    formulation: str
    options: dict[str, Any]
    solve_time: Annotated[float, Meta(ge=0)]
    log: list[str] = field(default_factory=list)
    size: SizeJson | None = None
    makespan: float | None = None
    found_by: str = ""
    closed_form: ClosedFormJson | None = None


Format = Literal["topoloom/1"]


class Annotation(Struct, frozen=True, forbid_unknown_fields=True):
    """What is written on a drawing beside the cluster; no problem and no plan knows it.

    Parameters
    ----------
    kind
        ``note`` for a text, ``frame`` for a box with a title, such as a rack.
    text
        What it says.
    x, y
        Its middle, x to the right and y down.
    width, height
        Of a frame; those of a note follow from its text.
    """

    kind: Literal["note", "frame"]
    text: str
    x: float
    y: float
    width: Annotated[float, Meta(ge=0)] = 0.0
    height: Annotated[float, Meta(ge=0)] = 0.0


class TopologyDocument(Struct, forbid_unknown_fields=True, tag="topology", tag_field="kind"):
    """A topology with its drawing."""

    format: Format
    topology: TopologyJson
    positions: Positions = field(default_factory=dict)
    annotations: list[Annotation] = []


class ProblemDocument(Struct, forbid_unknown_fields=True, tag="problem", tag_field="kind"):
    """A problem with the drawing of its topology."""

    format: Format
    problem: ProblemJson
    positions: Positions = field(default_factory=dict)
    annotations: list[Annotation] = []


class PlanDocument(Struct, forbid_unknown_fields=True, tag="plan", tag_field="kind"):
    """A plan with the problem that it answers."""

    format: Format
    problem: ProblemJson
    plan: PlanJson
    positions: Positions = field(default_factory=dict)
    annotations: list[Annotation] = []


class ResultDocument(Struct, forbid_unknown_fields=True, tag="result", tag_field="kind"):
    """A result with the drawing of its topology."""

    format: Format
    result: ResultJson
    positions: Positions = field(default_factory=dict)
    annotations: list[Annotation] = []


Document = TopologyDocument | ProblemDocument | PlanDocument | ResultDocument
