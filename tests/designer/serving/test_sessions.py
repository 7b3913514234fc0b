"""A solve is its session's: nobody else sees it, stops it, or learns that it is there."""

from __future__ import annotations

import time

import pytest

from designer.server.guard import names, secure
from designer.shell import ids
from designer.views.solve.live import MOST_PAGES, Newest
from tests.designer.serving.conftest import HOST, SOLVING


def layout(client, **fields):
    return client.get("/_dash-layout", headers={"Host": HOST, **fields})


@pytest.fixture
def key(client, ask, values, begun):
    """A solve of the client's that has begun: the thread of the one before may hold its place."""
    before, end = len(begun), time.monotonic() + 10
    answer = ask(client, values=values, **SOLVING)
    assert answer.status_code == 200
    while len(begun) == before and time.monotonic() < end:
        time.sleep(0.005)
    assert len(begun) > before
    yield answer.get_json()["response"][ids.JOB]["data"]["key"]
    begun[-1].cancel()


def beat(ask, client, values, key):
    job = {f"{ids.JOB}.data": {"key": key, "found": 0}}
    return ask(client, f"{ids.BEAT}.data", {**values, **job}).get_json()["response"]


def test_the_session_is_a_cookie_that_scripts_cannot_read_and_others_cannot_send(client):
    cookie = layout(client).headers["Set-Cookie"]
    assert cookie.startswith("topoloom-8050=")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "Secure" not in cookie
    assert "Set-Cookie" not in layout(client).headers


def test_the_cookie_is_secure_where_the_browser_came_by_https():
    known = names("127.0.0.1", 8050, ["https://lab.example.org"])
    assert secure({"HTTP_HOST": "lab.example.org"}, known)
    assert not secure({"HTTP_HOST": HOST}, known)
    assert secure({"HTTP_HOST": HOST, "wsgi.url_scheme": "https"}, known)


def test_a_page_that_is_opened_from_elsewhere_does_not_lose_its_session(client):
    """A browser keeps a strict cookie back then; giving it another one would end its solves."""
    opened = client.get("/", headers={"Host": HOST})
    assert "Set-Cookie" not in opened.headers


def test_who_has_begun_a_solve_sees_it(client, ask, values, key):
    assert ids.PROGRESS in beat(ask, client, values, key)


def test_another_session_is_told_that_there_is_none(app, ask, values, key):
    other = app.server.test_client()
    layout(other)
    found = beat(ask, other, values, key)
    assert found[ids.JOB] == {"data": None}
    assert "this solve is gone" in str(found[ids.NOTES])
    assert ids.PROGRESS not in found


@pytest.mark.parametrize("change", [str.upper, lambda key: key[:32], lambda key: key + "0"])
def test_a_key_that_was_made_up_leads_nowhere(client, ask, values, key, change):
    assert ids.PROGRESS not in beat(ask, client, values, change(key))


def test_only_its_own_session_stops_a_solve(app, client, ask, values, key, begun):
    job = {f"{ids.JOB}.data": {"key": key, "found": 0}, f"{ids.CANCEL}.n_clicks": 1}
    other = app.server.test_client()
    ask(other, f"{ids.CANCEL}.n_clicks", {**values, **job})
    assert not begun[-1].over.is_set()
    ask(client, f"{ids.CANCEL}.n_clicks", {**values, **job})
    assert begun[-1].over.is_set()


def test_a_server_that_has_begun_anew_knows_no_old_key(app, client, ask, values, key, monkeypatch):
    monkeypatch.setattr(app.server, "secret_key", b"another")
    found = beat(ask, client, values, key)
    assert found[ids.JOB] == {"data": None}
    assert "the drawing and the last plan are kept" in str(found[ids.NOTES])


def test_a_page_of_another_session_overtakes_nobody():
    newest = Newest()
    asked = {"page": "p", "n": 1}
    mine = newest.ask(asked, visitor="a")
    newest.ask({"page": "p", "n": 9}, visitor="b")
    assert mine()
    newest.ask({"page": "p", "n": 2}, visitor="a")
    assert not mine()


def test_of_many_pages_those_that_asked_longest_ago_are_forgotten():
    newest = Newest()
    first = newest.ask({"page": "first", "n": 1})
    for number in range(MOST_PAGES):
        last = newest.ask({"page": f"page {number}", "n": 1})
    assert not first()
    assert last()
