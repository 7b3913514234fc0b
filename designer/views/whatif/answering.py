"""What the page asks of the What-if view and what it is answered, without a page."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ccl import text
from ccl.errors import CclError
from ccl.problem import Problem
from ccl.serialization.topoloom import topology_from_json
from ccl.topology import Topology
from designer.views.draw.files import drawing_of
from designer.views.whatif.knobs import (
    Change,
    Knob,
    changed,
    moved_knobs,
    origin_of,
    read_origin,
)
from designer.views.whatif.told import asked, told
from widgets.shown.scene import drawing as picture_of

MOST_REDRAWN = 2_000
"""Links above which the picture beside the sliders keeps its bandwidths while they move."""

Json = dict[str, Any]
Given = Mapping[str, Any]

_MOVED = ("bandwidth", "alpha", "count")


def signature(drawing: Given, request: Given | None) -> str:
    """Return what differs when the cluster or what is asked differs."""
    topology = {**drawing["topology"], "name": ""}
    keys = ("collective", "size", "chunks", "root", "custom")
    question = {key: (request or {}).get(key) for key in keys}
    return hashlib.sha256(json.dumps([topology, question], sort_keys=True).encode()).hexdigest()


def today(drawing: Given, request: Given | None) -> Json:
    """Return what is known of the drawing as it stands.

    Returns
    -------
    dict
        ``signature``; ``origin``, its name in the gallery, or None, and ``counts``; ``size`` as it
        is typed; ``answer`` as `told` returns it.

    Raises
    ------
    CclError
        If the drawing is no topology.
    """
    topology = topology_from_json(dict(drawing["topology"]))
    origin = origin_of(topology)
    return {
        "signature": signature(drawing, request),
        "origin": None if origin is None else origin.name,
        "counts": {} if origin is None else origin.counts,
        "size": (request or {}).get("size"),
        "answer": told(asked(topology, request)),
    }


def change_of(values: Given) -> Change:
    """Read where the knobs stand; what is empty stands where it does today."""
    bandwidth, alpha, count = (_numbers(values.get(what)) for what in _MOVED)
    return Change(bandwidth, alpha, {key: int(value) for key, value in count.items()})


@dataclass(frozen=True)
class Standing:
    """The cluster as the sliders stand.

    Parameters
    ----------
    today, topology
        As it is drawn, and with its knobs moved.
    change
        Where they stand.
    knobs
        Its classes of links and limits, with the figures of today.
    problem
        What is asked of it, or why nothing can be.
    """

    today: Topology
    topology: Topology
    change: Change
    knobs: tuple[Knob, ...]
    problem: Problem | str


def standing(drawing: Given, request: Given | None, before: Given, values: Given) -> Standing:
    """Return the cluster as the sliders stand.

    Parameters
    ----------
    drawing, request, before, values
        As for `answer`.

    Raises
    ------
    CclError
        If there is no such cluster.
    """
    topology = topology_from_json(dict(drawing["topology"]))
    origin = read_origin(before["origin"]) if before.get("origin") else None
    change = change_of(values)
    made = changed(topology, change, origin)
    wanted = {**(request or {}), "size": values.get("size") or before["size"]}
    return Standing(
        topology, made, change, moved_knobs(topology, change, origin), asked(made, wanted)
    )


def drawn(drawing: Given, topology: Topology) -> Json:
    """Return the drawing of a changed cluster: places stay where the devices do."""
    names = [each["name"] for each in drawing["topology"]["devices"]]
    if names == [each.name for each in topology.devices]:
        return picture_of(topology, drawing["positions"])
    return drawing_of(topology)


def answer(
    drawing: Given,
    request: Given | None,
    before: Given,
    values: Given,
    *,
    shown: int | None = None,
) -> Json:
    """Return what becomes of the cluster with its knobs moved.

    Parameters
    ----------
    drawing, request, before
        The drawing, the header's settings, and what `today` says of both.
    values
        Numbers by what they are of (``bandwidth``, ``alpha``, ``count``) and by key, and the
        ``size`` of the collective as it is typed.
    shown
        Devices in the picture beside the sliders, or None.

    Returns
    -------
    dict
        ``answer`` as `told` returns it, ``moved``: whether anything differs from today, and
        ``drawing``, None where the picture stays.
    """
    size = values.get("size") or before["size"]
    try:
        stands = standing(drawing, request, before, values)
    except CclError as error:
        return {"answer": {"trouble": text.sentence(str(error))}, "moved": False, "drawing": None}
    moved = stands.topology != stands.today or size != before["size"]
    large = len(stands.topology.links) > MOST_REDRAWN
    stays = large and moved and shown == len(stands.topology.devices)
    return {
        "answer": told(stands.problem) if moved else before["answer"],
        "moved": moved,
        "drawing": None if stays else drawn(drawing, stands.topology),
    }


def _numbers(values: Given | None) -> dict[str, float]:
    return {
        key: float(value)
        for key, value in (values or {}).items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
