"""Forms, lists and tables are made of the drawing and of the catalogues."""

from __future__ import annotations

import json

import pytest

from ccl.errors import CclError
from ccl.serialization.topoloom import topology_to_json
from designer.shell import ui
from designer.shell.request import read_request, same_question
from designer.views.draw import palette, table, thumbnails
from designer.views.draw.inspector import inspector
from designer.views.draw.table import Sorting
from designer.views.solve import forms
from designer.views.solve.assess import assess, can_solve, field_at_fault, formulation_choices
from formulations import Formulation, formulation, option_fields
from gallery import catalog, open_cluster

ASKED = {"collective": "all-gather", "size": "1MB", "chunks": 1, "formulation": "te-ccl-milp"}


def ids_of(component):
    """Return the ids in a component."""
    found = []

    def walk(part):
        if isinstance(part, dict):
            props = part.get("props", {})
            if "id" in props:
                found.append(props["id"])
            walk(props.get("children"))
        elif isinstance(part, list):
            for each in part:
                walk(each)

    walk(json.loads(json.dumps(component, default=lambda each: each.to_plotly_json())))
    return found


@pytest.mark.parametrize(
    ("selection", "wanted"),
    [
        ({"devices": ["gpu0"]}, {"device-edit": "buffer"}),
        ({"devices": ["gpu0", "gpu1"]}, {"act-value": "align"}),
        ({"links": [["gpu0", "gpu1"]]}, {"link-edit": "bandwidth"}),
        ({"hosts": ["h0"], "devices": ["gpu0", "gpu1"]}, {"repeat": "count"}),
        ({"devices": ["gpu0"], "links": [["gpu0", "gpu1"]]}, {"act": "delete"}),
        (None, {"limit-edit": "bus"}),
        ({"devices": ["gone"]}, {"limit-edit": "bus"}),
    ],
)
def test_the_inspector_shows_the_form_for_what_is_selected(drawn, selection, wanted):
    assert wanted in ids_of(inspector(selection, drawn))


def test_fields_that_differ_among_links_are_left_open(drawn):
    drawn["links"][0]["bandwidth"] = 10.0
    shown = str(inspector({"links": [["gpu0", "gpu1"], ["gpu1", "gpu2"]]}, drawn))
    assert "several" in shown


def test_a_buffer_reads_back_to_the_byte(drawn):
    drawn["devices"][0]["buffer_bytes"] = 1_234_567.0
    assert "1234567 B" in str(inspector({"devices": ["gpu0"]}, drawn))
    drawn["devices"][0]["buffer_bytes"] = 80e9
    assert "80 GB" in str(inspector({"devices": ["gpu0"]}, drawn))


def test_rows_sort_by_number_and_by_natural_name():
    rows = [{"name": f"gpu{i}", "bandwidth": float(i % 3)} for i in (10, 2, 1)]
    by_name = table.rows_of(rows, Sorting("name"))
    assert [each["name"] for each in by_name] == ["gpu1", "gpu2", "gpu10"]
    fastest = table.rows_of(rows, Sorting("gigabits", down=True))
    assert fastest[0]["bandwidth"] == 2.0


def test_a_second_click_turns_the_order_and_another_column_starts_anew():
    once = Sorting(page=3).clicked("name")
    assert once == Sorting("name", down=False, page=1)
    assert once.clicked("name").down
    assert not once.clicked("name").clicked("host").down


def test_pages_hold_all_rows_once():
    rows = [{"name": f"gpu{i}"} for i in range(table.PAGE * 2 + 1)]
    shown = [each for page in (1, 2, 3) for each in table.rows_of(rows, Sorting(page=page))]
    assert shown == rows
    assert table.rows_of(rows, Sorting(page=99)) == rows[-1:]


def test_every_cell_of_the_tables_can_be_edited_or_read(drawn):
    found = ids_of(table.tables(drawn, Sorting(), Sorting()))
    assert {"table": "device", "row": "gpu0", "key": "name"} in found
    assert {"table": "link", "row": "gpu0\ngpu1", "key": "bandwidth"} in found


def test_the_gallery_finds_every_entry_by_its_name():
    for entry in catalog():
        assert entry in palette.matching(entry.name)
    assert len(palette.matching("")) == len(catalog())
    assert palette.matching("rail")[0].name == "rail-only"
    assert "No cluster matches" in str(palette.cluster_list("no such thing"))


def test_a_cluster_opens_with_the_values_of_its_form():
    topology = palette.opened("ndv2", {"hosts": 3})
    assert len(topology.ranks) == 24
    with pytest.raises(CclError):
        palette.opened("ndv2", {"hosts": 0})


