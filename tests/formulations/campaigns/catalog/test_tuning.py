"""Tables over sizes: scaled plans, the lower envelope, crossovers, what is written."""

import csv
import io
import json
from dataclasses import replace
from unittest.mock import Mock

import pytest

from benchmarks.shuffled import shuffled
from ccl.collective import all_gather, all_reduce, make_collective
from ccl.errors import ProblemError, ScheduleError
from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.simulate import simulate
from ccl.topology import Topology
from formulations import compare, solve
from formulations.campaigns.catalog import (
    Catalog,
    atlas_of,
    read_lines,
    regimes,
    tuned,
    tuning,
    write_lines,
)
from formulations.campaigns.catalog.answering import fill
from formulations.campaigns.catalog.tuning import scaled, sized
from gallery import open_cluster

SMALL = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)


@pytest.fixture
def catalog(tmp_path):
    return Catalog(tmp_path / "catalog.sqlite")


def asked(name, kind, size=1e6, **more):
    topology = open_cluster(name)
    return Problem(topology, make_collective(kind, len(topology.ranks), size, **more))


@pytest.mark.parametrize("method", ["ring", "direct", "recursive-doubling"])
@pytest.mark.parametrize("kind", ["all-gather", "all-reduce"])
@pytest.mark.parametrize("size", [1e3, 1e8])
def test_a_scaled_closed_form_takes_what_it_takes_when_solved_at_that_size(method, kind, size):
    """Their sends do not depend on the size, only how long each takes."""
    problem = asked("dgx-1v", kind)
    _, makespan = scaled(problem, solve(problem, method).plan, size)

    assert makespan == pytest.approx(solve(sized(problem, size), method).makespan)


def test_a_scaled_schedule_takes_alpha_and_beta_by_hand():
    """A ring of 8 one way: 7 steps of 0.7 µs and an eighth of the bytes at 50 GB/s."""
    problem = asked("ring", "all-gather")
    plan = solve(problem, "ring", options={"directions": "one"}).plan
    for size in (8e2, 8e5, 8e8):
        assert scaled(problem, plan, size)[1] == pytest.approx(7 * (0.7 + size / 8 / 50e3))


def test_forests_hold_at_any_size():
    problem = asked("dgx-1v", "all-gather")
    plan = solve(problem, "forestcoll").plan
    moved, makespan = scaled(problem, plan, 1e8)

    assert moved == plan
    assert makespan == simulate(sized(problem, 1e8), plan).makespan


def test_what_is_no_plan_at_a_size_is_refused():
    """Buffers of 1 MB hold an all-gather of that size, and not one ten times as large."""
    topology = open_cluster("ring")
    tight = tuple(replace(each, buffer_bytes=1.5e6) for each in topology.devices)
    problem = Problem(replace(topology, devices=tight), all_gather(8, 1e6))
    plan = solve(Problem(topology, all_gather(8, 1e6)), "ring").plan

    assert isinstance(scaled(problem, plan, 1e5)[0], Schedule)
    with pytest.raises(ScheduleError):
        scaled(problem, plan, 1e7)


def test_the_table_is_the_lower_envelope_of_all_plans(catalog):
    """At every size of the grid the range's plan is within 0.2 % of the best of all."""
    topology = open_cluster("dgx-1v")
    plans = []
    for method in ("ring", "direct", "tacos", "halving-doubling"):
        result = solve(asked("dgx-1v", "all-gather"), method)
        catalog.keep(result)
        plans.append((result.problem, result.plan))
    table = tuned(catalog, topology, all_gather(8, 1.0), sizes=SMALL)

    assert [each.begin for each in table.ranges[1:]] == [each.end for each in table.ranges[:-1]]
    assert (table.ranges[0].begin, table.ranges[-1].end) == (SMALL[0], SMALL[-1])
    assert len(table.ranges) > 1
    for size in (*SMALL, 31_623, 2_000_000):
        best = min(scaled(problem, plan, float(size))[1] for problem, plan in plans)
        entry = table.at(size).entry
        own = next(plan for problem, plan in plans if plan == catalog.load(entry).plan)
        assert scaled(plans[0][0], own, float(size))[1] <= best * 1.002
    assert table.at(SMALL[0] - 1) is None
    assert table.at(SMALL[-1]) is table.ranges[-1]


