"""What is saved by the ending of a name, and pages that need nothing but themselves."""

import base64
import gzip
import json
import math
import re
from dataclasses import replace
from importlib import import_module
from io import BytesIO
from xml.etree import ElementTree

import pytest
from matplotlib import rc_context, rcParams
from PIL import Image

import widgets
from ccl.collective import all_gather
from ccl.errors import FormatError, ProblemError
from ccl.layout import layout
from ccl.problem import Problem
from ccl.serialization.documents import document, read_document
from formulations import compare, solve
from interchange.formats.own.fragment import share_of
from tests.ccl.clusters import ring
from widgets.pages import comparison as comparison_page
from widgets.pages import writers as export
from widgets.pages.comparison import comparison_html
from widgets.pages.saving import Saving, html, link, save
from widgets.pages.writers import standalone_html
from widgets.print.painter import svg
from widgets.print.plots import comparison_picture, course_picture
from widgets.view_model.gap import course
from widgets.view_model.scene import drawing, scene

SIZES = (3e4, 3e6)
NAMESPACE = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def bundle(monkeypatch, tmp_path):
    """Stand in for the canvas, so that no build is needed."""
    (tmp_path / "canvas.js").write_text("export default { render() {} };", encoding="utf-8")
    monkeypatch.setattr(widgets, "STATIC", tmp_path)


@pytest.fixture(scope="module")
def result():
    return solve(Problem(ring(3), all_gather(3, 3e6)), "ring")


@pytest.fixture(scope="module")
def comparison():
    return compare(Problem(ring(3), all_gather(3, 3e6)), ["ring", "direct"], sizes=SIZES)


def unpacked(page, name):
    packed = re.search(rf'id="{name}">(.*?)</script>', page, re.DOTALL)[1]
    return gzip.decompress(base64.b64decode(packed))


# By the ending


def test_the_ending_says_the_format(result, tmp_path):
    begins = {
        "html": b"<!doctype html>",
        "svg": b"<svg ",
        "png": b"\x89PNG",
        "pdf": b"%PDF",
        "gif": b"GIF89a",
        "json": b"{\n",
        "py": b'"""A cluster',
    }
    for ending, begin in begins.items():
        file = save(result, tmp_path / f"plan.{ending.upper()}")
        assert file.read_bytes().startswith(begin), ending
    assert read_document(tmp_path / "plan.JSON").result.plan == result.plan


@pytest.mark.parametrize("name", ["plan.tiff", "plan", "plan."])
def test_an_unknown_ending_lists_those_there_are(result, tmp_path, name):
    with pytest.raises(FormatError, match=r"end its name with one of \.html, \.svg, .*\.py"):
        save(result, tmp_path / name)
    assert not (tmp_path / name).exists()


def test_options_are_checked_by_name_and_by_range(result, comparison, tmp_path):
    file = tmp_path / "a.svg"
    for content in (result, comparison):
        with pytest.raises(FormatError, match=r"no option 'colour'; there are style, width"):
            save(content, file, colour="red")
        with pytest.raises(ProblemError, match="column is 3; give at least 40 mm"):
            save(content, file, column=3)
    endings = r"not written as \.gif; .* \.html, \.svg, \.png, \.pdf, \.json"
    with pytest.raises(FormatError, match=endings):
        save(comparison, tmp_path / "a.gif")
    assert not file.exists()


def test_a_view_saves_what_it_holds(result, tmp_path):
    class View(Saving):
        def _held(self):
            return document(result, positions=layout(result.problem.topology))

    view = View()
    assert view.save(tmp_path / "a.svg", epoch=1).read_text().startswith("<svg")
    assert view.html(theme="dark").startswith('<!doctype html>\n<html lang="en" data-theme="dark">')
    found = share_of(view.link())
    assert found.document.positions == layout(result.problem.topology)
    assert found.solving.formulation == "ring"


def test_a_link_is_of_anything_that_can_be_saved(result):
    assert share_of(link(result.problem)).document.problem == result.problem
    assert share_of(link(result.problem.topology)).document.kind == "topology"
    assert link(result, at="http://box/").startswith("http://box/#t=")


# In print


