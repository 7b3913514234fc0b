"""Fields and buttons become commands; wrong values are refused in the words of the nouns."""

from __future__ import annotations

import pytest

from ccl.errors import CclError
from designer.views.draw import edits


def test_a_field_of_devices_is_edited_for_all_of_them(drawn):
    command = edits.edit_device(drawn, ["gpu0", "gpu1"], "host", " box ")
    assert command == {
        "name": "edit_devices",
        "args": {"devices": ["gpu0", "gpu1"], "values": {"host": "box"}},
    }


def test_nothing_changes_when_the_value_is_what_it_was(drawn):
    assert edits.edit_device(drawn, ["gpu0"], "host", "h0") is None
    assert edits.edit_device(drawn, ["gpu0"], "name", "gpu0") is None
    assert edits.edit_link(drawn, [("gpu0", "gpu1")], "alpha", value=0.5, both=True) is None
    assert edits.edit_limit(drawn, "bus", 120) is None


def test_a_device_that_becomes_a_switch_loses_what_a_gpu_can_do(drawn):
    values = edits.edit_device(drawn, ["gpu0"], "kind", "switch")["args"]["values"]
    assert values == {"kind": "switch", "stores": False, "copies": False, "reduces": False}


def test_a_buffer_is_typed_with_a_unit_and_empty_means_no_limit(drawn):
    command = edits.edit_device(drawn, ["gpu0"], "buffer", "2 GB")
    assert command["args"]["values"] == {"buffer_bytes": 2e9}
    assert edits.edit_device(drawn, ["gpu0"], "buffer", "") is None


def test_renaming_goes_by_its_own_command(drawn):
    assert edits.edit_device(drawn, ["gpu0"], "name", "a100")["args"] == {
        "device": "gpu0",
        "name": "a100",
    }


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("name", "gpu1", "already"),
        ("name", "  ", "needs a name"),
        ("buffer", "lots", "lots"),
        ("stores", False, "GPU gpu0 does not store"),
    ],
)
def test_a_wrong_value_for_a_device_is_refused(drawn, field, value, words):
    with pytest.raises(CclError, match=words):
        edits.edit_device(drawn, ["gpu0"], field, value)


def test_a_link_is_edited_with_or_without_its_opposite(drawn):
    both = edits.edit_link(drawn, [("gpu0", "gpu1")], "bandwidth", value=75, both=True)
    assert both["args"] == {"links": [["gpu0", "gpu1"]], "values": {"bandwidth": 75}, "both": True}
    one = edits.edit_link(drawn, [("gpu0", "gpu1")], "medium", value="", both=False)
    assert one["args"]["values"] == {"medium": ""}


def test_both_directions_can_be_taken_away_and_given_back(drawn):
    command = edits.edit_link(drawn, [("gpu0", "gpu1")], "duplex", value=False, both=True)
    assert command["args"]["values"] == {"duplex": False}


@pytest.mark.parametrize(("field", "value"), [("bandwidth", -1), ("alpha", -0.1), ("count", 0)])
def test_a_wrong_value_for_a_link_is_refused_with_its_name(drawn, field, value):
    with pytest.raises(CclError, match="gpu0->gpu1"):
        edits.edit_link(drawn, [("gpu0", "gpu1")], field, value=value, both=True)


def test_an_emptied_number_is_no_edit(drawn):
    assert edits.edit_link(drawn, [("gpu0", "gpu1")], "bandwidth", value="", both=True) is None


def test_limits_are_added_changed_and_removed(drawn):
    added = edits.with_limit(drawn, "", "60", links=[("gpu1", "gpu2")])["args"]["limits"]
    assert added[1] == {"name": "limit0", "links": [["gpu1", "gpu2"]], "bandwidth": 60.0}
    assert edits.edit_limit(drawn, "bus", 90)["args"]["limits"][0]["bandwidth"] == 90
    assert edits.without_limit(drawn, "bus")["args"] == {"limits": []}


@pytest.mark.parametrize(
    ("name", "bandwidth", "links", "words"),
    [
        ("bus", 60, [("gpu1", "gpu2")], "already"),
        ("x", 0, [("gpu1", "gpu2")], "give more than 0 GB/s"),
        ("x", "", [("gpu1", "gpu2")], "bandwidth is empty"),
        ("x", 60, [], "select the links"),
    ],
)
def test_a_wrong_limit_is_refused(drawn, name, bandwidth, links, words):
    with pytest.raises(CclError, match=words):
        edits.with_limit(drawn, name, bandwidth, links=links)


def test_a_pair_of_opposites_is_one_selected_line(drawn):
    selection = {"links": [["gpu0", "gpu1"], ["gpu1", "gpu0"], ["gone", "gpu0"]]}
    assert edits.selected_links(drawn, selection) == [("gpu0", "gpu1")]


def test_a_limit_over_a_selected_line_counts_both_directions(drawn):
    command = edits.from_button(
        drawn, {"links": [["gpu1", "gpu2"]]}, name="limit", form={"name": "pcie", "bandwidth": 64}
    )
    assert sorted(command["args"]["limits"][1]["links"]) == [["gpu1", "gpu2"], ["gpu2", "gpu1"]]


def test_repeating_a_host_says_how_many_copies_and_how_they_are_joined(drawn):
    command = edits.from_button(
        drawn, {"hosts": ["h0"]}, name="repeat", form={"count": 4, "join": "none"}
    )
    assert command == {"name": "repeat_host", "args": {"host": "h0", "times": 3, "join": None}}


def test_fields_find_their_edit_by_the_kind_of_their_id(drawn):
    def edit(kind, field, value, selection):
        return edits.from_form(drawn, selection, kind=kind, field=field, value=value, both=True)[
            "name"
        ]

    assert edit("device-flag", "copies", False, {"devices": ["gpu0"]}) == "edit_devices"
    assert edit("link-edit", "alpha", 1.5, {"links": [["gpu0", "gpu1"]]}) == "edit_links"
    assert edit("limit-edit", "bus", 70, {}) == "edit_limits"
    assert edit("host-edit", "name", "left", {"hosts": ["h0"]}) == "rename_host"
    assert edit("act-value", "align", "left", {"devices": ["gpu0", "gpu1"]}) == "align"
