"""Code that makes a document again when it is run."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

import formulations
import gallery
from ccl.collective import all_gather
from ccl.errors import FormatError
from ccl.layout import layout
from ccl.options import make_options, option_fields
from ccl.plans import Flow, Rate
from ccl.problem import Problem
from ccl.result import Stop
from ccl.serialization.documents import document
from ccl.serialization.topoloom import topology_from_json, topology_to_json
from ccl.topology import Link, Topology, device
from formulations import solve
from interchange.formats.own import python_code as module
from interchange.formats.own.fragment import Solving
from interchange.formats.own.python_code import PythonOptions, known, python_code
from tests.ccl.clusters import mesh, ring, ring_all_gather
from tests.ccl.documents import problems as any_problems
from tests.ccl.documents import topologies as any_topologies
from tests.ccl.undirected import on_a_line
from tests.interchange.formats.strategies import drawings, planned, solvings

WRITE = module.write
quick = settings(max_examples=30, deadline=None)
SMALL = ["dgx-1v", "dgx-a100", "thesis-2.3", "torus", "fat-tree", "ndv2"]


def run(content, **options):
    """Return what the code defines."""
    return made_by(WRITE(content, PythonOptions(**options)).content.decode())


def made_by(code):
    """Return what the text of a module defines."""
    defined: dict[str, Any] = {}
    exec(compile(code, "code", "exec"), defined)
    return defined


@quick
@given(drawings())
def test_a_drawing_is_made_again(content):
    made = run(content)

    assert made["topology"] == content.topology
    assert made.get("positions", {}) == content.positions


@quick
@given(any_topologies())
def test_any_name_and_number_is_made_again(topology):
    """Control signs, too; numbers keep their types, so that fingerprints do not change."""
    made = run(document(topology))["topology"]

    assert made == topology
    assert repr(made) == repr(topology)


@quick
@given(any_problems())
def test_any_problem_is_made_again(problem):
    """Custom demands, priorities, tenants and windows included."""
    made = run(document(problem))["problem"]

    assert made == problem
    assert made.fingerprint == problem.fingerprint


@quick
@given(planned())
def test_a_schedule_is_made_again_and_verified(content):
    made = run(content)

    assert made["plan"] == content.plan
    assert made["problem"] == content.problem


def test_terms_are_made_again():
    problem, plan = on_a_line()
    content = document(problem, plan=plan)

    assert run(content)["plan"] == plan
    assert "terms=frozenset([0, 1])" in python_code(content)


@pytest.mark.parametrize("formulation", ["orbit-trees", "forestcoll"])
def test_a_forest_is_made_again_with_its_trees_written_out(formulation):
    """A symmetric forest equals the one in which every image is a tree of its own."""
    problem = Problem(mesh(4), all_gather(4, 4e6))
    forest = solve(problem, formulation).plan
    content = document(problem, plan=forest)

    assert run(content)["plan"] == forest.unfolded(problem.topology)
    assert bool(WRITE(content, PythonOptions()).lost) is (forest.symmetry is not None)


def test_a_flow_is_made_again():
    problem = Problem(mesh(2), all_gather(2, 2e6))
    flow = Flow((Rate(0, "g0", "g1", 1.0), Rate(1, "g1", "g0", 1.0)))

    assert run(document(problem, plan=flow))["plan"] == flow


def test_a_forest_of_too_many_trees_is_refused(monkeypatch):
    """4 roots reach 3 others each: 12 routes."""
    problem = Problem(mesh(4), all_gather(4, 4e6))
    forest = solve(problem, "forestcoll").plan
    monkeypatch.setattr(module, "MOST_ROUTES", 11)

    with pytest.raises(FormatError, match=r"the forest has \d+ routes, and at most 11"):
        python_code(document(problem, plan=forest))


def test_a_result_is_solved_again_with_its_options():
    problem = Problem(ring(4), all_gather(4, 4e6))
    result = solve(problem, "te-ccl-milp", options={"horizon": 4})
    made = run(document(result))["result"]

    assert made.problem == problem
    assert made.plan == result.plan
    assert dict(made.options) == dict(result.options)


@pytest.mark.parametrize(
    "name", ['"""', "'", "\\", '"); raise SystemExit; ("', "{i}", "\n", "\x00", "é→名", "' \""]
)
def test_no_name_gets_out_of_its_quotes(name):
    name = f"a{name}"
    topology = Topology(name, (device("gpu", name), device("gpu", "b")), (Link("b", name, 1.0),))

    assert run(document(topology))["topology"] == topology


@pytest.mark.parametrize("name", SMALL)
def test_the_code_of_a_small_cluster_is_as_formatters_leave_it(name):
    topology = gallery.open_cluster(name)
    ranks = len(topology.ranks)
    code = python_code(document(Problem(topology, all_gather(ranks, 1e6 * ranks, chunks=2))))
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--isolated", "--diff", "-"],
        input=code,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout == ""
    assert done.returncode == 0


def test_the_code_of_a_schedule_is_as_formatters_leave_it():
    problem, plan = ring_all_gather(ring(5))
    code = python_code(document(problem, plan=plan, positions={"g0": (1.0, 2.0)}))
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--isolated", "--check", "-"],
        input=code,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def test_links_that_are_alike_are_one_loop():
    """A DGX-1V has 8 pairs with two NVLinks and 8 with one, both ways each."""
    code = python_code(document(gallery.open_cluster("dgx-1v")))

    assert code.count("bandwidth=") == 2
    assert code.count('    ("g') == 16


