"""A sketch as an option: on the command line, in the form, and drawn click by click."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

import formulations
from ccl.collective import all_gather
from ccl.errors import FormatError, ProblemError
from ccl.options import make_options, option_fields, plain
from ccl.problem import Problem
from ccl.serialization.documents import document, read_document, write_document
from ccl.serialization.sketches import Sketch, sketch_from_json, sketch_to_json
from ccl.serialization.topoloom import topology_to_json
from designer.cli import main
from designer.views.solve import forms
from designer.views.solve import sketch as drawn
from formulations import Formulation, formulation
from formulations.core import registry
from formulations.engines.taccl.sketching import default_sketch
from gallery import open_cluster

NAME = "sketched"


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a formulation with a sketch offers."""

    sketch: Sketch | None = field(default=None, metadata={"label": "Sketch"})
    tries: int = field(default=2, metadata={"label": "Tries", "min": 1})


@pytest.fixture
def sketched(monkeypatch):
    """A formulation that is the ring and keeps its sketch in its log."""
    ring = formulation("ring")

    def run(run, options):
        run.log.append(f"with {options.sketch}")
        return ring.run(run, ring.options())

    made = Formulation(
        name=NAME,
        title="Ring with a sketch",
        reference="",
        collectives=ring.collectives,
        options=Options,
        refuses=ring.refuses,
        run=run,
    )
    known = (*formulations.available(), made)
    for module in (registry, formulations):
        monkeypatch.setattr(module, "available", lambda: known)
    return made


@pytest.fixture(scope="module")
def ndv2():
    return open_cluster("ndv2:hosts=2")


@pytest.fixture(scope="module")
def dgx():
    """Two hosts of 8 GPUs, each with a NIC of its own."""
    return open_cluster("dgx-a100:hosts=2")


def test_an_option_may_be_a_sketch_in_either_form():
    sketch = Sketch(without=(("g0", "g1"),), switches="uc-min")
    [row] = [row for row in option_fields(Options) if row.name == "sketch"]
    assert row.kind == "sketch"
    assert row.optional

    assert make_options(Options, {}).sketch is None
    assert make_options(Options, {"sketch": None}).sketch is None
    assert make_options(Options, {"sketch": sketch}).sketch == sketch
    assert make_options(Options, {"sketch": sketch_to_json(sketch)}).sketch == sketch


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("uc-min", "option sketch is 'uc-min'; give a sketch or its plain form"),
        ({"without": 1}, "at without: expected a list"),
        ({"switches": "few"}, "there are all, uc-min and uc-max"),
        ({"offsets": [[3, 2]]}, "moves ranks by 3 in blocks of 2"),
    ],
)
def test_a_wrong_sketch_is_one_sentence(value, sentence):
    with pytest.raises((FormatError, ProblemError), match=sentence.replace("[", r"\[")):
        make_options(Options, {"sketch": value})


def test_options_for_files_and_pipes_are_plain_json():
    made = plain({"sketch": Sketch(relays=(("g1", "g0"),)), "tries": 3})
    assert json.loads(json.dumps(made)) == {"sketch": {"relays": [["g1", "g0"]]}, "tries": 3}
    assert plain({"sketch": None}) == {"sketch": None}


def test_a_result_keeps_its_sketch_in_the_plain_form(sketched, tmp_path):
    sketch = Sketch(without=(("g0", "g1"),))
    ring = open_cluster("ring:gpus=4")
    result = formulations.solve(Problem(ring, all_gather(4, 1e6)), NAME, options={"sketch": sketch})

    assert result.options == {"sketch": {"without": [["g0", "g1"]]}, "tries": 2}
    write_document(tmp_path / "r.json", document(result))
    again = read_document(tmp_path / "r.json").result
    assert again is not None
    assert sketch_from_json(again.options["sketch"]) == sketch


class Finished:
    """A job that solves in this process, with what went over the pipe."""

    best = None

    def __init__(self, problem, *, formulation, options, **_limits):
        sent = json.loads(json.dumps(options))
        self.found = formulations.solve(problem, formulation, options=sent)

    def __iter__(self):
        return iter(())

    def result(self):
        return self.found

    def cancel(self):
        pass


