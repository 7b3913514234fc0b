"""A comparison in a notebook: what its table says, what its plot draws, which two it plays."""

from __future__ import annotations

import math

import pytest
import traitlets

import widgets
from ccl.collective import all_gather
from ccl.problem import Problem
from ccl.text import duration, share
from formulations import compare, solve
from formulations.analyses.comparison import Comparison, Method
from gallery import open_cluster
from widgets.charts.comparison import comparison_figure, log_ticks, marks
from widgets.notebook.comparison import SchedulePlayers
from widgets.view_model import scene
from widgets.view_model.scene import PAIR_PROPS
from widgets.words import HEADS, crossover_words, line_of, table_html, table_text

METHODS = ("recursive-doubling", "ring", "tree")
SIZES = (256e3, 4e6)


@pytest.fixture(scope="module")
def compared():
    """Two methods on a DGX-1 with V100, of which the ring wins when it is large, and a refusal."""
    problem = Problem(open_cluster("dgx-1v"), all_gather(8, 1e6))
    return compare(problem, METHODS, sizes=SIZES, time_limit=5)


def trace(figure, name):
    [found] = [each for each in figure.data if each.name == name]
    return found


# The plot


def test_a_line_for_every_method_with_a_plan_over_the_bound(compared):
    figure = comparison_figure(compared)

    shown = [each.name for each in figure.data if each.showlegend is not False]
    assert shown == ["bound", "recursive-doubling", "ring"]
    for name in shown[1:]:
        rows = [compared.row(name, size) for size in SIZES]
        assert trace(figure, name).y == tuple(row.result.makespan for row in rows)
        assert trace(figure, name).x == SIZES
    assert trace(figure, "bound").y == tuple(bound.makespan for bound in compared.bounds)
    assert (figure.layout.xaxis.type, figure.layout.yaxis.type) == ("log", "log")
    low, high = (10**end for end in figure.layout.yaxis.range)
    assert low < min(trace(figure, "bound").y) < max(trace(figure, "ring").y) < high


@pytest.mark.parametrize(
    ("quantity", "value"),
    [
        ("ratio", lambda size, makespan, bound: makespan / bound),
        ("algbw", lambda size, makespan, bound: size / makespan / 1e3),
    ],
)
def test_the_other_quantities_are_of_the_same_rows(compared, quantity, value):
    """algbw is bytes over µs, 1e-3 GB/s each; a ratio has the bound at 1."""
    figure = comparison_figure(compared, quantity=quantity)

    told = trace(figure, "ring").y
    bounds = [each.makespan for each in compared.bounds]
    wanted = [
        value(size, compared.row("ring", size).result.makespan, bound)
        for size, bound in zip(SIZES, bounds, strict=True)
    ]
    assert told == pytest.approx(wanted)
    limits = [value(size, us, us) for size, us in zip(SIZES, bounds, strict=True)]
    assert trace(figure, "bound").y == pytest.approx(limits)
    beyond = max if quantity == "algbw" else min
    assert beyond(*told, *limits) == pytest.approx(beyond(limits))


def test_a_size_without_a_plan_leaves_a_hole(compared):
    rows = tuple(each for each in compared.rows if (str(each.method), each.size) != ("ring", 4e6))
    short = Comparison(compared.problem, compared.methods, SIZES, compared.bounds, rows)

    assert trace(comparison_figure(short), "ring").y[1] is None


def test_the_hover_says_rates_gap_and_status(compared):
    words = trace(comparison_figure(compared), "ring").text[1]

    row = compared.row("ring", 4e6)
    for part in (
        "<b>ring</b> at 4 MB",
        "above the lower bound",
        str(row.result.status),
        "algbw",
        "busbw",
    ):
        assert part in words


