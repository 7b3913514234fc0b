"""What a page stores once: by session, within limits, read once, and gone in a plain way."""

from __future__ import annotations

import pickle

import pytest

from designer.server.guard import STORE
from designer.server.questions import check
from designer.session import NotStored, Store, Stored, once, topology_of
from designer.shell import ids
from tests.designer.serving.conftest import HOST, SOLVING


def put(client, value, *, kind="topology", fingerprint="f1"):
    client.get("/_dash-layout", headers={"Host": HOST})  # where a session begins
    body = {"kind": kind, "fingerprint": fingerprint, "value": value}
    return client.post(STORE, json=body, headers={"Host": HOST, "Sec-Fetch-Site": "same-origin"})


@pytest.fixture
def referring(values, drawing):
    """What a page holds, with a reference for the topology."""
    short = {**drawing, "topology": {"$topology": "f1"}}
    return {**values, f"{ids.CANVAS}.drawing": short}


def test_a_question_refers_to_what_its_session_has_stored(client, ask, referring, drawing, begun):
    assert put(client, drawing["topology"]).status_code == 204
    answer = ask(client, values=referring, **SOLVING)
    assert answer.get_json()["response"][ids.JOB]["data"]["key"]
    begun[-1].cancel()


def test_what_is_not_stored_is_gone(client, ask, referring):
    answer = ask(client, values=referring, **SOLVING)
    assert answer.status_code == 205
    assert answer.get_data() == b""


def test_another_session_refers_to_nothing(app, client, ask, referring, drawing):
    put(client, drawing["topology"])
    other = app.server.test_client()
    other.get("/_dash-layout", headers={"Host": HOST})
    assert ask(other, values=referring, **SOLVING).status_code == 205


@pytest.mark.parametrize(
    ("value", "kind"),
    [({"devices": []}, "topology"), ([], "topology"), ("x", "result"), ({}, "drawing")],
)
def test_what_no_page_draws_is_not_stored(client, value, kind):
    answer = put(client, value, kind=kind)
    assert answer.status_code == 400
    assert answer.get_data(as_text=True).startswith("This is no")


def test_a_result_is_no_topology(client, ask, referring):
    put(client, {"plan": {}}, kind="result")
    assert ask(client, values=referring, **SOLVING).status_code == 205


def test_a_session_has_so_many_and_all_have_so_many_bytes():
    store = Store(each=2, most=100)
    for i in range(3):
        store.put(("a", "topology", str(i)), {}, 10)
    assert store.find(("a", "topology", "2")) == {}
    with pytest.raises(NotStored):
        store.find(("a", "topology", "0"))
    store.put(("b", "topology", "0"), {}, 85)
    with pytest.raises(NotStored):
        store.find(("a", "topology", "1"))


def test_what_was_used_last_stays_longest():
    store = Store(each=2)
    for name in "01":
        store.put(("a", "topology", name), {}, 1)
    store.find(("a", "topology", "0"))
    store.put(("a", "topology", "2"), {}, 1)
    assert store.find(("a", "topology", "0")) == {}


def test_what_is_stored_is_read_once(drawn):
    stored, calls = Stored(drawn), []

    def count(value):
        calls.append(value)
        return len(calls)

    assert topology_of(stored) is topology_of(stored)
    assert topology_of(drawn) == topology_of(stored)
    assert once(count, drawn) == 1
    assert type(pickle.loads(pickle.dumps(stored))) is dict


def test_what_nobody_has_set_stays_without_a_value(app):
    """Callbacks tell by it which of two properties a field has."""
    row = {"id": ids.GALLERY_SEARCH, "property": "value"}
    body = {
        "output": f"{ids.GALLERY_LIST}.children",
        "outputs": {"id": ids.GALLERY_LIST, "property": "children"},
        "inputs": [dict(row)],
        "changedPropIds": [],
    }
    check(body, app.callback_map, lambda value: value)
    assert body["inputs"] == [row]
