"""Every option of TE-CCL's general model on clusters drawn by chance, as for all formulations."""

import random
from dataclasses import replace
from typing import Any

import pytest

from ccl.problem import Problem
from ccl.result import Result
from tests.formulations.test_random_clusters import Case, _options, check, draw


def drawn(seed: int) -> Case | None:
    """Draw a cluster and a demand, and more options than `draw` knows."""
    case = draw(seed)
    if case is None:
        return None
    chance = random.Random(7 * seed + 1)
    options = _options(chance, case.problem)
    rare: dict[str, tuple[float, Any]] = {
        "objective": (0.4, chance.choice(("finish-times", "early-arrivals"))),
        "horizon_by": (0.5, chance.choice(("bisection", "algorithm-1"))),
        "epoch_multiplier": (0.2, chance.choice((2, 3))),
        "store_and_forward": (0.2, False),
        "copy": (0.2 * (not case.problem.collective.reduces), False),
        "model_gap": (0.15, 30.0),
        "lengthen_short": (0.2, False),
    }
    options |= {name: value for name, (share, value) in rare.items() if chance.random() < share}
    return Case(_varied(case.problem, chance), "te-ccl-milp", options, case.gap)


def _varied(problem: Problem, chance: random.Random) -> Problem:
    """Limit some buffers, and give some chunks a priority and a tenant."""
    size, topology, collective = problem.collective.chunk_size, problem.topology, problem.collective
    if chance.random() < 0.3:
        devices = tuple(
            replace(each, buffer_bytes=size * chance.randint(1, 8))
            if each.stores and chance.random() < 0.5
            else each
            for each in topology.devices
        )
        topology = replace(topology, devices=devices)
    if chance.random() < 0.2:
        chunks = tuple(
            replace(each, priority=chance.choice((1.0, 3.0)), tenant=chance.choice(("", "b")))
            for each in collective.chunks
        )
        collective = replace(collective, chunks=chunks)
    return Problem(topology, collective)


SEEDS = tuple(seed for seed in range(30_000, 30_100) if drawn(seed) is not None)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_answer_is_a_verified_plan_or_a_sentence(seed):
    case = drawn(seed)
    assert case is not None

    check(case, time_limit=0.4)


@pytest.mark.slow
def test_many_cases_have_a_plan():
    """Else the claims above would say little."""
    cases = [case for seed in SEEDS[:30] if (case := drawn(seed)) is not None]
    found = [isinstance(check(case, time_limit=0.4), Result) for case in cases]

    assert sum(found) > len(found) / 4