def test_a_column_in_mm_and_letters_in_points_are_what_they_say_in_print(result, tmp_path):
    """85 mm are 321.26 px of 1/96 inch and 9 pt are 12; the viewBox is in drawing units."""
    file = save(result, tmp_path / "a.svg", style="paper", column=85, points=9)
    root = ElementTree.parse(file).getroot()
    _left, _top, wide, high = map(float, root.get("viewBox").split())

    assert root.get("width") == "85mm"
    assert float(root.get("height")[:-2]) == pytest.approx(85 * high / wide, abs=0.01)
    pixels = 85 / 25.4 * 96
    sizes = {
        round(float(each.get("font-size").removesuffix("px")) * pixels / wide, 1)
        for each in root.iter(f"{NAMESPACE}text")
    }
    assert 12.0 in sizes
    assert [each.text for each in root.iter(f"{NAMESPACE}text")][:3] == ["g0", "g1", "g2"]


def test_pixels_in_print_say_how_dense_they_are(result, comparison, tmp_path):
    """Three pixels for each of 96 an inch: 288 an inch, 964 on 85 mm."""
    for content in (result, comparison):
        file = save(content, tmp_path / "a.png", style="paper", column=85, scale=3)
        picture = Image.open(BytesIO(file.read_bytes()))
        assert picture.width in (963, 964)
        assert picture.info["dpi"] == pytest.approx((288, 288), abs=0.5)


def test_a_pdf_is_as_wide_as_asked_for_and_the_same_each_time(result, comparison, tmp_path):
    """85 mm are 240.94 points; a page says its size in points, and no date is in it."""
    for content in (result, comparison):
        first, second = (
            save(content, tmp_path / "a.pdf", style="paper", column=85).read_bytes() for _ in "ab"
        )
        (box,) = re.findall(rb"/MediaBox \[([^\]]*)\]", first)

        assert float(box.split()[2]) == pytest.approx(85 / 25.4 * 72, abs=0.01)
        assert first == second
        assert b"CreationDate" not in first


def test_settings_of_the_user_change_no_picture(result, tmp_path):
    """matplotlib reads them from a file of the user's; a notebook may change them at any time."""
    plain = save(result, tmp_path / "a.svg").read_bytes()
    theirs = {"svg.fonttype": "path", "lines.scale_dashes": True, "font.size": 30.0}
    with rc_context(theirs):
        assert save(result, tmp_path / "a.svg").read_bytes() == plain
        assert {name: rcParams[name] for name in theirs} == theirs


# Charts


def test_a_logarithmic_axis_puts_the_mean_of_two_values_in_the_middle(comparison):
    """The geometric mean of 1 and 100 is 10; a quarter of a linear axis is a quarter of it."""
    (log,) = comparison_picture(comparison).drawn.axes
    log.set_xlim(1, 100)
    (linear,) = course_picture(course([(1, 3, 2)], seconds=4.0, running=False)).drawn.axes

    for axes, value, place in ((log, 10.0, 0.5), (linear, 1.0, 0.25)):
        shown = axes.transAxes.inverted().transform(axes.transData.transform((value, 2.5)))
        assert shown[0] == pytest.approx(place)


@pytest.mark.parametrize("style", ["light", "dark", "paper"])
@pytest.mark.parametrize("quantity", ["time", "ratio", "algbw"])
def test_a_chart_names_every_method_and_stays_in_its_frame(comparison, quantity, style):
    picture = comparison_picture(comparison, quantity=quantity, style=style, width=320.0)
    root = ElementTree.fromstring(svg(picture))
    words = {each.text for each in root.iter(f"{NAMESPACE}text")}

    assert {"ring", "direct", "bound", "30 KB", "3 MB"} <= words
    _, _, wide, high = map(float, root.get("viewBox").split())
    assert root.get("width") == "320"
    for each in root.iter(f"{NAMESPACE}text"):
        assert 0 <= float(each.get("x")) <= wide
        assert 0 <= float(each.get("y")) <= high


def test_a_chart_of_one_size_is_drawn_too():
    found = compare(Problem(ring(3), all_gather(3, 3e6)), ["ring"], sizes=[3e6])
    picture = comparison_picture(found)

    assert "ring" in svg(picture)


def test_a_size_without_a_plan_breaks_the_line(comparison):
    """Two points are a line and two markers; one point is a marker alone."""
    rows = tuple(
        replace(each, result=None, why_not="taken out")
        if (str(each.method), each.size) == ("direct", SIZES[0])
        else each
        for each in comparison.rows
    )
    drawn = [
        next(
            line.get_ydata()
            for line in comparison_picture(each).drawn.axes[0].lines
            if line.get_url() == "direct"
        )
        for each in (comparison, replace(comparison, rows=rows))
    ]

    assert [len(each) for each in drawn] == [2, 2]
    assert [sum(map(math.isnan, each)) for each in drawn] == [0, 1]


