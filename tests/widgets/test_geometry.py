"""Drawings stand in print where they stand on the canvas: both compute one file of drawings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ccl.topology import Link, Topology, device
from widgets.print.cutting import Region
from widgets.print.geometry.folding import compacted, groups_of
from widgets.print.geometry.names import short_name
from widgets.print.geometry.stage import Stage

DRAWINGS = json.loads(
    (Path(__file__).resolve().parents[2] / "widgets/js/test/drawings.json").read_text("utf-8")
)
"""What `widgets/js/test/geometry.test.js` finds on the canvas."""


def drawing(given):
    devices = tuple(
        device(kind, name, host=host[0] if host else None) for name, kind, *host in given["devices"]
    )
    ends = [(devices[src].name, devices[dst].name, rate) for src, dst, rate in given["links"]]
    at = given["positions"]
    places = {each.name: (at[2 * i], at[2 * i + 1]) for i, each in enumerate(devices)}
    return Topology(given["name"], devices, tuple(Link(*each) for each in ends)), places


def numbers_of(line):
    curve = line.curve
    ends = (curve.at(0.3, line.lane), curve.a, curve.b, *([curve.c] if curve.c else []))
    cover = ["".join(str(int(part)) for part in line.covered)] if line.covered else []
    return [*cover, line.width, curve.length, *(value for point in ends for value in point)]


def alike(found, wanted):
    """Whether all is the same, numbers within a millionth."""
    if isinstance(wanted, (int, float)):
        return abs(found - wanted) < 1e-6
    if isinstance(wanted, str):
        return found == wanted
    return len(found) == len(wanted) and all(map(alike, found, wanted))


@pytest.mark.parametrize("given", DRAWINGS, ids=lambda given: given["name"])
def test_a_drawing_stands_where_the_canvas_has_it(given):
    topology, places = drawing(given)
    stage, wanted = Stage.of(topology, places), given["geometry"]
    groups, shown, boxes = stage.groups, stage.devices, stage.boxes
    folded = given.get("folded")
    if folded:  # by hand, which is nothing that print knows
        groups = tuple(each for each in groups_of(topology) if each.host in folded)
        inside = {each.name for group in groups for each in group.members}
        shown = tuple(each for each in topology.devices if each.name not in inside)
        boxes = compacted(boxes, groups, shown)
    else:
        hosts = [[name, *box] for name, box in stage.hosts.items()]
        names = [[topology.devices[i].name for i in cut] for cut in given["cuts"]]
        regions = [Region(stage, {"inside": cut, "links": []}).loops for cut in names]
        flat = [[[v for p in loop for v in p] for loop in loops] for loops in regions]

        assert alike(hosts, wanted["hosts"])
        assert alike([numbers_of(line) for line in stage.lines], wanted["lines"])
        dots = sorted(list(dot) for line in stage.lines for dot in line.dots)
        assert alike(dots, sorted(wanted["dots"]))
        assert alike(flat, wanted["regions"])
    keys = [*(group.key for group in groups), *(each.name for each in shown)]

    assert [[group.title, group.counts] for group in groups] == wanted["groups"]
    assert [short_name(each) for each in shown] == wanted["labels"]
    assert alike([value for key in keys for value in boxes[key].middle], wanted["places"])
