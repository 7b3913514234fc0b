"""Documents: what is written is read again, and what is wrong is said in one sentence."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import jsonschema
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from ccl.errors import CclError, FormatError, ProblemError, ScheduleError
from ccl.serialization.documents import (
    SCHEMA_FILE,
    document,
    document_from_json,
    document_text,
    document_to_json,
    parse_document,
    read_document,
    schema_text,
    write_document,
)
from ccl.serialization.text import COLUMNS, laid_out, write_text
from ccl.serialization.topoloom import plan_from_json, plan_to_json
from tests.ccl.clusters import ring
from tests.ccl.documents import documents, solved
from tests.ccl.undirected import on_a_line

quick = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
SCHEMA = json.loads(SCHEMA_FILE.read_text("utf-8"))


def test_the_committed_schema_is_the_generated_one():
    """``python -m ccl.serialization`` writes it anew."""
    assert SCHEMA_FILE.read_text("utf-8") == schema_text()


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@quick
@given(documents())
def test_what_is_written_is_read_again(made):
    text = document_text(made)

    assert parse_document(text) == parse_document(text.encode()) == made
    assert document_from_json(document_to_json(made)) == made


@quick
@given(documents())
def test_what_is_written_is_as_the_schema_says(made):
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(document_text(made)))


def test_the_example_of_the_guide_is_read():
    guide = (Path(__file__).parents[2] / "docs" / "format.md").read_text("utf-8")
    example = guide.partition("```json\n")[2].partition("```")[0]
    topology = parse_document(example).topology

    assert topology.ranks == ("g0", "g1")
    assert topology.link("g0", "g1").count == 2


@pytest.mark.parametrize("kind", ["topology", "problem", "plan", "result"])
def test_a_document_knows_its_kind(kind):
    full = solved()
    assert full.problem is not None
    made = {
        "topology": document(full.topology),
        "problem": document(full.problem),
        "plan": document(full.problem, plan=full.plan),
        "result": full,
    }[kind]

    assert made.kind == kind
    assert parse_document(document_text(made)).kind == kind


def test_places_of_devices_that_are_gone_are_left_out():
    made = document(ring(3), positions={"g0": (1, 2), "gone": (3, 4)})

    assert made.positions == {"g0": (1.0, 2.0)}


def test_a_byte_order_mark_is_read_over():
    text = document_text(solved())

    assert parse_document(b"\xef\xbb\xbf" + text.encode()) == solved()


def test_a_link_or_a_send_is_one_line():
    lines = document_text(solved()).splitlines()

    assert max(map(len, lines)) <= COLUMNS
    assert sum('"src"' in line for line in lines) == 4
    assert sum(line.lstrip().startswith("[0, ") for line in lines) == 4


@given(documents())
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
def test_laying_out_changes_nothing_of_the_values(made):
    value = document_to_json(made)

    assert json.loads(laid_out(value)) == json.loads(json.dumps(value))


GOOD = document_text(solved())

BROKEN = {
    "nothing": ("", "line 1, column 1: it is not JSON, because it ends too early"),
    "cut off": (GOOD[: GOOD.index("epoch")], "line 2[0-9], column [0-9]+: it is not JSON"),
    "stray comma": ('{"format": "topoloom/1",\n  }', r"line 2, column 3: .*trailing comma"),
    "two values": (GOOD + "{}", "line 62, column 1: it is not JSON .trailing characters"),
    "a list": ("[]", "at the top: expected an object, got a list"),
    "no format": ("{}", 'names no format; what is read says "format": "topoloom/1"'),
    "newer": (GOOD.replace("loom/1", "loom/2"), "is of format 'topoloom/2'; what is read says"),
    "kind": (GOOD.replace('"result"', '"answer"', 1), "at kind: .*'answer'; there are topology"),
    "device kind": (
        GOOD.replace('"gpu"', '"cpu"', 1),
        r"devices\[0\].kind: .*'cpu'; there are gpu",
    ),
    "nan": (GOOD.replace("50.0", "NaN", 1), r"line [0-9]+, column [0-9]+: NaN is no number"),
    "infinity": (GOOD.replace("50.0", "-Infinity", 1), r"line [0-9]+, .*: -Infinity is no number"),
    "too large": (GOOD.replace("50.0", "1e999", 1), r"links\[0\].bandwidth: number out of range"),
    "text": (GOOD.replace("50.0", '"50"', 1), r"bandwidth: expected a number, got a text"),
    "typing error": (GOOD.replace("bandwidth", "bandwith", 1), "unknown field `bandwith`"),
    "half": (GOOD.replace("[0, 0, [", "[-1, 0, [", 1), r"sends\[0\]\[0\]: expected a whole number"),
    "deep": ('{"format":' + "[" * 100_000, "it is nested too deep"),
    "not text": (b"\xff\xfe{}", "line 1, column 1: it is not UTF-8 text"),
    "surrogate": ('{"format": "\ud800"}', "line 1, column 13: it is not UTF-8 text"),
    "half a surrogate": (GOOD.replace('"g0"', '"\\ud800"', 1), "line [0-9]+, .*: it is not JSON"),
    "place": (GOOD.replace('"g1": [100.0', '"g9": [100.0'), "positions name 'g9', which is not a"),
    "no bounds": (
        GOOD.replace(GOOD[GOOD.index('"bounds": [') : GOOD.index('"stop"')], '"bounds": [],'),
        "at bounds: there is none",
    ),
    "stop": (GOOD.replace('"CONSTRUCTED"', '"BORED"'), "'BORED' is unknown; there are PROVED"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_not_a_document_is_refused_in_one_sentence_with_the_place(case):
    content, sentence = BROKEN[case]

    with pytest.raises(FormatError, match=sentence) as refused:
        parse_document(content, name="mine.json")

    assert str(refused.value).startswith("mine.json: ")
    assert "\n" not in str(refused.value)


WRONG = {
    "negative bandwidth": ("50.0", "-50.0", ProblemError, "positive bandwidth, got -50.0 GB/s"),
    "twins": ('"name": "g1"', '"name": "g0"', ProblemError, "two devices are called g0"),
    "loose end": ('"src": "g0"', '"src": "gX"', ProblemError, "names gX, which is not a device"),
    "no such send": ('["g3", "g0"]', '["g3", "g1"]', ScheduleError, "g3->g1"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_has_the_shape_and_breaks_a_rule_is_refused_as_the_noun_does(case):
    old, new, error, sentence = WRONG[case]

    with pytest.raises(error, match=sentence) as refused:
        parse_document(GOOD.replace(old, new, 1), name="mine.json")

    assert str(refused.value).startswith("mine.json: ")


def test_an_unreachable_rank_is_refused():
    made = document_to_json(solved())
    made["result"]["problem"]["topology"]["links"].pop()

    with pytest.raises(ProblemError, match=r"cannot be reached from .*; add a link"):
        document_from_json(made)


def test_a_billion_chunks_are_refused_before_they_are_made():
    made = document_to_json(solved())
    made["result"]["problem"]["collective"]["chunks"] = 10**9

    with pytest.raises(ProblemError, match=r"4,000,000,000 chunks and at most 1,048,576 are kept"):
        document_from_json(made)


@settings(quick, max_examples=25)
@given(documents())
def test_every_value_replaced_by_another_is_read_or_refused_and_never_a_bug(made):
    """Each number becomes huge, each text strange, one at a time."""
    value = document_to_json(made)

    for broken in replaced(value):
        assert refusal(broken) != ""


def refusal(value):
    """Return what is said against a document, None if nothing; any other error gets out."""
    try:
        document_from_json(value)
    except CclError as error:
        return str(error)
    return None


def replaced(value):
    """Yield copies of a value in which one leaf is another."""
    text = json.dumps(value)
    others: tuple[object, ...] = (-1, 10**30, None, "", [])
    paths = list(leaves(value))
    for path in paths[:: max(1, len(paths) // 40)]:
        for other in others:
            copy = json.loads(text)
            place = copy
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = other
            yield copy


def leaves(value, path=()):
    """Yield the path to every leaf that decides how much work there is, or what is meant."""
    rows = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in rows:
        if isinstance(each, dict | list):
            yield from leaves(each, (*path, key))
        else:
            yield (*path, key)


def test_a_file_is_read_as_it_was_written(tmp_path):
    write_document(tmp_path / "a.json", solved())

    assert read_document(tmp_path / "a.json") == solved()
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    target = tmp_path / "a.json"
    target.write_text("old", "utf-8")

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FormatError, match=r"a\.json cannot be written: no space left on device"):
        write_document(target, solved())

    assert target.read_text("utf-8") == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]


def test_a_file_that_is_written_over_keeps_its_mode(tmp_path):
    target = tmp_path / "a.json"
    target.write_text("old", "utf-8")
    target.chmod(0o640)

    write_text(target, "new")

    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_link_to_a_file_stays_one(tmp_path):
    target, link = tmp_path / "a.json", tmp_path / "b.json"
    target.write_text("old", "utf-8")
    link.symlink_to(target)

    write_text(link, "new")

    assert link.is_symlink()
    assert target.read_text("utf-8") == "new"


@pytest.mark.parametrize(
    ("path", "why"), [("no/such/folder.json", "no such file or directory"), (".", "is a directory")]
)
def test_what_cannot_be_read_or_written_is_said(tmp_path, path, why):
    with pytest.raises(FormatError, match=f"cannot be read: {why}"):
        read_document(tmp_path / path)
    with pytest.raises(FormatError, match=f"cannot be written: {why}"):
        write_text(tmp_path / path, "text")


def test_the_decoder_reports_places_in_the_way_that_is_taken_apart():
    """`text` reads the byte from this message; another one would lose the place."""
    with pytest.raises(msgspec.DecodeError, match=r"^JSON is malformed: .* \(byte 5\)$"):
        msgspec.json.decode(b'{"a" 1}')


def test_terms_are_written_where_sends_have_some():
    problem, plan = on_a_line()
    made = document(problem, plan=plan)
    value = document_to_json(made)

    assert value["plan"]["terms"][:4] == [[0], [2], [1, 2], [0, 1]]
    assert parse_document(document_text(made)) == made
    jsonschema.validate(value, SCHEMA)
    mixed = replace(plan, sends=(replace(plan.sends[0], terms=None), *plan.sends[1:]))
    assert plan_to_json(mixed)["terms"][0] is None
    assert plan_from_json(plan_to_json(mixed)) == mixed
    plain = replace(plan, sends=tuple(replace(each, terms=None) for each in plan.sends))
    assert "terms" not in plan_to_json(plain)


@pytest.mark.parametrize(
    ("terms", "says"),
    [
        ([[0]], "plan, at terms: 1 for 12 sends; give each its ranks, or null"),
        ([[0, 0], *[None] * 11], r"plan, at terms\[0\]: \[0, 0\] has a rank twice"),
        ([[], *[None] * 11], "has terms of no rank"),
        ([[-1], *[None] * 11], "terms"),
        ([[2**30], *[None] * 11], "terms"),
    ],
)
def test_terms_that_fit_no_sends_are_refused(terms, says):
    value = plan_to_json(on_a_line()[1]) | {"terms": terms}
    with pytest.raises(CclError, match=says):
        plan_from_json(value)
