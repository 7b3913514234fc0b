"""Rows of the tables as a spreadsheet edits them: filter, paste, fill down, copy, many at once."""

from __future__ import annotations

import pytest

from ccl.errors import CclError
from ccl.serialization.topoloom import topology_to_json
from designer.views.draw.spreadsheet import (
    Filter,
    edit_cells,
    fill_down,
    kinds_of,
    paste_cells,
    write_tsv,
)
from designer.views.draw.table import Sorting, ordered
from gallery import open_cluster


@pytest.fixture
def cluster():
    """Return two hosts of two GPUs with an NVSwitch and two NICs, as the canvas has it."""
    return topology_to_json(open_cluster("leaf-spine:hosts=2,gpus=2,nics=2,leaf_radix=4"))


def test_a_filter_shows_rows_with_every_word_and_of_a_kind(cluster):
    """Four GPUs, four NICs; links go both ways: 4 x 2 NVLinks, as many PCIe."""
    assert len(Filter("h1 gpu").rows("device", cluster)) == 2
    assert len(Filter(kind="device:nic").rows("device", cluster)) == 4
    assert Filter(kind="device:nic").rows("link", cluster) == []
    assert len(Filter(kind="link:NVLink").rows("link", cluster)) == 8
    assert len(Filter("g0", kind="link:PCIe").rows("link", cluster)) == 2
    assert [each["group"] for each in kinds_of(cluster)] == ["Devices", "Links"]
    assert {"value": "link:NVLink", "label": "NVLink"} in kinds_of(cluster)[1]["items"]


def test_values_from_a_spreadsheet_are_one_command(cluster):
    """Rows that get the same values stand together; Gb/s and the ends are not edited."""
    rows = Filter(kind="link:NVLink").rows("link", cluster)
    at = (f"{rows[0]['src']}\n{rows[0]['dst']}", "bandwidth")
    changes = paste_cells("link", rows, at, "300\t2400\t0.5\n300\t2400\t0.5\r\n25 GB/s\n")
    command = edit_cells(cluster, "link", changes)

    assert command["name"] == "edit_rows"
    ends = [[each["src"], each["dst"]] for each in rows]
    assert command["args"]["groups"] == [
        {"rows": ends[:2], "values": {"bandwidth": 300.0, "alpha": 0.5}},
        {"rows": ends[2:3], "values": {"bandwidth": 25.0}},
    ]


def test_what_is_copied_pastes_back_as_nothing(cluster):
    """The headings say which columns there are, wherever it is pasted."""
    for what, first in (("device", "name"), ("link", "medium")):
        rows = Filter().rows(what, cluster)
        key = rows[0]["name"] if what == "device" else f"{rows[0]['src']}\n{rows[0]['dst']}"
        changes = paste_cells(what, rows, (key, first), write_tsv(what, rows))
        assert len(changes) == len(rows) * (6 if what == "device" else 4)
        assert edit_cells(cluster, what, changes) is None


def test_names_may_be_exchanged_but_not_be_the_same(cluster):
    swap = [("g0", "name", "g1"), ("g1", "name", "g0")]
    assert edit_cells(cluster, "device", swap)["args"]["names"] == {"g0": "g1", "g1": "g0"}
    with pytest.raises(CclError, match="two devices would be called g1"):
        edit_cells(cluster, "device", swap[:1])


def test_kinds_hosts_and_flags_are_read_as_they_are_written(cluster):
    changes = [("g0", "kind", "Memory"), ("g0", "reduces", "no"), ("g1", "host", ""),
               ("leaf0", "copies", "yes")]  # fmt: skip
    command = edit_cells(cluster, "device", changes)

    values = {group["rows"][0]: group["values"] for group in command["args"]["groups"]}
    assert values["g0"]["kind"] == "memory"
    assert values["g1"] == {"host": None}
    assert values["leaf0"] == {"copies": True}
    with pytest.raises(CclError, match="copies of leaf0 is maybe; write yes or no"):
        edit_cells(cluster, "device", [("leaf0", "copies", "maybe")])


def test_cells_are_filled_down_from_the_first_chosen_row_in_the_order_shown(cluster):
    """By name downwards g3 comes first; without a choice the cell above is taken."""
    rows = ordered(Filter(kind="device:gpu").rows("device", cluster), Sorting("name", down=True))
    changes = fill_down("device", rows, ("g1", "host"), ["g0", "g3", "g1"])
    assert changes == [("g1", "host", "h1"), ("g0", "host", "h1")]
    assert fill_down("device", rows, ("g1", "host"), []) == [("g1", "host", "h1")]
    assert fill_down("device", rows, ("g3", "host"), []) == []
    typed = fill_down("device", rows, ("g3", "host"), ["g0", "g3"], typed="rack")
    assert typed == [("g3", "host", "rack"), ("g0", "host", "rack")]
    with pytest.raises(CclError, match="Name cannot be filled down"):
        fill_down("device", rows, ("g1", "name"), [])


def test_what_does_not_fit_is_refused_whole(cluster):
    rows = Filter(kind="link:NVLink").rows("link", cluster)
    key = f"{rows[-1]['src']}\n{rows[-1]['dst']}"
    with pytest.raises(CclError, match="has 2 rows, and from this one on there are 1"):
        paste_cells("link", rows, (key, "alpha"), "1\n2\n")
    with pytest.raises(CclError, match="has 4 columns, and from Alpha on there are 3"):
        paste_cells("link", rows, (key, "alpha"), "1\t1\tx\ty\n")
    with pytest.raises(CclError, match="there is no text to paste"):
        paste_cells("link", rows, (key, "alpha"), "\n")
    with pytest.raises(CclError, match="bandwidth"):
        edit_cells(cluster, "link", paste_cells("link", rows, (key, "bandwidth"), "fast\t\n"))
