"""What a file of any format brings to the page, and what the page says of it."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from ccl.errors import CclError, FormatError
from ccl.result import Stop
from ccl.serialization.documents import document, document_text
from ccl.serialization.topoloom import topology_from_json
from ccl.verify import verify
from designer.views.draw import files, import_card, importing
from designer.views.draw.import_card import changes_of
from designer.views.solve import overlays
from gallery import open_cluster
from interchange.formats.format import Question, Report
from widgets.pages import writers

SAMPLES = Path(__file__).parents[1] / "interchange/formats/samples"


def sample(name, *, topology=None, **settings):
    return importing.read(name, (SAMPLES / name).read_bytes(), topology=topology, settings=settings)


def asked(name, content=None, *, act="read", drawing=None, asking=False, **settings):
    """Return what the page changes for a file as the browser sends it."""
    whole = (SAMPLES / name).read_bytes() if content is None else content
    contents = f"data:text/plain;base64,{base64.b64encode(whole).decode()}"
    file = {"name": name, "contents": contents, "settings": settings, "act": act}
    return changes_of(file, drawing=drawing, asking=asking, sketches={}, formulation="auto")


def words(component):
    """Return all text of a component."""
    if isinstance(component, list):
        return " ".join(words(each) for each in component)
    if component is None or isinstance(component, int | float | str):
        return "" if component is None else str(component)
    return words(getattr(component, "children", None))


@pytest.mark.parametrize("path", sorted(SAMPLES.iterdir()), ids=lambda path: path.name)
def test_every_sample_is_shown_asked_about_or_refused_in_a_sentence(path):
    drawing = files.drawing_of(open_cluster("dgx-1v"))
    changes = asked(path.name, drawing=drawing)
    assert changes.get("open") is True or changes["notes"][0]["message"].startswith(path.name)
    assert "drawing" not in changes


def test_a_question_has_a_button_for_each_answer_and_its_answer_is_taken():
    with pytest.raises(Question) as caught:
        sample("nvidia_smi_switch.txt")
    question = caught.value
    reader = importing.reader_of("x", (SAMPLES / "nvidia_smi_switch.txt").read_bytes())
    card = import_card.question_card(question, "nvidia_smi_switch.txt", reader=reader)
    for told in question.choices.values():
        assert told[1:] in words(card)
    found = sample("nvidia_smi_switch.txt", nvlink="switch")
    assert found.brings == "topology"
    assert importing.figures(found)[0] == ("4", "GPUs")


def test_a_topology_is_shown_first_and_replaces_the_drawing_when_it_is_taken():
    changes = asked("astra_three_dimensions.yml")
    assert changes["open"] is True
    assert "Taken" in words(changes["body"])
    taken = asked("astra_three_dimensions.yml", act="take")
    made = topology_from_json(taken["drawing"]["topology"])
    assert made == sample("astra_three_dimensions.yml").imported.document.topology
    assert set(taken["drawing"]["positions"]) == set(made.index)
    assert (taken["open"], taken["file"], taken["scene"]) == (False, None, None)


def test_a_plan_plays_with_a_bound_and_comes_back_as_it_was():
    """The sample says that its three epochs take 100 µs each."""
    taken = asked("te_ccl_schedule_star.json", act="take", cluster="flows")
    summary = taken["summary"]
    assert summary["makespan"] == pytest.approx(300)
    assert summary["formulation"] == "from TE-CCL schedule"
    bound = max(each["makespan"] for each in summary["bounds"])
    assert summary["gap"] == pytest.approx(300 / bound - 1)
    assert taken["collective"] == "all-gather"
    text = json.dumps({"format": "topoloom/1", "kind": "result", "result": taken["result"]})
    read = importing.read("kept.json", text.encode(), topology=None, settings={})
    again = importing.opened(read, None)
    assert again.result is not None
    assert again.result.stop is Stop.READ
    verify(again.result.problem, again.result.plan)


def test_a_plan_of_the_open_cluster_leaves_the_drawing_as_it_is(result, ring):
    written = writers.write(document(result), "msccl-xml", {}).content
    found = importing.read("p.xml", written, topology=ring, settings={"size": "4MB"})
    assert found.brings == "plan"
    opened = importing.opened(found, ring)
    assert opened.drawing is None
    assert opened.result is not None
    assert opened.result.makespan == pytest.approx(result.makespan)
    assert importing.opened(found, None).drawing is not None


def test_a_plan_document_of_ours_plays_without_a_report(result):
    text = document_text(document(result.problem, plan=result.plan))
    changes = asked("plan.json", text.encode())
    assert changes["summary"]["makespan"] == pytest.approx(result.makespan)
    assert changes["open"] is False


def test_a_problem_sets_the_header():
    taken = asked("te_ccl_input_ndv2.json", act="take")
    problem = sample("te_ccl_input_ndv2.json").imported.document.problem
    assert taken["collective"] in (problem.collective.kind, "custom")
    assert taken["result"] is None


def test_a_sketch_goes_to_a_formulation_that_takes_it(ring, drawn):
    plain = {"without": [["gpu0", "gpu1"], ["gpu1", "gpu0"]]}
    drawing = {"topology": drawn, "positions": {}}
    taken = asked("s.json", json.dumps(plain).encode(), act="take", drawing=drawing)
    name = taken["formulation"]
    (kept,) = taken["sketches"][name].values()
    assert kept["without"] == plain["without"]
    assert "drawing" not in taken


def test_channels_of_nccl_are_drawn_over_the_cluster():
    dgx = open_cluster("dgx-1v")
    drawing = files.drawing_of(dgx)
    taken = asked("nccl_channels.xml", act="take", drawing=drawing)
    paths, overlay = taken["paths"], sample("nccl_channels.xml", topology=dgx).imported.overlay
    assert taken["layer"] == "paths"
    marks, _ = overlays.chosen_marks(paths, overlays.EVERY)
    assert [each["label"] for each in marks["groups"]] == list(overlay.labels)
    one, told = overlays.chosen_marks(paths, "1")
    links = one["groups"][0]["links"]
    assert [src for src, _ in links] + [links[-1][1]] == list(overlay.paths[1])
    assert told == " → ".join(overlay.paths[1])
    assert all(dgx.link_index.get((src, dst)) is not None for src, dst in links)
    assert overlays.fits(paths, drawing["topology"])
    assert not overlays.fits(paths, {"devices": drawing["topology"]["devices"][1:]})


def test_what_only_another_description_has_is_added_to_the_drawing():
    now = sample("nvidia_smi_switch.txt", nvlink="switch").imported.document.topology
    drawing = files.drawing_of(now)
    found = sample("nccl_cube.xml")
    assert importing.mergeable(found, now)
    changes = asked("nccl_cube.xml", act="add", drawing=drawing)
    grown = topology_from_json(changes["drawing"]["topology"])
    assert set(now.links) < set(grown.links)
    assert set(changes["drawing"]["positions"]) == set(grown.index)
    assert "only" in words(changes["body"])


def test_only_a_description_of_as_many_gpus_can_be_added(ring):
    assert not importing.mergeable(sample("astra_three_dimensions.yml"), ring)
    assert not importing.mergeable(sample("nccl_cube.xml"), None)
    with pytest.raises(CclError, match="GPUs"):
        importing.merged(
            files.drawing_of(ring), sample("astra_three_dimensions.yml").imported.document
        )


@pytest.mark.parametrize("content", [b"hello", b"", b"{}", b"\xff\xfe\x00", b"<system version='1'"])
def test_what_cannot_be_read_is_told_by_its_name_and_changes_nothing(content):
    changes = asked("odd.txt", content)
    assert set(changes) == {"file", "notes"}
    assert changes["notes"][0]["message"].startswith("odd.txt")


def test_a_wrong_setting_is_told_in_the_dialog_which_stays():
    changes = asked("nvidia_smi_pcie.txt", asking=True, generation="9")
    assert set(changes) == {"trouble"}
    assert "generation" in words(changes["trouble"])


def test_another_file_that_cannot_be_read_closes_the_dialog_of_the_one_before():
    changes = asked("odd.txt", b"hello", asking=True)
    assert changes["open"] is False
    assert changes["notes"][0]["message"].startswith("odd.txt")


def test_what_the_browser_sends_is_decoded_or_refused():
    assert files.decoded("data:;base64,aGk=") == b"hi"
    with pytest.raises(FormatError):
        files.decoded("data:;base64,a")


def test_empty_lists_of_a_report_are_left_out():
    lists = import_card.report_lists(Report(taken=("8 GPUs",), left_out=("a clock",)))
    assert words(lists) == " Taken 8 GPUs.  Left out A clock."
