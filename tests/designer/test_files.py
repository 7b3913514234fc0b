"""What is saved opens again as it was; what is not a document is refused by its name."""

from __future__ import annotations

import csv
import io

import pytest

from ccl.collective import Chunk, custom
from ccl.errors import CclError, FormatError
from ccl.problem import Problem
from ccl.serialization.documents import document, document_text, parse_document
from designer.shell.request import problem_of, read_request
from designer.views.draw import files, importing
from gallery import open_cluster
from interchange.formats.own.fragment import Share, fragment_of, share_of
from widgets.pages import writers

ASKED = {"collective": "broadcast", "size": "3MB", "chunks": 2, "root": 1, "formulation": "ring"}


def opened(name, content):
    """Return what the page shows of a file."""
    return importing.opened(importing.read(name, content, topology=None, settings={}), None)


def test_a_saved_drawing_opens_with_its_positions(drawn):
    positions = {name["name"]: [10.0 * i, -5.0] for i, name in enumerate(drawn["devices"])}
    saved = files.save_drawing({"topology": drawn, "positions": positions})
    found = opened("mine.json", saved.encode())
    assert found.drawing == {"topology": drawn, "positions": positions}
    assert found.settings == {}
    assert found.result is None


def test_devices_without_a_position_are_laid_out(ring):
    drawn = files.drawing_of(ring, {"gpu0": (1.0, 2.0)})
    assert drawn["positions"]["gpu0"] == [1.0, 2.0]
    assert set(drawn["positions"]) == set(ring.ranks)


def test_an_exported_problem_sets_the_header_again(drawn):
    text = files.export_json({"topology": drawn}, ASKED, None)
    found = opened("problem.json", text.encode())
    assert found.settings == {"collective": "broadcast", "size": "3 MB", "chunks": 2, "root": 1}


def test_an_exported_result_plays_again(drawn, result):
    text = files.export_json({"topology": drawn}, ASKED, result)
    found = opened("result.json", text.encode())
    assert found.result is not None
    assert found.result.plan == result.plan
    assert found.settings["collective"] == "all-gather"
    assert found.document is not None


def test_a_custom_collective_is_kept_whole(ring, drawn):
    problem = Problem(ring, custom(4, [Chunk(1e6, (0,), (2, 3)), Chunk(5e5, (1,), (0,))]))
    found = opened("c.json", document_text(document(problem)).encode())
    assert found.settings["collective"] == "custom"
    again = problem_of(drawn, read_request({**ASKED, **found.settings}))
    assert again.collective == problem.collective


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not json",
        b"{}",
        b"[1, 2]",
        b"\xff\xfe\x00",
        b'{"format": "topoloom/9", "kind": "topology"}',
        b'{"format": "topoloom/1", "kind": "topology", "topology": {"name": "x"}}',
        b'{"format": "topoloom/1", "kind": "topology", "topology": {"name": "x"}, "extra": 1}',
    ],
)
def test_what_is_no_document_is_refused_in_one_sentence_with_its_name(content):
    with pytest.raises(CclError) as caught:
        opened("odd.json", content)
    assert str(caught.value).startswith("odd.json")
    assert "\n" not in str(caught.value)


def test_transfers_are_one_row_each(result):
    rows = list(csv.DictReader(io.StringIO(files.export_csv(result))))
    assert len(rows) == len(result.timeline.transfers)
    first = result.timeline.transfers[0]
    assert rows[0]["src"] == first.src
    assert float(rows[0]["end_us"]) == pytest.approx(first.end)
    assert float(rows[0]["bytes"]) == pytest.approx(first.nbytes)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("2 × NDv2", "2-ndv2.json"),
        ("", "topology.json"),
        ("../../etc", "etc.json"),
        ("Ünï", "ünï.json"),
    ],
)
def test_downloads_are_named_after_the_topology(name, file):
    assert files.file_name({"name": name}, "json") == file


def test_a_root_beyond_the_ranks_is_refused(drawn):
    with pytest.raises(CclError, match="root 9"):
        files.export_json({"topology": drawn}, {**ASKED, "root": 9}, None)


def test_notes_and_frames_are_saved_opened_and_named_where_a_format_has_none():
    """The same document and the same link bring them back; DOT says that it leaves them out."""
    note = {"kind": "note", "text": "spare", "x": 1.0, "y": 2.0, "width": 0.0, "height": 0.0}
    frame = {"kind": "frame", "text": "rack", "x": 0.0, "y": 0.0, "width": 90.0, "height": 40.0}
    drawn = {**files.drawing_of(open_cluster("ring")), "annotations": [note, frame]}

    saved = files.save_drawing(drawn)
    assert opened("a.json", saved.encode()).drawing == drawn
    content = parse_document(saved)
    assert share_of(fragment_of(Share.of(content))).document.annotations == content.annotations
    lost = {name: writers.write(content, name, {}).lost for name in ("topoloom", "dot")}
    assert "notes and frames of the drawing" in lost["dot"]
    assert "notes and frames of the drawing" not in lost["topoloom"]
    with pytest.raises(CclError, match="the notes of the drawing: "):
        files.save_drawing({**drawn, "annotations": [{"kind": "cloud"}]})


def test_all_drawings_are_one_file_and_come_back():
    """Notes go with them; the file says which drawing is wrong and what it should be."""
    note = {"kind": "note", "text": "rack 1", "x": 0.0, "y": 0.0}
    drawn = files.drawing_of(open_cluster("ring"))
    text = files.drawings_text([drawn, {**drawn, "annotations": [note]}])
    one, other = files.drawings_in("all.json", text.encode())
    assert one["topology"] == drawn["topology"]
    assert [each["text"] for each in other["annotations"]] == ["rack 1"]
    for wrong, why in (
        (text.replace('"gpu"', '"abacus"', 1), "all.json, drawing 1 of 2: "),
        (
            text.replace(files.DRAWINGS_FORMAT, "topoloom/1"),
            "all.json is of format 'topoloom/1'; \"Save all\"",
        ),
        ("{", "all.json: "),
        (f'{{"format": "{files.DRAWINGS_FORMAT}"}}', "all.json has 0 drawings; from 1 to 500"),
    ):
        with pytest.raises(FormatError) as refused:
            files.drawings_in("all.json", wrong.encode())
        assert str(refused.value).startswith(why)
    with pytest.raises(FormatError, match=r"^broken: "):
        files.drawings_text([{"topology": {"name": "broken", "devices": [{}], "links": []}}])
