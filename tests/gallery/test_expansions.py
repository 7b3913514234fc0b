"""Expansions of small networks are the larger ones that their source says."""

import networkx
import pytest

from ccl.bound import moore_mean
from ccl.errors import ProblemError
from ccl.symmetry import automorphisms
from ccl.topology import Topology, device, duplex
from gallery import open_cluster
from gallery.build import Wire
from gallery.expansions import cartesian_product, concentrate, expand_degree, in_planes, line_graph
from tests.gallery.graphs import degrees, diameter, graph_of, mean_distance

WIRE = Wire(bandwidth=50.0, alpha=0.7, medium="")


def orbits(topology):
    """Return how many orbits of GPUs what is declared makes, all of which must be true."""
    group = automorphisms(topology, method="declared")
    assert group.whole
    return len({group.orbits()[topology.index[each]] for each in topology.ranks})


def test_the_line_graph_of_a_full_mesh_is_a_kautz_graph():
    """And the line graph of that one is the next: 4, 12, 36 GPUs with 3 links each."""
    once = line_graph(open_cluster("full-mesh:gpus=4"))
    twice = line_graph(once)

    for made, name in ((once, "kautz:gpus=12,degree=3"), (twice, "kautz:gpus=36,degree=3")):
        assert degrees(made) == {3}
        assert networkx.is_isomorphic(graph_of(made), graph_of(open_cluster(name)))
    assert (orbits(once), orbits(twice)) == (1, 2)


def test_two_line_graphs_of_five_gpus_are_near_the_bound_of_moore():
    """80 GPUs of degree 4 and diameter 3: 4 at 1, 16 at 2 less those that a way back costs."""
    made = line_graph(line_graph(open_cluster("full-mesh:gpus=5")))

    assert len(made.ranks) == 80
    assert diameter(made) == 3
    assert mean_distance(made) < 1.01 * moore_mean(80, 4)


def test_parallel_links_are_gpus_of_their_own_that_may_change_places():
    """Two GPUs with two links each: K of 2 and 2, and from each GPU to its own two."""
    double = Topology(
        "two", (device("gpu", "a"), device("gpu", "b")), duplex("a", "b", bandwidth=2, count=2)
    )
    made = line_graph(double)

    assert len(made.ranks) == 4
    assert {(each.bandwidth, each.count) for each in made.links} == {(1.0, 1)}
    assert orbits(made) == 2


def test_products_of_rings_and_full_meshes_are_torus_and_hyperx():
    rings = cartesian_product(open_cluster("ring:gpus=4"), open_cluster("ring:gpus=6"))
    meshes = cartesian_product(open_cluster("full-mesh:gpus=3"), open_cluster("full-mesh:gpus=4"))

    assert {*rings.links} == {*open_cluster("torus:shape=4x6").links}
    assert {*meshes.links} == {*open_cluster("hyperx:shape=3x4").links}
    assert orbits(rings) == orbits(meshes) == 1


def test_degrees_and_diameters_of_a_product_add_up():
    made = cartesian_product(open_cluster("kautz"), open_cluster("circulant:gpus=5,jumps=1"))

    assert degrees(made) == {3 + 2}
    assert diameter(made) == 2 + 2
    assert orbits(made) == 1


def test_copies_have_the_links_of_all_copies():
    """A ring of four with two copies each is the complete bipartite graph of 4 and 4."""
    made = expand_degree(open_cluster("ring:gpus=4"), 2)

    assert degrees(made) == {4}
    assert networkx.is_isomorphic(
        graph_of(made), networkx.complete_bipartite_graph(4, 4).to_directed()
    )
    assert orbits(made) == 1
    assert orbits(expand_degree(open_cluster("kautz"), 3)) == 1
    assert diameter(expand_degree(open_cluster("full-mesh:gpus=4"), 3)) == 2


def test_routers_take_the_place_of_gpus():
    made = concentrate(open_cluster("torus:shape=3x3"), 2, wire=WIRE)

    assert (len(made.ranks), len(made.devices)) == (18, 27)
    assert {len(made.links_out[f"r{i}"]) for i in range(9)} == {4 + 2}
    assert {link.dst for link in made.links_out["r4"]} >= {"g8", "g9"}
    assert orbits(made) == 1


def test_what_an_edit_made_untrue_is_not_carried_over():
    """The torus still declares its turns; without one link most are wrong."""
    torus = open_cluster("torus:shape=3x3")
    edited = Topology(torus.name, torus.devices, torus.links[2:], declared=torus.declared)

    assert orbits(expand_degree(edited, 2)) > 1


@pytest.mark.parametrize(
    ("make", "answer"),
    [
        (lambda: line_graph(open_cluster("star")), "a line graph is made of GPUs and their links"),
        (lambda: line_graph(open_cluster("ring:chord_bandwidth=1")), "has 2 kinds"),
        (lambda: expand_degree(open_cluster("ring"), 0), "copies of each GPU must be from 1 to 64"),
        (lambda: concentrate(open_cluster("star"), 2, wire=WIRE), "a network of routers is made"),
        (
            lambda: cartesian_product(open_cluster("ring:gpus=999"), open_cluster("ring:gpus=99")),
            "must be from 2 to 16,384, got 98,901",
        ),
    ],
)
def test_what_cannot_be_expanded_is_answered_in_one_sentence(make, answer):
    with pytest.raises(ProblemError) as caught:
        make()

    assert answer in str(caught.value)


def test_planes_copy_switches_and_their_cables_and_share_the_gpus():
    """What is declared of the base, and that planes may change places, is true of all together."""
    base = open_cluster("dragonfly:groups=5")
    made = in_planes(base, 3)

    assert made.ranks == base.ranks
    assert len(made.devices) - len(made.ranks) == 3 * (len(base.devices) - len(base.ranks))
    assert len(made.links) == 3 * len(base.links)
    assert {len(made.links_out[each]) for each in made.ranks} == {3}
    assert orbits(made) == orbits(base)
    switches = {e.name for e in made.devices if e.kind == "switch"}
    plain = graph_of(made).subgraph(switches)
    assert networkx.number_weakly_connected_components(plain) == 3
    assert in_planes(base, 1) is base


def test_planes_leave_hosts_as_they_are_and_make_links_between_gpus_parallel():
    rails, boards = open_cluster("rail-only:hosts=3,gpus=4"), open_cluster("hamming-mesh")
    made = in_planes(rails, 2)
    inner = [each for each in rails.links if each.medium == "NVLink"]
    assert [each for each in made.links if each.medium == "NVLink"] == inner
    assert len(made.links) == len(inner) + 2 * (len(rails.links) - len(inner))
    gpus = {*boards.ranks}
    doubled = [each for each in in_planes(boards, 2).links if {each.src, each.dst} <= gpus]
    assert {(each.bandwidth, each.count) for each in doubled} == {(100.0, 2)}


def test_how_many_planes_there_may_be_is_said():
    with pytest.raises(ProblemError, match="planes of a network must be from 1 to 64, got 0"):
        in_planes(open_cluster("dragonfly"), 0)
