"""The Compare view without a browser: what is asked, what runs, what the table and files say."""

from __future__ import annotations

import csv
import io
import json
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ccl.collective import make_collective
from ccl.errors import CclError, LimitReached, ProblemError
from ccl.problem import Problem
from ccl.serialization.topoloom import problem_to_json, topology_to_json
from ccl.text import duration
from designer.jobs import Limits
from designer.views.compare.callbacks import export, export_csv, export_json
from designer.views.compare.page import method_rows, notes, status
from designer.views.compare.running import (
    MOST_SIZES,
    MOST_STORED,
    Comparisons,
    Standing,
    changed_since,
    read_question,
    sizes_of,
    sizes_words,
    usual_methods,
)
from designer.views.compare.table import bar, detail, makespan_words, table
from formulations import available, compare
from formulations.analyses.comparison import Comparison, News, comparison_from_json
from formulations.core.run import Progress
from tests.ccl.clusters import line
from widgets.view_model.scene import key_of

REQUEST = {"collective": "all-gather", "size": "1MB", "chunks": 1, "root": 0}
METHODS = ("direct", "ring", "tree")


@pytest.fixture(scope="module")
def asked(ring):
    drawn = topology_to_json(ring)
    return read_question(drawn, REQUEST, methods=METHODS, sizes="4KB, 4MB", seconds=5)


@pytest.fixture(scope="module")
def compared(asked):
    return compare(asked.problem, METHODS, sizes=asked.sizes, time_limit=5)


@pytest.fixture(scope="module")
def finished(asked, compared):
    return Standing(asked, compared, False, False, 9, None, 1.5)


def words(part):
    """Return all text of a part of the page."""
    if part is None:
        return ""
    if isinstance(part, list | tuple):
        return " ".join(filter(None, map(words, part)))
    return words(part.children) if hasattr(part, "children") else str(part)


def parts(part, found=None):
    """Return every component of a part of the page."""
    found = [] if found is None else found
    if isinstance(part, list | tuple):
        for each in part:
            parts(each, found)
    elif hasattr(part, "to_plotly_json"):
        found.append(part)
        parts(getattr(part, "children", None), found)
    return found


def named(part, kind):
    """Return the ids of the buttons of a kind."""
    ids = [getattr(each, "id", None) for each in parts(part)]
    return [each for each in ids if isinstance(each, dict) and kind in each]


# What is asked


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("16KB, 1MB", [16e3, 1e6]),
        ("1MB; 16 KiB\n4096", [4096, 16384, 1e6]),
        ("1KB to 100KB by 10", [1e3, 1e4, 1e5]),
        ("1KB to 30KB", [1e3, 4e3, 16e3]),
        ("1MB, 1KB TO 4KB x 2, 1kb", [1e3, 2e3, 4e3, 1e6]),
    ],
)
def test_sizes_are_lists_and_ranges(text, wanted):
    assert sizes_of(text) == pytest.approx(tuple(wanted))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no size is given"),
        ("16KB, lots", "'lots' is not a number of bytes"),
        ("1MB to 1KB by 2", "give the smaller one first"),
        ("1KB to 1MB by 1", "more than 1"),
        ("1KB to 1MB by 1.2.3", "more than 1"),
        ("1KB to 1GB by 1.1", f"at most {MOST_SIZES}"),
    ],
)
def test_what_is_no_size_is_refused_in_words(text, why):
    with pytest.raises(CclError, match=why):
        sizes_of(text)
    meant, wrong = sizes_words(text)
    assert meant == ""
    assert wrong


def test_a_text_about_sizes_is_read_back():
    assert sizes_words("1KB to 100KB by 10") == ("3 of them: 1 KB, 10 KB, 100 KB", "")
    assert sizes_words("1MB") == ("1 MB", "")


def test_the_size_of_the_header_does_not_matter(drawn, asked):
    other = read_question(
        drawn, {**REQUEST, "size": "no size"}, methods=METHODS, sizes="4KB,4MB", seconds="5"
    )

    assert other.problem == asked.problem
    assert other.problem.collective.size == 4e3
    assert (other.sizes, other.seconds) == ((4e3, 4e6), 5.0)


