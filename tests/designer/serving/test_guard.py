"""Who may ask, for what, and what every answer says."""

from __future__ import annotations

import pytest

from ccl.errors import ProblemError
from designer.server.guard import ASK, MOST_BODY, address, names
from tests.designer.serving.conftest import HOST, PORT, SOLVING


def told(answer):
    """Return the sentence of a refusal."""
    text = answer.get_data(as_text=True)
    assert text.endswith(".\n")
    assert text.count("\n") == 1
    return text


@pytest.mark.parametrize("host", [HOST, f"localhost:{PORT}", f"[::1]:{PORT}", "LOCALHOST:8050"])
def test_loopback_is_answered_by_each_of_its_names(client, host):
    assert client.get("/alive", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        f"127.0.0.1.evil.example:{PORT}",
        "127.0.0.1",
        "127.0.0.1:9",
        f"0.0.0.0:{PORT}",
        f"user@127.0.0.1:{PORT}",
        f"127.0.0.1:{PORT}, evil.example",
        "",
    ],
)
def test_a_name_that_is_not_the_servers_is_refused_since_it_may_be_made_to_mean_loopback(
    client, host
):
    answer = client.get("/_dash-layout", headers={"Host": host})
    assert answer.status_code == 403
    assert "does not go by that name" in told(answer)


def test_a_name_that_was_allowed_is_answered_with_the_port_of_any_tunnel(client):
    for host in ("lab.example.org", "lab.example.org:9000"):
        assert client.get("/alive", headers={"Host": host}).status_code == 200
    assert client.get("/alive", headers={"Host": "x.lab.example.org"}).status_code == 403


def test_the_names_of_an_address_are_loopback_and_its_own():
    assert names("192.168.1.5", 80).admits("192.168.1.5")
    assert not names("192.168.1.5", 8050).admits("192.168.1.5")
    assert names("::", 8050).admits("[::1]:8050")
    assert not names("0.0.0.0", 8050).admits("192.168.1.5:8050")
    assert address("0.0.0.0", 8050) == "http://127.0.0.1:8050/"
    assert address("::1", 8050) == "http://[::1]:8050/"
    with pytest.raises(ProblemError, match="--allow-host"):
        names("127.0.0.1", 8050, ["https://"])
    with pytest.raises(ProblemError, match="not a name"):
        names("127.0.0.1", 8050, ["*.example.org"])


@pytest.mark.parametrize(
    "fields",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9000"},
        {"Origin": f"http://{HOST}.evil.example"},
        {"Origin": "https://["},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_page_of_elsewhere_asks_nothing(client, ask, values, fields):
    answer = ask(client, values=values, **SOLVING, **fields)
    assert answer.status_code == 403
    assert "Pages of elsewhere" in told(answer)


def test_a_page_of_elsewhere_reads_nothing_but_may_hold_a_link(client):
    """A link is a navigation; a script or a picture of elsewhere is none."""
    fields = {"Host": HOST, "Sec-Fetch-Site": "cross-site"}
    opened = client.get("/", headers={**fields, "Sec-Fetch-Mode": "navigate"})
    assert opened.status_code == 200
    assert client.get("/_dash-layout", headers=fields).status_code == 403
    framed = opened.headers
    assert framed["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in framed["Content-Security-Policy"]
    assert framed["Cross-Origin-Resource-Policy"] == "same-origin"


def test_every_answer_says_what_it_may_load_and_not_who_serves_it(client):
    for path in (
        "/",
        "/_dash-layout",
        "/assets/designer.css",
        "/nothing",
        "/_dash-component-suites/x/y",
    ):
        with client.get(path, headers={"Host": HOST}) as answer:
            headers = answer.headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "http:" not in policy
        assert "https:" not in policy
        assert "unsafe-eval" not in policy
        assert "'unsafe-inline'" not in policy.split("style-src")[0]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert "Server" not in headers


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/assets/../app.py",
        "/assets/%2e%2e/app.py",
        "/assets/..%2fapp.py",
        "/assets/%252e%252e/app.py",
        "/assets/..%5capp.py",
        "/assets//etc/passwd",
        "/assets/%00",
        "/assets/designer.css%00.png",
        "/assets/fonts",
        "/_dash-component-suites/dash/%2e%2e/dash.py",
        "/_dash-component-suites/dash/dash.py",
        "/_dash-component-suites/os/path.py",
        "/_dash-component-suites/designer/app.py",
        "/static/x",
        "/_reload-hash",
        "/console",
        "/etc/passwd",
    ],
)
def test_no_path_leads_to_a_file_that_is_not_the_pages(client, path):
    answer = client.get(path, headers={"Host": HOST})
    assert answer.status_code in {400, 404}
    assert "import" not in told(answer)


def test_a_link_among_the_assets_is_no_asset(tmp_path):
    from designer.server.sessions import _files  # noqa: PLC0415

    (tmp_path / "own.css").write_text("")
    (tmp_path / "link.css").symlink_to("/etc/passwd")
    assert _files(tmp_path) == {"own.css"}


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "POST"])
def test_pages_are_only_read(client, method):
    assert client.open("/", method=method, headers={"Host": HOST}).status_code == 405


def test_questions_are_only_posted_as_json(client):
    fields = {"Host": HOST}
    assert client.get(ASK, headers=fields).status_code == 405
    assert client.post(ASK, data="{}", headers=fields).status_code == 415
    form = client.post(ASK, data={"a": "1"}, headers=fields)
    assert form.status_code == 415


def test_a_question_that_is_too_large_is_refused_before_it_is_read(client):
    answer = client.post(
        ASK,
        headers={"Host": HOST},
        content_type="application/json",
        environ_overrides={"CONTENT_LENGTH": str(MOST_BODY + 1)},
    )
    assert answer.status_code == 413
    assert "64 MiB at most" in told(answer)
    for length in ("-1", "x", "9" * 30):
        told_wrong = client.post(
            ASK,
            headers={"Host": HOST},
            content_type="application/json",
            environ_overrides={"CONTENT_LENGTH": length},
        )
        assert told_wrong.status_code == 400
