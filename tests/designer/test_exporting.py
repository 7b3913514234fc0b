"""Every format in one list: what is enough for which, options as typed, what the browser saves."""

from __future__ import annotations

import base64
import io
import zipfile

import pytest

from ccl.errors import CclError
from ccl.serialization.documents import parse_document
from ccl.serialization.topoloom import result_to_json
from designer.views.draw import exporting
from designer.views.solve.forms import option_rows
from interchange.formats.format import Written
from widgets.pages import writers

ASKED = {"collective": "all-gather", "size": "4MB", "chunks": 1, "root": 0, "formulation": "auto"}


@pytest.fixture
def drawing(drawn):
    return {"topology": drawn, "positions": {"gpu0": [1.0, 2.0]}}


def told(drawing, result):
    return exporting.content_of(drawing, ASKED, result_to_json(result))


def test_all_that_is_on_the_page_becomes_a_document(drawing, result):
    assert exporting.content_of(drawing, ASKED, None).kind == "problem"
    assert exporting.content_of(drawing, {**ASKED, "size": "much"}, None).kind == "topology"
    content = told(drawing, result)
    assert content.kind == "result"
    assert dict(content.positions) == {"gpu0": (1.0, 2.0)}
    with pytest.raises(CclError):
        exporting.content_of({"topology": {"name": 7}}, ASKED, None)


@pytest.mark.parametrize(
    ("result", "fresh", "kind", "why"),
    [
        (True, True, "result", ""),
        (True, False, "problem", "out of date"),
        (False, True, "problem", "solve"),
    ],
)
def test_a_format_that_needs_a_schedule_is_grey_with_the_reason(drawing, result, fresh, kind, why):
    there = exporting.enough(drawing, ASKED, result=result, fresh=fresh)
    assert there["kind"] == kind
    assert why in exporting.refused(writers.writer("msccl-xml"), there)
    assert exporting.refused(writers.writer("graphml"), there) == ""


def test_the_list_has_every_writer_once_in_its_group_and_can_be_searched():
    there = {"kind": "result", "why": ""}
    groups = exporting.listed("", there)
    names = [writer.name for _, rows in groups for writer, _ in rows]
    assert sorted(names) == [each.name for each in writers.writers()]
    places = {writer.name: title for title, rows in groups for writer, _ in rows}
    assert places["msccl-xml"] == "Runtimes"
    assert places["chakra"] == "Simulators and viewers"
    assert places["html"] == "Pictures and pages"
    assert places["topoloom"] == "Ours"
    found = [
        writer.name for _, rows in exporting.listed("Perfetto json", there) for writer, _ in rows
    ]
    assert found == ["chrome-trace"]
    assert exporting.listed("no such thing", there) == []
    assert "no such thing" in str(exporting.format_list("no such thing", there, chosen=None))


@pytest.mark.parametrize("writer", writers.writers(), ids=lambda each: each.name)
def test_every_writer_has_a_form(writer):
    assert option_rows(writer.options, {}, of=writer.name, key="export-option") is not None
    assert exporting.chosen(writer)


def test_what_is_changed_in_a_form_reaches_the_writer(drawing, result):
    writer = writers.writer("chrome-trace")
    rows = [
        {"id": {"export-option-flag": "arrows", "of": "chrome-trace"}, "value": False},
        {"id": {"export-option-flag": "counters", "of": "chrome-trace"}, "value": True},
        {"id": {"export-option": "instances", "of": "msccl-xml"}, "value": 7},
    ]
    settings = exporting.settings_of(writer, rows)
    assert settings == {"arrows": "false"}
    content = told(drawing, result)
    bare = writers.write(content, "chrome-trace", settings).content
    assert len(bare) < len(writers.write(content, "chrome-trace", {}).content)


def test_one_file_is_saved_as_it_is_and_several_as_an_archive(drawing, result):
    content = told(drawing, result)
    one = writers.write(content, "topoloom", {})
    saved = exporting.download(one, drawing, writers.writer("topoloom"))
    assert saved["filename"] == "ring-of-4.json"
    assert parse_document(base64.b64decode(saved["content"])).result is not None
    many = Written({"a.txt": b"1", "b.txt": b"2"})
    saved = exporting.download(many, drawing, writers.writer("chakra"))
    assert saved["filename"] == "ring-of-4.chakra.zip"
    archive = zipfile.ZipFile(io.BytesIO(base64.b64decode(saved["content"])))
    assert sorted(archive.namelist()) == ["a.txt", "b.txt"]


def test_what_is_lost_is_told():
    assert "The log." in str(exporting.done("x.xml", ["the log"]))
    assert "Not kept" not in str(exporting.done("x.xml", []))


def test_a_picture_begins_with_the_moment_shown_and_a_legend_where_there_is_a_plan():
    svg, html = writers.writer("svg"), writers.writer("html")

    assert exporting.slide(svg, {"kind": "result"}, 12.34567) == {"time": 12.345, "legend": True}
    assert exporting.slide(svg, {"kind": "topology"}, 12.0) == {}
    assert exporting.slide(html, {"kind": "result"}, 12.0) == {}
    assert "12.345" in str(exporting.chosen(svg, exporting.slide(svg, {"kind": "result"}, 12.345)))