@pytest.fixture
def run(sketched, monkeypatch, capsys):
    """Run the command line, with solves in this process: (exit code, output, errors)."""
    monkeypatch.setattr(formulations, "start", Finished)

    def go(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["solve", *arguments, "--formulation", NAME])
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return go


def test_the_command_line_reads_a_sketch_of_taccl_and_says_what_it_took(run, tmp_path):
    """A ring of 4 without hosts is one host; the offset by one of its 4 ranks is taken."""
    file = tmp_path / "s.json"
    file.write_text(
        json.dumps(
            {
                "nnodes": 1,
                "symmetry_offsets": [[1, 4]],
                "hyperparameters": {"input_chunkup": 3, "input_size": "1M"},
            }
        )
    )
    out = tmp_path / "r.json"
    code, _, err = run("ring:gpus=4", "--sketch", str(file), "--out", str(out))

    assert code == 0, err
    assert "s.json: assumed: all GPUs are in one host" in err
    assert "s.json: taken: symmetry of ranks by 1 in blocks of 4" in err
    assert "s.json: left out: input_size" in err
    kept = read_document(out).result
    assert kept is not None
    assert kept.options["sketch"] == {"offsets": [[1, 4]], "chunks": 3}
    assert len(kept.problem.collective.chunks) == 4 * 3  # nobody asked for another number


def test_the_command_line_reads_our_form_in_silence(run, tmp_path):
    file = tmp_path / "s.json"
    file.write_text('{"without": [["g0", "g1"]]}')
    code, out, err = run("ring:gpus=4", "--sketch", str(file))

    assert (code, err) == (0, "")
    assert "without=(('g0', 'g1'),)" in out.replace("\n", "").replace("  ", "")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('{"without": [["g0", "g2"]]}', "the link g0->g2, which Ring of 4 does not have"),
        ("{", "it is not JSON"),
        (None, "cannot be read: no such file"),
    ],
)
def test_the_command_line_refuses_what_is_no_sketch(run, tmp_path, content, sentence):
    file = tmp_path / "s.json"
    if content is not None:
        file.write_text(content)
    code, _, err = run("ring:gpus=4", "--sketch", str(file))

    assert code == 2
    assert sentence in err
    assert err.startswith(f"topoloom: {file}")
    assert err.count("\n") == 1


def test_the_help_says_that_a_file_is_wanted(run):
    code, out, _ = run("--help")
    assert code == 0
    assert "--sketch FILE" in " ".join(out.split())


def test_a_line_is_switched_off_both_ways_and_on_again(ndv2):
    once = drawn.with_links(None, [("g0", "g1")], ndv2)
    assert once == {"without": [["g0", "g1"], ["g1", "g0"]]}
    assert drawn.with_links(once, [("g1", "g0")], ndv2) is None  # nothing is left to say


def test_a_bundle_of_which_a_part_is_off_is_switched_off_as_a_whole(ndv2):
    part = {"without": [["g0", "g1"]]}
    whole = drawn.with_links(part, [("g0", "g1"), ("g0", "g2")], ndv2)
    assert whole is not None
    assert len(whole["without"]) == 4
    assert drawn.with_links(whole, [("g0", "g1"), ("g0", "g2")], ndv2) is None


def test_links_that_are_not_there_are_not_named(ndv2):
    """NDv2 joins its two hosts one way between 0 and 9: the opposite direction is no link."""
    only = drawn.with_links(None, [("g0", "g9")], ndv2)
    assert only == {"without": [["g0", "g9"]]}


def test_a_relay_serves_the_gpus_of_its_host_that_are_nearest_by_rank(dgx):
    """Relays 2 and 6 of ranks 0 to 7: 0 to 4 are nearest to 2 (4 is as near to 6), 5 to 7 to 6."""
    one = drawn.with_relay(None, "g2", dgx)
    assert one is not None
    assert one["relays"] == [[f"g{i}", "g2"] for i in range(8)]
    two = drawn.with_relay(one, "g6", dgx)
    assert two is not None
    assert two["relays"] == [[f"g{i}", "g2" if i < 5 else "g6"] for i in range(8)]
    assert drawn.with_relay(drawn.with_relay(two, "g6", dgx), "g2", dgx) is None


