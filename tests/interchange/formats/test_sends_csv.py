"""Sends as a table."""

import csv

import pytest
from hypothesis import assume, given, settings

from ccl.collective import all_gather
from ccl.errors import FormatError, ScheduleError
from ccl.plans import Flow, Rate, Schedule, Send
from ccl.problem import Problem
from ccl.serialization.documents import document
from interchange.formats.catalogue import writer
from interchange.formats.format import NoOptions
from tests.ccl.clusters import mesh, ring, ring_all_gather
from tests.ccl.undirected import on_a_line
from tests.interchange.formats.strategies import planned

WRITE = writer("sends-csv").write
SIGNS = "=+-@\t\r\n\uff0b\uff0d\uff1d\uff20"
"""What a formula begins with, also after white space."""


def rows(content):
    text = WRITE(content, NoOptions()).content.decode()
    return list(csv.DictReader(text.splitlines(keepends=True)))


def listed(cell):
    return next(csv.reader([cell], delimiter=";"), [])


def test_every_send_is_a_row():
    """A ring of 3: each GPU passes its own chunk of 1 MB on, then the one it got."""
    problem, plan = ring_all_gather(ring(3))

    assert rows(document(problem, plan=plan))[:2] == [
        {
            "epoch": "0",
            "chunk": "0",
            "src": "g0",
            "via": "",
            "dst": "g1",
            "fraction": "1.0",
            "bytes": "1000000",
            "holders": "0",
            "destinations": "1;2",
            "reduced": "no",
        },
        {
            "epoch": "0",
            "chunk": "1",
            "src": "g1",
            "via": "",
            "dst": "g2",
            "fraction": "1.0",
            "bytes": "1000000",
            "holders": "1",
            "destinations": "0;2",
            "reduced": "no",
        },
    ]


@given(planned())
@settings(max_examples=30, deadline=None)
def test_the_table_has_all_of_every_send(content):
    """Whatever is in a name: the lists are read as CSV again.

    But names that begin as formulas get an apostrophe (`tests.interchange.formats.test_tables`).
    """
    schedule = content.plan
    names = [each.name for each in content.topology.devices]
    assume(not any({name[:1], name.lstrip()[:1]} & {*SIGNS} for name in names))
    read = tuple(
        Send(
            int(each["epoch"]),
            int(each["chunk"]),
            each["src"],
            each["dst"],
            tuple(listed(each["via"])),
            float(each["fraction"]),
        )
        for each in rows(content)
    )

    assert read == schedule.sends


def test_the_epochs_are_lost_and_that_is_said():
    problem, plan = ring_all_gather(ring(3))
    lost = WRITE(document(problem, plan=plan), NoOptions()).lost

    assert lost[0] == "that there are 2 epochs of 20 µs"


def test_a_flow_has_no_sends():
    problem = Problem(mesh(2), all_gather(2, 2e6))
    flow = Flow((Rate(0, "g0", "g1", 1.0), Rate(1, "g1", "g0", 1.0)))

    with pytest.raises(FormatError, match="a flow has no sends in epochs; write its transfers"):
        WRITE(document(problem, plan=flow), NoOptions())


def test_a_schedule_that_breaks_a_rule_is_not_written():
    problem, plan = ring_all_gather(ring(3))
    short = Schedule(plan.sends[:-1], plan.epoch_duration, plan.horizon)

    with pytest.raises(ScheduleError):
        WRITE(document(problem, plan=short), NoOptions())


def test_terms_are_a_column_where_there_are_any():
    problem, plan = on_a_line()
    found = rows(document(problem, plan=plan))

    assert [listed(each["terms"]) for each in found] == [
        [str(rank) for rank in sorted(send.terms)] for send in plan.sends
    ]