def test_constructions_come_first_and_options_are_those_set(drawn):
    methods = ["auto", "te-ccl-milp", "ring", "direct", "nobody"]
    options = {"te-ccl-milp": {"epoch": "slowest"}, "list": {"passes": 3}}
    found = read_question(
        drawn, REQUEST, methods=methods, sizes="1MB", seconds=1, options=options
    ).methods

    assert [str(each) for each in found] == ["direct", "ring", "te-ccl-milp:epoch=slowest", "auto"]


def test_methods_that_refuse_the_problem_are_left_out(drawn):
    """An all-gather is no demand of pairs, whatever the page showed when they were ticked."""
    both = read_question(drawn, REQUEST, methods=["ring", "orbit-lp"], sizes="1MB", seconds=1)
    none = read_question(drawn, REQUEST, methods=["orbit-lp"], sizes="1MB", seconds=1)

    assert [str(each) for each in both.taken().methods] == ["ring"]
    with pytest.raises(ProblemError, match="no method is chosen"):
        none.taken()


def test_what_is_missing_is_told(drawn):
    def ask(**changes):
        given = {"methods": METHODS, "sizes": "1MB", "seconds": 1} | changes
        return read_question(drawn, REQUEST, **given)

    with pytest.raises(ProblemError, match="no method is chosen"):
        ask(methods=[])
    with pytest.raises(ProblemError, match="seconds per solve is empty"):
        ask(seconds="")
    with pytest.raises(CclError, match="more than 0 s"):
        ask(seconds=-1)


def test_a_comparison_is_old_when_drawing_or_question_change(drawn, asked):
    assert changed_since(asked, drawn, REQUEST) == ""
    assert changed_since(asked, {**drawn, "name": "other"}, {**REQUEST, "size": "9GB"}) == ""
    assert changed_since(asked, drawn, {**REQUEST, "root": 2}) == ""
    assert changed_since(asked, drawn, {**REQUEST, "chunks": 2}) == "the request"
    assert changed_since(asked, drawn, {**REQUEST, "collective": "all-reduce"}) == "the request"
    faster = [{**each, "bandwidth": 51.0} for each in drawn["links"]]
    assert changed_since(asked, {**drawn, "links": faster}, REQUEST) == "the drawing"
    assert changed_since(asked, {**drawn, "links": [{"src": 1}]}, REQUEST) == "the drawing"


def test_every_formulation_has_its_box_and_those_that_refuse_say_why():
    rows = method_rows({"tree": "it supports all-reduce only"})
    boxes = {each.value.partition(":")[0]: each for each in rows if hasattr(each, "value")}

    # A tick is by its value, so what refuses has none, whatever is chosen.
    assert [name for name, each in boxes.items() if each.value != name] == ["tree"]
    assert set(boxes) == {each.name for each in available()}
    assert [name for name, each in boxes.items() if each.disabled] == ["tree"]
    assert "Unavailable: it supports all-reduce only" in words(boxes["tree"].description)
    assert set(usual_methods()) <= set(boxes)


# What runs


class FakeJob:
    """A comparison that tells what it is given, then waits to be cancelled or let go."""

    def __init__(self, compared, *, news=(), error=None, waits=True):
        self.compared, self.news, self.error = compared, news, error
        self.rows = 0
        self.cancelled = False
        self.end = threading.Event()
        if not waits:
            self.end.set()

    def __iter__(self):
        for each in self.news:
            self.rows += each.row is not None
            yield each
        if self.error is not None:
            raise self.error
        self.end.wait(10)

    def comparison(self):
        return replace(self.compared, rows=self.compared.rows[: self.rows])

    def cancel(self):
        self.cancelled = True
        self.end.set()