def test_relays_of_hosts_do_not_touch_each_other(dgx):
    both = drawn.with_relay(drawn.with_relay(None, "g2", dgx), "g9", dgx)
    assert both is not None
    assert len(both["relays"]) == 16
    assert drawn.with_relay(both, "g9", dgx) == drawn.with_relay(None, "g2", dgx)


@pytest.mark.parametrize(
    ("cluster", "value", "gpu", "sentence"),
    [
        ("ring:gpus=4", None, "g0", "g0 is no GPU of a host"),
        ("dgx-a100:hosts=2", None, "rail0", "rail0 is no GPU of a host"),
        ("dgx-1v", None, "g0", "all GPUs are in "),
        ("ndv2:hosts=2", {"between": [["g0", "g9"]]}, "g1", "g1 sends to no other host; choose g0"),
        ("ndv2:hosts=2", {"between": []}, "g1", "clear it first"),
        ("ndv2:hosts=2", None, "g2", "no path leads from g2 out of h0 but through other GPUs"),
    ],
)
def test_a_relay_that_cannot_be_is_refused(cluster, value, gpu, sentence):
    with pytest.raises(ProblemError, match=sentence):
        drawn.with_relay(value, gpu, open_cluster(cluster))


def test_fields_of_the_card_are_read_and_checked(ndv2):
    form = drawn.with_form(None, switches="uc-max", offsets="1 in 8,8/16", topology=ndv2)
    assert form == {"switches": "uc-max", "offsets": [[1, 8], [8, 16]]}
    assert drawn.offsets_text(form["offsets"]) == "1 in 8, 8 in 16"
    assert drawn.with_form(form, switches="all", offsets=" ", topology=ndv2) is None
    with pytest.raises(ProblemError, match="'8' is no symmetry of ranks; write it like 2 in 16"):
        drawn.with_form(None, switches="all", offsets="8", topology=ndv2)
    with pytest.raises(ProblemError, match="blocks of 5, which do not divide the 16 GPUs"):
        drawn.with_form(None, switches="all", offsets="1 in 5", topology=ndv2)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "derived from the cluster"),
        ({}, "own: nothing is left out"),
        (
            {
                "without": [["a", "b"], ["b", "a"], ["c", "d"]],
                "relays": [["a", "b"], ["b", "b"], ["c", "d"]],
                "switches": "uc-min",
            },
            "own: 2 links off, 2 relays, uc-min",
        ),
        (
            {"between": [], "offsets": [[1, 2]], "chunks": 2},
            "own: symmetry 1 in 2, 0 pairs between hosts, 2 chunks per shard",
        ),
        ({"colour": 1}, "not readable: 'colour' is no part of a sketch"),
    ],
)
def test_a_sketch_is_told_in_words(value, words):
    assert drawn.described(value).startswith(words)


def test_an_edit_of_the_drawing_drops_what_it_took_away_and_says_so(ndv2):
    """One host less: 8 ranks are left, which blocks of 16 do not divide."""
    value = {
        "without": [["g0", "g1"], ["g1", "g0"], ["g8", "g9"]],
        "relays": [["g1", "g0"], ["g9", "g8"]],
        "offsets": [[1, 8], [8, 16]],
        "switches": "uc-min",
    }
    assert drawn.fitted(value, ndv2) == (value, "")
    left, told = drawn.fitted(value, open_cluster("ndv2:hosts=1"))

    assert left == {
        "without": [["g0", "g1"], ["g1", "g0"]],
        "relays": [["g1", "g0"]],
        "offsets": [[1, 8]],
        "switches": "uc-min",
    }
    assert "g8–g9" in told
    assert "1 pair of GPUs" in told
    assert "the symmetry 8 in 16" in told


def test_of_a_cluster_with_other_names_nothing_is_left():
    value = {"between": [["x0", "x8"]], "without": [["x0", "x1"]]}
    left, told = drawn.fitted(value, open_cluster("ndv2:hosts=2"))
    assert left is None
    assert told.startswith("the sketch lost x0–x1, 1 pair of GPUs")


