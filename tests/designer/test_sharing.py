"""What a link takes of the page, and what it brings."""

import pytest
from dash import no_update

from ccl.collective import all_gather
from ccl.errors import CclError
from ccl.layout import layout
from ccl.problem import Problem, Window
from ccl.serialization.documents import document
from designer.views.draw import sharing
from designer.views.draw import sharing as wired
from designer.views.draw.files import drawing_of
from formulations import formulation, option_fields
from interchange.formats.own import fragment as module
from interchange.formats.own.fragment import Share, Solving, TooLarge, fragment_of, share_of

ASKED = {
    "collective": "all-reduce",
    "size": "64 KiB",
    "chunks": 2,
    "root": 0,
    "formulation": "taccl",
    "options": {"slots": 12, "sketch": {"without": [["gpu0", "gpu1"]]}},
    "time_limit": 12.5,
    "gap": 5,
    "custom": None,
}


@pytest.fixture
def drawing(ring):
    places = {name: (x + 3.25, y) for name, (x, y) in layout(ring).items()}
    return drawing_of(ring, places)


def options_of_taccl():
    """Return a number among the options of TACCL, with a value that is not its default."""
    rows = option_fields(formulation("taccl").options)
    row = next(each for each in rows if each.kind in {"int", "float"})
    return row.name, type(row.default or 1)((row.minimum or 0) + 3)


def test_all_that_is_asked_and_drawn_goes_through_a_link(drawing):
    name, value = options_of_taccl()
    asked = {**ASKED, "options": {name: value, "sketch": ASKED["options"]["sketch"]}}
    found = sharing.linked(sharing.fragment(drawing, asked))

    assert found.opened.drawing == drawing
    assert found.opened.settings == {
        "collective": "all-reduce",
        "size": "64 KiB",
        "chunks": 2,
        "root": 0,
    }
    assert found.formulation == "taccl"
    assert found.options == {name: value}
    assert found.sketches == {"taccl": {"sketch": ASKED["options"]["sketch"]}}
    assert found.limits == {"time_limit": 12.5, "gap": 5.0}
    assert found.left_out == ()


def test_a_page_without_limits_comes_back_without(drawing):
    found = sharing.linked(
        sharing.fragment(drawing, {**ASKED, "options": {}, "gap": "", "time_limit": ""})
    )

    assert found.limits == {"time_limit": "", "gap": ""}


def test_a_drawing_with_nothing_to_solve_is_shared_alone(drawing):
    """A size that is none is not asked for; the drawing goes nevertheless."""
    share = share_of(sharing.fragment(drawing, {**ASKED, "size": "much", "options": {}}))

    assert share.document.kind == "topology"
    assert share.solving.formulation == "taccl"


def test_a_number_that_is_none_leaves_out_how_it_is_solved(drawing):
    share = share_of(sharing.fragment(drawing, {**ASKED, "chunks": "many"}))

    assert share.solving is None


def test_chunks_that_are_automatic_stay_so(drawing):
    automatic = share_of(sharing.fragment(drawing, {**ASKED, "chunks": ""}))
    fixed = share_of(sharing.fragment(drawing, {**ASKED, "chunks": 1}))

    assert automatic.solving is not None
    assert not automatic.document.problem.collective.whole
    assert fixed.document.problem.collective.whole


def test_a_drawing_that_is_no_cluster_has_no_link(drawing):
    broken = {
        **drawing,
        "topology": {**drawing["topology"], "links": [{"src": "x", "dst": "y", "bandwidth": 1}]},
    }

    with pytest.raises(CclError, match="x"):
        sharing.fragment(broken, ASKED)


def test_too_large_a_cluster_is_offered_as_a_file(drawing, monkeypatch):
    monkeypatch.setattr(module, "MOST_LETTERS", 100)
    with pytest.raises(TooLarge) as told:
        sharing.fragment(drawing, ASKED)
    (shown,) = wired._as_file(str(told.value))

    assert shown["title"].endswith("share it as a file.")
    assert shown["message"].className == "ds-share-file"


@pytest.mark.parametrize(
    ("solving", "says"),
    [
        (Solving(formulation="none-such"), "none-such"),
        (Solving(formulation="te-ccl-milp", options={"no_such": 1}), "no_such"),
        (Solving(formulation="te-ccl-milp", options={"horizon": -5}), "horizon"),
    ],
)
def test_how_it_is_solved_by_another_version_is_left_out_and_said(ring, solving, says):
    found = sharing.linked(fragment_of(Share(document(ring), solving)))

    assert found.opened.drawing["topology"]["name"] == "ring of 4"
    assert found.formulation is None
    assert says in found.left_out[0]


def test_windows_which_the_page_has_no_field_for_are_said_to_be_left_out(ring):
    window = Window((("gpu0", "gpu1"),), begin=0.0, end=10.0, share=0.5)
    problem = Problem(ring, all_gather(4, 4e6), (window,))
    changes = wired.changes_of(fragment_of(Share(document(problem))), {}, sketches={})

    assert "less bandwidth" in changes["notes"][0]["message"]
    assert changes["collective"] == "all-gather"


def test_a_link_changes_what_it_says_and_nothing_else(ring):
    """Options of other formulations stay; a result of another cluster goes."""
    solving = Solving(formulation="te-ccl-milp", options={"horizon": 7}, time_limit=9.0)
    problem = Problem(ring, all_gather(4, 4e6))
    link = fragment_of(Share(document(problem), solving))
    kept = {"list": {"seed": 4}, "te-ccl-milp": {"horizon": 3}}
    changes = wired.changes_of(link, kept, sketches={"taccl": {"sketch": {"chunks": 2}}})

    assert changes["options"] == {"list": {"seed": 4}, "te-ccl-milp": {"horizon": 7}}
    assert changes["sketches"] == {"taccl": {"sketch": {"chunks": 2}}}
    assert changes["formulation"] == "te-ccl-milp"
    assert (changes["time_limit"], changes["gap"]) == (9.0, "")
    assert changes["scene"] is None
    assert set(changes) <= set(wired.OUTPUTS)


def test_half_a_link_changes_nothing_but_a_sentence(ring):
    link = fragment_of(Share(document(ring)))
    changes = wired.changes_of(link[:60], {}, sketches={})

    assert set(changes) == {"refused", "notes"}
    assert (
        changes["notes"][0]["message"] == "It was cut or changed on its way; copy it again, whole."
    )
    assert changes.get("drawing", no_update) is no_update
