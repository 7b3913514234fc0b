"""The catalog on the page: what it answers and keeps, its view, and a plan that is opened."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from ccl.collective import all_gather, broadcast
from ccl.errors import CatalogError, ProblemError
from ccl.problem import Problem
from ccl.result import Stop
from ccl.topology import Topology
from designer.jobs import Jobs
from designer.shell.request import Request
from designer.views.catalog import view as page
from designer.views.catalog.catalog_view import CatalogView, answering, keeping, made
from designer.views.catalog.view import exported, plan_in, plan_opened, plans, ranges
from designer.views.solve.solve_card import running
from formulations import solve, start, start_comparison
from formulations.analyses.comparison import Method, News, Row
from formulations.campaigns.catalog import Catalog, tuned
from formulations.core.run import Progress
from gallery import open_cluster


@pytest.fixture
def catalog(tmp_path):
    """An empty catalog."""
    return Catalog(tmp_path / "plans.sqlite")


@pytest.fixture
def jobs_of(catalog):
    """Make jobs that this catalog answers."""
    made_of = []

    def make(solving):
        made_of.append(Jobs(answering(solving.start, catalog)))
        return made_of[-1]

    yield make
    for jobs in made_of:
        jobs.close()


class Solving:
    """A solve that finds what it is given, and counts how often it is begun."""

    def __init__(self, result):
        self.found, self.best, self.begun, self.how = result, None, 0, {}

    def start(self, *_what, **how):
        self.begun, self.how = self.begun + 1, how
        return self

    def __iter__(self):
        self.best = self.found
        yield Progress(0.1, self.found.makespan, None, "a better schedule", self.found)

    def result(self):
        return self.found

    def cancel(self):
        self.found = replace(self.found, stop=Stop.CANCELLED)


def renamed(topology):
    """Return a cluster in the opposite order and under other names."""
    names = {each.name: f"x{each.name}" for each in topology.devices}
    return Topology(
        "another",
        tuple(
            replace(each, name=names[each.name], host=f"y{each.host}")
            for each in reversed(topology.devices)
        ),
        tuple(
            replace(each, src=names[each.src], dst=names[each.dst])
            for each in reversed(topology.links)
        ),
        tuple(
            replace(each, links=tuple((names[a], names[b]) for a, b in each.links))
            for each in topology.limits
        ),
    )


def ended(jobs, problem, **asked):
    """Solve through jobs and return the last state."""
    key = jobs.start(problem, Request(formulation="te-ccl-milp", **asked))
    for _ in range(400):
        state = jobs.state(key)
        if not state.running:
            return state
        time.sleep(0.01)
    raise TimeoutError


def waited(ask):
    """Return a table when it is there."""
    for _ in range(1000):
        table = made(ask())
        if table is not None:
            return table
        time.sleep(0.01)
    raise TimeoutError


def words(component):
    """Return what a component says."""
    if component is None or isinstance(component, (str, int, float)):
        return str(component or "")
    parts = component if isinstance(component, (list, tuple)) else [component.children]
    return " ".join(map(words, parts))


def test_what_was_solved_before_is_not_solved_again(jobs_of, catalog, result):
    """The second time, on a cluster that differs in names and order, nothing is begun."""
    solving = Solving(result)
    jobs = jobs_of(solving)
    asked = {"time_limit": 20.0, "options": dict(result.options)}
    first = ended(jobs, result.problem, **asked)
    assert (solving.begun, first.message) == (1, "a better schedule")
    assert catalog.count() == 1
    other = Problem(renamed(result.problem.topology), all_gather(4, 4e6))
    again = ended(jobs, other, **asked)
    assert solving.begun == 1
    assert again.best.makespan == pytest.approx(result.makespan)
    assert again.best.problem == other
    assert again.message == again.best.log[-1]
    assert again.message.startswith("from the catalog: solved for ring of 4 in ")
    assert again.message.endswith(" UTC; verified again just now")
    assert again.found == 1
    told = words(running(again, limit=20))
    assert told.startswith(" From the catalog")
    assert "Solved for ring of 4 in " in told


def test_another_question_is_solved(jobs_of, catalog, result):
    """Another size, other options or a formulation that nobody asked before are solved."""
    solving = Solving(result)
    catalog.keep(result, time_limit=20)
    jobs = jobs_of(solving)
    larger = Problem(result.problem.topology, all_gather(4, 8e6))
    for number, problem in enumerate((larger, result.problem)):
        ended(jobs, problem, options={**result.options, "epoch_duration": 7.0 + number})
        assert solving.begun == number + 1


def test_who_cancels_has_not_given_all_seconds(jobs_of, catalog, result):
    """A solve that was ended after a moment does not answer one that may take a minute."""
    poor = replace(result, stop=Stop.CANCELLED, bounds=(), solve_time=0.5)
    poor = replace(poor, bounds=(replace(result.bound, makespan=result.bound.makespan / 2),))
    solving = Solving(poor)
    jobs = jobs_of(solving)
    asked = {"options": dict(result.options), "time_limit": 60.0}
    ended(jobs, result.problem, **asked)
    ended(jobs, result.problem, **asked)
    assert solving.begun == 2
    ended(jobs, result.problem, **(asked | {"time_limit": 0.4}))
    assert solving.begun == 2


def test_a_catalog_that_fails_costs_no_solve(jobs_of, catalog, result, monkeypatch):
    """Neither a lookup nor a write that fails takes the plan away; the log says it."""

    def fail(*_args, **_options):
        raise CatalogError("the disk is full")

    monkeypatch.setattr(catalog, "find", fail)
    monkeypatch.setattr(catalog, "keep", fail)
    jobs = jobs_of(Solving(result))
    state = ended(jobs, result.problem)
    assert state.best.log[-1] == "not kept in the catalog: the disk is full"
    assert state.best.plan == result.plan


def test_rows_of_a_comparison_are_kept(catalog, result):
    """One row has a plan and is kept before it is told, the other has none."""
    method = Method(result.formulation)
    rows = [Row(method, 4e6, result), Row(method, 8e6, None, "it refuses")]

    class Comparing:
        def __iter__(self):
            return iter(News(1, 2, method, row.size, row=row) for row in rows)

    told = keeping(lambda *_what, **_how: Comparing(), catalog)([], time_limit=20)
    held = [catalog.count() for _ in told]
    assert held == [1, 1]
    (entry,) = catalog.entries(result.problem.topology)
    assert entry.makespan == pytest.approx(result.makespan)


def test_without_a_catalog_nothing_is_wrapped():
    """What starts solves and comparisons is itself."""
    assert answering(start, None) is start
    assert keeping(start_comparison, None) is start_comparison


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A catalog with three methods at two sizes and a broadcast from rank 2, and its cluster."""
    store = Catalog(tmp_path_factory.mktemp("stored") / "plans.sqlite")
    topology = open_cluster("dgx-1v")
    for method in ("ring", "direct", "orbit-trees"):
        for size in (1e4, 1e7):
            problem = Problem(topology, all_gather(8, size))
            store.keep(solve(problem, method, time_limit=2), time_limit=2)
    store.keep(solve(Problem(topology, broadcast(8, 1e6, root=2)), "direct", time_limit=2))
    return store, topology