@pytest.mark.parametrize("name", [entry.name for entry in catalog()])
def test_every_cluster_opens_as_its_form_stands(name):
    """The form's own values, as text, make the cluster that the entry makes."""
    entry = next(each for each in catalog() if each.name == name)
    values = {
        each.name: "x".join(map(str, each.default)) if each.kind == "shape" else each.default
        for each in entry.parameters
    }
    assert palette.opened(name, values) == entry.make()


def test_thumbnails_are_data_addresses_that_stay_small():
    for entry in catalog():
        picture = thumbnails.thumbnail(entry.name)
        assert picture.startswith("data:image/svg+xml,")
        assert len(picture) < 30_000


def test_a_drawing_is_assessed_before_it_is_solved(drawn):
    known = assess(drawn, ASKED)
    assert known.trouble is None
    assert known.bounds[0]["makespan"] > 0
    assert can_solve(known, read_request(ASKED)) is None


def test_a_formulation_that_refuses_is_grey_and_says_why(drawn):
    known = assess(drawn, ASKED)
    menu = formulation_choices(known.refusals)
    refused = [bool(each["disabled"]) for each in menu]
    assert refused == sorted(refused)
    choices = {each["value"]: each for each in menu}
    assert choices["te-ccl-lp"]["disabled"]
    assert choices["te-ccl-lp"]["note"].startswith("it supports all-to-all")
    assert not choices["te-ccl-milp"]["disabled"]
    reason = can_solve(known, read_request({**ASKED, "formulation": "te-ccl-lp"}))
    assert reason is not None
    assert reason.startswith(f"{formulation('te-ccl-lp').title} cannot solve this")


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({}, ""),
        ({"chunks": 10**9}, "chunks"),
        ({"collective": "broadcast", "root": 99}, "root"),
        ({"size": "abc"}, "size"),
        ({"chunks": "abc"}, ""),  # which its field says itself
    ],
)
def test_what_cannot_be_solved_is_said_beside_the_field_that_is_wrong(drawn, asked, field):
    assert field_at_fault(drawn, {**ASKED, **asked}) == field


def test_trouble_is_a_sentence_and_hides_the_bounds(drawn):
    known = assess(drawn, {**ASKED, "size": "much"})
    assert known.bounds == ()
    assert known.trouble is not None
    assert "much" in known.trouble


def test_a_drawing_that_is_begun_gets_a_hint_and_no_error():
    """GPUs without links are no mistake; links that lead one way only are."""
    ring = topology_to_json(open_cluster("ring:gpus=8"))
    known = assess({**ring, "links": []}, ASKED)
    assert known.begun
    words = "Link the GPUs: g1, g2, g3 and 4 more are not joined to g0 yet."
    assert known.trouble == words
    one_way = {**ring, "links": [each for each in ring["links"] if each["dst"] != "g0"]}
    known = assess(one_way, ASKED)
    assert not known.begun
    assert "cannot be reached" in known.trouble


def test_a_schedule_answers_the_question_it_was_solved_for():
    asked = {"collective": "all-gather", "size": "1MB", "chunks": 1, "root": 0}
    summary = {"asked": asked}
    assert same_question(summary, {**asked, "formulation": "ring"})
    assert same_question(summary, {**asked, "root": 3})
    assert not same_question(summary, {**asked, "size": "2MB"})
    assert same_question(None, asked)


def test_options_become_a_form_and_only_changes_are_kept():
    rows = forms.option_form("te-ccl-milp", {})
    fields = option_fields(formulation("te-ccl-milp").options)
    names = {each.get("option") or each.get("option-flag") for each in ids_of(rows)}
    assert names == {each.name for each in fields}
    usual = {each.name: each.default for each in fields}
    assert forms.changed(usual, fields) == {}
    flag = next(each for each in fields if each.kind == "bool")
    assert forms.changed({**usual, flag.name: not flag.default}, fields) == {
        flag.name: not flag.default
    }


def test_link_types_are_drawn_thicker_the_faster_they_are():
    ordered = sorted(ui.LINK_TYPES, key=lambda each: each.bandwidth)
    widths = [each.width for each in ordered]
    assert widths == sorted(widths)
    assert ui.link_type("edr").preset() == {
        "bandwidth": 12.5,
        "alpha": 1.3,
        "medium": "InfiniBand EDR",
    }


def test_of_a_large_cluster_only_the_chosen_formulation_is_asked(monkeypatch):
    """The others may take seconds to say no; the menu has them until they are chosen."""
    large = topology_to_json(palette.opened("rail-only", {"hosts": 40}))
    asked = []

    def refused(self, problem):
        asked.append(self.name)
        return "too large"

    monkeypatch.setattr(Formulation, "why_not", refused)
    known = assess(large, {**ASKED, "formulation": "te-ccl-milp"})
    assert asked == ["te-ccl-milp"]
    assert can_solve(known, read_request({**ASKED, "formulation": "te-ccl-milp"})) is not None
    assert assess(large, {**ASKED, "formulation": "auto"}).refusals == {}
