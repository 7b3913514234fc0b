"""One plan is verified and replayed once, from where it is found to the files it is saved in."""

from __future__ import annotations

import json
import time
from collections import Counter

import pytest

import ccl.result
from ccl.collective import all_gather
from ccl.problem import Problem
from ccl.serialization.topoloom import result_to_json
from designer.jobs import Jobs
from designer.session import Stored, result_of
from designer.shell.request import Request
from designer.views.draw import exporting
from designer.views.solve import assess
from formulations import solve, start


@pytest.fixture
def checks(monkeypatch):
    """Count verifications and replays of this process."""
    calls: Counter[str] = Counter()

    def counted(name, function):
        def call(*args, **named):
            calls[name] += 1
            return function(*args, **named)

        return call

    for name in ("verify", "simulate"):
        monkeypatch.setattr(ccl.result, name, counted(name, getattr(ccl.result, name)))
    return calls


ONCE = {"verify": 1, "simulate": 1}


def test_where_a_plan_is_found_it_is_verified_and_replayed_once(ring, checks):
    """The ring is a closed form: it offers one plan."""
    solve(Problem(ring, all_gather(4, 4e6)), "ring")
    assert checks == ONCE


def test_the_server_of_the_page_does_neither_again(ring, checks):
    """The child of a solve has done both; the page gets film, panel and document of its result."""
    jobs = Jobs(start)
    try:
        key = jobs.start(
            Problem(ring, all_gather(4, 4e6)), Request(formulation="ring"), question={}
        )
        while (state := jobs.state(key)).running:
            time.sleep(0.05)
    finally:
        jobs.close()
    answer = assess.answer(state, {}, seen=0)
    assert answer.scene
    assert answer.document
    assert checks == {}


def test_what_the_page_sends_back_is_verified_and_replayed_once_however_it_is_saved(ring, checks):
    document = json.loads(json.dumps(result_to_json(solve(Problem(ring, all_gather(4, 4e6))))))
    checks.clear()
    stored = Stored(document)
    drawing = {"topology": document["problem"]["topology"], "positions": {}}
    for _ in range(3):
        assert exporting.content_of(drawing, {}, stored).result is result_of(stored)
    assert checks == ONCE
