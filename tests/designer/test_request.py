"""What the header asks for becomes a problem, or a sentence that says why not."""

from __future__ import annotations

import pytest

from ccl.errors import CclError, ProblemError
from designer.shell.request import problem_of, read_request

ASKED = {
    "collective": "all-to-all",
    "size": "64 KiB",
    "chunks": 2,
    "root": 0,
    "formulation": "te-ccl-lp",
    "options": {"a": 1},
    "time_limit": 5,
    "gap": 10,
}


def test_a_request_is_read_as_typed():
    request = read_request(ASKED)
    assert (request.collective, request.size, request.chunks) == ("all-to-all", "64 KiB", 2)
    assert request.gap == pytest.approx(0.1)
    assert request.time_limit == 5
    assert dict(request.options) == {"a": 1}


def test_empty_chunks_are_automatic():
    for empty in ("", None):
        assert read_request({**ASKED, "chunks": empty}).chunks is None
    assert read_request({**ASKED, "chunks": 1}).chunks == 1


def test_empty_limits_mean_none():
    request = read_request({**ASKED, "time_limit": "", "gap": ""})
    assert request.time_limit is None
    assert request.gap is None


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("chunks", 0, "chunks per shard '0' is too small; give 1 or more"),
        ("chunks", 1.5, "chunks per shard '1.5' is not a whole number; write it like 8 or 1e3"),
        ("root", -1, "the root's rank '-1' is too small; give 0 or more"),
        ("time_limit", -3, "the time limit '-3' is too small; give more than 0 s"),
        ("gap", "x", "the gap 'x' is not a percentage; write it like 5 %"),
    ],
)
def test_a_wrong_number_is_named_with_what_would_be_right(key, value, words):
    with pytest.raises(CclError) as caught:
        read_request({**ASKED, key: value})
    assert str(caught.value) == words


def test_a_problem_is_the_drawing_with_the_collective(drawn):
    problem = problem_of(drawn, read_request(ASKED))
    assert problem.collective.kind == "all-to-all"
    assert problem.collective.size == 65_536
    assert len(problem.collective.chunks) == 4 * 3 * 2


@pytest.mark.parametrize(
    "asked",
    [{"size": "abc"}, {"chunks": 10**9}, {"collective": "broadcast", "root": 9}, {"size": "-1MB"}],
)
def test_what_cannot_be_a_problem_is_refused_in_one_sentence(drawn, asked):
    with pytest.raises(CclError) as caught:
        problem_of(drawn, read_request({**ASKED, **asked}))
    assert "\n" not in str(caught.value)


def test_an_empty_drawing_is_told_so():
    empty = {"name": "untitled", "devices": [], "links": [], "limits": []}
    with pytest.raises(ProblemError, match="the drawing is empty"):
        problem_of(empty, read_request(ASKED))