def test_a_crossover_is_where_it_is_by_hand(catalog):
    """Of two lines T = a + c m one is 0.2 % above the other where a1 + c1 m = 1.002 (a2 + c2 m).

    Recursive doubling has few steps and sends much, direct sends the other way round; a and c of
    both are read off their replays at two sizes.
    """
    problem = asked("dgx-1v", "all-reduce")
    lines = []
    for method in ("recursive-doubling", "direct"):
        result = solve(problem, method)
        catalog.keep(result)
        low, high = (scaled(problem, result.plan, size)[1] for size in (2e4, 2e5))
        slope = (high - low) / 1.8e5
        lines.append((low - slope * 2e4, slope))
    (a1, c1), (a2, c2) = lines
    # A leader stays until another is faster by 0.2 %.
    left = (1.002 * a2 - a1) / (c1 - 1.002 * c2)
    table = tuned(catalog, problem.topology, all_reduce(8, 1.0), sizes=SMALL)
    names = [each.algorithm for each in table.ranges]

    assert names == ["recursive-doubling", "direct"]
    assert table.ranges[1].begin == pytest.approx(left, rel=2e-3)


def test_plans_that_cannot_be_the_fastest_are_not_replayed(catalog, monkeypatch):
    """The table is the same as with all of them, after a part of the replays."""
    for method in ("ring", "direct", "recursive-doubling", "halving-doubling", "bruck"):
        catalog.keep(solve(asked("dgx-1v", "all-gather"), method))
    asked_for = (catalog, open_cluster("dgx-1v"), all_gather(8, 1.0))
    replay = Mock(wraps=tuning.scaled)
    monkeypatch.setattr(tuning, "scaled", replay)
    table, few = tuned(*asked_for), replay.call_count
    monkeypatch.setattr(tuning.Curves, "floor", lambda *_: 0.0)
    assert tuned(*asked_for) == table
    assert few < (replay.call_count - few) / 2


def test_a_table_of_another_drawing_is_the_same(catalog):
    problem = asked("dgx-1v", "all-gather")
    for method in ("direct", "tacos"):
        catalog.keep(solve(problem, method))
    catalog.keep(solve(asked("dgx-1v", "all-gather", chunks=2), "tacos"))
    one = tuned(catalog, problem.topology, problem.collective, sizes=SMALL)
    two = tuned(catalog, shuffled(problem.topology, seed=1), problem.collective, sizes=SMALL)

    assert [(each.begin, each.end, each.entry.number) for each in one.ranges] == [
        (each.begin, each.end, each.entry.number) for each in two.ranges
    ]
    assert {each.entry.chunks for each in one.ranges} == {1, 2}


def test_what_is_written_says_what_the_table_says(catalog):
    catalog.keep(solve(asked("dgx-1v", "all-gather"), "direct"))
    catalog.keep(solve(asked("dgx-1v", "all-gather"), "tacos"))
    table = tuned(catalog, open_cluster("dgx-1v"), all_gather(8, 1.0), sizes=SMALL)
    rows = list(csv.DictReader(io.StringIO(table.to_csv())))
    value = json.loads(json.dumps(table.to_json()))

    assert [int(row["min_bytes"]) for row in rows] == [each.begin for each in table.ranges]
    assert int(rows[0]["max_bytes"]) + 1 == int(rows[1]["min_bytes"])
    assert int(rows[-1]["max_bytes"]) == SMALL[-1]
    assert {row["collective"] for row in rows} == {"allgather"}
    assert [each["algorithm"] for each in value["ranges"]] == [row["algorithm"] for row in rows]
    for each in value["ranges"]:
        assert each["algbw_GBps"][0] == pytest.approx(each["min_bytes"] / each["time_us"][0] / 1e3)
        assert each["bound_us"][0] <= each["time_us"][0] * (1 + 1e-9)


