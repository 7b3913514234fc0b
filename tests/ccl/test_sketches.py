"""Sketches as JSON: the plain form, and TACCL's carried over to a topology."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ccl.errors import CclError, FormatError, ProblemError
from ccl.serialization.sketches import (
    MOST_BYTES,
    Sketch,
    read_sketch,
    read_taccl_sketch,
    sketch_from_json,
    sketch_to_json,
)
from ccl.topology import Topology, device
from gallery import open_cluster

EVERYTHING = Sketch(
    between=(("g0", "g8"), ("g8", "g0")),
    without=(("g0", "g1"),),
    forced=(("g2", "g3"),),
    relays=(("g1", "g0"),),
    switches="uc-max",
    offsets=((8, 16),),
    chunks=3,
    instances=2,
)


@pytest.fixture(scope="module")
def ndv2() -> Topology:
    return open_cluster("ndv2:hosts=2")


@pytest.fixture(scope="module")
def dgx2() -> Topology:
    return open_cluster("dgx-2-te-ccl:hosts=2")


def pairs_file() -> dict[str, Any]:
    """Neighbours share a way out: the odd one sends to the even one, for two hosts of 16."""
    senders = range(1, 16, 2)
    return {
        "nnodes": 2,
        "intranode_sketch": {
            "strategy": "switch",
            "switches": [list(range(16))],
            "switch_hyperedge_strategy": ["uc-min"],
        },
        "internode_sketch": {
            "strategy": "relay",
            "internode_conn": {str(each): [each - 1] for each in senders},
            "beta_split": {str(each): 1 for each in senders},
            "chunk_to_relay_map": [2, 1],
        },
        "symmetry_offsets": [[2, 16], [16, 32]],
        "hyperparameters": {"input_chunkup": 2, "input_size": "1M"},
    }


@pytest.mark.parametrize("sketch", [Sketch(), Sketch(between=()), EVERYTHING])
def test_the_plain_form_is_json_and_comes_back(sketch, ndv2):
    """What is written is plain JSON, so that options with it can be saved and sent."""
    assert sketch_from_json(json.loads(json.dumps(sketch_to_json(sketch)))) == sketch
    assert read_sketch(json.dumps(sketch_to_json(sketch)), ndv2) == (sketch, ())


def test_the_plain_form_leaves_out_what_says_nothing():
    assert sketch_to_json(Sketch()) == {}
    assert sketch_to_json(Sketch(without=(("a", "b"),))) == {"without": [["a", "b"]]}
    assert sketch_to_json(Sketch(between=())) == {"between": []}  # nobody, not everybody


def test_a_sketch_of_taccl_is_carried_over_host_by_host(dgx2):
    """GPU 3 of the second host is rank 16 + 3.

    Senders 1, 3 ... 15 each have one receiver, in either of 2 directions: 16 pairs. The chunk of
    GPU g leaves through g // 2 * 2 + 1, the odd one of each two: 32 relays.
    """
    sketch, _ = read_sketch(json.dumps(pairs_file()), dgx2)

    assert sketch.between is not None
    assert len(sketch.between) == 16
    assert {("g3", "g18"), ("g19", "g2")} <= set(sketch.between)
    assert len(sketch.relays) == 32
    assert {("g2", "g3"), ("g3", "g3"), ("g18", "g19")} <= set(sketch.relays)
    assert sketch.switches == "uc-min"
    assert sketch.offsets == ((2, 16), (16, 32))
    assert sketch.chunks == 2


def test_what_cannot_be_carried_over_is_said(dgx2):
    file = pairs_file() | {"colour": "red"}
    file["internode_sketch"] |= {"enforce_ordering": True, "sheen": 1}
    _, told = read_sketch(json.dumps(file), dgx2)

    left = [each for each in told if each.startswith("left out: ")]
    for what in (
        "beta_split",
        "input_size",
        "enforce_ordering",
        "'colour'",
        "'sheen' of internode",
    ):
        assert sum(what in each for each in left) == 1, what
    assert len(left) == 5
    assert "taken: 16 pairs between hosts" in " ".join(told)


def test_relays_may_be_named_one_by_one(dgx2):
    """The same as [2, 1], in the other spelling."""
    file = pairs_file()
    by_rule, _ = read_sketch(json.dumps(file), dgx2)
    del file["internode_sketch"]["chunk_to_relay_map"]
    file["internode_sketch"]["gpus_to_sender_rev_map"] = {
        str(each): [each - 1, each] for each in range(1, 16, 2)
    }
    by_name, _ = read_sketch(json.dumps(file), dgx2)

    assert by_name.relays == by_rule.relays


@pytest.mark.parametrize(
    ("part", "count"),
    [
        ({"strategy": "relay", "internode_conn": "direct-map"}, 2 * 8),
        ({"strategy": "relay", "internode_conn": {"0": [1, 2]}}, 2 * 2),
        ({"strategy": "relay", "internode_conn": "fully-connected"}, None),
        ({"strategy": "fully-connected"}, None),
        ({"strategy": "none"}, None),
    ],
)
def test_who_may_send_to_other_hosts(part, count, ndv2):
    """Two hosts of 8: as many pairs as senders have receivers, in 2 directions; None is all."""
    sketch, _ = read_taccl_sketch(json.dumps({"internode_sketch": part}), ndv2)
    assert (None if sketch.between is None else len(sketch.between)) == count


def test_a_sketch_for_other_numbers_of_hosts_is_stretched_and_says_so():
    """Written for 2 hosts of 8; on 4 the symmetry of all 16 ranks becomes one of all 32.

    One receiver for each of 4 * 3 ordered pairs of hosts. The offset within a host stays.
    """
    topology = open_cluster("ndv2:hosts=4")
    file = {
        "nnodes": 2,
        "internode_sketch": {"strategy": "relay", "internode_conn": {"0": [1]}},
        "symmetry_offsets": [[4, 8], [8, 16]],
    }
    sketch, told = read_sketch(json.dumps(file), topology)

    assert sketch.offsets == ((4, 8), (8, 32))
    assert sketch.between is not None
    assert len(sketch.between) == 12
    assert "assumed: what it says of 2 hosts holds for the 4 of 4 × NDv2" in told
    assert "assumed: the block of 16 ranks is all 32" in told


def test_one_host_has_nobody_to_send_to():
    """The offset by a whole host has nowhere to go, the one inside stays."""
    sketch, told = read_sketch(json.dumps(pairs_file()), open_cluster("dgx-2-te-ccl:hosts=1"))

    assert sketch.between is None
    assert sketch.relays == ()
    assert sketch.offsets == ((2, 16),)
    assert any(each.startswith("left out: the offset [16, 32]") for each in told)


def test_a_switch_that_is_not_there_is_left_out(ndv2):
    """An NDv2 has links from GPU to GPU and no switch inside."""
    file = {"intranode_sketch": pairs_file()["intranode_sketch"]}
    file["intranode_sketch"]["switches"] = [[0, 1, 2, 3]]
    sketch, told = read_taccl_sketch(json.dumps(file), ndv2)

    assert sketch.switches == "all"
    assert any(each.startswith("left out: the switch of GPUs 0, 1, 2, 3,") for each in told)


def test_blocks_need_hosts_of_consecutive_ranks():
    """Two hosts whose GPUs take turns: a block of ranks is no host."""
    gpus = tuple(device("gpu", f"g{i}", host=f"h{i % 2}") for i in range(4))
    topology = Topology("turns", gpus, ())
    sketch, told = read_taccl_sketch('{"symmetry_offsets": [[2, 4]]}', topology)

    assert sketch.offsets == ()
    assert any(each.startswith("left out: symmetry_offsets") for each in told)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "f.json: line 1, column 2: it is not JSON"),
        ("[]", "f.json: at the top: expected an object, got a list"),
        ('{"withot": []}', "'withot' is no part of a sketch; there are between, without,"),
        ('{"switches": "few"}', "there are all, uc-min and uc-max"),
        ('{"without": [["a"]]}', "at without[0]"),
        ('{"chunks": 0}', "at chunks: expected a whole number >= 1"),
        ('{"relays": [["g0", "hub"]]}', "the sketch names hub, which is no GPU of 2 × NDv2"),
        ('{"without": [["g0", "g5"]]}', "the link g0->g5, which 2 × NDv2 does not have"),
        ('{"offsets": [[1, 5]]}', "in blocks of 5, which do not divide the 16 GPUs"),
        ('{"nnodes": 0}', "at nnodes: expected a whole number >= 1"),
        ('{"intranode_sketch": {"strategy": "ring"}}', "there are switch, minmax, maxmin and none"),
        ('{"internode_sketch": {"strategy": 1}}', "at internode_sketch.strategy: expected"),
        ('{"internode_sketch": {"internode_conn": {"x": [1]}}}', "'x' is no number of a GPU"),
        ('{"internode_sketch": {"internode_conn": "ring"}}', "fully-connected and direct-map"),
        ('{"internode_sketch": {"internode_conn": {"0": [8]}}}', "GPU 8 of a host, and 2 × NDv2"),
        ('{"internode_sketch": {"chunk_to_relay_map": [3, 2]}}', "GPU 8 of a host, and 2 × NDv2"),
        (
            '{"internode_sketch": {"internode_conn": {"1": [0]}, "chunk_to_relay_map": [2, 0]}}',
            "what GPU 0 has goes through GPU 0, which sends to no other host; relay through 1",
        ),
        ('{"nnodes": 2, "symmetry_offsets": [[5, 5]]}', "moves ranks by 5 in blocks of 5"),
        (b"\xff", "it is not UTF-8"),
        ('{"nnodes": ' + "[" * 100_000, "it is nested too deep"),
        (" " * (MOST_BYTES + 1), "it has 4,000,001 bytes, and a sketch has 4,000,000 at most"),
    ],
)
def test_what_is_no_sketch_is_refused_in_one_sentence(content, sentence, ndv2):
    with pytest.raises((FormatError, ProblemError)) as caught:
        read_sketch(content, ndv2, name="f.json")
    assert str(caught.value).startswith("f.json: ")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_pairs_are_bounded_before_they_are_made():
    """64 hosts of 8: 64 * 63 pairs of hosts, 64 pairs of GPUs each, are 258,048."""
    gpus = tuple(device("gpu", f"g{i}", host=f"h{i // 8}") for i in range(512))
    everybody = {str(each): list(range(8)) for each in range(8)}
    file = json.dumps({"internode_sketch": {"strategy": "relay", "internode_conn": everybody}})
    with pytest.raises(CclError, match="258,048 pairs of GPUs, and 100,000 at most"):
        read_taccl_sketch(file, Topology("large", gpus, ()))


def test_gpus_outside_hosts_cannot_be_counted():
    gpus = (device("gpu", "a", host="h"), device("gpu", "b"))
    with pytest.raises(ProblemError, match="GPU b is in no host"):
        read_taccl_sketch('{"nnodes": 1}', Topology("half", gpus, ()))