def test_the_canvas_is_told_what_to_draw():
    value = {"without": [["g0", "g1"], ["x", "y"]], "relays": [["g1", "g0"], ["g0", "g0"]]}
    assert drawn.sketch_marks(value, drawing=False) == {
        "drawing": False,
        "off": [["g0", "g1"], ["x", "y"]],
        "relays": {"g0": 2},
    }
    assert drawn.sketch_marks(None, drawing=False) is None
    assert drawn.sketch_marks(None, drawing=True) == {"drawing": True, "off": [], "relays": {}}


def test_the_option_that_is_a_sketch_is_found(sketched):
    assert drawn.sketch_option(NAME) == "sketch"
    assert drawn.sketch_option("ring") is None
    assert drawn.sketch_option(None) is None


def test_picks_begin_with_the_derived_sketch_and_may_end_there(ndv2):
    """Two clicks on one link leave what was derived, which is then no sketch of the user's."""
    base = {"switches": "uc-min"}
    topology = topology_to_json(ndv2)
    line = {"links": [["g0", "g1"]], "n": 1}

    now, refused = drawn.after(None, base, picks=[line], topology=topology)
    assert now == {"switches": "uc-min", "without": [["g0", "g1"], ["g1", "g0"]]}
    assert refused == []
    assert drawn.after(now, base, picks=[line], topology=topology) == (None, [])
    assert drawn.after(None, base, picks=[line, line], topology=topology) == (None, [])


def test_a_pick_that_is_refused_leaves_the_others(ndv2):
    base = {"between": [["g0", "g9"], ["g8", "g1"]]}
    picks = [{"device": "g1", "n": 1}, {"device": "g0", "n": 2}]
    now, refused = drawn.after(None, base, picks=picks, topology=topology_to_json(ndv2))

    assert now is not None
    assert {relay for _, relay in now["relays"]} == {"g0"}
    assert refused == ["in this sketch g1 sends to no other host; choose g0, or clear it"]


def test_fields_may_take_everything_away_from_the_derived_sketch(ndv2):
    """A sketch that says nothing is another one than the derived: it lets the solver use all."""
    base = {"switches": "uc-min"}
    topology = topology_to_json(ndv2)
    nothing = drawn.typed(None, base, {"switches": "all", "offsets": ""}, topology)

    assert nothing == {}
    assert drawn.typed(nothing, base, {"switches": "uc-min", "offsets": ""}, topology) is None


def test_sketches_are_kept_for_each_formulation(sketched, ndv2):
    value = {"without": [["g0", "g1"]]}
    both = drawn.keep({"taccl": {"sketch": {}}}, NAME, value)

    assert both == {"taccl": {"sketch": {}}, NAME: {"sketch": value}}
    assert drawn.stored_sketch(both, NAME) == value
    assert drawn.stored_sketch(both, "ring") is None
    assert drawn.keep(both, NAME, None) == {"taccl": {"sketch": {}}}
    left, told = drawn.all_fitted(both, open_cluster("star:gpus=4"))
    assert left == {"taccl": {"sketch": {}}}
    assert "g0–g1" in told


def test_the_form_has_a_row_that_says_what_is_in_use(sketched):
    ids = [each for row in forms.option_form(NAME, {}) for each in ids_in(row)]
    assert {"sketch-words": "sketch"} in ids
    assert {"sketch-act": "draw", "in": "form"} in ids
    assert {"sketch-file": "sketch"} in ids
    assert "Derived from the cluster." in str(forms.option_form(NAME, {}))
    own = forms.option_form(NAME, {"sketch": {"switches": "uc-max"}})
    assert "Own: uc-max." in str(own)


def ids_in(component):
    """Return the ids of a component and of all in it."""
    found = [component.id] if getattr(component, "id", None) else []
    return found + [each.id for each in component._traverse() if getattr(each, "id", None)]


def test_what_is_derived_for_a_drawing_is_what_the_solver_would_take(ndv2):
    """Its words may change with the formulation; it is a sketch of the drawing in any case."""
    derived = drawn.begun({"topology": topology_to_json(ndv2)}, {"size": "1GB", "chunks": 1})
    sketch_from_json(derived).check(ndv2)
    problem = Problem(ndv2, all_gather(16, 1e9))
    assert derived == sketch_to_json(default_sketch(problem))
    assert drawn.begun({"topology": topology_to_json(ndv2)}, {"size": "much", "chunks": 1}) == {}
