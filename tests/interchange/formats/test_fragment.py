"""Links that carry a cluster and what is asked of it."""

import base64
import hashlib
import json
import string
import tracemalloc
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccl.collective import all_gather
from ccl.errors import CclError, FormatError
from ccl.problem import Problem
from ccl.serialization.documents import document, document_to_json
from ccl.topology import Topology, device
from gallery import open_cluster
from interchange.formats.catalogue import read_content, reader
from interchange.formats.format import Request
from interchange.formats.own import fragment
from interchange.formats.own.fragment import (
    MOST_BYTES,
    MOST_LETTERS,
    Share,
    Solving,
    TooLarge,
    fragment_of,
    is_link,
    link_of,
    share_of,
)
from tests.ccl.clusters import mesh, ring
from tests.ccl.documents import problems as any_problems
from tests.interchange.formats.strategies import drawings, planned, solvings

quick = settings(max_examples=40, deadline=None)
PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(-1e9, 1e9)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
)


def packed(plain):
    """Return bytes as a fragment, whatever they are."""
    return base64.urlsafe_b64encode(zlib.compress(plain, 9)).rstrip(b"=").decode()


@quick
@given(drawings() | planned() | any_problems().map(document), st.none() | solvings())
def test_a_link_brings_everything_but_the_plan(content, solving):
    found = share_of(link_of(Share(content, solving)))

    assert found.document.topology == content.topology
    assert found.document.positions == content.positions
    assert found.document.problem == content.problem
    assert found.document.plan is None
    assert found.solving == solving
    assert link_of(found) == link_of(Share(content, solving))


@pytest.mark.parametrize("name", ["dgx-1v", "ndv2:hosts=2", "dgx-a100:hosts=16", "fat-tree"])
def test_clusters_of_the_gallery_fit_into_a_message(name):
    """528 links of 16 hosts are many times the same few words, which zlib packs by 15 to 1."""
    topology = open_cluster(name)
    made = fragment_of(Share(document(topology)))

    assert len(made) < 5000
    assert share_of(made).document.topology == topology


def test_the_address_is_ours_unless_told_and_the_fragment_stands_alone():
    share = Share(document(ring(3)))
    there = link_of(share, at="https://cluster.example/designer/#t=old")

    assert link_of(share).startswith("http://127.0.0.1:8050/#t=")
    assert there.startswith("https://cluster.example/designer/#t=")
    assert there.count("#") == 1
    for text in (there, there.partition("/#")[2], f"  #t={fragment_of(share)}\n"):
        assert share_of(text).document.topology == ring(3)


def test_a_link_from_the_address_bar_says_which_view_was_open():
    share = Share(document(Problem(ring(4), all_gather(4, 4e6))))
    assert share_of(f"{link_of(share)}&view=what-if") == share
    assert is_link(f"{link_of(share)}&view=table")


def test_a_cluster_that_is_too_large_says_so_with_its_size():
    """Two hundred names of 128 digits of a hash, 4 bits each, are 12,800 bytes however packed."""
    names = [hashlib.sha512(bytes([n])).hexdigest() for n in range(200)]
    topology = Topology("big", tuple(device("gpu", name) for name in names), ())

    with pytest.raises(TooLarge, match=r"needs a link of [\d,]+ letters, and those up to 20,000"):
        fragment_of(Share(document(topology)))