def test_no_plans_make_an_empty_table_and_one_size_is_no_range(catalog):
    topology = open_cluster("ring")
    assert tuned(catalog, topology, all_gather(8, 1.0), sizes=SMALL).ranges == ()
    with pytest.raises(ProblemError, match="needs two or more"):
        tuned(catalog, topology, all_gather(8, 1.0), sizes=[1000])
    with pytest.raises(ProblemError, match=r"1.5 bytes"):
        tuned(catalog, topology, all_gather(8, 1.0), sizes=[1.5, 1000])


def test_an_atlas_says_who_is_the_best_and_what_it_gains_on_a_ring(catalog):
    """From a catalog and from comparisons alike, where every method's plan holds at every size."""
    topology = open_cluster("dgx-1v")
    methods, kinds = ("ring", "direct", "tree"), ("all-gather", "all-reduce", "gather")
    said = fill(catalog, topology, kinds, methods=methods, sizes=(1e6,))
    sizes = (1e3, 1e6)
    found = regimes(catalog, topology, kinds, sizes=sizes)
    again = atlas_of([compare(asked("dgx-1v", kind), methods, sizes=sizes) for kind in kinds])

    assert any("tree cannot take all-gather" in each for each in said)
    assert [each.method for each in found.cells] == [each.method for each in again.cells]
    for one, two in zip(found.cells, again.cells, strict=True):
        assert one.makespan == pytest.approx(two.makespan)
        assert (one.gain is None) == (one.kind == "gather")
        if one.gain is not None:
            assert one.gain == pytest.approx(two.gain)
            assert one.gain >= 1.0
    assert found.cell("all-reduce", 1e3).gain > 2
    empty = regimes(catalog, topology, ["all-to-all"], sizes=sizes)
    assert [each.method for each in empty.cells] == [None, None]
    assert empty.methods == ()


def test_lines_carry_plans_to_another_catalog(catalog, tmp_path):
    for kind in ("all-gather", "all-reduce"):
        catalog.keep(solve(asked("ring", kind), "list"), time_limit=3.0)
    path, other = tmp_path / "plans.jsonl", Catalog(tmp_path / "other.sqlite")

    assert write_lines(catalog, path, catalog.entries()) == 2
    assert read_lines(other, path).stored == 2
    assert read_lines(other, path).known == 2

    def plain(each):
        return replace(each, number=0, kept="", nbytes=0)

    assert list(map(plain, other.entries())) == list(map(plain, catalog.entries()))


def test_lines_that_are_none_are_told_and_the_others_kept(catalog, tmp_path):
    """A plan that lost a send, a line that is no JSON, and a good one."""
    path, other = tmp_path / "plans.jsonl", Catalog(tmp_path / "other.sqlite")
    catalog.keep(solve(asked("ring", "all-gather"), "ring"))
    write_lines(catalog, path, catalog.entries())
    good = path.read_text("utf-8")
    value = json.loads(good)
    value["result"]["plan"]["sends"].pop()
    path.write_text("{oh\n" + json.dumps(value) + "\n" + good, "utf-8")
    read = read_lines(other, path)

    assert read.stored == 1
    assert [each[: len("plans.jsonl, line 1")] for each in read.refused] == [
        "plans.jsonl, line 1", "plans.jsonl, line 2",
    ]  # fmt: skip
    assert other.count() == 1


def test_topologies_are_told_apart_in_a_family(catalog):
    """Plans of a ring say nothing about a ring whose links are faster."""
    ring = open_cluster("ring")
    catalog.keep(solve(Problem(ring, all_gather(8, 1e6)), "ring"))
    links = tuple(replace(each, bandwidth=2 * each.bandwidth) for each in ring.links)
    faster = Topology("faster", ring.devices, links)

    assert catalog.family(Problem(faster, all_gather(8, 1e6))) == ()
    assert len(catalog.family(Problem(ring, all_gather(8, 7.0, chunks=3)))) == 1