@pytest.fixture
def running():
    """Make registries whose comparisons are these, in order."""
    made = []

    def make(*jobs, **options):
        waiting = list(jobs)
        found = Comparisons(lambda *_args, **_kwargs: waiting.pop(0), **options)
        made.append(found)
        return found

    yield make
    for each in made:
        each.close()


def until(comparisons, key, wanted):
    """Return the first standing that is as wanted."""
    for _ in range(300):
        standing = comparisons.standing(key)
        if wanted(standing):
            return standing
        time.sleep(0.01)
    pytest.fail("it never came to that")


def news_of(compared):
    """Return the news of one cell: it begins, says something, and has its row."""
    row = compared.rows[0]
    begin = News(0, len(compared.rows), row.method, row.size)
    told = replace(begin, progress=Progress(0.2, 40.0, 10.0, "a plan"))
    return [begin, told, replace(begin, done=1, row=row)]


def test_rows_are_there_as_they_come_and_progress_is_no_new_turn(running, asked, compared):
    comparisons = running(FakeJob(compared, news=news_of(compared)))
    key = comparisons.start(asked)
    standing = until(comparisons, key, lambda each: len(each.comparison.rows) == 1)

    assert standing.running
    assert standing.turn == 2
    assert standing.now.row == compared.rows[0]
    assert comparisons.running(key)
    assert comparisons.standing("another") is None
    assert not comparisons.running(None)


def test_a_stop_keeps_the_rows(running, asked, compared):
    job = FakeJob(compared, news=news_of(compared))
    comparisons = running(job)
    key = comparisons.start(asked)
    until(comparisons, key, lambda each: len(each.comparison.rows) == 1)
    comparisons.cancel(key)
    standing = until(comparisons, key, lambda each: not each.running)

    assert job.cancelled
    assert standing.cancelled
    assert len(standing.comparison.rows) == 1
    assert "Stopped: 1 of 6 rows" in words(status(standing))


def test_an_error_is_told_and_the_rows_stay(running, asked, compared):
    error = LimitReached("the solver is gone")
    comparisons = running(FakeJob(compared, news=news_of(compared), error=error))
    key = comparisons.start(asked)
    standing = until(comparisons, key, lambda each: not each.running)

    assert standing.fault == "the solver is gone"
    assert len(standing.comparison.rows) == 1
    assert "The solver is gone." in words(status(standing))
    assert "not reached" in words(table(standing, opened=""))


def test_a_bug_is_raised_once(running, asked, compared):
    comparisons = running(FakeJob(compared, error=ZeroDivisionError()))
    key = comparisons.start(asked)

    with pytest.raises(ZeroDivisionError):
        until(comparisons, key, lambda each: not each.running)
    assert comparisons.standing(key) is None


def test_one_too_many_waits_for_its_turn(running, asked, compared):
    first = FakeJob(compared)
    comparisons = running(first, FakeJob(compared), limits=Limits(at_once=1, waiting=4))
    keys = [comparisons.start(asked) for _ in range(2)]
    waiting = comparisons.standing(keys[1])
    assert (waiting.waiting, waiting.comparison.rows) == (1, ())
    assert "waiting, 1st in line" in words(status(waiting))

    first.cancel()
    begun = until(comparisons, keys[1], lambda each: not each.waiting)
    assert begun.running


def test_one_that_nobody_asks_about_is_ended(running, asked, compared):
    job = FakeJob(compared)
    comparisons = running(job, abandoned=0.05)
    comparisons.start(asked)

    assert job.end.wait(3)
    assert job.cancelled


def test_finished_ones_stay_until_there_are_too_many(running, asked, compared):
    count = MOST_STORED + 2
    comparisons = running(*(FakeJob(compared, waits=False) for _ in range(count)), abandoned=30)
    keys = []
    for _ in range(count):
        keys.append(comparisons.start(asked))
        until(comparisons, keys[-1], lambda each: not each.running)
    comparisons.sweep()

    assert [comparisons.standing(key) is None for key in keys] == [True] * 2 + [False] * MOST_STORED


