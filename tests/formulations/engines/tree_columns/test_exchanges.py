"""Exchanges: pieces take other trees one by one, and every plan on the way is one."""

from itertools import count, groupby, pairwise

import networkx as nx
import numpy as np
import pytest

from ccl.collective import make_collective
from ccl.problem import Problem
from ccl.simulate import simulate
from ccl.verify import verify
from formulations import solve
from formulations.engines.list_scheduling.reordering import Pass
from formulations.engines.tree_columns import cuts
from formulations.engines.tree_columns.cuts import Waiting
from formulations.engines.tree_columns.exchanges import Beginning, Exchange, exchanged, hung
from formulations.engines.tree_columns.heads_tails import Cut
from formulations.engines.tree_columns.pieces import Jobs, images_apart
from formulations.engines.tree_columns.routes import ends_of
from gallery import open_cluster


def asked(cluster: str, kind: str, size: float) -> Problem:
    topology = open_cluster(cluster)
    return Problem(topology, make_collective(kind, len(topology.ranks), size))


@pytest.fixture
def begun(monkeypatch):
    """Return the plans that `pieces` would change, given a problem and a number of pieces."""
    found: list[Beginning] = []

    def keep(exchanges: list[Exchange], **_: object) -> None:
        found.extend(each.begun for each in exchanges if each.begun not in found)

    monkeypatch.setattr(cuts, "exchanged", keep)

    def of(problem: Problem, pieces: int) -> list[Beginning]:
        solve(problem, "pieces", options={"pieces": pieces}, time_limit=60)
        return found

    return of


def offers(begun: list[Beginning], many: int) -> list[tuple[Jobs, Cut, Pass]]:
    """Return the plans that come of so many changes, more or less: the clock stands still."""
    asked, found = count(), []
    exchanged(
        [Exchange(each) for each in begun],
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


@pytest.mark.parametrize(
    ("cluster", "kind", "asked_for"),
    [
        ("dgx-1v", "all-reduce", "undirected"),
        ("mi250", "all-gather", "out"),
        ("mi250", "reduce-scatter", "in"),
    ],
)
def test_trees_like_one_another_differ_by_what_one_device_hangs_on(begun, cluster, kind, asked_for):
    dice = np.random.default_rng(0)
    [first, *_] = begun(asked(cluster, kind, 256e3), 8)
    topology = first.cut.model.routes.topology
    pattern = next(each for each in first.cut.used if each.direction == asked_for)
    turns = 2 if asked_for == "undirected" else 1
    found = set()

    for _ in range(50):
        like = hung(pattern, first, dice)
        if like is None:  # a device that nothing else here reaches
            continue
        ends = [ends_of(topology, links) for links in like.routes]
        assert len({*ends} - {ends_of(topology, links) for links in pattern.routes}) == turns
        found.add(frozenset(ends))
        # Everything still gets there: from the root, into it, or from everyone.
        tree = nx.DiGraph(ends)
        assert len(ends) == turns * (len(topology.ranks) - 1)
        assert nx.is_weakly_connected(tree)
        assert tree.number_of_nodes() == len(topology.ranks)
        into = dict(tree.in_degree() if asked_for == "out" else tree.out_degree())
        assert turns == 2 or sorted(into.values()) == [0] + [1] * (len(topology.ranks) - 1)
        for place, those in enumerate(like.waits):
            start, stop = ends[place]
            assert {ends[each] for each in those} == {
                each for each in ends if each[1] == start and each[0] != stop
            }
        assert (like.terms is None) == (turns == 1)

    assert len(found) > 5


def test_where_images_stand_for_one_another_none_takes_a_tree_on_which_they_would_meet(begun):
    """A GPU of a fat-tree is one of sixteen that look alike."""
    found = begun(asked("fat-tree", "all-gather", 1e6), 8)

    assert found
    for each in found:
        group = each.pieces.group
        assert group is not None
        for pattern in each.others[0]:
            moved = images_apart(each.pieces.whole, [*each.cut.used, pattern])
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
    monkeypatch.setattr("formulations.engines.tree_columns.exchanges.STALLED", (20,))
    first = begun(asked("dgx-1v", "all-reduce", 256e3), 4)[:1]

    assert len(offers(first, 10**9)) < 200


def test_what_nothing_improves_for_long_lets_others_have_their_turn(monkeypatch):
    """Changes of some take so long that few of them are much of the time."""
    turns: list[str] = []

    class Slow:
        least, stalled = 1.0, 0

        def __init__(self, name):
            self.name = name

        def changed(self, _heat):
            turns.append(self.name)

    here = "formulations.engines.tree_columns.exchanges"
    monkeypatch.setattr(f"{here}.clock", lambda: float(len(turns)))
    exchanged(
        [Slow("a"), Slow("b")],  # type: ignore[list-item]
        offer=lambda *_: None,
        left=lambda: 100.0,
        over=lambda: len(turns) >= 100,
    )

    own = [len([*each]) for _, each in groupby(turns)]
    assert max(own[:4]) <= 12  # a tenth of the time, where a trial alone may take a fifth
    assert len(own) >= 6