def test_devices_that_are_alike_and_numbered_are_one_line():
    """Not where a number is missing, has a zero in front or the host is another."""
    names = ["g8", "g9", "g10", "g12", "x0", "x01", "x2"]
    topology = Topology("t", tuple(device("gpu", name) for name in names), ())
    code = python_code(document(topology))

    assert '*(device("gpu", f"g{i}") for i in range(8, 11)),' in code
    assert all(f'device("gpu", "{name}"),' in code for name in names[3:])
    assert run(document(topology))["topology"] == topology


# Clusters by name, and how they are solved


@pytest.mark.parametrize(
    "name",
    [
        "dgx-1v",
        "dgx-a100:hosts=2",
        "ndv2:hosts=4",
        "torus:shape=2x3x4",
        "thesis-2.3",
        "mi250:hosts=2",
    ],
)
def test_a_cluster_of_the_gallery_is_written_by_its_name(name):
    """Through the page, whose JSON keeps neither declared symmetry nor types of its own."""
    topology = gallery.open_cluster(name)
    drawn = topology_from_json(topology_to_json(topology))
    content = document(drawn, positions=layout(drawn))
    written = WRITE(content, PythonOptions())
    code = written.content.decode()
    made = made_by(code)

    assert f'topology = open_cluster("{name}")' in code
    assert len(code.splitlines()) < 12
    assert written.lost == ()
    assert made["topology"] == drawn
    assert made["positions"] == content.positions
    whole = "open_cluster" not in WRITE(content, PythonOptions(by_name=False)).content.decode()
    assert whole
    assert run(content, by_name=False)["topology"] == drawn


def test_a_cluster_that_was_edited_is_written_out():
    """A link less, another name, a device moved: the first two are no cluster of the gallery."""
    topology = gallery.open_cluster("dgx-1v")
    cut = replace(topology, links=topology.links[:-1])
    moved = {**layout(topology), "g0": (1.5, 2.5)}

    assert known(topology) == "dgx-1v"
    assert known(cut) is None
    assert known(replace(topology, name="mine")) is None
    assert run(document(cut))["topology"] == cut
    assert run(document(topology, positions=moved))["positions"] == moved


@settings(max_examples=15, deadline=None)
@given(any_problems(), solvings())
def test_how_a_problem_is_to_be_solved_is_written_and_not_run(problem, solving):
    code = WRITE(document(problem), PythonOptions(), solving=solving).content.decode()
    made = made_by(code)

    assert made["asked"] == solving.arguments
    assert made["problem"] == problem
    assert "result" not in made


def test_limits_of_a_solve_are_written_with_its_result():
    """A proved plan comes again; of one that a limit ended this is said."""
    problem = Problem(ring(4), all_gather(4, 4e6))
    result = solve(problem, "te-ccl-milp", options={"horizon": 4}, time_limit=30.0)
    solving = Solving(formulation="te-ccl-milp", time_limit=30.0, gap=0.01)
    written = WRITE(document(result), PythonOptions(), solving=solving)
    stopped = replace(result, stop=Stop.TIME_LIMIT)

    assert "time_limit=30.0" in written.content.decode()
    assert "gap=0.01" in written.content.decode()
    assert written.lost == ()
    assert WRITE(document(result), PythonOptions()).lost[0].startswith("time limit and gap")
    assert "another plan" in WRITE(document(stopped), PythonOptions(), solving=solving).lost[0]


def test_a_plan_is_written_out_where_it_must_be_the_very_same():
    problem = Problem(ring(4), all_gather(4, 4e6))
    result = solve(problem, "list", time_limit=1)
    made = run(document(result), plan="written out")

    assert made["plan"] == result.plan
    assert "solve" not in made


def every_option():
    """Return each formulation with each option at another value than its default."""
    for each in formulations.available():
        rows = option_fields(each.options)
        options = {row.name: other(row) for row in rows}
        yield pytest.param(each.name, options, id=each.name)


def other(row):
    if row.kind == "bool":
        return not row.default
    if row.kind == "choice":
        return next(each for each in row.choices if each != row.default)
    if row.kind == "text":
        return 'it\'s "text"'
    if row.kind == "sketch":
        return {"without": [["g0", "g1"]], "relays": [["g0", "g1"]], "chunks": 2}
    value = (row.minimum or 0) + (1 if row.kind == "int" else 0.25)
    return value if row.maximum is None else min(value, row.maximum)


@pytest.mark.parametrize(("name", "options"), list(every_option()))
def test_every_option_of_every_formulation_is_written_as_it_is(name, options):
    """What the code calls `solve` with makes the options that were asked for."""
    problem = Problem(ring(4), all_gather(4, 4e6))
    solving = Solving(formulation=name, options=options, time_limit=1.5)
    code = python_code(document(problem), solving=solving)
    asked = made_by(code)["asked"]
    kind = formulations.formulation(name).options

    assert asked["formulation"] == name
    assert make_options(kind, asked.get("options", {})) == make_options(kind, options)
    assert asked["time_limit"] == 1.5