def test_closing_ends_all(asked, compared):
    job = FakeJob(compared)
    comparisons = Comparisons(lambda *_args, **_kwargs: job)
    comparisons.start(asked)
    comparisons.close()

    assert job.cancelled


# What is shown


def test_the_table_has_a_row_for_every_cell_and_opens_those_with_a_plan(finished, compared):
    shown = table(finished, opened="")

    keys = [each["compare-open"] for each in named(shown, "compare-open")]
    assert keys == [key_of(row) for size in (4e3, 4e6) for row in compared.at(size) if row.result]
    assert [each["compare-more"] for each in named(shown, "compare-more")] == keys
    told = words(shown)
    assert told.count("It supports all-reduce") == 2
    assert told.count("lower bound") == 2
    assert told.count("fastest") == 2


def test_rows_that_would_look_alike_have_a_digit_more(compared):
    """40.02 and 40.04 µs are both 40 µs; a single one stays as it is."""
    direct = compared.row("direct", 4e6)
    ring = compared.row("ring", 4e6).result.makespan
    close = faster(compared, 4e6, direct.result.makespan * 1.0003 / ring)
    told = [makespan_words(close, close.row(name, 4e6)) for name in ("direct", "ring")]
    assert len(set(told)) == 2
    assert makespan_words(compared, direct) == duration(direct.result.makespan)


def test_only_the_best_of_all_plans_is_green_and_no_formula_below_the_bound_counts(asked, compared):
    """A broadcast past a GPU in one piece is the best with whole chunks, not of all plans."""
    problem = Problem(line(3, alpha=1.0), make_collective("broadcast", 3, 1e6))
    found = compare(problem, ("direct",), sizes=(1e6,))
    row = found.rows[0]
    assert row.result is not None
    form = replace(row.result.closed_form, makespan=1.0) if row.result.closed_form else None
    found = replace(found, rows=(replace(row, result=replace(row.result, closed_form=form)),))
    cells = [
        each
        for each in parts(table(Standing(asked, found, False, False, 1, None, 1.0), opened=""))
        if type(each).__name__ == "Td"
    ]
    [status_cell] = [each for each in cells if each.children == "best with whole chunks"]
    assert status_cell.title == "optimal for whole chunks of 1 MB"
    assert not status_cell.className
    below = [each for each in cells if getattr(each, "className", "") == "ds-cmp-below"]
    assert len(below) == (form is not None)


def test_what_is_not_there_yet_waits_or_is_being_solved(asked, compared):
    row = compared.rows[1]
    now = News(1, 6, row.method, row.size)
    some = replace(compared, rows=compared.rows[:1])

    told = words(table(Standing(asked, some, True, False, 3, now, 0.3), opened=""))
    assert (told.count("waiting"), told.count("solving")) == (4, 1)
    told = words(table(Standing(asked, some, False, True, 3, now, 0.3), opened=""))
    assert told.count("not reached") == 5


def test_details_have_the_formula_beside_the_replay(finished, compared):
    row = compared.row("ring", 4e6)
    form = row.result.closed_form
    assert form is not None
    shown = table(finished, opened=key_of(row))

    told = words(shown)
    assert form.expression in told
    assert form.why(row.result.makespan)[-20:] in told
    assert named(shown, "compare-beside") == [{"compare-beside": key_of(row)}]
    bare = replace(row, result=replace(row.result, closed_form=None))
    assert "No formula is published" in words(detail(compared, bare))


def test_the_status_says_what_is_done_now(asked, compared):
    begin, told, _ = news_of(compared)

    def said(now, rows=0):
        some = replace(compared, rows=compared.rows[:rows])
        return words(status(Standing(asked, some, True, False, 1, now, 0.3)))

    assert "0 of 6 starting" in said(None)
    assert "proves the bound at 4 MB" in said(News(0, 6, None, 4e6))
    assert "1 of 6 Direct at 4 KB" in said(begin, 1)
    assert "0.2 s, best 40 µs" in said(told)


