"""Groups of automorphisms: complete against every permutation tried, and never too large."""

from dataclasses import replace

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccl.errors import ProblemError
from ccl.symmetry import Group, Interchange, Permutation, automorphisms, orbits_of
from ccl.topology import Link, SharedLimit, Topology, device, duplex
from gallery import open_cluster
from tests.ccl.automorphic import every, keeps, link_orbits, looks, orbits, scribbled


def two_kinds_of_rings() -> Topology:
    """Return a ring of six and two of three, all on one slow switch (unit links and 0.1)."""
    pairs = [(i, (i + 1) % 6) for i in range(6)]
    pairs += [(first + i, first + (i + 1) % 3) for first in (6, 9) for i in range(3)]
    links = [link for a, b in pairs for link in duplex(f"g{a}", f"g{b}", bandwidth=1.0)]
    links += [link for i in range(12) for link in duplex(f"g{i}", "slow", bandwidth=0.1)]
    gpus = [device("gpu", f"g{i}") for i in range(12)]
    return Topology("rings", (*gpus, device("switch", "slow")), tuple(links))


def partition(labels) -> set[frozenset]:
    """Return who shares a label."""
    return {frozenset(np.flatnonzero(labels == each).tolist()) for each in np.unique(labels)}


# Orbits


@given(
    st.integers(1, 30).flatmap(
        lambda many: st.lists(st.permutations(range(many)), min_size=1, max_size=4)
    )
)
def test_orbits_are_connected_components(permutations):
    """A point and its image are joined; the label is the smallest of the component."""
    graph: networkx.Graph = networkx.Graph()
    graph.add_nodes_from(range(len(permutations[0])))
    graph.add_edges_from((i, image) for row in permutations for i, image in enumerate(row))
    expected = {i: min(part) for part in networkx.connected_components(graph) for i in part}

    labels = orbits_of(np.array(permutations))

    assert labels.tolist() == [expected[i] for i in range(len(labels))]


