"""Files of sketches, TACCL's and ours, as a reader finds them."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccl.errors import FormatError, ProblemError
from ccl.serialization.sketches import Sketch, sketch_to_json
from gallery.nvidia import ndv2
from interchange.formats.catalogue import read_content, reader, readers
from interchange.formats.format import Imported, Request

TACCL = {
    "nnodes": 2,
    "intranode_sketch": {"strategy": "minmax"},
    "internode_sketch": {"strategy": "relay", "internode_conn": {"0": [1]}},
    "symmetry_offsets": [[8, 16]],
    "hyperparameters": {"input_chunkup": 2},
}
OPEN = Request(name="s.json", topology=ndv2(hosts=2))


def read(value: dict[str, Any], asked: Request = OPEN) -> Imported:
    return read_content(json.dumps(value).encode(), asked)


def test_a_sketch_of_taccl_is_recognised_and_read_for_the_open_topology():
    """GPU 0 of each of two hosts sends to GPU 1 of the other: g0 to g9 and g8 to g1."""
    found = read(TACCL)
    assert found.sketch is not None
    assert found.sketch.between == (("g0", "g9"), ("g8", "g1"))
    assert found.sketch.offsets == ((8, 16),)
    assert found.sketch.chunks == 2
    assert found.document.topology == OPEN.topology
    assert any("2 pairs between hosts" in each for each in found.report.taken)
    assert any("minmax" in each for each in found.report.left_out)


def test_a_sketch_of_our_own_comes_back():
    sketch = Sketch(
        between=(("g0", "g9"),), without=(("g0", "g1"),), relays=(("g2", "g0"),), chunks=3
    )
    content = json.dumps(sketch_to_json(sketch)).encode()
    assert [each.name for each in readers() if each.recognises(content)] == ["sketch"]
    found = read_content(content, OPEN)
    assert found.sketch == sketch
    (told,) = found.report.taken
    assert told == (
        "a sketch with 1 pair of GPUs between hosts, 1 link that is not used, "
        "1 GPU with a relay, 3 chunks per shard"
    )


@pytest.mark.parametrize("value", [TACCL, {"chunks": 3}])
def test_a_sketch_needs_a_topology(value):
    with pytest.raises(FormatError, match=r"^s\.json: .*none is open"):
        read(value, Request(name="s.json"))


def test_a_sketch_for_another_cluster_is_refused():
    wrong = TACCL | {"internode_sketch": {"strategy": "relay", "internode_conn": {"9": [1]}}}
    with pytest.raises(ProblemError, match=r"^s\.json: .*GPU 9"):
        read(wrong)
    with pytest.raises(ProblemError, match=r"^s\.json: the sketch names x"):
        read({"relays": [["x", "g0"]]})


@pytest.mark.parametrize(
    "value",
    [
        {"nodes": [], "edges": []},
        {"name": "x", "chunks": 2},
        {"switches": []},
        {"intranode_sketch": 3},
        {"instances": 0},
    ],
)
def test_other_json_is_no_sketch(value):
    content = json.dumps(value).encode()
    names = {each.name for each in readers() if each.recognises(content)}
    assert names.isdisjoint({"sketch", "taccl-sketch"})


VALUES = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["taccl-sketch", "sketch"]),
    st.dictionaries(st.sampled_from([*TACCL, "chunks", "between", "relays", "offsets"]), VALUES),
)
def test_anything_is_read_or_refused_with_the_name_of_the_file(name, change):
    told = "s.json: "
    try:
        reader(name).read(json.dumps(TACCL | change).encode(), OPEN)
    except (FormatError, ProblemError) as error:
        told = str(error)
    assert told.startswith("s.json: ")
