"""What "About" tells of a formulation: its mathematics, and the size of its model here."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest

from ccl.serialization.topoloom import topology_to_json
from designer.shell.request import Request, problem_of
from designer.views.solve import about
from formulations import available, explain
from gallery import open_cluster


def shown(component: Any) -> str:
    """Return all that a component holds as text."""
    parts = component if isinstance(component, list) else [component]
    plain = [each.to_plotly_json() for each in parts]
    return json.dumps(plain, default=lambda each: each.to_plotly_json(), ensure_ascii=False)


def asked(cluster: str, **changes: Any) -> dict[str, Any]:
    request = {**asdict(Request()), **changes}
    return {"topology": topology_to_json(open_cluster(cluster)), "request": request}


@pytest.mark.parametrize("name", [each.name for each in available()])
def test_every_formulation_has_its_page(name: str) -> None:
    assert explain(name).title in shown(about.about(name))
    assert shown(about.mathematics(name))


def test_the_size_is_the_one_that_explain_tells() -> None:
    question = asked("ring:gpus=4", formulation="te-ccl-milp")
    request = Request(formulation="te-ccl-milp")
    found = explain("te-ccl-milp", problem_of(open_cluster("ring:gpus=4"), request))
    told = shown(about.sized("te-ccl-milp", question))
    assert found.size is not None
    assert found.speed is not None
    assert f"Takes {found.speed.words}" in told
    assert f"{found.size.nonzeros:,}" in told
    for each in found.groups:
        assert (each.words in told) == bool(each.many)


def test_options_count_for_the_formulation_they_are_of() -> None:
    """A horizon given to one is none of another's."""
    long = asked("ring:gpus=4", formulation="te-ccl-milp", options={"horizon": 9})
    assert "9 epochs" in shown(about.sized("te-ccl-milp", long))
    assert "9 epochs" not in shown(about.sized("te-ccl-astar", long))


def test_what_does_not_apply_says_why() -> None:
    told = shown(about.sized("orbit-lp", asked("ring:gpus=4", formulation="orbit-lp")))
    assert "Here it does not apply: it supports all-" in told


def test_a_construction_says_that_there_is_no_model() -> None:
    assert "no model to solve" in shown(about.sized("ring", asked("ring:gpus=4")))


def test_a_large_cluster_is_not_counted_while_somebody_reads() -> None:
    told = shown(about.sized("te-ccl-milp", asked("dgx-a100:hosts=80")))
    assert f"more than {about.MOST_GPUS} GPUs" in told


def test_an_empty_drawing_asks_for_one() -> None:
    assert "Draw a cluster" in shown(about.sized("te-ccl-milp", None))