@pytest.mark.parametrize("quantity", ["time", "ratio", "algbw"])
def test_published_times_of_the_same_question_are_marks_with_their_source(quantity):
    """TE-CCL's table 8 has 14.72 µs for 256 KB and nothing for 300 KB."""
    problem = Problem(open_cluster("ndv2:hosts=2"), all_gather(16, 256e3))
    both = compare(problem, ("direct",), sizes=(256e3, 300e3), time_limit=5)
    figure = comparison_figure(both, quantity=quantity)

    marks_of = {each.name: each for each in figure.data if "published" in each.name}
    mark = marks_of["TE-CCL, published"]
    bound = both.bound(256e3).makespan
    value = {"time": 14.72, "ratio": 14.72 / bound, "algbw": 256 / 14.72}[quantity]
    assert set(marks_of) == {"TE-CCL, published", "TACCL, published"}
    assert (mark.x, mark.mode) == ((256e3,), "markers")
    assert mark.y == pytest.approx((value,))
    assert "table 8" in mark.text[0]
    assert "as printed" in mark.text[0]
    low, high = (10**end for end in figure.layout.yaxis.range)
    assert all(low <= y <= high for each in marks_of.values() for y in each.y)


def test_crossovers_are_marked_and_named(compared):
    [crossing] = compared.crossovers()
    figure = comparison_figure(compared)

    mark = trace(figure, "crossover")
    assert (mark.x, mark.y) == ((crossing.size,), (crossing.makespan,))
    [name] = figure.layout.annotations
    assert "ring" in name.text
    assert name.x == pytest.approx(math.log10(crossing.size))
    [sentence] = crossover_words(compared)
    assert "ring is faster than recursive-doubling" in sentence


def test_no_two_methods_look_alike(compared):
    many = tuple(Method(f"m{i}") for i in range(24))
    looks = marks(Comparison(compared.problem, many, SIZES, compared.bounds, ()), "dark")

    assert len({(each.color, each.symbol, each.dash) for each in looks.values()}) == len(many)
    first = [each for each in looks.values() if each.dash == "solid"]
    assert len({each.color for each in first}) == len({each.symbol for each in first}) == 8


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (0.9, 1100.0, [1, 10, 100, 1000]),
        (4.0, 60.0, [5, 10, 20, 50]),
        (0.95, 2.5, [1, 1.2, 1.5, 2]),
    ],
)
def test_ticks_are_round_and_enough(low, high, wanted):
    assert log_ticks(low, high) == pytest.approx(wanted)


# The table


def test_a_line_says_gap_formula_and_who_is_the_fastest(compared):
    row = compared.row("recursive-doubling", 256e3)
    line = line_of(compared, row)

    assert line.fastest
    assert len(line.cells) == len(HEADS) - 1
    told = dict(zip(HEADS[1:], line.cells, strict=True))
    assert told["Formula"] == duration(row.result.closed_form.makespan)
    assert told["Gap"] == share(row.result.makespan / compared.bound(256e3).makespan - 1)
    assert line.why == row.result.closed_form.why(row.result.makespan)
    assert not line_of(compared, compared.row("ring", 256e3)).fastest
    refused = line_of(compared, compared.row("tree", 256e3))
    assert refused.cells == ()
    assert "it supports all-reduce" in refused.why_not


def test_text_and_html_have_every_row_and_no_markup_of_others(compared):
    text, html = table_text(compared), table_html(compared)

    assert len(text.splitlines()) == 1 + len(METHODS) * len(SIZES)
    for words in (text, html):
        assert "recursive-doubling" in words
        assert "it supports all-" in words
    assert "recursive-doubling *" in text
    assert "log2 p" in html
    bad = Comparison(
        compared.problem,
        compared.methods,
        SIZES,
        compared.bounds,
        tuple(type(each)(Method("<b>"), each.size, None, "<script>") for each in compared.rows[:1]),
    )
    assert "&lt;b&gt;" in table_html(bad)
    assert "<script>" not in table_html(bad)


# Two schedules


def test_the_fastest_and_the_ring_are_played_first(compared):
    """At 4 MB the ring is the fastest, so that the next one is beside it; not so at 256 KB."""
    large = [scene.row_of(compared, key) for key in scene.first_pair(compared)]
    small = [scene.row_of(compared, key) for key in scene.first_pair(compared, 256e3)]

    assert [(str(row.method), row.size) for row in large] == [
        ("ring", 4e6),
        ("recursive-doubling", 4e6),
    ]
    assert [(str(row.method), row.size) for row in small] == [
        ("recursive-doubling", 256e3),
        ("ring", 256e3),
    ]


