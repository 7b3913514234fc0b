"""A result that was changed by hand is refused where its plan shows it to be untrue."""

from __future__ import annotations

import pytest

from ccl.errors import CclError, FormatError, ScheduleError
from ccl.serialization.documents import document_from_json, document_to_json
from tests.ccl.documents import solved

MAKESPAN = solved().result.makespan


def changed(*path, to):
    """Return a sound result document with one value replaced."""
    value = document_to_json(solved())
    place = value["result"]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return value


def test_a_bound_above_the_makespan_of_a_verified_plan_is_refused():
    """It would say of the plan that it cannot be; one that meets it says that it is optimal."""
    met = document_from_json(changed("bounds", 0, "makespan", to=MAKESPAN))

    assert met.result.status == "optimal"
    with pytest.raises(FormatError, match=r"bounds\[0\].makespan: nothing is faster than .* µs"):
        document_from_json(changed("bounds", 0, "makespan", to=MAKESPAN * 1.001))


@pytest.mark.parametrize("makespan", [0, -1.0])
def test_a_bound_that_proves_nothing_is_refused(makespan):
    """The gap is a share of it."""
    with pytest.raises(FormatError, match=r"bounds\[0\].makespan"):
        document_from_json(changed("bounds", 0, "makespan", to=makespan))


def test_a_makespan_that_is_not_the_replay_s_is_refused_and_may_be_left_out():
    with pytest.raises(FormatError, match=f"says 1 µs and the plan, replayed, takes {MAKESPAN:g}"):
        document_from_json(changed("makespan", to=1.0))

    assert document_from_json(changed("makespan", to=None)).result.makespan == MAKESPAN


@pytest.mark.parametrize(
    "witness",
    [
        {"witness": "cut", "inside": ["g9"], "links": [], "bandwidth": 50.0},
        {"witness": "cut", "inside": ["g0"], "links": [["g0", "g9"]], "bandwidth": 50.0},
        {"witness": "path", "devices": ["g0", "g9"]},
    ],
)
def test_a_witness_of_devices_that_are_not_there_is_refused(witness):
    """It could not be drawn."""
    with pytest.raises(FormatError, match="names 'g9', which is not a device of ring"):
        document_from_json(changed("bounds", 0, "witness", to=witness))


def test_a_plan_that_breaks_a_rule_is_refused():
    value = document_to_json(solved())
    for lost in range(len(value["result"]["plan"]["sends"])):
        sends = [each for i, each in enumerate(value["result"]["plan"]["sends"]) if i != lost]
        with pytest.raises(ScheduleError):
            document_from_json(changed("plan", "sends", to=sends))


@pytest.mark.parametrize(
    ("path", "to"),
    [
        (("problem", "collective", "chunks"), 10**9),
        (("problem", "collective", "size"), 0.0),
        (("problem", "collective", "kind"), "custom"),
        (("problem", "topology", "links", 0, "bandwidth"), float("nan")),
        (("plan", "epoch_duration"), float("inf")),
        (("solve_time",), -1.0),
    ],
)
def test_numbers_out_of_range_are_refused_in_one_sentence(path, to):
    with pytest.raises(CclError) as refused:
        document_from_json(changed(*path, to=to))

    assert "\n" not in str(refused.value)
