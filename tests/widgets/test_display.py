"""What nouns and views show at the end of a cell: a view, a picture and words beside it."""

from __future__ import annotations

import time

import pytest
from ipywidgets.widgets.widget import _instances

import ccl.display
from ccl.bound import Bound, Cut
from ccl.collective import all_gather
from ccl.errors import FormatError
from ccl.explain import difference
from ccl.problem import Problem
from ccl.topology import Topology, device, duplex
from formulations import solve
from gallery import open_cluster
from interchange.formats.xml import parse_xml
from widgets import CutView, GapPlot, LinkLoad, SchedulePlayer, TopologyWidget
from widgets.notebook import still
from widgets.notebook.marked_drawings import difference_marks
from widgets.notebook.still import SVG, TEXT, VIEW

RING = "ring:gpus=4,bandwidth=50,alpha=0"


@pytest.fixture(scope="module")
def result():
    """An all-gather of 4 x 1 MB round a ring of 4 GPUs with 50 GB/s each way."""
    return solve(Problem(open_cluster(RING), all_gather(4, 4e6)), "ring")


def both_ways(result):
    """Return another plan of the same problem."""
    return solve(result.problem, "bidirectional-ring")


def shown(noun):
    """Return what a notebook is sent when a noun ends a cell; without a bundle it is the repr."""
    bundle = noun._repr_mimebundle_(include=None, exclude=None)
    return {TEXT: repr(noun)} if bundle is None else bundle[0]


def kind_of(view):
    """Return the class of the view in a bundle."""
    return type(_instances[view["model_id"]]).__name__


@pytest.mark.parametrize(
    ("noun", "view"),
    [
        (lambda result: result, "SchedulePlayer"),
        (lambda result: result.problem, "TopologyWidget"),
        (lambda result: result.problem.topology, "TopologyWidget"),
        (SchedulePlayer, "SchedulePlayer"),
        (lambda result: TopologyWidget(result.problem.topology), "TopologyWidget"),
        (CutView, "CutView"),
        (lambda result: difference(result, both_ways(result)), "DifferenceView"),
        (LinkLoad, "LinkLoad"),
    ],
)
def test_a_cell_shows_the_view_with_a_picture_and_words_beside_it(result, noun, view):
    data = shown(noun(result))

    assert kind_of(data[VIEW]) == view
    parse_xml(data[SVG].encode())
    assert len(data[TEXT]) < 1000
    assert "<" not in data[TEXT]


def test_a_difference_marks_the_links_that_one_plan_uses_more(result):
    """One way around, each link carries 3 MB; both ways, 1 MB or 2 MB: 4 links more, 4 less."""
    told = difference(result, both_ways(result), names=("one way", "both ways"))
    marks = difference_marks(told)

    assert [each["label"].split(" in ")[1] for each in marks["groups"]] == ["one way", "both ways"]
    assert [len(each["links"]) for each in marks["groups"]] == [4, 4]
    assert difference_marks(difference(result, result)) is None


def test_the_words_of_a_result_say_how_long_and_how_good(result):
    """Round the ring in one direction: three steps of 1 MB over 50 GB/s, 20 µs each.

    A GPU lacks 3 MB, and 100 GB/s lead to it: 30 µs, however they are cut.
    """
    told = shown(result)[TEXT]

    assert told.startswith("all-gather of 4 MB on ")
    assert ": 60 µs, 100 % above the lower bound of 30 µs (feasible)\n" in told


def test_a_bound_alone_is_drawn_as_its_argument():
    cut = Cut(("a", "b"), (("a", "c"), ("b", "c")), 12.5)
    data = shown(Bound(80.0, "cut", cut, "1 MB must cross"))

    assert VIEW not in data
    assert "no plan takes less than 80 µs" in data[TEXT]
    for words in ("12.5 GB/s", "2 links", ">a<", ">b<", ">c<", "80 µs"):
        assert words in data[SVG]


def test_plain_repr_stays(result):
    assert repr(result.bound).startswith("Bound(makespan=")
    assert repr(result.problem.topology).startswith("Topology(name=")


def test_a_thousand_gpus_are_shown_within_a_moment():
    """3 s are ten times what it takes here; the text that is saved stays small."""
    topology = open_cluster("dgx-a100:hosts=128")
    start = time.process_time()
    data = shown(topology)

    assert time.process_time() - start < 3
    assert "1,024 GPUs" in data[TEXT]
    assert len(data[SVG]) < 200_000


