"""The three hosts of the canvas, as far as Python goes."""

from __future__ import annotations

import base64
import gzip
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import widgets
from ccl.collective import all_gather
from ccl.errors import ProblemError
from ccl.layout import layout
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.topology import Topology, device, duplex
from widgets.pages.writers import standalone_html
from widgets.view_model.scene import PAIR_PROPS, PROPS, drawing

PAIR = Topology(
    "</script> & co", (device("gpu", "a"), device("gpu", "b")), duplex("a", "b", bandwidth=10.0)
)


@pytest.fixture
def bundle(monkeypatch, tmp_path) -> Path:
    """Stand in for the canvas, so that no build is needed."""
    (tmp_path / "canvas.js").write_text("export default { render() {} };", encoding="utf-8")
    monkeypatch.setattr(widgets, "STATIC", tmp_path)
    return tmp_path / "canvas.js"


@pytest.fixture
def jupyter(bundle):
    return importlib.import_module("widgets.notebook.canvas")


def test_a_missing_bundle_says_how_to_build_it(monkeypatch, tmp_path):
    monkeypatch.setattr(widgets, "STATIC", tmp_path)

    with pytest.raises(ImportError, match="npm ci && npm run build"):
        widgets.canvas_file()


def test_the_widget_and_the_dash_component_have_the_same_properties(jupyter, bundle):
    ours = {
        name: trait
        for name, trait in jupyter.TopologyWidget.class_traits(sync=True).items()
        if name in jupyter.TopologyWidget.__dict__
    }

    assert set(ours) == set(PROPS)
    assert widgets.TopologyCanvas(id="x").available_properties == [
        "id",
        "className",
        "style",
        *PROPS,
    ]


def test_a_notebook_lays_a_drawing_out_anew(jupyter):
    widget = jupyter.TopologyWidget(PAIR, {"a": (0, 0), "b": (0, 900)})
    widget.request = {"name": "layout", "n": 1}

    assert widget.command == {"name": "move", "args": {"to": layout(PAIR)}, "n": 1}


def test_the_canvas_reads_no_property_that_python_does_not_know():
    sources = Path(widgets.__file__).parent / "js" / "src"
    pair = {"pair.js": PAIR_PROPS}
    for file in sources.rglob("*.js"):
        text, known = file.read_text(encoding="utf-8"), set(pair.get(file.name, PROPS))
        assert set(re.findall(r'model\.get\("(\w+)"\)', text)) <= known, file.name
        assert set(re.findall(r"\.tell\(\{ (\w+):", text)) <= known, file.name


def test_a_dash_component_takes_the_properties_and_no_others(bundle):
    canvas = widgets.TopologyCanvas(id="canvas", drawing=drawing(PAIR), theme="dark")

    made = canvas.to_plotly_json()
    assert (made["namespace"], made["type"]) == ("widgets", "TopologyCanvas")
    assert made["props"]["theme"] == "dark"
    with pytest.raises(TypeError, match="colour"):
        widgets.TopologyCanvas(colour="red")


def test_dash_is_told_which_files_to_serve():
    static = Path(widgets.__file__).parent
    hosts = [item for item in widgets._js_dist if not item.get("dynamic")]

    names = [(static / item["relative_package_path"]).name for item in hosts]
    assert names == ["dash_host.js", "quantity.js", "quantity_field.js"]
    assert all((static / item["relative_package_path"]).exists() for item in hosts)
    assert all(item["namespace"] == "widgets" for item in widgets._js_dist)


def test_neither_host_is_imported_before_it_is_asked_for():
    code = (
        "import sys, widgets, widgets.view_model.scene; "
        "print({'dash', 'anywidget'} & set(sys.modules))"
    )
    root = Path(widgets.__file__).parents[1]

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


def test_unknown_names_are_unknown():
    with pytest.raises(AttributeError, match="Nothing"):
        _ = widgets.Nothing


def test_a_widget_gives_the_drawn_topology_back(jupyter):
    canvas = jupyter.TopologyWidget(PAIR)
    assert canvas.topology == PAIR
    assert set(canvas.drawing["positions"]) == {"a", "b"}

    canvas.topology = Topology("one", (device("gpu", "c"),), ())
    assert canvas.topology.ranks == ("c",)


def test_a_widget_refuses_what_is_no_topology_in_words(jupyter):
    canvas = jupyter.TopologyWidget(PAIR, positions={"a": (0, 0), "b": (100, 0)})
    links = [{"src": "a", "dst": "a", "bandwidth": 1.0}]
    canvas.drawing = {**canvas.drawing, "topology": {**canvas.drawing["topology"], "links": links}}

    with pytest.raises(ProblemError, match="two different devices"):
        _ = canvas.topology


def test_a_widget_shows_a_plan(jupyter):
    canvas = jupyter.TopologyWidget(PAIR)
    problem = Problem(PAIR, all_gather(2, 2e6))
    canvas.show(problem, Schedule((Send(0, 0, "a", "b"), Send(0, 1, "b", "a")), 100.0, 1))

    assert canvas.scene["makespan"] == pytest.approx(100.0)
    assert canvas.cuts == []


def test_each_command_of_a_widget_is_a_new_one(jupyter):
    canvas = jupyter.TopologyWidget(PAIR)
    canvas.do("step", by=-1)
    first = canvas.command
    canvas.do("step", by=-1)

    assert first == {"name": "step", "args": {"by": -1}, "n": 1}
    assert canvas.command["n"] == 2


def test_a_page_holds_the_bundle_and_the_drawing_whatever_its_names(bundle):
    page = standalone_html(drawing(PAIR), theme="dark")

    def unpacked(name: str) -> bytes:
        packed = re.search(rf'id="{name}">(.*?)</script>', page, re.DOTALL).group(1)
        return gzip.decompress(base64.b64decode(packed))

    assert unpacked("canvas") == bundle.read_bytes()
    assert "<title>&lt;/script&gt; &amp; co</title>" in page
    state = json.loads(unpacked("state"))
    assert state["drawing"]["topology"]["name"] == PAIR.name
    assert state["theme"] == "dark"
    assert page.count("</script>") == 3
    assert not re.search(r'(src|href)="(?!data:)', page)
