"""What is no question of a page is refused in a sentence, before a callback sees it."""

from __future__ import annotations

import json

import pytest

from designer.server.guard import ASK
from designer.server.sessions import DEEPEST, depth
from designer.shell import ids
from tests.designer.serving.conftest import HOST, SOLVING


def refused(answer):
    text = answer.get_data(as_text=True)
    assert answer.status_code == 400
    assert text.endswith(".\n")
    assert "Traceback" not in text
    return text


def post(client, body):
    return client.post(ASK, data=body, headers={"Host": HOST}, content_type="application/json")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b"[" * 100_000,
        b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1),
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a": "\\ud800"}',
    ],
)
def test_what_no_page_writes_is_no_question(client, body):
    assert "not JSON as a page" in refused(post(client, body))


@pytest.mark.parametrize(
    "body", [None, 1, [], "x", {}, {"output": None}, {"output": []}, {"output": "os.system"}]
)
def test_what_asks_for_nothing_is_refused(client, body):
    assert "asks for nothing" in refused(post(client, json.dumps(body)))


def test_depth_counts_brackets_outside_of_words():
    assert depth(b'{"a": [[1], {"b": []}]}') == 4
    assert depth(b'["' + b"[" * 100 + b'", "\\"[[[' + b"[" * 100 + b'"]') == 1
    assert depth(b"]]]") == -1
    assert depth(b"1") == 0


def drop(*path):
    """Return a change that takes something out of a question."""

    def change(body):
        for key in path[:-1]:
            body = body[key]
        del body[path[-1]]

    return change


def put(value, *path):
    """Return a change that puts something into a question."""

    def change(body):
        for key in path[:-1]:
            body = body[key]
        body[path[-1]] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        drop("inputs"),
        drop("state", 0),
        drop("inputs", 0, "id"),
        drop("outputs"),
        put([], "outputs"),
        put({"id": "notifications", "property": "sendNotifications"}, "outputs"),
        put("x", "inputs"),
        put([None], "inputs"),
        put("other", "inputs", 0, "id"),
        put({"a": 1}, "inputs", 0, "id"),
        put("children", "inputs", 0, "property"),
        put({"x": 1}, "changedPropIds"),
        put(["other.data"], "changedPropIds"),
        put([None], "changedPropIds"),
    ],
)
def test_a_question_of_another_form_is_refused(client, ask, values, change):
    refused(ask(client, values=values, change=change, **SOLVING))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (f"{ids.SOLVE}.n_clicks", "many"),
        (f"{ids.SOLVE}.n_clicks", 2**60),
        (f"{ids.CANVAS}.drawing", None),
        (f"{ids.CANVAS}.drawing", {"topology": []}),
        (f"{ids.REQUEST}.data", {"options": "x"}),
        (f"{ids.REQUEST}.data", {"time_limit": []}),
        (f"{ids.JOB}.data", "key"),
        (f"{ids.JOB}.data", {"key": {"$": 1}, "found": 0}),
    ],
)
def test_a_value_that_no_page_has_is_refused_and_its_place_told(client, ask, values, place, value):
    text = refused(ask(client, values={**values, place: value}, **SOLVING))
    assert text.startswith(f"{place} is not what a page has there: ")


def test_a_good_question_is_answered(client, ask, values):
    answer = ask(client, f"{ids.LINK_TYPE}.value", {f"{ids.LINK_TYPE}.value": "edr"})
    assert answer.status_code == 200
