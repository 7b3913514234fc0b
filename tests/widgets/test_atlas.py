"""The atlas as a figure and as a picture: every cell is there, in the colour of its method."""

from xml.etree import ElementTree

import pytest

from formulations.campaigns.catalog import Atlas, Cell
from widgets.charts.atlas import atlas_figure, colours
from widgets.charts.comparison import LOOKS, method_places
from widgets.print.diagrams import atlas_picture
from widgets.print.painter import svg
from widgets.print.sheet import Box, Words

SIZES = (1e3, 1e6)
ATLAS = Atlas(
    "Ring of 8",
    ("all-gather", "all-to-all", "gather"),
    SIZES,
    (
        Cell("all-gather", 1e3, "recursive-doubling", 2.0, 8.0),
        Cell("all-gather", 1e6, "list", 20.0, 20.0),
        Cell("all-to-all", 1e3, "list", 3.0, None),
        Cell("all-to-all", 1e6, "list", 30.0, None),
        Cell("gather", 1e3, None, None, None),
        Cell("gather", 1e6, None, None, None),
    ),
)


def test_methods_are_in_the_order_of_how_often_they_are_the_best():
    assert ATLAS.methods == ("list", "recursive-doubling")


def test_a_method_has_one_colour_whoever_is_shown_beside_it():
    """Where two would have the same, as bruck and list, the later one by name takes another."""
    alone = method_places(["list"])
    assert method_places(["te-ccl-milp", "list", "ring"])["list"] == alone["list"]
    assert colours(ATLAS)["list"] == LOOKS["light"].lines[alone["list"]]
    both = method_places(["list", "bruck"])
    assert both["bruck"] == alone["list"] != both["list"]
    assert colours(ATLAS, among=["bruck"])["list"] == LOOKS["light"].lines[both["list"]]


@pytest.mark.parametrize("scheme", ["light", "dark", "auto"])
def test_the_figure_has_a_colour_and_words_for_every_cell(scheme):
    (heat,) = atlas_figure(ATLAS, scheme=scheme).data

    assert [list(row) for row in heat.z] == [[1, 0], [0, 0], [None, None]]
    assert heat.text[0][0] == "recursive-<br>doubling<br><b>4×</b>"
    assert heat.text[1][0] == "list"
    assert heat.text[2][0] == ""
    assert "no ring to compare with" in heat.customdata[1][0]
    # A value in the middle of its step has the colour of its method.
    assert [color for _, color in heat.colorscale][::2] == list(colours(ATLAS, scheme).values())


@pytest.mark.parametrize("style", ["light", "dark", "paper"])
def test_the_picture_names_every_method_in_its_cell(style):
    picture = atlas_picture(ATLAS, style=style)
    words = [each for each in picture.shapes if isinstance(each, Words)]
    boxes = [each for each in picture.shapes if isinstance(each, Box)]
    told = [each.text for each in words]

    assert len(boxes) == len(ATLAS.cells)
    assert told.count("list") == 3
    assert told.count("recursive-doubling") == 1
    assert [each for each in told if "×" in each] == ["4×", "1×"]
    assert all(picture.frame.has(each.at) for each in words)
    ElementTree.fromstring(svg(picture))