def test_choices_are_the_rows_with_a_plan_by_size_the_fastest_first(compared):
    told = scene.choices(compared)

    assert [(each["group"], each["label"]) for each in told] == [
        ("256 KB", "recursive-doubling"),
        ("256 KB", "ring"),
        ("4 MB", "ring"),
        ("4 MB", "recursive-doubling"),
    ]
    assert all(scene.row_of(compared, each["key"]).result for each in told)


@pytest.mark.parametrize("key", ["", None, "ring", "x ring", "1.0 ring", "4000000.0 nobody"])
def test_a_key_of_no_row_finds_none(compared, key):
    assert scene.row_of(compared, key) is None


def test_a_film_is_the_replay_of_its_row(compared, monkeypatch):
    keys = scene.first_pair(compared)
    films = scene.films(compared, keys)

    assert [each["key"] for each in films] == keys
    for film in films:
        row = scene.row_of(compared, film["key"])
        assert film["scene"]["makespan"] == row.result.makespan
        assert len(film["scene"]["transfers"]) == len(row.result.timeline.transfers)
    monkeypatch.setattr(scene, "MOST_MOVES", 10)
    monkeypatch.setattr(scene, "SAMPLE", 10)
    assert 0 < len(scene.films(compared, keys)[0]["scene"]["transfers"]) <= 10
    monkeypatch.setattr(scene, "SAMPLE", 1)
    assert "transfers" not in scene.films(compared, keys)[0]["scene"]


def test_the_players_have_the_properties_that_the_view_knows():
    ours = {
        name for name in SchedulePlayers.class_traits(sync=True) if name in SchedulePlayers.__dict__
    }

    assert ours == set(PAIR_PROPS)
    made = widgets.SchedulePair(id="x", films=[])
    assert made.available_properties == ["id", "className", "style", *PAIR_PROPS]


def test_choosing_another_schedule_brings_its_film(compared):
    players = widgets.Comparison(compared).players
    before = players.films[0]
    wanted = scene.first_pair(compared, 256e3)[0]
    players.chosen = [players.chosen[0], wanted]

    assert players.films[0] == before
    assert players.films[1]["key"] == wanted
    assert players.films[1]["scene"]["makespan"] < before["scene"]["makespan"]
    with pytest.raises(traitlets.TraitError, match="no schedule of the comparison"):
        players.chosen = ["nothing", wanted]


# The whole


def test_a_saved_notebook_shows_the_table(compared):
    bundle, _ = widgets.Comparison(compared)._repr_mimebundle_()

    assert bundle["text/html"] == table_html(compared)
    assert bundle["text/plain"] == table_text(compared)
    assert "application/vnd.jupyter.widget-view+json" in bundle


def test_another_quantity_redraws_the_plot(compared):
    shown = widgets.Comparison(compared)
    shown.quantity.value = "algbw"

    wanted = comparison_figure(compared, quantity="algbw", scheme="auto")
    assert trace(shown.plot, "ring").y == trace(wanted, "ring").y
    assert len(shown.plot.data) == len(wanted.data)


def test_without_any_plan_there_is_nothing_to_play(compared):
    rows = tuple(each for each in compared.rows if each.result is None)
    none = Comparison(compared.problem, (Method("tree"),), SIZES, compared.bounds, rows)

    assert widgets.Comparison(none).players is None


def test_results_of_two_clusters_go_in_step_each_on_its_own_drawing():
    """Four at most, two at least; the names are those that were given."""
    results = {
        name: solve(Problem(open_cluster(cluster), all_gather(8, 1e6)), "ring")
        for name, cluster in {"V100": "dgx-1v", "hypercube": "hypercube"}.items()
    }
    players = widgets.SchedulePlayers(results)

    assert players.chosen == ["V100", "hypercube"]
    assert [each["group"] for each in players.choices] == [
        each.problem.topology.name for each in results.values()
    ]
    for film, (name, result) in zip(players.films, results.items(), strict=True):
        assert (film["key"], film["scene"]["makespan"]) == (name, result.makespan)
        assert film["drawing"]["topology"]["name"] == result.problem.topology.name
    players.chosen = ["V100", "hypercube", "V100", "V100"]
    assert len(players.films) == 4
    for wrong in (["V100"], ["V100"] * 5):
        with pytest.raises(traitlets.TraitError, match="2 to 4 are played in step"):
            players.chosen = wrong
