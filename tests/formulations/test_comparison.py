"""Several methods on one question: rows, one bound, crossovers, JSON, and the child process."""

import json
import math
import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import formulations
from ccl import text
from ccl.collective import COLLECTIVES, Chunk, all_gather, all_to_all, custom, make_collective
from ccl.errors import FormatError, ProblemError, ScheduleError
from ccl.problem import Problem
from ccl.result import NEAR, Stop
from ccl.serialization.topoloom import result_from_json
from formulations import compare, start_comparison
from formulations.analyses.comparison import (
    SIZES,
    Comparison,
    Method,
    News,
    Row,
    comparison_from_json,
    comparison_to_json,
    default_methods,
    jobs,
    parse_method,
    parse_methods,
    resized,
)
from formulations.analyses.comparison import child as cells
from formulations.analyses.comparison.jobs import ComparisonJob
from formulations.analyses.comparison.table import question, sharing
from formulations.bounds import flow_bounds, lower_bounds
from formulations.core.registry import formulation
from gallery import open_cluster
from tests.ccl.clusters import line, star

ALPHA, BETA = 0.5, 1e-3 / 50.0
"""µs, and µs per byte of 50 GB/s."""


def ring(size: float) -> float:
    """Return the µs of an all-gather round a star of 4: 3 rounds past the switch.

    A quarter of the size crosses both links at once.
    """
    return 3 * (2 * ALPHA + size / 4 * BETA)


def direct(size: float) -> float:
    """Return the µs of direct sends: 3 quarters in turn out of each GPU, past the switch."""
    return 2 * ALPHA + 3 * size / 4 * BETA


def bound(size: float) -> float:
    """Return the µs before which no GPU has its 3 quarters, even if the switch sends on at once."""
    return 2 * ALPHA + 3 * size / 4 * BETA


@pytest.fixture(scope="module")
def problem():
    return Problem(star(4, alpha=ALPHA), all_gather(4, 1e6))


@pytest.fixture(scope="module")
def three(problem):
    return compare(problem, ("ring", "direct", "list"), sizes=(1e6, 1e3))


# Rows


def test_rows_go_by_method_then_by_ascending_size(three):
    """`ring` and `direct` have the derivations; list scheduling meets the bound."""
    expected = [
        *(("ring", size, ring(size)) for size in (1e3, 1e6)),
        *(("direct", size, direct(size)) for size in (1e3, 1e6)),
        *(("list", size, bound(size)) for size in (1e3, 1e6)),
    ]

    assert three.sizes == (1e3, 1e6)
    assert [(str(row.method), row.size) for row in three.rows] == [each[:2] for each in expected]
    assert [row.result.makespan for row in three.rows] == pytest.approx(
        [each[2] for each in expected]
    )
    assert three.row("direct", 1e6).result.problem.collective == all_gather(4, 1e6)
    assert three.row("direct", 5.0) is None


def test_gaps_are_to_one_bound_for_each_size(three):
    assert [each.makespan for each in three.bounds] == pytest.approx([bound(1e3), bound(1e6)])
    assert [three.gap(row) for row in three.rows] == pytest.approx(
        [
            *(ring(size) / bound(size) - 1 for size in (1e3, 1e6)),
            *(direct(size) / bound(size) - 1 for size in (1e3, 1e6)),
            *(0, 0),
        ],
        abs=1e-9,
    )


def test_the_gap_of_whole_chunks_is_kept_apart():
    """One chunk past a GPU takes 2 (α + mβ), the least for it; split, 2α + mβ is proved."""
    asked = Problem(line(3, alpha=ALPHA), make_collective("broadcast", 3, 1e6))
    found = compare(asked, ("direct",), sizes=(1e6,))
    row = found.table()[0]

    assert row["makespan_us"] == pytest.approx(2 * (ALPHA + 1e6 * BETA))
    gap = 1e6 * BETA / (2 * ALPHA + 1e6 * BETA)
    assert row["whole_gap"] == pytest.approx(0, abs=1e-9)
    assert row["status"] == "optimal for whole chunks of 1 MB"
    assert row["gap"] == pytest.approx(gap)
    assert row["own_gap"] >= gap * (1 - 1e-9)