def test_orbits_of_a_long_cycle_need_few_rounds():
    """A turn of 200,000 points and the exchange of neighbours: one orbit, or all pairs."""
    many = 200_000
    turn, pairs = np.roll(np.arange(many), -1), np.arange(many) ^ 1

    assert (orbits_of(turn[None, :]) == 0).all()
    assert (orbits_of(pairs[None, :]) == np.arange(many) // 2 * 2).all()
    assert (orbits_of(np.empty((0, 3), dtype=int)) == np.arange(3)).all()


# All there are


@pytest.mark.parametrize("seed", range(60))
def test_bliss_finds_all(seed):
    """Orbits of devices and links, and those of a stabiliser, are those of all permutations."""
    topology = scribbled(seed)
    whole = every(topology)
    group = automorphisms(topology, method="bliss")

    assert group.orbits().tolist() == orbits(whole)
    assert group.link_orbits().tolist() == link_orbits(topology, whole)
    fixing = group.stabiliser(seed % 4)
    rows = every(topology, seed % 4)
    assert fixing.orbits().tolist() == orbits(rows)
    assert fixing.link_orbits().tolist() == link_orbits(topology, rows)


@pytest.mark.parametrize("method", ["bliss", "refined"])
@pytest.mark.parametrize("seed", range(60))
def test_generators_are_automorphisms(method, seed):
    """Each is judged by its links' names, those of a stabiliser too."""
    topology = scribbled(seed, gpus=8, switches=3)
    group = automorphisms(topology, method=method)
    fixing = group.stabiliser(seed % 8)

    for row in (*group.generators.tolist(), *fixing.generators.tolist()):
        assert keeps(topology, row)
    assert (fixing.generators[:, seed % 8] == seed % 8).all()


@pytest.mark.parametrize("seed", range(40))
def test_what_is_guessed_is_never_coarser(seed):
    """Orbits of a subgroup lie within those of the group."""
    topology = scribbled(seed)
    true, guessed = orbits(every(topology)), automorphisms(topology, method="refined").orbits()

    assert all(true[i] == true[int(label)] for i, label in enumerate(guessed))


def isomorphic(topology: Topology, gpus: tuple[str, str]) -> bool:
    """Whether networkx finds an automorphism that takes one GPU to the other."""

    def graph(marked: str) -> networkx.DiGraph:
        drawn: networkx.DiGraph = networkx.DiGraph()
        for each in topology.devices:
            drawn.add_node(each.name, key=(looks(each), each.name == marked))
        for link in topology.links:
            drawn.add_edge(link.src, link.dst, key=(link.bandwidth, link.alpha))
        return drawn

    first, second = (graph(marked) for marked in gpus)
    same = networkx.isomorphism.categorical_node_match("key", None)
    alike = networkx.isomorphism.categorical_edge_match("key", None)
    matcher = networkx.isomorphism.DiGraphMatcher(first, second, node_match=same, edge_match=alike)
    return matcher.is_isomorphic()


@pytest.mark.parametrize(
    "name",
    ["ndv2", "mi250", "torus:shape=3x4", "mesh:shape=3x3", "te-ccl-internal-1", "thesis-2.4"],
)
def test_gpus_share_an_orbit_just_when_networkx_maps_one_to_the_other(name):
    """Each GPU is tried against GPU 0 and the last."""
    topology = open_cluster(name)
    labels = automorphisms(topology, method="bliss").orbits()
    place = [topology.index[gpu] for gpu in topology.ranks]

    for anchor in (0, len(place) - 1):
        for other in range(0, len(place), 3):
            expected = isomorphic(topology, (topology.ranks[anchor], topology.ranks[other]))
            assert (labels[place[anchor]] == labels[place[other]]) == expected


@pytest.mark.parametrize("method", ["auto", "declared", "bliss", "refined", "none"])
def test_equal_colours_are_not_symmetry(method):
    """All twelve GPUs look alike to refinement, but none of the ring of six is in a ring of three.

    An optimum on merged orbits would be 20 for an all-gather where 30 is true (FLUID, 1.3).
    """
    labels = automorphisms(two_kinds_of_rings(), method=method).orbits()

    assert not set(labels[:6]) & set(labels[6:12])


def test_rings_are_found_whole():
    """Six GPUs of one orbit and six of another, for BLISS and by guessing."""
    for method in ("bliss", "refined"):
        labels = automorphisms(two_kinds_of_rings(), method=method).orbits()
        assert partition(labels) == {frozenset(range(6)), frozenset(range(6, 12)), frozenset([12])}


@pytest.mark.parametrize(
    "name",
    [
        "dgx-a100:hosts=16",
        "dgx-a100:hosts=6,fabric=flat",
        "fat-tree:radix=6",
        "torus:shape=6x8",
        "pcie-server:hosts=3",
        "mi250:hosts=12",
        "hypercube:dimension=6",
    ],
)
def test_guessing_finds_what_bliss_finds(name):
    """On clusters as they are built, down to the links that a GPU's stabiliser joins."""
    topology = open_cluster(name)
    guessed = automorphisms(topology, method="refined")
    found = automorphisms(topology, method="bliss")

    assert (guessed.orbits() == found.orbits()).all()
    assert (guessed.link_orbits() == found.link_orbits()).all()
    fixed = guessed.stabiliser(0).link_orbits(), found.stabiliser(0).link_orbits()
    assert (fixed[0] == fixed[1]).all()


# What must be kept


def test_latency_counts_unless_the_state_is_steady():
    """One slow start breaks a ring of four into pairs; bandwidths alone do not tell."""
    ring = open_cluster("ring:gpus=4")
    late = replace(
        ring,
        links=tuple(
            replace(each, alpha=9.0) if each.ends == ("g0", "g1") else each for each in ring.links
        ),
    )

    assert len(partition(automorphisms(late).orbits())) == 4
    assert len(partition(automorphisms(late, steady=True).orbits())) == 1


def test_colours_and_costs_are_kept():
    """A root stays; a link that costs more goes to one that does."""
    star = open_cluster("star:gpus=5")
    root = [name == "g3" for name in star.index]
    costs = [2.0 if each.dst == "g1" else 1.0 for each in star.links]

    for method in ("auto", "declared", "bliss", "refined"):
        rooted = automorphisms(star, colours=root, method=method).orbits()
        assert partition(rooted) == {frozenset([0, 1, 2, 4]), frozenset([3]), frozenset([5])}
        priced = automorphisms(star, links=costs, method=method).orbits()
        assert partition(priced) == {frozenset([0, 2, 3, 4]), frozenset([1]), frozenset([5])}


def test_limits_are_kept_as_sets():
    """Two GPUs share an upload limit: only they may change places, and the three others."""
    star = open_cluster("star:gpus=5")
    limit = SharedLimit("upload", (("g1", "switch"), ("g4", "switch")), 60.0)
    for method in ("auto", "declared", "bliss", "refined"):
        labels = automorphisms(replace(star, limits=(limit,)), method=method).orbits()
        assert partition(labels) == {frozenset([1, 4]), frozenset([0, 2, 3]), frozenset([5])}


def test_a_limit_on_one_direction_is_no_limit_on_the_other():
    """Of two GPUs one shares its link in, the other its link out."""
    star = open_cluster("star:gpus=3")
    limits = tuple(
        SharedLimit(f"limit {i}", ends, 60.0)
        for i, ends in enumerate(
            [(("g0", "switch"), ("g2", "switch")), (("switch", "g1"), ("g2", "switch"))]
        )
    )

    assert automorphisms(replace(star, limits=limits), method="bliss").trivial


def test_a_wrong_generator_is_refused():
    """No group with what is no automorphism."""
    line = open_cluster("line:gpus=3")

    for wrong in ([1, 0, 2], [0, 0, 2], [0, 1, 3], [-1, 1, 2]):
        with pytest.raises(ProblemError, match="does not keep its links"):
            Group(line, np.array([wrong]))
    assert Group(line, np.array([[2, 1, 0]])).orbits().tolist() == [0, 1, 0]


@pytest.mark.parametrize("method", ["declared", "bliss", "refined"])
def test_limits_tie_pairs_together(method):
    """Every GPU of four looks alike, but who shares an upload limit with whom is kept."""
    star = open_cluster("star:gpus=4")
    limits = tuple(
        SharedLimit(f"upload {i}", ((f"g{i}", "switch"), (f"g{i + 1}", "switch")), 60.0)
        for i in (0, 2)
    )
    pairs = Interchange((("g0", "g1"), ("g2", "g3")), (Interchange((("g0",), ("g1",))),))
    group = automorphisms(replace(star, limits=limits, declared=(pairs,)), method=method)

    assert partition(group.orbits()) == {frozenset(range(4)), frozenset([4])}
    fixed = {frozenset([0]), frozenset([1]), frozenset([2, 3]), frozenset([4])}
    assert partition(group.stabiliser(0).orbits()) == fixed


@pytest.mark.parametrize("method", ["bliss", "refined"])
def test_three_kinds_of_links_between_devices_of_one_colour(method):
    """Four GPUs fully joined, three pairings with rates of their own: only pairs change places.

    The two exchanges that keep every pairing generate a group of four that fixes no GPU.
    """
    rates = {frozenset([0, 1]): 1.0, frozenset([2, 3]): 1.0, frozenset([0, 2]): 2.0}
    rates |= {frozenset([1, 3]): 2.0, frozenset([0, 3]): 3.0, frozenset([1, 2]): 3.0}
    links = tuple(
        link
        for pair, rate in rates.items()
        for link in duplex(*(f"g{i}" for i in sorted(pair)), bandwidth=rate)
    )
    made = Topology("pairings", tuple(device("gpu", f"g{i}") for i in range(4)), links)
    group = automorphisms(made, method=method)

    assert (group.orbits() == 0).all()
    assert len(partition(group.link_orbits())) == 3
    assert group.stabiliser(0).trivial


def test_a_wrong_guess_is_thrown_away(monkeypatch):
    """What refinement proposes is checked link by link."""
    guesses = iter([np.array([1, 0, 2, 3]), np.array([3, 2, 1, 0]), *[None] * 30])
    monkeypatch.setattr("ccl.symmetry.automorphism_group._candidate", lambda *_: next(guesses))

    group = automorphisms(open_cluster("line:gpus=4"), method="refined")

    assert group.generators.tolist() == [[3, 2, 1, 0]]


def test_guessing_ends(monkeypatch):
    """When its work is done what was found stays, and there may be nothing."""
    topology = open_cluster("fat-tree:radix=4")
    for work, most in ((0, 0), (40 * len(topology.links), 20)):
        monkeypatch.setattr("ccl.symmetry.automorphism_group._WORK", work)
        group = automorphisms(topology, method="refined")
        assert len(group.generators) <= most
        assert all(keeps(topology, row) for row in group.generators.tolist())


# Stabilisers and carriers


@pytest.mark.parametrize("method", ["declared", "bliss"])
@pytest.mark.parametrize("name", ["dgx-a100:hosts=6", "fat-tree:radix=4", "pcie-server:hosts=3"])
def test_stabilisers_of_two_are_those_of_one_after_the_other(name, method):
    """Fixing at once and in turn, declared and found, give the same orbits of links."""
    group = automorphisms(open_cluster(name), method=method)
    found = automorphisms(open_cluster(name), method="bliss")

    for device_ in (1, 9):
        at_once = group.stabiliser(0, device_)
        in_turn = found.stabiliser(device_).stabiliser(0)
        assert (at_once.generators[:, [0, device_]] == [0, device_]).all()
        assert (at_once.orbits() == in_turn.orbits()).all()
        assert (at_once.link_orbits() == in_turn.link_orbits()).all()


@pytest.mark.parametrize("name", ["dgx-a100:hosts=7", "torus:shape=4x5", "mi250:hosts=2"])
def test_carriers_bring_a_device_everywhere_in_its_orbit(name):
    """Each is an automorphism and does what it says."""
    topology = open_cluster(name)
    group = automorphisms(topology)
    carriers = group.carriers(1)
    labels = group.orbits()

    assert carriers.orbit.tolist() == np.flatnonzero(labels == labels[1]).tolist()
    for target, row in zip(carriers.orbit.tolist(), carriers.elements(), strict=True):
        assert row[1] == target == carriers.to(target)[1]
        assert keeps(topology, row.tolist())


def test_no_carrier_leaves_the_orbit():
    """The switch of a star is no GPU."""
    carriers = automorphisms(open_cluster("star:gpus=3")).carriers(0)

    with pytest.raises(ProblemError, match="no symmetry brings g0 to switch"):
        carriers.to(3)


# Declarations


def hosts(slow: tuple[str, ...] = ()) -> Topology:
    """Return eight hosts on rails, with the network links of some GPUs at half their rate."""
    topology = open_cluster("dgx-a100:hosts=8")
    links = tuple(
        replace(each, bandwidth=each.bandwidth / 2)
        if {"network", each.medium} & {"InfiniBand HDR"} and set(slow) & set(each.ends)
        else each
        for each in topology.links
    )
    return replace(topology, links=links)


@pytest.mark.parametrize("slow", [("g13",), ("g13", "g14"), ("g13", "g30"), ("g0", "g63")])
def test_a_declaration_is_not_believed_after_an_edit(slow):
    """What is left of it after GPUs lost half of their network is what BLISS finds too."""
    edited = hosts(slow)
    declared = automorphisms(edited, method="declared")
    found = automorphisms(edited, method="bliss")

    assert not declared.whole
    assert all(keeps(edited, row) for row in declared.generators.tolist())
    for place, true in zip(declared.orbits(), found.orbits(), strict=True):
        assert found.orbits()[place] == true
    if len(slow) == 1:
        assert (declared.orbits() == found.orbits()).all()
    assert (automorphisms(edited).orbits() == found.orbits()).all()


def test_a_removed_device_takes_its_block_with_it():
    """Seven whole hosts are still interchangeable when the eighth has lost a GPU."""
    topology = hosts()
    left = replace(
        topology,
        devices=tuple(each for each in topology.devices if each.name != "g5"),
        links=tuple(each for each in topology.links if "g5" not in each.ends),
    )
    labels = automorphisms(left, method="declared").orbits()
    place = left.index

    assert len({labels[place[f"g{8 * host}"]] for host in range(1, 8)}) == 1
    assert labels[place["g0"]] != labels[place["g8"]]


def test_a_reversed_cluster_keeps_its_declaration():
    """NDv2 has one-way ports; its hosts are interchangeable either way round."""
    topology = open_cluster("ndv2:hosts=5").reversed()
    group = automorphisms(topology, method="declared")

    assert group.whole
    assert (group.orbits() == automorphisms(topology, method="bliss").orbits()).all()


def test_inner_interchanges_hold_in_every_block():
    """Pairs of GPUs on switches of their own: eight in one orbit, and six with one fixed."""
    names = [f"g{i}" for i in range(8)]
    links = [
        link for i, name in enumerate(names) for link in duplex(name, f"s{i // 2}", bandwidth=1.0)
    ]
    links += [link for i in range(4) for link in duplex(f"s{i}", "top", bandwidth=2.0)]
    switches = [device("switch", name) for name in ("s0", "s1", "s2", "s3", "top")]
    pairs = Interchange((("g0",), ("g1",)))
    blocks = tuple((f"s{i}", f"g{2 * i}", f"g{2 * i + 1}") for i in range(4))
    made = Topology(
        "pairs",
        (*(device("gpu", name) for name in names), *switches),
        tuple(links),
        declared=(Interchange(blocks, (pairs,)),),
    )
    group = automorphisms(made, method="declared")

    assert partition(group.orbits()) == {
        frozenset(range(8)),
        frozenset(range(8, 12)),
        frozenset([12]),
    }
    assert partition(group.stabiliser(2).orbits()) == {
        frozenset([0, 1, 4, 5, 6, 7]),
        frozenset([2]),
        frozenset([3]),
        frozenset([8, 10, 11]),
        frozenset([9]),
        frozenset([12]),
    }


def test_declared_permutations_are_completed_by_random_elements():
    """A torus declares shifts and turns; the stabiliser of a GPU is found from them."""
    topology = open_cluster("torus:shape=5x5")
    assert all(isinstance(each, Permutation) for each in topology.declared)
    declared = automorphisms(topology, method="declared").stabiliser(7)
    found = automorphisms(topology, method="bliss").stabiliser(7)

    assert (declared.link_orbits() == found.link_orbits()).all()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.data())
