"""The command line: one answer on standard output, one sentence on standard error."""

from __future__ import annotations

import json
import socket
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from ccl import __version__
from ccl.collective import all_gather, broadcast
from ccl.problem import Problem
from ccl.serialization.documents import document, read_document, write_document
from ccl.serialization.topoloom import topology_to_json
from designer.app import Offer
from designer.cli import main
from designer.cli.entry import application
from designer.jobs import Limits
from gallery import catalog, open_cluster
from tests.ccl.documents import solved


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run the command line in an empty folder; return exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main([str(each) for each in arguments])
        out, err = capsys.readouterr()
        return left.value.code, out, err

    return run


@pytest.fixture
def saved(tmp_path):
    """Write a result, a plan, a problem and a topology; return their folder."""
    full = solved()
    assert full.problem is not None
    write_document(tmp_path / "result.json", full)
    write_document(tmp_path / "plan.json", document(full.problem, plan=full.plan))
    write_document(tmp_path / "problem.json", document(full.problem))
    write_document(tmp_path / "topology.json", document(full.topology))
    return tmp_path


def test_without_a_command_it_says_what_there_is(run):
    code, out, err = run()

    assert (code, err) == (0, "")
    for command in ("design", "gallery", "solve", "bound", "optimum", "verify", "export"):
        assert f"  {command} " in out


@pytest.mark.parametrize(
    "command", ["design", "gallery", "bound", "optimum", "verify", "export", "import"]
)
def test_every_command_explains_itself(command):
    done = CliRunner().invoke(application(), [command, "--help"])

    assert done.exit_code == 0
    assert f"{command} [OPTIONS]" in done.stdout


def test_the_version_is_the_package_s(run):
    assert run("--version") == (0, f"topoloom {__version__}\n", "")