def test_what_is_refused_keeps_its_row_and_the_reason(problem):
    small = replace(problem.topology.devices[0], buffer_bytes=1.0)
    tight = replace(problem.topology, devices=(small, *problem.topology.devices[1:]))
    found = compare(Problem(tight, problem.collective), ("te-ccl-lp", "direct"), sizes=(1e6,))

    assert [row.result for row in found.rows] == [None, None]
    assert found.rows[0].why_not.startswith("it supports all-to-all")
    assert "limited buffer" in found.rows[1].why_not
    assert found.best(1e6) is None
    assert found.gap(found.rows[0]) is None
    assert [each["why_not"] for each in found.table()] == [row.why_not for row in found.rows]


def test_what_finds_no_plan_keeps_its_row_and_the_reason(problem):
    found = compare(problem, ("te-ccl-milp:horizon=1", "ring"), sizes=(1e6,))

    assert "epochs or more" in found.rows[0].why_not
    assert found.best(1e6).method == Method("ring")


def test_a_bug_is_not_taken_for_a_refusal(problem, monkeypatch):
    monkeypatch.setattr(cells, "solved", lambda *_, **__: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        compare(problem, ("ring",), sizes=(1e6,))


def test_bounds_are_proved_once_for_all_methods(problem, monkeypatch):
    """For one size: those for chunks in parts, which are the common ones, and for whole ones."""
    proved = []

    def counted(problem, *, known, seconds):
        proved.append((problem.collective.size, any(each.whole_chunks for each in known)))
        return flow_bounds(problem, known=known, seconds=seconds)

    monkeypatch.setattr(cells, "warm_up", lambda *_: None)
    monkeypatch.setattr("formulations.bounds.flow_bounds", counted)
    compare(problem, ("ring", "direct", "list"), sizes=(1e3, 1e6))

    assert sorted(proved) == [(1e3, False), (1e3, True), (1e6, False), (1e6, True)]


def test_news_tell_every_row_as_soon_as_it_is_there(problem):
    heard: list[News] = []
    found = compare(problem, ("ring", "te-ccl-lp"), sizes=(1e3, 1e6), progress=heard.append)

    assert [news.row for news in heard if news.row] == list(found.rows)
    assert [news.done for news in heard if news.row] == [1, 2, 3, 4]
    assert {news.cells for news in heard} == {4}
    assert any(news.progress and news.progress.incumbent for news in heard)


def test_nothing_that_moves_has_no_bound_and_says_so():
    here = custom(2, [Chunk(1e6, (0,), (0,))])

    with pytest.raises(ProblemError, match="moves nothing"):
        compare(Problem(star(2), here), ("list",), sizes=(1e6,))


# What is asked


def test_by_default_all_that_take_the_problem_are_compared_constructions_first(problem):
    names = [each.formulation for each in default_methods(problem)]
    taken = [each.name for each in formulations.available() if each.why_not(problem) is None]

    assert sorted(names) == sorted(taken)
    assert names.index("direct") < names.index("ring") < names.index("te-ccl-milp")
    assert names[-1] == "auto"


def test_by_default_sizes_go_from_1_kb_to_1_gb(problem):
    asked = question(problem, ("ring",), sizes=None, time_limit=None)

    assert asked.sizes == SIZES == tuple(sorted(SIZES))
    assert (SIZES[0], SIZES[-1]) == (1e3, 1e9)
    assert [each.collective.size for each in asked.problems] == list(SIZES)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("ring", {}),
        ("list:passes=3,symmetry=no", {"passes": 3, "symmetry": False}),
        ("te-ccl-milp:epoch-duration=2.5", {"epoch_duration": 2.5}),
        ("auto:effort=quick,seed=0", {"effort": "quick"}),
    ],
)
def test_a_method_is_read_with_its_options(text, options):
    """A seed of 0 is the default and says nothing."""
    method = parse_method(text)

    assert method == Method(text.partition(":")[0], options)
    assert parse_method(str(method)) == method


def test_commas_join_methods_and_options():
    text = "ring,list:passes=3,symmetry=false, direct,auto:effort=quick"

    assert ",".join(map(str, parse_methods(text))) == text.replace(" ", "")
    assert [each.formulation for each in parse_methods(text)] == ["ring", "list", "direct", "auto"]