def faster(compared, size, share):
    """Return the comparison with the ring taking this share of its time at a size."""

    def changed(row):
        if (str(row.method), row.size) != ("ring", size):
            return row
        timeline = replace(row.result.timeline, makespan=row.result.makespan * share)
        return replace(row, result=replace(row.result, timeline=timeline))

    return replace(compared, rows=tuple(map(changed, compared.rows)))


def test_the_note_names_crossovers_or_the_one_that_is_never_beaten(compared):
    """The ring's times are changed by hand: slower at one size and faster at the other, or always.

    At 4 KB a hop takes 0.5 + 0.02 µs; direct sends to the opposite GPU take two, the ring three.
    So the ring is slower as it is, and the fastest when it takes a tenth.
    """
    times = [compared.row(name, 4e6).result.makespan for name in ("direct", "ring")]
    quick = 0.5 * min(times) / times[1]

    begins = faster(faster(compared, 4e3, 2.0), 4e6, quick)
    assert "Ring is faster than Direct" in words(notes(begins))
    never = faster(faster(compared, 4e3, 0.1), 4e6, quick)
    assert words(notes(never)) == "Ring is the fastest at every size, alone or with others."
    half = replace(never, rows=tuple(each for each in never.rows if each.size == 4e3))
    assert notes(half) is None
    none = replace(compared, rows=tuple(each for each in compared.rows if each.result is None))
    assert words(notes(none)) == ""


# Files


def test_the_json_is_read_back_as_it_was(compared):
    read = comparison_from_json(json.loads(export_json(compared)))

    assert isinstance(read, Comparison)
    assert read.table() == compared.table()


def test_a_comparison_is_a_page_with_the_drawing_as_it_is_and_a_plot_for_print(compared):
    names = compared.problem.topology.ranks
    page = export(
        "html", compared, quantity=None, positions={names[0]: (123.0, 4.0), "gone": (0, 0)}
    )
    plot = export("svg", compared, quantity="algbw", positions=None)

    assert page.startswith("<!doctype html>")
    assert export("html", compared, quantity=None, positions=None) != page
    assert plot.startswith("<svg")
    assert 'width="120mm"' in plot
    assert ">algbw<" in plot


def test_the_csv_has_all_that_the_table_has(compared):
    rows = list(csv.DictReader(io.StringIO(export_csv(compared))))

    table_rows = compared.table()
    assert set(rows[0]) == set().union(*table_rows)
    assert [row["method"] for row in rows] == [row["method"] for row in table_rows]
    assert float(rows[0]["makespan_us"]) == table_rows[0]["makespan_us"]
    refused = [row for row in rows if row["method"] == "tree"]
    assert all(
        row["makespan_us"] == "" and "it supports all-reduce" in row["why_not"] for row in refused
    )


def test_a_problem_of_its_own_chunks_is_compared_too(drawn, ring, result):
    """What a file brought keeps its chunks; only their sizes change."""
    custom = problem_to_json(Problem(ring, result.problem.collective))["collective"]
    request = {**REQUEST, "collective": "custom", "custom": custom}
    found = read_question(drawn, request, methods=["list"], sizes="1MB", seconds=1)

    [row] = compare(found.problem, found.methods, sizes=found.sizes, time_limit=1).rows

    assert row.result.problem.collective.size == pytest.approx(1e6)
    assert len(row.result.problem.collective.chunks) == len(result.problem.collective.chunks)


def test_the_bar_of_a_gap_is_the_longer_the_wider_the_gap():
    """The row with the widest gap fills its bar; one that meets the bound has none."""
    gaps = {"far": 0.8, "near": 0.2, "met": 0.0, "none": None}
    rows = {name: SimpleNamespace(size=1e6, name=name) for name in gaps}
    found = SimpleNamespace(gap=lambda row: gaps[row.name], at=lambda _size: tuple(rows.values()))
    assert {name: bar(found, row) for name, row in rows.items()} == {
        "far": 1.0, "near": 0.25, "met": 0.0, "none": 0.0,
    }  # fmt: skip
