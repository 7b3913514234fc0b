"""Whoever chooses a model by its name gets that model, though a plan without it is proved."""

import pytest

from ccl.collective import make_collective
from ccl.problem import Problem
from formulations import available, formulation, solve
from gallery import open_cluster

MODELS = ("te-ccl-milp", "te-ccl-astar", "te-ccl-lp", "cp-sat", "taccl", "thesis-steps")

EASY = (
    ("ring:gpus=4,alpha=0", "all-gather"),
    ("ring:gpus=4,alpha=0", "all-reduce"),
    ("star:gpus=4", "all-to-all"),
    ("te-ccl-1", "broadcast"),
)


SOLVED_BY = {
    "te-ccl-milp": "HiGHS",
    "orbit-trees": "HiGHS",
    "cp-sat": "CP-SAT",
    "sccl": "CP-SAT",
    "list": "own search",
    "forestcoll": "own search",
    "ring": "closed form",
    "auto": "several methods",
}


def easy(cluster: str, kind: str) -> Problem:
    """Return a problem whose first plan, greedy or by list scheduling, is mostly the best."""
    topology = open_cluster(cluster)
    return Problem(topology, make_collective(kind, len(topology.ranks), 1e6))


@pytest.mark.parametrize(("cluster", "kind"), EASY)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.cover(6)
def test_a_model_that_is_chosen_is_built(name, cluster, kind):
    problem = easy(cluster, kind)
    if formulation(name).why_not(problem) is not None:
        return

    result = solve(problem, name, time_limit=30)

    assert result.size is not None
    assert result.size.variables > 0


@pytest.mark.parametrize("name", [name for name in MODELS if name != "te-ccl-lp"])
def test_asked_so_it_is_not_built_where_a_proof_is_at_hand(name):
    problem = easy("ring:gpus=4,alpha=0", "all-gather")

    quick = solve(problem, name, options={"stop_at_proof": True}, time_limit=30)
    whole = solve(problem, name, time_limit=30)

    assert quick.size is None
    assert quick.makespan == pytest.approx(whole.makespan)


def test_the_default_asks_them_so():
    asked = [formulation(name).options_within(0, None) for name in MODELS if name != "te-ccl-lp"]

    assert all(each.stop_at_proof for each in asked)


def test_what_splits_chunks_refuses_those_that_are_fixed():
    """All others take them."""
    topology = open_cluster("ring:gpus=4")
    for each in available():
        kind = min(each.collectives - {"custom"})
        fixed = Problem(topology, make_collective(kind, 4, 1e6, chunks=1))
        free = Problem(topology, make_collective(kind, 4, 1e6))
        if each.why_not(free) is None:
            said = each.why_not(fixed)
            assert (said is None) == each.keeps_chunks(fixed), each.name
            assert said is None or said.startswith("chunks are to stay whole")


def test_what_finds_plans_is_said():
    assert {each.name: each.solver for each in map(formulation, SOLVED_BY)} == SOLVED_BY