def test_methods_with_different_sketches_are_different(problem):
    """A sketch has no name: digits of its plain form tell it from others, and a file keeps it."""
    sketches = {"few": {"switches": "uc-min"}, "two": {"instances": 2}}
    text = "taccl,taccl:sketch=few,taccl:sketch=two"
    found = compare(problem, parse_methods(text, sketch=sketches.__getitem__), sizes=(1e6,))
    again = comparison_from_json(json.loads(json.dumps(comparison_to_json(found))))

    assert [dict(each.options) for each in found.methods] == [
        {},
        *({"sketch": each} for each in sketches.values()),
    ]
    assert len({str(each) for each in found.methods}) == 3
    assert all(row.result for row in found.rows)
    assert again == found
    with pytest.raises(ProblemError, match="give a sketch"):
        parse_methods(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rink", "did you mean ring"),
        ("list:pases=3", "list has no option 'pases'; did you mean passes"),
        ("list:passes", "'passes' has no value; write list:option=value"),
        ("list:passes=many", "list: option passes is 'many'; give a number"),
        ("list:passes=0", "list: option passes is '0'; give at least 1"),
        ("list:symmetry=perhaps", "give true or false"),
        ("auto:effort=great", "choose one of quick, normal, thorough"),
        ("direct:passes=3", "it has no options"),
    ],
)
def test_a_wrong_method_is_answered_in_a_sentence(problem, text, message):
    with pytest.raises(ProblemError, match=message):
        compare(problem, (text,))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"formulations": ()}, "no formulation is given to compare; choose from auto"),
        ({"sizes": ()}, "no size is given"),
        ({"sizes": (1e6, -1.0)}, "is -1 bytes"),
        ({"sizes": (math.inf,)}, "is inf bytes"),
        ({"time_limit": 0.0}, "is 0 s"),
        ({"formulations": (Method("list", {"passes": 0}),)}, "passes is 0"),
    ],
)
def test_a_wrong_question_is_refused_before_anything_is_solved(problem, given, message):
    with pytest.raises(ProblemError, match=message):
        compare(problem, **{"formulations": ("ring",), **given})


def test_what_is_given_twice_is_solved_once(problem):
    found = compare(problem, ("ring", "list", "list:passes=120"), sizes=(1e6, 1e6))

    assert [str(each) for each in found.methods] == ["ring", "list"]
    assert len(found.rows) == 2


@pytest.mark.parametrize("kind", [each for each in COLLECTIVES if each != "custom"])
@pytest.mark.parametrize("chunks", [1, 3])
def test_a_collective_of_another_size_is_the_one_its_name_makes(kind, chunks):
    before = make_collective(kind, 5, 1e6, chunks=chunks, root=2)

    assert resized(before, 3e7) == make_collective(kind, 5, 3e7, chunks=chunks, root=2)


def test_chunks_of_their_own_are_scaled_each():
    """3 KB in chunks of 1 KB and 2 KB become 6 KB; ends, priorities and tenants stay."""
    first = Chunk(1e3, (0,), (1,), priority=2.0)
    second = Chunk(2e3, (1,), (2, 0), tenant="b")
    larger = (replace(first, size=2e3), replace(second, size=4e3))
    weighted = all_to_all(2, 2e3)
    weighted = replace(
        weighted, chunks=(replace(weighted.chunks[0], priority=2.0), *weighted.chunks[1:])
    )

    assert resized(custom(3, [first, second]), 6e3) == custom(3, larger)
    assert [each.size for each in resized(weighted, 4e3).chunks] == [2e3, 2e3]
    assert resized(weighted, 4e3).chunks[0].priority == 2.0


# Crossovers


def broadcast():
    """Return a broadcast in 4 chunks on a star, for `ring_broadcast` and `direct_broadcast`."""
    return Problem(star(4, alpha=ALPHA), make_collective("broadcast", 4, 1e6, chunks=4))


def ring_broadcast(size: float) -> float:
    """Return the µs of 4 chunks that follow one another past 3 switches, 2 latencies each."""
    return 3 * 2 * ALPHA + (3 + 3) * size / 4 * BETA


def direct_broadcast(size: float) -> float:
    """Return the µs of 3 copies of all that leave the root one after the other."""
    return 2 * ALPHA + 3 * size * BETA


