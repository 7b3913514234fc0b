"""Rows of sweeps on the page: which are shown, in which order, as lines, and opened."""

import pytest

from ccl.errors import FormatError, ProblemError
from designer.views.sweeps.view import (
    MOST_ROWS,
    Choice,
    Shelf,
    best,
    chosen,
    opened,
    read_choice,
    status,
    table,
    values,
)
from tests.designer.sweeps import write_sweep
from widgets.charts.atlas import lines_of, sweep_figure


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_sweep(tmp_path_factory.mktemp("sweeps") / "night.sweep")


@pytest.fixture(scope="module")
def shelf(folder):
    return Shelf([folder])


@pytest.fixture(scope="module")
def rows(shelf):
    return shelf.found("night").rows


def test_a_folder_of_sweeps_holds_them_by_their_names(folder, shelf):
    assert Shelf([folder.parent]).names == shelf.names == ("night",)
    assert Shelf([folder, folder]).names == ("night", "night 2")


def test_a_folder_without_a_sweep_is_refused(tmp_path):
    with pytest.raises(FormatError, match="not the folder of a sweep"):
        Shelf([tmp_path])


@pytest.mark.parametrize("name", ["../night", "/etc", "night.sweep", ""])
def test_the_page_names_no_path(shelf, name):
    with pytest.raises(ProblemError, match="there is no sweep"):
        shelf.found(name)


def test_rows_that_come_later_are_seen(tmp_path):
    shelf = Shelf([write_sweep(tmp_path / "a.sweep", rows=3)])
    first = shelf.found("a")
    write_sweep(tmp_path / "a.sweep")
    second = shelf.found("a")

    assert (len(first.rows), len(second.rows), first.tasks) == (3, 16, 16)
    assert first.stamp != second.stamp
    assert "3 of 16 rows" in str(status(first))


def test_the_best_of_each_question_is_shown_first(rows):
    """Two clusters, two collectives and two sizes are eight questions, all of them answered."""
    found = chosen(rows, Choice())

    assert len(found) == 8
    for row in found:
        rivals = [
            each.makespan
            for each in rows
            if (each.cluster, each.collective, each.size) == (row.cluster, row.collective, row.size)
            and each.makespan is not None
        ]
        assert row.makespan == min(rivals)


def test_a_choice_leaves_what_it_names(rows):
    assert len(chosen(rows, Choice(visible="all"))) == 16
    assert len(chosen(rows, Choice(visible="plans"))) == 12
    assert {row.formulation for row in chosen(rows, Choice(visible="none"))} == {"ring"}
    some = chosen(rows, Choice(visible="all", collectives=("all-to-all",), words="LIST"))
    assert {(row.collective, row.formulation) for row in some} == {("all-to-all", "list")}


def test_rows_without_a_value_come_last_whichever_way_is_sorted(rows):
    for down in (False, True):
        found = [
            row.makespan for row in chosen(rows, Choice(visible="all", by="makespan", down=down))
        ]
        known = [each for each in found if each is not None]
        assert found == sorted(known, reverse=down) + [None] * 4


def test_what_the_page_should_not_say_is_left_out():
    assert read_choice({"visible": "?", "by": "__class__", "clusters": None}) == Choice()


def test_a_line_is_a_collective_on_a_cluster(rows):
    lines = lines_of(best(rows), over="size", quantity="busbw")
    names = values(rows, "cluster")

    assert list(lines) == [
        f"{name}, {kind}" for name in names for kind in values(rows, "collective")
    ]
    assert [[row.size for row in line] for line in lines.values()] == [[1e3, 1e6]] * 4
    figure = sweep_figure(lines, over="size", quantity="busbw")
    assert [len(each.x) for each in figure.data] == [2] * 4


def test_gpus_below_make_one_line_of_clusters_that_differ_in_them(rows):
    lines = lines_of(
        [row for row in rows if row.formulation == "list"], over="gpus", quantity="gap"
    )

    assert {tuple(row.gpus for row in line) for line in lines.values()} <= {(3, 4), (3,), (4,)}
    assert sum(map(len, lines.values())) == 8


def test_a_row_is_opened_with_its_cluster_and_its_plan(shelf, rows):
    row = next(each for each in rows if each.makespan is not None)
    changes = opened(shelf, "night", row.task)

    assert len(changes["drawing"]["topology"]["devices"]) == row.gpus + 1
    assert changes["result"]["problem"]["collective"]["size"] == row.size
    assert (changes["formulation"], changes["view"]) == (row.formulation, "canvas")


def test_a_row_that_cannot_be_opened_says_why(shelf, rows):
    row = next(each for each in rows if each.makespan is None)

    assert "has no plan" in str(opened(shelf, "night", row.task)["notes"])
    assert "has no row" in str(opened(shelf, "night", "x")["notes"])


def test_the_table_says_how_many_rows_it_leaves_out(rows):
    many = list(rows) * (MOST_ROWS // len(rows) + 1)

    assert "more row" in str(table(many, Choice()))
    assert "more row" not in str(table(rows, Choice()))
