"""Large files are read by a process of their own, with the same outcome."""

from __future__ import annotations

import pytest

from ccl.errors import FormatError
from ccl.formats.documents import document, document_text
from ccl.formats.format import Question
from designer.drawn import importing
from designer.serving import reading
from designer.serving.guard import MOST_UPLOAD
from designer.serving.reading import Apart

MATRIX = b"""\tGPU0\tGPU1\tGPU2\tGPU3
GPU0\t X \tNV12\tNV12\tNV12
GPU1\tNV12\t X \tNV12\tNV12
GPU2\tNV12\tNV12\t X \tNV12
GPU3\tNV12\tNV12\tNV12\t X
"""
"""As many links to each as there are to a switch, which only the user can tell apart."""


@pytest.fixture
def apart(monkeypatch):
    """All files are large."""
    monkeypatch.setattr(reading, "SMALL", 0)
    return Apart()


def read(apart, name, content, **settings):
    return apart.read(name, content, topology=None, settings=settings)


def test_a_file_that_is_read_apart_is_the_same(apart, ring):
    content = document_text(document(ring)).encode()
    here = importing.read("a.json", content, topology=None, settings={})
    assert read(apart, "a.json", content) == here


def test_a_question_comes_through(apart):
    with pytest.raises(Question) as asked:
        read(apart, "m.txt", MATRIX)
    assert asked.value.key == "nvlink"
    assert "switch" in asked.value.choices


def test_what_takes_too_long_is_ended(apart, monkeypatch):
    monkeypatch.setattr(reading, "SECONDS", 0.01)
    with pytest.raises(FormatError, match=r"x takes more than 0.01 s to be read"):
        read(apart, "x", b"\x00")


def test_what_takes_too_much_ends_alone(apart, monkeypatch):
    monkeypatch.setattr(reading, "MEMORY", 2**20)
    with pytest.raises(FormatError, match=r"x takes more than 0 GiB to be read"):
        read(apart, "x", b"[" * 3_000_000)


def test_what_is_larger_than_a_page_may_send_is_refused(apart):
    with pytest.raises(FormatError, match="x has 41 MB; at most 40 MB are read here"):
        read(apart, "x", b"0" * (MOST_UPLOAD + 10**6))