def test_a_false_declaration_does_no_harm(seed, data):
    """Whatever is declared of a random cluster, only automorphisms come of it."""
    topology = scribbled(seed)
    names = [each.name for each in topology.devices]
    shuffled = data.draw(st.permutations(names))
    blocks = tuple(tuple(shuffled[i : i + 2]) for i in range(0, 6, 2))
    images = data.draw(st.permutations(names))
    claims = (
        Interchange(blocks, (Interchange(tuple((name,) for name in blocks[0])),)),
        Permutation(tuple(names), tuple(images)),
        Permutation(("nobody",), ("nobody",)),
    )
    group = automorphisms(replace(topology, declared=claims), method="declared")

    assert not group.whole
    assert all(keeps(topology, row) for row in group.generators.tolist())


def test_a_declaration_says_what_is_wrong_with_it():
    """Blocks of different lengths, none at all, images that are too few."""
    for blocks in ((("a", "b"), ("c",)), (), ((), ())):
        with pytest.raises(ProblemError, match="equally many devices"):
            Interchange(blocks)
    with pytest.raises(ProblemError, match="2 devices has 1 images"):
        Permutation(("a", "b"), ("b",))


def test_a_declaration_is_no_part_of_a_cluster():
    """Two clusters are equal when they move data alike."""
    star = open_cluster("star:gpus=4")

    assert replace(star, declared=()) == star
    assert "declared" not in repr(star)


def test_a_hundred_links_in_one_direction_stay_so():
    """A one-way ring of GPUs turns but does not flip: links and devices are one orbit each."""
    many = 100
    links = tuple(Link(f"g{i}", f"g{(i + 1) % many}", 1.0) for i in range(many))
    ring = Topology("one way", tuple(device("gpu", f"g{i}") for i in range(many)), links)
    group = automorphisms(ring)

    assert (group.orbits() == 0).all()
    assert group.stabiliser(0).trivial
