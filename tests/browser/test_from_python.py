"""What Python tells a canvas that is being looked at: nothing moves, and errors are said below."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

LOOK = """({
    places: Object.fromEntries(c.cy.nodes(".gpu").map((d) => [d.id(), { ...d.position() }])),
    zoom: c.cy.zoom(), pan: { ...c.cy.pan() },
})"""
"""Where devices are, by ``d:`` and their name, and what is in view."""


def tell(canvas: Any, name: str, value: Any) -> None:
    """Set a value as the host of the canvas does when Python sets it."""
    canvas.ask("void c.canvas.model.receive(x[0], x[1])", [name, value])
    canvas.settle()


def test_values_set_from_python_move_neither_devices_nor_the_view(film: Any, ring: Any) -> None:
    """Each value on its own, and then a cluster with a device less and one that has no place."""
    drawing, scene, cuts = copy.deepcopy(ring)
    film.ask("void (c.cy.zoom(1.37), c.cy.pan({ x: -40, y: 25 }))")
    film.settle()
    before = film.ask(LOOK)

    tell(film, "scene", {**scene, "title": "another"})
    tell(film, "cuts", [{**cuts[0], "inside": ["g2"], "links": [["g2", "g1"], ["g2", "g3"]]}])
    tell(film, "marks", {"title": "marked", "groups": [{"tone": {"heat": 1}, "devices": ["g1"]}]})
    tell(film, "focus", dict.fromkeys(("chunk", "link", "host", "transfer")) | {"rank": 2})
    tell(film, "selection", {"devices": ["g0"], "links": [], "hosts": []})
    assert film.ask(LOOK) == before

    topology = drawing["topology"]
    kept = [each for each in topology["devices"] if each["name"] != "g3"]
    topology["devices"] = [*kept, {**kept[0], "name": "x", "host": None}]
    topology["links"] = [
        each for each in topology["links"] if "g3" not in {each["src"], each["dst"]}
    ]
    del drawing["positions"]["g3"]
    tell(film, "drawing", drawing)
    after = film.ask(LOOK)

    new = after["places"].pop("d:x")
    del before["places"]["d:g3"]
    assert after == before
    assert new not in before["places"].values()
    film.keys("Control+z")
    assert set(film.names) == {"g0", "g1", "g2", "g3"}


def test_an_error_of_a_listener_is_said_below_the_view_until_it_is_gone(drawn: Any) -> None:
    said = drawn.page.get_by_role("alert")
    expect(said).to_have_count(0)
    height = drawn.root.bounding_box()["height"]

    tell(drawn, "trouble", {"text": "bug: ZeroDivisionError: division by zero", "n": 1})
    expect(said).to_have_text("bug: ZeroDivisionError: division by zero")
    view, words = drawn.root.bounding_box(), said.bounding_box()
    assert view["height"] == height
    assert words["y"] >= view["y"] + view["height"]

    tell(drawn, "trouble", {"text": "", "n": 2})
    expect(said).to_have_count(0)