def test_the_console_script_starts_without_a_solver_or_a_screen():
    """A list of clusters must not wait for CVXPY and Dash."""
    code = (
        "import sys; from designer.cli import main\n"
        "try: main(['gallery', '--json'])\n"
        "except SystemExit as left: assert not left.code\n"
        "print(sorted({'cvxpy', 'dash', 'highspy', 'scipy', 'anywidget'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.splitlines()[-1] == "[]"


def test_the_gallery_lists_every_cluster_with_its_source(run):
    code, out, _ = run("gallery", "--json")
    clusters = json.loads(out)["clusters"]

    assert code == 0
    assert [each["name"] for each in clusters] == [each.name for each in catalog()]
    assert all(each["source"] for each in clusters)


def test_the_table_of_the_gallery_names_every_cluster(run):
    _, out, _ = run("gallery")

    assert {each.name for each in catalog()} <= set(out.split())


def test_a_cluster_is_told_with_its_figures_and_what_they_rest_on(run):
    code, out, _ = run("gallery", "ndv2:hosts=3")

    assert code == 0
    assert "24 GPUs" in out
    assert "12.5 GB/s" in out
    assert "spec" in out
    assert "hosts=2" in out


def test_a_cluster_is_written_as_a_document(run, tmp_path):
    code, _, err = run("gallery", "torus:shape=3x4", "--out", "t.json")

    assert (code, err) == (0, "the topology is in t.json\n")
    assert read_document(tmp_path / "t.json").topology == open_cluster("torus:shape=3x4")


def test_a_bound_comes_with_its_cut(run):
    """One 12.5 GB/s port carries half of 1 MB out of a host: 40 µs, its latency and the way there.

    The bytes of far GPUs come later, those for far GPUs must leave earlier: 42.7 µs.
    """
    code, out, err = run(
        "bound", "ndv2:hosts=2", "--collective", "all-gather", "--size", "1MB", "--json"
    )
    told = json.loads(out)

    assert (code, err) == (0, "")
    assert told["bound_kind"] == "cut"
    assert told["bound_us"] == pytest.approx(42.7, rel=2e-4)
    assert told["algbw_GBps"] == pytest.approx(1e3 / told["bound_us"])
    assert told["cut"]["bandwidth_GBps"] == 12.5
    assert told["cut"]["inside"] == [f"g{rank}" for rank in range(8)]


def test_a_bound_is_told_to_people_too(run):
    code, out, _ = run("bound", "ndv2:hosts=2")

    assert code == 0
    assert "42.7 µs" in out
    assert "41.3 µs" in out
    assert "12.5 GB/s over 1 link: g0->g9" in out


def test_an_optimum_comes_as_a_fraction_with_its_cut(run):
    """A GPU takes in 100 GB/s and wants 7 of 8 shards: 800/7 GB/s, and 1 % of it is worth 1 %."""
    code, out, err = run("optimum", "ring", "--size", "1GB", "--worth", "--json")
    told = json.loads(out)

    assert (code, err) == (0, "")
    assert told["fraction"] == "800/7"
    assert told["reached"]
    assert told["algbw_GBps"] == pytest.approx(800 / 7)
    assert told["cuts"][0]["bandwidth_GBps"] == 100
    assert told["worth"][0]["more"] == pytest.approx(0.01)
    assert told["worth"][0]["less"] == pytest.approx(-0.01)


def test_an_optimum_is_told_to_people_too(run):
    """Between the hosts is one link of 12.5 GB/s each way: 8 shards of 8 GPUs in 5.12 ms."""
    _, cut, _ = run("optimum", "ndv2:hosts=2", "--collective", "all-gather", "--worth")
    _, priced, _ = run("optimum", "ndv2:hosts=2", "--collective", "all-to-all")

    assert "25 GB/s" in cut
    assert "12.5 GB/s out of h1" in cut
    assert "InfiniBand EDR at 12.5 GB/s: +1 % gives +1.00%, -1 % gives -1.00%" in cut
    assert "g0->g9" in priced
    assert "3.12 GB/s" in priced


def test_whole_chunks_prove_more(run):
    """A ring of 4, one 250 KB chunk each: two links bring 3 chunks, so one brings 2."""
    bounds = [
        json.loads(run("bound", "ring:gpus=4", "--json", *flags)[1])
        for flags in ((), ("--whole-chunks",))
    ]

    assert bounds[0]["bound_us"] < bounds[1]["bound_us"]
    assert [each["whole_chunks"] for each in bounds] == [False, True]


def test_a_document_brings_its_own_problem(run, saved):
    code, out, _ = run("bound", saved / "problem.json", "--json")

    assert code == 0
    assert json.loads(out)["size"] == 4e6


@pytest.mark.parametrize("name", ["result.json", "plan.json"])
def test_a_sound_plan_is_verified_and_replayed(run, saved, name):
    """Three rounds of 20 µs; 4 MB in 60 µs are 66.7 GB/s, 3/4 of it on the bus."""
    code, out, err = run("verify", saved / name, "--json")
    told = json.loads(out)

    assert (code, err) == (0, "")
    assert told["verified"] is True
    assert told["makespan_us"] == pytest.approx(60)
    assert told["algbw_GBps"] == pytest.approx(4e3 / 60)
    assert told["busbw_GBps"] == pytest.approx(3e3 / 60)
    assert run("verify", saved / name)[1].startswith("all-gather of 4 MB on ring: verified\n")


@pytest.mark.parametrize("name", ["result.json", "plan.json"])
def test_a_plan_that_breaks_a_rule_is_refused_with_exit_code_1(run, saved, name):
    """What g1 sends first is chunk 0 now, which it does not hold."""
    path = saved / name
    path.write_text(path.read_text("utf-8").replace("[0, 1, [", "[0, 0, [", 1), "utf-8")
    code, out, err = run("verify", path, "--json")
    told = json.loads(out)

    assert (code, err) == (1, "")
    assert told["verified"] is False
    assert "g1 does not hold chunk 0" in told["rule"]
    assert (told["where"], told["epoch"], told["time_us"]) == ("g1", 0, 0)
    assert run("verify", path)[0] == 1


def test_a_plan_is_verified_against_another_problem(run, saved):
    """It gathers the four chunks of a ring of 4, and half as large ones all the more."""
    small = document(Problem(solved().topology, all_gather(4, 2e6)))
    other = document(Problem(solved().topology, broadcast(4, 1e6, root=1)))
    write_document(saved / "small.json", small)
    write_document(saved / "other.json", other)

    assert run("verify", saved / "plan.json", "--problem", saved / "small.json")[0] == 0
    assert run("verify", saved / "plan.json", "--problem", saved / "other.json")[0] == 1
    assert run("verify", saved / "plan.json", "--problem", saved / "topology.json")[0] == 2


EXPORTS = {
    "html": "<!doctype html>",
    "csv": "chunk,src,dst,start_us",
    "chrome-trace": '{"traceEvents": [',
    "schedule": '{\n "format": "topoloom/1",\n "kind": "plan"',
    "node-link": '{\n "directed": true',
}


@pytest.mark.parametrize("target", EXPORTS)
def test_a_result_is_exported(run, saved, target):
    code, out, err = run("export", saved / "result.json", "--to", target, "--out", "made")

    assert (code, out) == (0, "")
    assert err.splitlines()[0] == f"{target} is in made"
    assert all(line.startswith("not kept: ") for line in err.splitlines()[1:])
    assert (saved / "made").read_text("utf-8").startswith(EXPORTS[target])


def test_an_export_without_a_file_goes_to_standard_output(run, saved):
    code, out, err = run("export", saved / "result.json", "--to", "csv")

    assert code == 0
    assert err.startswith("not kept: the topology")
    assert len(out.splitlines()) == 13


def test_an_exported_plan_can_be_verified(run, saved):
    run("export", saved / "result.json", "--to", "schedule", "--out", "p.json")

    assert run("verify", "p.json")[0] == 0


@pytest.mark.parametrize("name", ["topology.json", "problem.json", "plan.json", "result.json"])
def test_the_topology_of_any_document_is_imported(run, saved, name):
    code, _, err = run("import", saved / name, "--out", "t.json")

    assert code == 0
    kind = name.removesuffix(".json")
    told, done = err.splitlines()
    assert told == f"taken: a {kind} document: 4 devices, 4 links"
    assert done == "ring with 4 GPUs is in t.json"
    made = read_document(saved / "t.json")
    assert (made.topology, made.kind) == (solved().topology, kind)


def test_a_graph_is_imported(run, saved):
    run("export", saved / "result.json", "--to", "node-link", "--out", "graph.json")

    assert run("import", "graph.json", "--out", "t.json")[0] == 0
    made = read_document(saved / "t.json")
    assert (made.topology, made.positions) == (solved().topology, solved().positions)


BAD = [
    ("nonsense",),
    ("gallery", "dgx-9"),
    ("gallery", "ring:gpus=many"),
    ("gallery", "ring:hosts=2"),
    ("gallery", "--out", "x.json"),
    ("bound",),
    ("bound", "missing.json"),
    ("bound", "broken.json"),
    ("bound", "negative.json"),
    ("bound", "unreachable.json"),
    ("bound", "problem.json", "--size", "2MB"),
    ("bound", "ring", "--size", "1G"),
    ("bound", "ring", "--chunks", "1000000000"),
    ("bound", "ring", "--chunks", "many"),
    ("bound", "ring", "--collective", "gossip"),
    ("bound", "ring", "--collective", "broadcast", "--root", "8"),
    ("bound", "ring", "--sise", "1MB"),
    ("bound", "ring:gpus=1"),
    ("verify", "topology.json"),
    ("verify", "problem.json"),
    ("verify", "broken.json"),
    ("export", "result.json", "--to", "tiff", "--out", "made"),
    ("export", "topology.json", "--to", "csv", "--out", "made"),
    ("export", "result.json", "--to", "csv", "--out", "no/made"),
    ("export", "result.json", "--to", "csv", "--out", "."),
    ("import", "broken.json", "--out", "made"),
    ("design", "missing.json"),
    ("design", "ring", "--port", "70000"),
    ("design", "ring", "--host", "192.0.2.1"),
]


@pytest.mark.parametrize("arguments", BAD, ids=" ".join)
def test_bad_input_ends_with_2_one_sentence_and_nothing_half_written(run, saved, arguments):
    full = topology_to_json(solved().topology)
    (saved / "broken.json").write_text('{"format": "topoloom/1",', "utf-8")
    full["links"][0]["bandwidth"] = -50.0
    text = {"format": "topoloom/1", "kind": "topology", "topology": full}
    (saved / "negative.json").write_text(json.dumps(text), "utf-8")
    full["links"] = []
    (saved / "unreachable.json").write_text(json.dumps(text), "utf-8")
    before = sorted(saved.iterdir())

    code, out, err = run(*arguments)

    assert (code, out) == (2, "")
    assert err.startswith("topoloom: ")
    assert err.count("\n") == 1
    assert len(err) > len("topoloom: ") + 20
    assert sorted(saved.iterdir()) == before


def test_the_whole_sentence_says_where_what_and_what_would_be_right(run, saved):
    (saved / "broken.json").write_text('{"format": "topoloom/1",\n "kind": }', "utf-8")

    assert run("bound", "broken.json")[2] == (
        "topoloom: broken.json: line 2, column 10: it is not JSON (invalid character)\n"
    )


def test_a_taken_port_is_said_before_anything_is_loaded(run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = run("design", "--port", port, "--no-browser")

    assert code == 2
    assert f"127.0.0.1:{port} cannot be listened on: address already in use" in err


def test_the_designer_opens_what_it_is_given(run, saved, monkeypatch):
    served = []

    def serve(drawing, *, ready, **where):
        served.append((drawing, where))
        ready("http://127.0.0.1:8951/")

    monkeypatch.setattr("designer.app.serve", serve)

    flags = ("--port", "8951", "--no-browser", "--solves", "3", "--memory", "2GB")
    code, _, err = run("design", saved / "result.json", *flags)

    assert code == 0
    assert "http://127.0.0.1:8951/" in err
    drawing, where = served[0]
    assert drawing["topology"]["name"] == "ring"
    assert drawing["positions"]["g1"] == [100.0, 0.0]
    assert where == {
        "host": "127.0.0.1",
        "port": 8951,
        "open_browser": False,
        "fragment": "",
        "allowed": [],
        "offer": Offer(limits=Limits(at_once=3, memory=2e9)),
    }


def test_the_designer_opens_what_it_had_when_it_is_given_nothing(run, monkeypatch):
    served = []
    monkeypatch.setattr("designer.app.serve", lambda drawing, **_: served.append(drawing))

    assert run("design", "--port", "8952", "--no-browser")[0] == 0
    assert served == [None]


MATRIX = """\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity
GPU0\t X \tNV12\tNV12\tNV12\t0-31
GPU1\tNV12\t X \tNV12\tNV12\t0-31
GPU2\tNV12\tNV12\t X \tNV12\t32-63
GPU3\tNV12\tNV12\tNV12\t X \t32-63
"""


def test_a_file_of_a_machine_is_imported_once_the_question_is_answered(run, saved):
    (saved / "topo.txt").write_text(MATRIX, "utf-8")

    code, _, err = run("import", "topo.txt", "--out", "t.json")
    assert code == 2
    assert "--set nvlink=switch" in err
    assert not (saved / "t.json").exists()

    code, _, err = run("import", "topo.txt", "--set", "nvlink=switch", "--out", "t.json")
    assert code == 0
    assert all(
        line.startswith(("taken: ", "assumed: ", "left out: ")) for line in err.splitlines()[:-1]
    )
    made = read_document(saved / "t.json").topology
    assert [each.kind for each in made.devices].count("gpu") == 4
    assert [each.kind for each in made.devices].count("switch") == 1


def test_two_descriptions_of_one_machine_are_merged(run, saved):
    (saved / "topo.txt").write_text(MATRIX, "utf-8")
    answered = ("--set", "nvlink=switch", "--out")
    assert run("import", "topo.txt", *answered, "a.json")[0] == 0

    code, _, _ = run("import", "topo.txt", "--merge", "a.json", *answered, "b.json")

    assert code == 0
    assert read_document(saved / "b.json").topology == read_document(saved / "a.json").topology
    assert run("import", "a.json", "--merge", "result.json")[0] == 0
    assert run("import", "t.json", "--format", "nvidia-smi")[0] == 2


@pytest.mark.parametrize("setting", ["nvlink", "unknown=1", "=1"])
def test_a_setting_that_is_none_is_told(run, saved, setting):
    code, out, _ = run("export", "result.json", "--to", "nccl", "--set", setting)

    assert (code, out) == (2, "")


def test_formats_are_listed(run):
    code, out, _ = run("formats", "--json")

    told = json.loads(out)["formats"]
    assert code == 0
    assert {"read", "write"} == {each["direction"] for each in told}
    assert {"nvidia-smi", "msccl-xml", "html", "topoloom"} <= {each["name"] for each in told}
