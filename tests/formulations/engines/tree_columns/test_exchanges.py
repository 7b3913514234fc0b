"""Exchanges: pieces take other trees one by one, and every plan on the way is one."""

from itertools import count, pairwise

import pytest

from ccl.collective import make_collective
from ccl.problem import Problem
from ccl.simulate import simulate
from ccl.verify import verify
from formulations import solve
from formulations.engines.list_scheduling.reordering import Pass
from formulations.engines.tree_columns import cuts
from formulations.engines.tree_columns.cuts import Waiting
from formulations.engines.tree_columns.exchanges import Beginning, exchanged
from formulations.engines.tree_columns.heads_tails import Cut
from formulations.engines.tree_columns.pieces import Jobs, images_apart
from gallery import open_cluster


def asked(cluster: str, kind: str, size: float) -> Problem:
    topology = open_cluster(cluster)
    return Problem(topology, make_collective(kind, len(topology.ranks), size))


@pytest.fixture
def begun(monkeypatch):
    """Return the plans that `pieces` would change, given a problem and a number of pieces."""
    found: list[Beginning] = []
    monkeypatch.setattr(cuts, "exchanged", lambda begun, **_: found.extend(begun))

    def of(problem: Problem, pieces: int) -> list[Beginning]:
        solve(problem, "pieces", options={"pieces": pieces}, time_limit=60)
        return found

    return of


def offers(begun: list[Beginning], many: int) -> list[tuple[Jobs, Cut, Pass]]:
    """Return the plans that come of so many changes, more or less: the clock stands still."""
    asked, found = count(), []
    exchanged(
        begun,
        offer=lambda *plan: found.append(plan),
        left=lambda: 1e9,
        over=lambda: next(asked) >= many,
    )
    return found


@pytest.mark.parametrize(
    ("cluster", "kind", "size", "gain"),
    [
        ("dgx-1v", "all-reduce", 256e3, 0.03),  # undirected trees
        ("mi250", "all-gather", 1e6, 0.03),  # trees of two roots, their images meet
    ],
)
def test_every_plan_is_quicker_than_those_before_and_replays_to_what_it_promises(
    begun, cluster, kind, size, gain
):
    problem = asked(cluster, kind, size)
    first = begun(problem, 16)[:1]

    found = offers(first, 400)

    times = [first[0].time, *(float(plan[1].max()) for _, _, plan in found)]
    assert all(later < earlier for earlier, later in pairwise(times))
    assert times[-1] < (1 - gain) * times[0]
    for jobs, cut, plan in (found[0], found[-1]):
        routes = cut.model.routes
        schedule = Waiting(0.0, jobs, cut, plan[0], routes, bare=False).schedule(problem)
        cut_up = problem.cut_into(cut.parts * len(problem.collective.chunks))
        verify(cut_up, schedule)
        assert simulate(cut_up, schedule).makespan == pytest.approx(plan[1].max(), rel=1e-6)


def test_where_images_stand_for_one_another_none_takes_a_tree_on_which_they_would_meet(begun):
    """A GPU of a fat-tree is one of sixteen that look alike."""
    found = begun(asked("fat-tree", "all-gather", 1e6), 8)

    assert found
    for each in found:
        group, model = each.pieces.group, each.cut.model
        assert group is not None
        for place in each.others[0].tolist():
            moved = images_apart(each.pieces.whole, [*each.cut.used, model.patterns[place]])
            assert moved is not None
            assert moved.order == group.order


def test_plans_of_many_crossings_are_left_as_they_are(begun, monkeypatch):
    """Four images of every crossing: all have to be written down for each change."""
    [first, *_] = begun(asked("fat-tree", "all-gather", 1e6), 8)
    own = len(first.plan[0])
    assert first.small

    for most, every in ((own - 1, 4 * own), (own, 4 * own - 1)):
        monkeypatch.setattr("formulations.engines.tree_columns.exchanges.MOST", most)
        monkeypatch.setattr("formulations.engines.tree_columns.exchanges.EVERY", every)
        assert not first.small


def test_what_nothing_improves_ends_by_itself(begun, monkeypatch):
    monkeypatch.setattr("formulations.engines.tree_columns.exchanges.STALLED", 20)
    first = begun(asked("dgx-1v", "all-reduce", 256e3), 4)[:1]

    assert len(offers(first, 10**9)) < 200