def test_curves_cross_where_the_straight_lines_between_two_sizes_do():
    """With l the logarithm of the ratio of both times at the two ends, at l0 / (l0 + l1)."""
    low, high = 1e4, 1e6
    found = compare(broadcast(), ("ring", "direct"), sizes=(low, high)).crossovers()
    first = math.log(ring_broadcast(low) / direct_broadcast(low))
    last = math.log(direct_broadcast(high) / ring_broadcast(high))
    share = first / (first + last)

    assert [(str(each.before), str(each.after)) for each in found] == [("direct", "ring")]
    assert found[0].size == pytest.approx(low * (high / low) ** share)
    assert found[0].makespan == pytest.approx(
        ring_broadcast(low) ** (1 - share) * ring_broadcast(high) ** share
    )


def test_with_sizes_close_to_it_the_crossover_is_that_of_the_formulas():
    """6α + 3/2 mβ = 2α + 3 mβ at m = 8/3 α/β, where both take 10 α."""
    size = 8 / 3 * ALPHA / BETA
    sizes = (0.99 * size, 1.01 * size)
    found = compare(broadcast(), ("ring", "direct"), sizes=sizes).crossovers()

    assert found[0].size == pytest.approx(size, rel=1e-4)
    assert found[0].makespan == pytest.approx(10 * ALPHA, rel=1e-4)


def drawn(problem, times, sizes=(1e3, 1e6)):
    """Return a comparison in which methods have given makespans, or None for no result."""
    methods = tuple(map(Method, times))
    rows = tuple(
        Row(method, size, None if made is None else SimpleNamespace(makespan=made))
        for method in methods
        for size, made in zip(sizes, times[method.formulation], strict=True)
    )
    bounds = lower_bounds(problem)[:1] * len(sizes)
    return Comparison(problem, methods, sizes, bounds, rows)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(1.0, 1e6), st.floats(1.0, 1e6)), min_size=1, max_size=6, unique=True
    )
)
def test_between_two_sizes_the_fastest_is_always_known(ends):
    """Who the crossovers name has, at 40 places, the least of all straight lines."""
    problem = Problem(star(2), all_gather(2, 1e3))
    times = {f"m{place}": each for place, each in enumerate(ends)}
    found = drawn(problem, times)
    crossovers = found.crossovers()

    def at(name, share):
        return (1 - share) * math.log(times[name][0]) + share * math.log(times[name][1])

    for step in range(41):
        share = step / 40
        size = 1e3 * 1e3**share
        now = str(found.leaders()[0])
        for each in crossovers:
            now = str(each.after) if each.size <= size else now
        assert at(now, share) == pytest.approx(min(at(name, share) for name in times), abs=1e-4)
    assert len({str(each.after) for each in crossovers}) == len(crossovers)


def test_a_third_that_is_fastest_in_between_takes_over_for_a_while(problem):
    """Lines from 1 to 100, from 100 to 1 and from 4 to 4 µs meet at 4 µs: where 100^x = 4."""
    found = drawn(problem, {"a": (1, 100), "b": (100, 1), "c": (4, 4)}).crossovers()
    share = math.log(4) / math.log(100)

    assert [str(each.after) for each in found] == ["c", "b"]
    assert [each.size for each in found] == pytest.approx(
        [1e3 * 1e3**share, 1e3 * 1e3 ** (1 - share)]
    )
    assert [each.makespan for each in found] == pytest.approx([4, 4])


def test_who_takes_the_same_takes_over_from_nobody(problem):
    sizes = (1e3, 1e4, 1e5)
    found = drawn(problem, {"a": (2, 2, 3), "b": (1, 2 - 1e-9, 4), "c": (1, 2, 4)}, sizes)

    assert str(found.best(1e3).method) == "b"
    assert [(str(each.before), str(each.after)) for each in found.crossovers()] == [("b", "a")]
    assert found.crossovers()[0].size == pytest.approx(1e4)


def test_of_several_that_take_over_together_it_is_who_was_asked_first(problem):
    found = drawn(problem, {"a": (1, 4), "z": (2, 2), "b": (2, 2 + 1e-9), "c": (2, 2 - 1e-9)})

    assert [str(each.after) for each in found.crossovers()] == ["z"]
    assert str(found.leaders()[1]) == str(found.best(1e6).method) == "z"