def test_what_unpacks_to_too_much_is_refused_before_it_is_unpacked():
    """15 MB of spaces pack to one byte in a thousand; a million bytes of them are looked at."""
    bomb = packed(b" " * (15 * MOST_BYTES))
    assert len(bomb) <= MOST_LETTERS

    tracemalloc.start()
    with pytest.raises(FormatError, match="the link: it unpacks to more than 1,000,000 bytes"):
        share_of(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * MOST_BYTES


def test_a_long_text_is_refused_before_it_is_decoded():
    with pytest.raises(FormatError, match=r"it has 20,001 letters, and 20,000 at most are read"):
        share_of("#t=" + "A" * (MOST_LETTERS + 1))


@quick
@given(st.data())
def test_a_link_that_lost_its_end_is_refused(data):
    whole = fragment_of(Share(document(mesh(3))))
    kept = data.draw(st.integers(0, len(whole) - 1))

    with pytest.raises(FormatError, match=r"^the link: it (was cut|holds nothing)"):
        share_of(whole[:kept])


@quick
@given(st.data())
def test_a_link_in_which_a_letter_changed_is_refused_or_says_the_same(data):
    """A sum guards what it says; some bits of what is compressed say nothing, wherever they are."""
    share = Share(document(mesh(3)))
    whole = fragment_of(share)
    at = data.draw(st.integers(0, len(whole) - 1))
    letter = data.draw(st.sampled_from(string.ascii_letters + string.digits + "-_"))
    if letter == whole[at]:
        return

    try:
        read = share_of(whole[:at] + letter + whole[at + 1 :])
    except FormatError as error:
        refused = str(error)
    else:
        refused = ""
        assert read == share

    assert not refused or refused.startswith("the link: ")


@pytest.mark.parametrize(
    ("link", "says"),
    [
        ("", "it holds nothing"),
        ("#t=", "it holds nothing"),
        ("#t=abc def", "it has ' ' in it"),
        ("#t=abc%20", "it has '%' in it"),
        ("#t=AAAA", "it was cut or changed"),
        (b"not json", "not JSON"),
        (b"[]", "at the top"),
        (b"{}", "document"),
        (b"[" * 200_000, ""),
        (b'{"document":{"format":"other"}}', "is of format 'other'"),
    ],
)
def test_what_is_no_link_is_one_sentence(link, says):
    with pytest.raises(FormatError, match=r"^the link: ") as told:
        share_of(link if isinstance(link, str) else f"#t={packed(link)}")

    assert says in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("solving", "place"),
    [
        ({"formulation": ""}, "formulation"),
        ({"formulation": "x" * 101}, "formulation"),
        ({"formulation": "list", "time_limit": -1}, "time_limit"),
        ({"formulation": "list", "gap": "x"}, "gap"),
        ({"formulation": "list", "options": []}, "options"),
        ({"formulation": "list", "other": 1}, "other"),
    ],
)
def test_how_it_is_solved_is_checked(solving, place):
    value = {"document": document_to_json(document(ring(3))), "solving": solving}

    with pytest.raises(FormatError, match=place):
        share_of(packed(json.dumps(value).encode()))


def test_a_plan_is_no_part_of_a_link():
    problem = Problem(ring(3), all_gather(3, 3e6))
    value = {"format": "topoloom/1", "kind": "plan", "plan": {"plan": "flow", "rates": []}}
    inner = document_to_json(document(problem))["problem"]
    told = packed(json.dumps({"document": {**value, "problem": inner}}).encode())

    with pytest.raises(FormatError, match="it holds a plan, and a link holds a topology"):
        share_of(told)


@quick
@given(
    st.dictionaries(
        st.sampled_from(["document", "solving", "x"]), PLAIN | st.just({}) | st.just([])
    )
)
def test_any_other_value_is_refused_in_words(value):
    with pytest.raises(CclError, match=r"^the link: "):
        share_of(packed(json.dumps(value).encode()))


def test_a_saved_link_is_recognised_and_says_what_it_leaves_out():
    solving = Solving(formulation="te-ccl-milp", options={"horizon": 4}, time_limit=30.0)
    problem = Problem(ring(3), all_gather(3, 3e6))
    text = link_of(Share(document(problem), solving)) + "\n"
    found = read_content(text.encode(), Request(name="note.txt"))

    assert is_link(text)
    assert found.document.problem == problem
    assert found.report.left_out == ("how it is solved: te-ccl-milp, horizon=4, 30 s",)
    assert not is_link("http://127.0.0.1:8050/")
    assert not is_link("ndv2:hosts=2")


def test_a_file_that_only_begins_as_a_link_is_refused_by_its_name():
    with pytest.raises(FormatError, match=r"^note\.txt: it has 40,003 bytes"):
        reader("link").read(b"#t=" + b"A" * (2 * fragment.MOST_LETTERS), Request(name="note.txt"))
