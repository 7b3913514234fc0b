"""A solve without a schedule says why, and offers the horizon that its error names."""

from __future__ import annotations

import json

import pytest

from ccl.collective import all_gather
from ccl.errors import Infeasible, LimitReached
from ccl.problem import Problem
from designer.views.solve.assess import enough, fault
from formulations import solve


def test_the_horizon_of_a_real_error_is_offered_and_not_refused_again(ring):
    """Two hops to the GPU across the ring: one epoch cannot be enough, whatever its length."""
    problem = Problem(ring, all_gather(4, 4e6))
    with pytest.raises(Infeasible) as caught:
        solve(problem, "te-ccl-milp", options={"horizon": 1, "greedy_start": False}, time_limit=20)
    asked = enough(caught.value, "te-ccl-milp")
    assert asked is not None
    option, epochs, unit = asked
    assert (option, unit) == ("horizon", "epoch")
    assert epochs >= 2
    shown = json.dumps(fault(caught.value, "te-ccl-milp").to_plotly_json(), default=repr)
    assert f"Use {epochs} epochs" in shown


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (Infeasible("no schedule exists under these options"), "te-ccl-milp"),
        (LimitReached("no plan in time; allow 7 epochs"), "te-ccl-milp"),
        (Infeasible("too short; allow 7 epochs or more"), "ring"),
    ],
)
def test_nothing_is_offered_without_a_number_or_a_horizon_to_set(error, name):
    assert enough(error, name) is None
    assert "remedy" not in json.dumps(fault(error, name).to_plotly_json(), default=repr)


def test_thousands_are_read_with_their_commas():
    found = enough(Infeasible("allow 1,204 epochs or more"), "te-ccl-milp")
    assert found == ("horizon", 1204, "epoch")


@pytest.mark.parametrize(
    ("words", "name", "asked"),
    [
        ("allow 4 steps or more", "thesis-steps", ("steps", 4, "step")),
        ("allow 2 hops or more", "thesis-fluid", ("hops", 2, "hop")),
        ("allow 1 step and 4 rounds or more", "sccl", ("steps", 1, "step")),
        ("allow 5 rounds or more", "sccl", ("rounds", 5, "round")),
    ],
)
def test_steps_hops_and_rounds_are_offered_too(words, name, asked):
    assert enough(Infeasible(words), name) == asked