def test_who_takes_the_same_leads_as_long_as_it_does(problem):
    """At the first size the one that leads after it, though another was asked before."""
    sizes = (1e3, 1e4, 1e5)
    found = drawn(problem, {"a": (1, 2, 3), "b": (1, 1, 3), "c": (2, 1, 3)}, sizes)

    assert found.crossovers() == ()
    assert [str(each) for each in found.leaders()] == ["b", "b", "b"]
    assert str(found.best(1e3).method) == "b"


def test_nothing_is_interpolated_where_a_result_is_missing(problem):
    gone = drawn(problem, {"a": (1, None), "b": (2, 2)})
    new = drawn(problem, {"a": (1, 3), "b": (None, 2)})

    assert (gone.crossovers(), new.crossovers()) == ((), ())


# JSON


def test_a_comparison_is_the_same_after_a_round_trip(problem):
    found = compare(problem, ("ring", "list:passes=3", "te-ccl-lp", "forestcoll"), sizes=(1e3, 1e6))
    again = comparison_from_json(json.loads(json.dumps(comparison_to_json(found))))

    assert again == found
    assert again.table() == found.table()


def test_a_row_may_answer_the_question_with_its_chunks_cut(problem, monkeypatch):
    """As automatic chunks allow: it keeps the problem that it answers, in a file, too."""
    chosen = formulation("list")

    def finer(run, options):
        cut = replace(run.problem, collective=run.problem.collective.cut(3))
        return chosen.run(replace(run, problem=cut, bounds=lower_bounds(cut)), options)

    monkeypatch.setattr(cells, "formulation", lambda _: replace(chosen, run=finer))
    found = compare(problem, ("list",), sizes=(1e3, 1e6))
    read = comparison_from_json(json.loads(json.dumps(comparison_to_json(found))))

    assert read == found
    for row in read.rows:
        asked = replace(problem, collective=all_gather(4, row.size))
        assert row.result.problem.collective == asked.collective.cut(3)
        assert sharing(row.result, asked) is row.result


def test_what_is_read_is_verified_again(three):
    value = comparison_to_json(three)
    value["rows"][1]["result"]["plan"]["sends"].pop()

    with pytest.raises(ScheduleError):
        comparison_from_json(value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda value: value["bounds"][1].update(makespan=1e9), "nothing is faster than 1e"),
        (lambda value: value["bounds"].pop(), "there are 1 for 2 sizes"),
        (lambda value: value["rows"][0].update(method=7), "there is no method 7"),
        (lambda value: value["sizes"].reverse(), "ascending"),
        (lambda value: value.update(colour="red"), "colour"),
        (lambda value: value.update(format="topoloom/1"), "format"),
        (
            lambda value: value["bounds"][0].update(witness={"witness": "path", "devices": ["x"]}),
            "names 'x'",
        ),
    ],
)
def test_what_is_untrue_is_not_read(three, change, message):
    value = json.loads(json.dumps(comparison_to_json(three)))
    change(value)

    with pytest.raises(FormatError, match=message):
        comparison_from_json(value)


# In a child process


def same(one, other):
    """Whether two comparisons have the same rows, seconds aside."""
    timeless = [[dict(row, solve_s=0) for row in each.table()] for each in (one, other)]
    return timeless[0] == timeless[1] and one.bounds == other.bounds


def test_a_job_answers_as_the_comparison_in_this_process_does(problem, three):
    job = start_comparison(problem, ("ring", "direct", "list"), sizes=(1e3, 1e6))
    news = []
    for each in job:
        news.append(each)
        os.kill(job.pid, signal.SIGINT)  # a terminal's Ctrl-C, which is for the parent

    assert same(job.comparison(), three)
    assert [each.row for each in news if each.row] == job.rows
    assert not job.running


@pytest.fixture(scope="module")
def large():
    """What no integer program is done with in a minute, and direct sends are at once."""
    return Problem(open_cluster("dgx-2-te-ccl"), make_collective("all-gather", 32, 1e6))


BUSY = "te-ccl-milp"


def until_busy(job):
    for news in job:
        if news.method == Method(BUSY) and news.progress is not None:
            return