def test_the_course_of_a_solve_is_drawn_in_steps():
    """A best of 30 µs holds until 20 µs are found at 2 s, which hold until the end at 4 s."""
    rows = [(1.0, 30.0, 10.0), (2.0, 20.0, 10.0)]
    picture = course_picture(course(rows, seconds=4.0, running=False), style="paper")
    root = ElementTree.fromstring(svg(picture))
    words = {each.text for each in root.iter(f"{NAMESPACE}text")}
    (best,) = [
        each.find(f"{NAMESPACE}path").get("d")
        for each in root.iter(f"{NAMESPACE}g")
        if each.findtext(f"{NAMESPACE}title") == "best makespan"
    ]

    assert {"best makespan", "lower bound", "0 s", "4 s", "20 µs"} <= words
    numbers = [float(each) for each in re.findall(r"[\d.]+", best)]
    places = dict.fromkeys(zip(numbers[::2], numbers[1::2], strict=True))
    across, upright = zip(*places, strict=True)
    assert [round((x - across[0]) / (across[-1] - across[0]), 3) for x in across] == [
        0,
        0.333,
        0.333,
        1,
    ]
    assert upright[0] == upright[1] < upright[2] == upright[3]


def test_a_solve_that_found_nothing_has_an_empty_chart():
    assert "best makespan" in svg(course_picture(course((), seconds=0.0, running=False)))


# Pages


def test_a_page_shows_a_picture_and_says_what_it_is_of_where_no_script_runs(result):
    """Three GPUs in a one-way ring: 1 MB at 50 GB/s twice, 20 µs each."""
    problem = result.problem
    drawn = drawing(problem.topology, layout(problem.topology))
    page = standalone_html(drawn, scene(problem, result.plan, result.timeline))
    body = page.partition("<body>")[2].partition('<script type="application')[0]

    assert body.count("<svg ") == 2  # one for each theme
    assert "3 GPUs, 3 links one way each; the plan takes 40 µs." in body
    assert "<noscript>" in body
    assert html(result, theme="light").count("<svg ") == 1


def test_a_drawing_that_is_no_cluster_yet_has_a_page_without_a_picture():
    broken = {"topology": {"name": "x", "devices": [], "links": [{"src": "a"}], "limits": []}}
    page = standalone_html({**broken, "positions": {}})

    assert "<svg" not in page
    assert json.loads(unpacked(page, "state"))["drawing"]["topology"]["name"] == "x"


def test_a_plan_too_large_for_a_picture_shows_the_cluster(result, monkeypatch):
    problem = result.problem
    drawn = drawing(problem.topology, layout(problem.topology))
    film = scene(problem, result.plan, result.timeline)
    shown = export.pictures(drawn, film, ())["light"]
    monkeypatch.setattr(export, "MOST_STILL", 1)

    assert len(export.pictures(drawn, film, ())["light"]) < len(shown)


def test_a_comparison_page_holds_the_films_the_table_and_the_plot_in_three_ways(comparison):
    page = comparison_html(comparison, theme="light")
    state = json.loads(unpacked(page, "state"))

    assert len(state["films"]) == len(state["choices"]) == 4
    assert len(state["chosen"]) == 2
    assert page.count('<div class="plot p') == 3
    assert page.count('class="best">fastest') == 2
    assert "30 KB: lower bound" in page
    assert not re.search(r'(src|href)="(?!data:)', page)
    assert page == comparison_html(comparison, theme="light")


def test_the_view_of_a_comparison_saves_it(comparison, tmp_path):
    view = import_module("widgets.notebook.comparison").Comparison(comparison)

    assert view.html(theme="light") == comparison_html(comparison, theme="light")
    assert view.save(tmp_path / "a.svg", style="paper", column=85).read_text().startswith("<svg")


def test_films_for_which_there_is_no_room_are_counted(comparison, monkeypatch):
    monkeypatch.setattr(comparison_page, "MOST_MOVES", 1)
    page = comparison_html(comparison)
    state = json.loads(unpacked(page, "state"))

    assert {each["key"] for each in state["films"]} == set(state["chosen"])
    assert "2 more schedules are too large for this page" in page


def test_names_do_not_get_out_of_a_comparison_page():
    topology = ring(3)
    topology = type(topology)("<script>alert(1)</script>", topology.devices, topology.links)
    page = comparison_html(compare(Problem(topology, all_gather(3, 3e6)), ["ring"], sizes=[3e6]))

    assert "<script>alert" not in page
    assert page.count("</script>") == 3