@pytest.fixture
def holdings(filled):
    """What that catalog holds."""
    made_of = CatalogView(filled[0])
    yield made_of
    made_of.close()


def test_the_view_lists_plans_and_tells_the_best_of_each_size(holdings, filled):
    """A bar and a row for each range, the first from 1 KB, the last to 1 GB; the same exported."""
    look = holdings.look(filled[1])
    assert look.kinds == ("all-gather", "broadcast")
    assert "7 plans of DGX-1V" in words(page.status(look, held=7, path="plans.sqlite"))
    told = words(plans(look.entries, look.topology.name))
    assert "Broadcast from 2" in told
    table = waited(lambda: holdings.tuned(look.token, "all-gather", 0))
    assert table == tuned(filled[0], filled[1], all_gather(8, 1e6))
    assert table.ranges[0].begin == 1000
    shown = words(ranges(table))
    assert all(each.algorithm in shown for each in table.ranges)
    csv = exported(holdings, look.token, "all-gather", root=0, ending="csv")
    assert csv == {"content": table.to_csv(), "filename": csv["filename"]}
    assert csv["filename"].endswith("-all-gather-tuner.csv")
    as_json = exported(holdings, look.token, "all-gather", root=0, ending="json")
    assert json.loads(as_json["content"]) == json.loads(json.dumps(table.to_json()))
    atlas = waited(lambda: holdings.atlas(look.token))
    assert atlas.kinds == look.kinds
    assert atlas.cell("all-gather", 1e9).gain > 1


def test_a_row_opens_on_the_cluster_as_it_is_drawn(holdings, filled):
    """The plan has the names of the drawing, which stays; a root is found where it lies now."""
    other = renamed(filled[1])
    look = holdings.look(other)
    for entry in look.entries:
        changes = plan_opened(holdings, look.token, entry.number)
        assert "drawing" not in changes
        assert changes["view"] == "canvas"
        assert (
            changes["result"]["problem"]["topology"]["devices"][0]["name"] == other.devices[0].name
        )
        assert changes["summary"]["makespan"] == pytest.approx(entry.makespan)
        apart = plan_in(holdings.catalog.path, other, entry.number)  # as a process of its own does
        assert (apart["result"], apart["summary"]) == (changes["result"], changes["summary"])
    assert plan_opened(holdings, look.token, 99)["notes"]
    assert plan_opened(holdings, "gone", 1)["notes"]


def test_a_cluster_without_plans_says_what_to_do(holdings):
    """Other clusters see nothing of the plans; a token that is not known is told."""
    look = holdings.look(open_cluster("ring"))
    assert (look.entries, look.kinds) == ((), ())
    assert "Solve it, or compare methods" in words(page.nothing(look))
    with pytest.raises(ProblemError, match="open the view again"):
        holdings.tuned("gone", "all-gather", 0)


def test_a_table_that_nobody_waits_for_is_given_up(holdings, filled, monkeypatch):
    """It is made anew when it is asked for again."""
    look = holdings.look(filled[1])
    monkeypatch.setattr("designer.views.catalog.catalog_view.GIVEN_UP", -1.0)
    given_up = holdings.tuned(look.token, "broadcast", 2)
    given_up.future.exception(10)
    assert made(given_up) is None
    monkeypatch.undo()
    assert waited(lambda: holdings.tuned(look.token, "broadcast", 2)).ranges
