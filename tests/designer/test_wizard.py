"""The wizard of leaf and spine: fields to a plan, and what the preview says of it."""

from __future__ import annotations

import pytest

from designer.views.draw import wizard
from gallery.leaf_spine import size_fabric
from widgets.print.style import DARK, LIGHT

USUAL = {name: value for name, (_, value) in wizard.COUNTS.items()}


def test_fields_as_they_are_make_a_plan_that_fits():
    """Four rails of one leaf: 4 ports down and 4 up, on one spine of 32 ports."""
    plan = wizard.read_plan(USUAL)

    assert (plan.hosts, plan.gpus, plan.nics, plan.leaves) == (4, 4, 4, 0)
    assert (plan.inner.medium, plan.port.bandwidth) == ("NVLink 4", 50.0)
    assert wizard.facts(plan, size_fabric(plan)) == [
        ("Leaves", "4, 8 of 32 ports used"),
        ("Spines", "1, 16 of 32 ports used"),
        ("Leaf to spine", "4 links from each to each"),
        ("Oversubscription", "1 : 1"),
        ("Bisection", "400 GB/s one way between halves of the hosts"),
    ]


def test_choices_and_link_types_are_those_of_the_fields():
    given = {**USUAL, "rails": "leaf", "joined": "ring", "inner": "nvlink5", "leaves": "2"}
    plan = wizard.read_plan(given)

    assert (plan.rails, plan.joined, plan.leaves, plan.inner.bandwidth) == (False, "ring", 2, 900.0)


@pytest.mark.parametrize("given", ["", "four", "3.5", None])
def test_a_field_that_says_what_it_refuses_makes_no_plan(given):
    assert wizard.read_plan({**USUAL, "hosts": given}) is None


def test_the_preview_draws_every_device_once_in_the_layer_of_its_kind():
    plan = wizard.read_plan(USUAL)
    picture, words, _ = wizard.preview(plan)

    assert words.children == "16 GPUs · 16 NICs · 9 switches · 52 links"
    layers = {each.className: each.style["--thumb"].count("rect") for each in picture.children}
    assert layers == {
        "ds-wizard-hosts": 4,
        "ds-wizard-lines": 0,
        "ds-gpu": 16,
        "ds-nic": 16,
        "ds-switch": 9,
    }
    lines = [each for each in picture.children if each.className == "ds-wizard-lines"]
    paths = [each.style["--thumb"].count("path") for each in lines]
    media = (LIGHT.links, DARK.links)
    assert [each.style["--kind"] for each in lines] == [
        f"light-dark({light}, {dark})" for light, dark in list(zip(*media, strict=True))[:3]
    ]
    assert sum(paths) == 52
