"""The wizard of leaf and spine: fields to a plan, and what the preview says of it."""

from __future__ import annotations

import pytest

from designer.views.draw import wizard
from designer.views.draw.thumbnails import some_of
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
        ("Leaf to spine", "4 links from each to each, drawn as one"),
        ("Oversubscription", "1 : 1"),
        ("Bisection", "400 GB/s one way between halves of the hosts"),
    ]


def test_whole_links_leave_room_below_the_oversubscription_that_is_allowed():
    """Four links down and two up at most 3 to 1: 2 are needed, and 4 / 2 is 2."""
    plan = wizard.read_plan({**USUAL, "oversubscription": "3"})
    facts = dict(wizard.facts(plan, size_fabric(plan)))
    assert facts["Oversubscription"] == "2 : 1, as links are whole; at most 3 : 1"
    assert facts["Leaf to spine"] == "2 links from each to each, drawn as one"


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


def boxes(picture, look):
    """Return the words of what has a look, in the order in which it is drawn."""
    return [each.children for each in picture.children if look in (each.className or "").split(" ")]


def test_a_large_fabric_is_shown_by_tiers():
    """32 hosts on eight rails in two groups of leaves: the first host whole, others by name.

    22 ports of a leaf are 16 hosts and 6 up, so that 16 leaves of 8 rails are two groups. The eight
    of the first stand singly, those of the second in one box, and so do two spines above.
    """
    given = {"hosts": 32, "gpus": 8, "nics": 8, "leaf_radix": 32, "spine_radix": 64}
    plan = wizard.read_plan({**USUAL, **given, "oversubscription": 3})
    picture, words, _ = wizard.preview(plan)

    assert words.children == "256 GPUs · 256 NICs · 50 switches · 800 links"
    assert picture.className == "ds-wizard-picture ds-tiers"
    assert len(boxes(picture, "ds-gpu")) == len(boxes(picture, "ds-nic")) == 8
    leaves = [str(each) for each in range(8)]
    assert boxes(picture, "ds-switch") == [*leaves, "switch", "8 leaves", "spine0", "spine1"]
    names = ["h1", "h2", "h3", "h15", "h16", "h17", "h18", "h31"]
    assert [each for each in boxes(picture, "ds-tier-host") if each] == names
    assert [each[1] for each in boxes(picture, "ds-tier-count")] == [
        *("2 spines", "16 leaves", "256 NICs", "256 GPUs", "32 switches", "32 hosts")
    ]
    assert [each[1] for each in boxes(picture, "ds-tier-rate")] == [
        *("3 × 50 GB/s", "50 GB/s", "64 GB/s", "450 GB/s")
    ]
    lines = {
        each.style["--thumb"].count("path") for each in picture.children if each.children is None
    }
    assert lines == {2 * 9, 8 + 8 + 1, 8}


def test_a_row_of_many_shows_the_first_ones_and_the_last():
    assert some_of(8) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert some_of(64) == [0, 1, 2, 3, 4, 5, None, 63]


@pytest.mark.parametrize("rails", ["rails", "leaf"])
@pytest.mark.parametrize("joined", ["switch", "mesh", "ring"])
@pytest.mark.parametrize(
    ("hosts", "gpus", "nics"), [(6, 16, 2), (512, 8, 4), (65, 1, 4), (3, 64, 1)]
)
def test_every_fabric_of_many_devices_stays_within_its_picture(hosts, gpus, nics, joined, rails):
    """With one leaf and with many, more NICs than GPUs and fewer; no box leaves its picture."""
    given = {"hosts": hosts, "gpus": gpus, "nics": nics, "leaf_radix": 64, "spine_radix": 512}
    plan = wizard.read_plan({**USUAL, **given, "joined": joined, "rails": rails})
    picture = wizard.preview(plan)[0]

    for each in picture.children:
        if "ds-tier" in (each.className or "").split(" "):
            left, top, wide, high = (float(part[:-1]) for part in each.style.values())
            assert 0 < left < left + wide < 99
            assert 0 < top < top + high < 99
            assert wide > 2
