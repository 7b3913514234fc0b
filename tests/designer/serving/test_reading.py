"""What others wrote is read by a process of its own, with the same outcome."""

from __future__ import annotations

import base64
import threading
import time
from typing import Any

import psutil
import pytest

from ccl.errors import FormatError
from ccl.serialization.documents import document, document_text
from designer.server import reading
from designer.server.guard import MOST_UPLOAD
from designer.server.reading import Apart
from designer.shell import ids
from designer.views.draw import files, import_card, sharing
from interchange.formats.own.fragment import Share, fragment_of
from tests.robust.hostile_files import hostile_documents

MATRIX = b"""\tGPU0\tGPU1\tGPU2\tGPU3
GPU0\t X \tNV12\tNV12\tNV12
GPU1\tNV12\t X \tNV12\tNV12
GPU2\tNV12\tNV12\t X \tNV12
GPU3\tNV12\tNV12\tNV12\t X
"""
"""As many links to each as there are to a switch, which only the user can tell apart."""


@pytest.fixture(scope="module")
def apart():
    found = Apart()
    yield found
    found.close()


def sent(name, content):
    """Return a file as the browser sends it."""
    contents = f"data:text/plain;base64,{base64.b64encode(content).decode()}"
    return {"name": name, "contents": contents, "settings": {}, "act": "read"}


PAGE: dict[str, Any] = {"drawing": None, "asking": False, "sketches": {}, "formulation": "auto"}


def plain(value):
    """Return what changes as plain values, without those that are numbered by clock or chance."""
    if isinstance(value, dict):
        numbered = ("command", "other", "document")
        return {key: plain(each) for key, each in value.items() if key not in numbered}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return plain(value.to_plotly_json()) if hasattr(value, "to_plotly_json") else value


@pytest.mark.parametrize("name", ["a.json", "m.txt", "x"])
def test_a_file_that_is_read_apart_changes_the_same(apart, ring, name):
    """A document of ours, one about which the user is asked, and one that is refused."""
    content = {"a.json": document_text(document(ring)).encode(), "m.txt": MATRIX, "x": b"\0"}
    file = sent(name, content[name])

    here = import_card.changes_of(file, **PAGE)
    there = apart.call(name, import_card.changes_of, file, **PAGE)

    assert plain(there) == plain(here)


def test_a_link_that_is_read_apart_changes_the_same(apart, ring):
    fragment = fragment_of(Share(document(ring)))
    here = sharing.changes_of(fragment, {}, sketches={})
    there = apart.call("link", sharing.changes_of, fragment, {}, sketches={})
    assert plain(there) == plain(here)


def test_the_callbacks_of_files_links_and_kept_results_read_apart(
    client, ask, drawing, monkeypatch
):
    """Whatever somebody else may have written is not read by the server itself."""
    read = []

    def call(_self, name, function, *_args, **_named):
        read.append((name, function.__module__))
        raise FormatError("it was read apart")

    monkeypatch.setattr(Apart, "call", call)
    file = sent("a.json", b"{}")
    there = {f"{ids.CANVAS}.drawing": drawing, f"{ids.FORMULATION}.value": "auto"}
    ask(client, f"{ids.FILE}.data", {f"{ids.FILE}.data": file, **there}, writes=f"{ids.CANVAS}.")
    ask(client, f"{ids.LINKED}.data", {f"{ids.LINKED}.data": {"fragment": "x"}})
    kept: dict[str, Any] = {"result": {}, "asked": {}, "course": None}
    ask(client, f"{ids.PERSISTED}.data", {f"{ids.PERSISTED}.data": kept})

    assert [module.rpartition(".")[2] for _, module in read] == ["import_card", "sharing", "files"]


def forever():
    while True:
        pass


def held():
    """Hold the interpreter, so that nothing else of the process runs."""
    return 7**10**9


def grows():
    kept = []
    while True:
        kept.append(bytearray(10**7))


def many():
    return bytes(reading.MOST_ANSWER + 1)


@pytest.mark.parametrize("function", [forever, held])
@pytest.mark.slow
def test_what_takes_too_long_is_ended(function):
    apart = Apart(seconds=0.3)
    with pytest.raises(FormatError, match=r"^x takes more than 0.3 s to be read; open a smaller"):
        apart.call("x", function)
    apart.close()


def test_what_takes_too_much_ends_alone():
    apart = Apart(memory=3e8)
    with pytest.raises(FormatError, match=r"^x takes more than .* GiB to be read; open a smaller"):
        apart.call("x", grows)
    assert apart.call("y", sum, (1, 2)) == 3
    apart.close()


def test_what_no_page_can_show_is_refused(apart):
    with pytest.raises(FormatError, match=r"^x holds more than a page can show"):
        apart.call("x", many)
    assert apart.call("y", sum, (1, 2)) == 3


def test_a_bug_is_one_and_another_reader_goes_on(apart):
    with pytest.raises(RuntimeError, match="reading x: TypeError"):
        apart.call("x", sum, 1)
    assert apart.call("y", sum, (1, 2)) == 3


@pytest.mark.slow
def test_a_file_holds_up_no_other_session():
    """Two of a session's calls work, the third waits for them; those of others do not."""
    apart = Apart(seconds=120)
    hostile = [threading.Thread(target=refused, args=(apart, forever, "first")) for _ in range(3)]
    for each in hostile:
        each.start()
    assert apart.call("y", sum, (1, 2), session="second") == 3
    assert all(each.is_alive() for each in hostile)
    apart.close()
    for each in hostile:
        each.join(30)
    assert not any(each.is_alive() for each in hostile)


def refused(apart, function, session):
    with pytest.raises((FormatError, RuntimeError)):
        apart.call("x", function, session=session)


def test_a_session_that_asks_for_too_much_at_once_is_refused(monkeypatch):
    monkeypatch.setattr(reading, "WAITING", 0)
    with pytest.raises(FormatError, match=r"^x waits for other files that are being read"):
        Apart().call("x", sum, (1, 2))


def test_its_readers_end_with_it():
    before = set(psutil.Process().children())
    apart = Apart()
    apart.warm()
    (reader,) = set(psutil.Process().children()) - before
    del apart
    assert not reader.is_running()


def test_a_small_file_is_read_at_once(apart, ring):
    """A reader that is ready takes no longer than the server itself, but for a moment."""
    file = sent("a.json", document_text(document(ring)).encode())
    apart.call("a.json", import_card.changes_of, file, **PAGE)
    took = []
    for _ in range(10):
        began = time.monotonic()
        apart.call("a.json", import_card.changes_of, file, **PAGE)
        took.append(time.monotonic() - began)
    assert min(took) < 0.05


def test_what_is_larger_than_a_page_may_send_is_refused():
    with pytest.raises(FormatError, match="x has 41 MB; at most 40 MB are read here"):
        files.check_size("x", MOST_UPLOAD + 10**6)


@pytest.mark.parametrize("what", hostile_documents())
def test_a_hostile_document_is_opened_or_refused_in_a_sentence(apart, what):
    """None of them needs more than a moment, whatever it says."""
    content = hostile_documents()[what]
    found = apart.call(what, import_card.changes_of, sent(what, content), **PAGE)
    assert found.get("drawing") or found["notes"][0]["message"].lower().startswith(what)