def test_cancelling_keeps_the_rows_and_ends_the_process(large):
    job = start_comparison(large, ("direct", BUSY, "list"), sizes=(1e6,), time_limit=600)
    until_busy(job)
    job.cancel()
    after = list(job)
    found = job.comparison()

    assert not job.running
    assert str(found.rows[0].method) == "direct"
    assert found.rows[0].result.makespan > found.bounds[0].makespan
    assert [str(row.method) for row in found.rows[1:]] in ([], [BUSY])
    assert all(row.result.stop is Stop.CANCELLED for row in found.rows[1:])
    assert [each.row for each in after if each.row] == list(found.rows[1:])


def test_a_job_cancelled_between_two_processes_begins_no_other(large):
    """Its first cell's row is told when that cell's process has died."""
    job = start_comparison(large, (BUSY, "direct"), sizes=(1e6,), time_limit=600)
    until_busy(job)
    os.kill(job.pid, signal.SIGKILL)
    for news in job:
        if news.row is not None:
            job.cancel()

    assert len(job.rows) == 1
    assert job.cancelled
    assert not job.running


def test_a_job_cancelled_before_its_bounds_has_nothing(problem):
    job = start_comparison(problem, ("ring",))
    job.cancel()

    assert list(job) == []
    assert (job.comparison().sizes, job.comparison().rows) == ((), ())


def test_a_process_that_dies_costs_one_cell(large):
    job = start_comparison(large, (BUSY, "direct"), sizes=(1e6,), time_limit=600)
    until_busy(job)
    os.kill(job.pid, signal.SIGKILL)
    found = job.result()

    assert "ended by signal 9" in found.rows[0].why_not
    assert found.rows[1].result is not None


@pytest.mark.slow
def test_a_solver_that_does_not_stop_is_ended_and_costs_one_cell(large):
    """It may take 600 s and gets one; the next cell has a process of its own."""
    asked = question(large, (BUSY,), sizes=(1e6, 2e6), time_limit=600)
    job = ComparisonJob(asked, patience=1.0)
    pids = {job.pid for _ in job}
    found = job.comparison()

    assert len(pids) == len(found.rows) == 2
    assert not job.cancelled
    for row in found.rows:
        said = (
            "found no schedule and was ended, as it did not stop within 1 s, though 600 s"
            in row.why_not
        )
        assert said or row.result.stop is Stop.TIME_LIMIT


def test_a_plan_that_breaks_a_rule_costs_one_cell(problem, monkeypatch):
    """The child tells a plan with a send too few, and then the rest."""
    job = start_comparison(problem, ("direct", "ring"), sizes=(1e6,))

    def told(value):
        if value["formulation"] == "direct":
            value["plan"]["sends"].pop()
        return result_from_json(value)

    monkeypatch.setattr(jobs.topoloom, "result_from_json", told)
    found = job.result()

    assert found.rows[0].result is None
    assert found.rows[0].why_not.startswith("its result is not one: ")
    assert found.rows[1].result is not None


def test_a_bug_in_the_child_is_its_last_words():
    """Its thread reads the pipe of requests, which this process keeps open."""
    code = """
        import threading
        from formulations.jobs.child import leave, until_abandoned
        def serve(requests, answers):
            threading.Thread(target=until_abandoned, args=(requests,), daemon=True).start()
            1 / 0
        leave(serve)
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.wait() == 1
        assert child.stderr.read().splitlines()[-1] == "ZeroDivisionError: division by zero"


def test_an_error_of_the_question_is_raised_by_the_job():
    here = custom(2, [Chunk(1e6, (0,), (0,))])
    job = start_comparison(Problem(star(2), here), ("list",), sizes=(1e6,))

    with pytest.raises(ProblemError, match="moves nothing"):
        job.result()
    assert not job.running


def test_a_status_speaks_of_the_bound_that_the_gap_speaks_of():
    """A row whose own bound is lower is within as much of the common one as its gap says."""
    problem = Problem(open_cluster("ndv2:hosts=2"), all_gather(16, 1e6))
    found = compare(problem, ("direct",), sizes=(1e6,))
    (row,) = found.rows
    assert row.result is not None
    weak = replace(row.result.bounds[-1], makespan=row.result.makespan / 1.3, steady=False)
    result = replace(row.result, bounds=(weak,))
    loose = replace(row, result=result)
    gap = found.gap(row)
    assert gap is not None
    assert 0.01 < gap < NEAR
    assert result.verdict == "feasible"
    assert found.verdict(loose) == f"within {text.share(gap)} of the bound"
