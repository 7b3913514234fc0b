"""Swing: partners by the paper's ρ, on rings and tori, all links in use."""

import pytest

from formulations import formulation
from formulations.engines.closed_forms.hosts import Grid
from formulations.schedules.swing import _Plan
from tests.formulations.engines.closed_forms.forms import (
    BETA,
    HOP,
    SIZE,
    as_written,
    asked,
    halves,
    solved,
)


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter", "all-reduce"])
def test_on_a_ring_of_8_partners_are_1_1_and_3_hops_away(kind):
    """The half goes 1 hop, the quarter 1 the other way, the eighth 3 hops.

    The two GPUs that an eighth passes on its way keep it, so no more than this is needed.
    """
    result = solved("swing", asked("ring:gpus=8", kind))

    formula = halves(kind) * (5 * HOP + (4 + 2 + 3 * 1) / 8 * SIZE * BETA)
    assert result.closed_form.makespan == pytest.approx(formula)
    assert result.makespan <= result.closed_form.in_steps <= formula


def test_a_torus_of_4_by_4_takes_turns_with_its_dimensions():
    """The distances 1, 1 in each of two dimensions; four parts use all four links of a GPU."""
    result = solved("swing", asked("torus", "all-gather", chunks=4))

    as_written(result, 4 * HOP + (8 + 4 + 2 + 1) / 16 / 4 * SIZE * BETA)
    used = {(each.src, each.dst) for each in result.plan.sends}
    assert len(used) == len(result.problem.topology.links)


def test_everybody_is_reached_once_on_rings_up_to_256():
    """The paper's lemma, for both ways to swing."""
    for exponent in range(1, 9):
        side = 1 << exponent
        plan = _Plan(Grid((side,), (True,)), 2)
        for part in (0, 1):
            for root in (0, 1):
                places = [root]
                for _, rho in plan.steps(part):
                    places += [(a + (-rho if a % 2 else rho)) % side for a in places]
                assert sorted(places) == list(range(side))


def test_it_swings_between_few_sides_of_a_hypercube():
    result = solved("swing", asked("hypercube", "all-reduce", chunks=3))

    as_written(result, 2 * (3 * HOP + 7 / 8 / 3 * SIZE * BETA))


@pytest.mark.parametrize(
    ("cluster", "why"),
    [
        ("star", "no ring and no torus"),
        ("mesh", "no ring and no torus"),
        ("ring:gpus=6", "needs powers of two"),
        ("torus:shape=4x3", "a torus of 4×3"),
    ],
)
def test_what_it_refuses(cluster, why):
    assert why in formulation("swing").why_not(asked(cluster, "all-reduce"))