@pytest.mark.parametrize("error", [FormatError("too large"), ZeroDivisionError()])
def test_a_broken_picture_hides_neither_the_words_nor_the_view(monkeypatch, result, error):
    def break_it(_content):
        raise error

    monkeypatch.setattr(still, "picture", break_it)
    data = shown(result)

    assert SVG not in data
    assert VIEW in data
    assert "all-gather" in data[TEXT]


def test_a_drawing_that_is_no_topology_yet_is_shown_all_the_same():
    canvas = TopologyWidget(open_cluster(RING))
    drawn = canvas.drawing["topology"]
    links = [{"src": "g0", "dst": "g0", "bandwidth": 1.0}]
    canvas.drawing = {**canvas.drawing, "topology": {**drawn, "links": links}}

    assert VIEW in shown(canvas)


def test_without_whoever_draws_a_noun_shows_its_repr(monkeypatch, result):
    monkeypatch.setattr(ccl.display, "_displays", tuple)

    assert shown(result.bound).keys() == {TEXT}
    assert shown(result.bound)[TEXT].startswith("Bound(")


def test_what_nobody_knows_is_left_to_the_others(monkeypatch):
    monkeypatch.setattr(
        ccl.display, "_displays", lambda: (lambda _: None, lambda _: ({"x": 1}, {}))
    )

    assert ccl.display.mime_bundle(object()) == ({"x": 1}, {})


def test_a_terminal_gets_words_alone(monkeypatch, result):
    monkeypatch.setattr("widgets.notebook.display._in_terminal", lambda: True)

    for noun in (result, result.problem, result.problem.topology, result.bound):
        assert shown(noun).keys() == {TEXT}
        assert "\n  " not in shown(noun)[TEXT]


# Editing from Python


def test_setting_a_topology_keeps_what_remains_where_it_is():
    """g3 goes and x comes: the canvas finds a place for x, the other three are not asked."""
    places = {"g0": (7, 3), "g1": (200, 11), "g2": (150, 90), "g3": (0, 160)}
    canvas = TopologyWidget(open_cluster(RING), places)
    names = ("g0", "g1", "g2", "x")
    edited = Topology(
        "edited", tuple(device("gpu", name) for name in names), duplex("g2", "x", bandwidth=1.0)
    )
    canvas.topology = edited

    assert canvas.topology == edited
    assert canvas.positions == {name: places[name] for name in names[:3]}


def test_setting_another_cluster_lays_it_out():
    canvas = TopologyWidget(open_cluster(RING))
    other = Topology("other", (device("gpu", "a"), device("gpu", "b")), ())
    canvas.topology = other

    assert set(canvas.positions) == {"a", "b"}


# Errors of those who listen


def test_an_error_of_a_listener_is_told_below_the_view_until_it_is_gone():
    """What the view says arrives as `set_state`; time goes on meanwhile and hides nothing."""
    canvas = TopologyWidget(open_cluster(RING))
    wrong = [FormatError("g0 is no good"), ZeroDivisionError("division by zero")]

    def listen(change):
        if change["new"]["devices"]:
            raise wrong[0]

    canvas.observe(listen, "selection")
    chosen = {"devices": ["g0"], "links": [], "hosts": []}
    with pytest.raises(FormatError):
        canvas.set_state({"selection": chosen})
    assert canvas.trouble["text"] == "g0 is no good"

    canvas.set_state({"time": 3.0})
    assert canvas.trouble["text"] == "g0 is no good"

    wrong.pop(0)
    with pytest.raises(ZeroDivisionError):
        canvas.set_state({"selection": {**chosen, "devices": ["g1"]}})
    assert canvas.trouble["text"] == "bug: ZeroDivisionError: division by zero"

    canvas.set_state({"selection": {**chosen, "devices": []}})
    assert canvas.trouble["text"] == ""


# The gap over time


def test_a_gap_plot_hears_a_solve_and_keeps_how_it_ended(result):
    """News come while the solve runs; the last row is its makespan over its bound."""
    plot = GapPlot()
    solved = solve(result.problem, "te-ccl-milp", time_limit=20, progress=plot.hear)
    assert plot.course["running"]
    assert plot.course["points"][-1][1] == solved.makespan
    plot.end(solved)

    data = shown(plot)
    assert not plot.course["running"]
    assert data[TEXT] == "best 40 µs, bound 30 µs, gap 33.3 %"
    assert data[SVG].count("<path") >= 3


def test_an_empty_gap_plot_has_no_picture():
    assert SVG not in shown(GapPlot())
