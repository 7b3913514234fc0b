"""The size of a model is told before it is built, with what would make it smaller."""

from __future__ import annotations

import json

import pytest

from ccl.errors import CclError
from ccl.result import ModelSize
from designer.shell.request import Request, problem_of
from designer.views.solve.assess import HUGE, LARGE, Remedy, Sizing, remedies, sizing, warning_of
from designer.views.solve.plan_card import chip, short, sizing_summary
from formulations import available, measure
from gallery import open_cluster

MILP = Request(formulation="te-ccl-milp")


def words(component):
    """Return a component as text."""
    return json.dumps(component, default=lambda each: each.to_plotly_json(), ensure_ascii=False)


def test_the_size_is_that_of_the_formulation_and_a_small_one_is_no_worry(ring):
    found = sizing(ring, MILP)
    assert found is not None
    assert found.size == measure(problem_of(ring, MILP), "te-ccl-milp")
    assert (found.warning, found.remedies) == ("", ())


def test_a_method_without_a_model_has_no_size(ring):
    assert sizing(ring, Request(formulation="ring")) is None
    assert sizing_summary(None) is None
    assert chip(None) == (None, "ds-chip", "")


def test_what_cannot_be_solved_cannot_be_measured(ring):
    with pytest.raises(CclError, match="much"):
        sizing(ring, Request(formulation="te-ccl-milp", size="much"))


@pytest.mark.parametrize(
    ("size", "memory", "said"),
    [
        (ModelSize(LARGE, LARGE, 4 * LARGE), 64e9, ""),
        (ModelSize(LARGE + 1, 1, 1), 64e9, "Large"),
        (ModelSize(LARGE, LARGE, 4 * LARGE), 1e8, "this machine has 100 MB"),
        (ModelSize(HUGE + 1, 1, 1), 64e9, "Too large"),
        (ModelSize(1, HUGE + 1, 1), None, "Too large"),
    ],
)
def test_a_warning_says_what_is_too_much(size, memory, said):
    assert warning_of(size, memory).startswith(said) or said in warning_of(size, memory)
    assert bool(warning_of(size, memory)) is bool(said)


def test_every_remedy_keeps_what_it_promises():
    """Each is tried by itself: its model has the variables told, well below the first one's."""
    topology = open_cluster("ndv2:hosts=2")
    request = Request(formulation="te-ccl-milp", chunks=64)
    size = measure(problem_of(topology, request), "te-ccl-milp")
    assert size is not None
    found = {each.what: each for each in remedies(topology, request, size)}

    longer = found["te-ccl-milp.epoch_multiplier"]
    told = measure(
        problem_of(topology, request), "te-ccl-milp", options={"epoch_multiplier": longer.value}
    )
    assert told is not None
    assert told.variables == longer.variables < size.variables / 2
    fewer = found["chunks"]
    assert isinstance(fewer.value, int)
    told = measure(
        problem_of(topology, Request(formulation="te-ccl-milp", chunks=fewer.value)), "te-ccl-milp"
    )
    assert told is not None
    assert told.variables == fewer.variables <= LARGE
    assert found["formulation"].value in {each.name for each in available()}


def test_the_card_names_the_counts_and_offers_the_remedies():
    size = ModelSize(2_182_272, 2_072_892, 7_601_152)
    shown = words(
        sizing_summary(Sizing(size, "Large.", (Remedy("8 chunks", "chunks", 8, 194_000),)))
    )
    for part in ("2,182,272", "2,072,892", "7,601,152", "7.6 GB", "Large.", "194 K variables"):
        assert part in shown
    content, look, title = chip(Sizing(size, "Large."))
    assert "2.18 M vars" in words(content)
    assert look.endswith("ds-bad")
    assert "2,182,272 variables" in title


@pytest.mark.parametrize(
    ("number", "said"), [(1, "1"), (812, "812"), (5808, "5.81 K"), (378_477_632, "378 M")]
)
def test_counts_have_three_digits(number, said):
    assert short(number) == said
