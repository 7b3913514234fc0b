"""The slider over the plans of a solve: its marks, its words, and the plan that it shows."""

from __future__ import annotations

import json

import pytest

from ccl.serialization.topoloom import result_from_json, result_to_json
from designer.app import create_app
from designer.jobs import Jobs
from designer.shell import ids
from designer.views.solve.front import front_card, front_of
from formulations import formulation
from tests.formulations.test_front import offered


@pytest.fixture
def app():
    jobs = Jobs(lambda *_args, **_kwargs: pytest.fail("nothing is solved here"))
    yield create_app(jobs=jobs)
    jobs.close()


def test_there_is_a_mark_for_each_plan_with_its_pieces():
    found = front_of(offered(1, 2, 8))

    assert [each["label"] for each in found["marks"]] == ["1", "2", "8"]
    assert [each["value"] for each in found["marks"]] == [0, 1, 2]


def test_each_says_its_sends_its_time_how_much_longer_it_is_and_who_found_it():
    """(k + 1) / k * 20 µs of k pieces."""
    title = formulation("list").title
    assert front_of(offered(1, 8, formulation="list"))["words"] == [
        f"2 sends, 40 µs, 77.8 % longer than the fastest; found by {title}.",
        f"16 sends, 22.5 µs, the fastest; found by {title}.",
    ]


def test_the_page_gets_the_other_plans_as_documents():
    result = offered(1, 2, 8)
    plans = json.loads(json.dumps(front_of(result)["plans"]))

    assert [result_from_json(each) for each in plans] == list(result.simpler)


def test_one_plan_is_no_choice():
    assert front_of(offered(8)) is None
    assert front_card().hidden is True


def test_what_the_slider_stands_on_is_shown_with_its_own_figures(app):
    """The request goes on to be that of the solve."""
    plan = offered(2, 8).simpler[0]
    (output,) = (
        name
        for name, each in app.callback_map.items()
        if [given["id"] for given in each["inputs"]] == [ids.FRONT_CHOICE]
    )
    parts = [each.rpartition(".") for each in output.strip(".").split("...")]
    answer = app.server.test_client().post(
        "/_dash-update-component",
        json={
            "output": output,
            "outputs": [{"id": name, "property": prop} for name, _, prop in parts],
            "inputs": [{"id": ids.FRONT_CHOICE, "property": "data", "value": result_to_json(plan)}],
            "state": [{"id": ids.SUMMARY, "property": "data", "value": {"asked": {"size": "1MB"}}}],
            "changedPropIds": [f"{ids.FRONT_CHOICE}.data"],
        },
    )
    told = answer.get_json()["response"]

    assert told[ids.SUMMARY]["data"]["makespan"] == pytest.approx(30.0)
    assert told[ids.SUMMARY]["data"]["asked"] == {"size": "1MB"}
    assert told[ids.SUMMARY]["data"]["pieces"] == 2
    assert len(told[ids.CANVAS]["scene"]["transfers"]) == 4
