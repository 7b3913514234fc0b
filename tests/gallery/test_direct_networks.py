"""Direct networks have the degree, diameter and symmetry that the literature gives them."""

import math
from itertools import islice

import networkx
import pytest

from ccl.bound import moore_mean
from ccl.errors import ProblemError
from ccl.symmetry import automorphisms
from gallery import open_cluster
from gallery.finite_field import finite_field
from gallery.lattices import hermite_forms
from tests.gallery.graphs import degrees, diameter, graph_of, mean_distance

ONE_ORBIT = (
    "circulant:gpus=12,jumps=1x6",
    "circulant:gpus=25,jumps=3x4",
    "circulant:gpus=30,jumps=6x10x15",
    "twisted-torus:shape=4x4x8,twists=0x4x4",
    "twisted-torus:shape=1x8,twists=3",
    "twisted-torus:shape=2x4,twists=0",
    "twisted-torus:shape=8x4,twists=3",
    "twisted-torus:shape=3x2x2x2,twists=1x1x0x1x1x0",
    "hyperx:shape=2x3x4",
    "hyperx:shape=4x4x3,trunks=2x1x1",
    "hyperx:shape=3x4,concentration=2",
    "slim-fly:order=3",
    "slim-fly:order=4",
    "slim-fly:order=5",
    "slim-fly:order=5,concentration=2",
    "slim-fly:order=9",
    "slim-fly:order=13",
    "kautz:gpus=20,degree=4",
)
"""Vertex-transitive ones."""

OTHERS = (
    "slim-fly:order=7",
    "slim-fly:order=8",
    "slim-fly:order=11",
    "slim-fly:order=16",
    "slim-fly:order=7,concentration=3",
    "kautz:gpus=17,degree=3",
    "kautz:gpus=64,degree=4",
    "kautz:gpus=24,degree=2",
    "kautz:gpus=3,degree=5",
    "de-bruijn:gpus=17,degree=4",
    "de-bruijn:gpus=16,degree=2",
    "de-bruijn:gpus=27",
    "random-regular:concentration=2",
)


@pytest.mark.parametrize("name", ONE_ORBIT)
def test_what_is_declared_takes_every_gpu_to_every_other(name):
    topology = open_cluster(name)
    group = automorphisms(topology, method="declared")

    assert group.whole
    assert len({group.orbits()[topology.index[each]] for each in topology.ranks}) == 1


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_declared_is_true(name):
    assert automorphisms(open_cluster(name), method="declared").whole


def test_one_way_networks_are_turned_over_and_by_what_divides_n_and_degree():
    """Of 64 GPUs with 4 links pairs change places; of 80 the letters of Kautz words do."""
    for name, orbits in (("kautz:gpus=64,degree=4", 32), ("kautz:gpus=80,degree=4", 2)):
        group = automorphisms(open_cluster(name), method="declared")
        assert len(set(group.orbits())) == orbits


@pytest.mark.parametrize("reach", range(1, 6))
def test_two_jumps_reach_as_many_gpus_as_two_can(reach):
    """1 + 4 + 8 + ... + 4 k = 2 k^2 + 2 k + 1 sums of at most k jumps differ at most."""
    gpus = 2 * reach**2 + 2 * reach + 1
    topology = open_cluster(f"circulant:gpus={gpus},jumps={reach}x{reach + 1}")

    assert degrees(topology) == {4}
    assert diameter(topology) == reach


def test_a_jump_of_half_the_circle_is_one_link():
    topology = open_cluster("circulant:gpus=12,jumps=1x6")

    assert degrees(topology) == {3}
    assert {each.count for each in topology.links} == {1}


def test_no_twist_leaves_a_torus():
    """Links of a side of 2 count twice, where a torus of the gallery has one."""
    plain = open_cluster("twisted-torus:shape=4x3x5,twists=0x0x0")

    assert {*plain.links} == {*open_cluster("torus:shape=4x3x5").links}
    assert open_cluster("twisted-torus:shape=2x4,twists=0").link("g0", "g4").count == 2


@pytest.mark.parametrize("side", range(2, 7))
def test_a_twist_by_half_shortens_a_torus(side):
    """Cámara et al.: 2 a x a twisted by a has the diameter a, the torus a + a // 2."""
    twisted = open_cluster(f"twisted-torus:shape={side}x{2 * side},twists={side}")

    assert degrees(twisted) == {4}
    assert diameter(twisted) == side
    assert diameter(open_cluster(f"torus:shape={side}x{2 * side}")) == side + side // 2


def test_the_twisted_slice_of_tpu_v4_is_closer_together():
    """4 x 4 x 8: the torus has the diameter 2 + 2 + 4."""
    twisted = open_cluster("twisted-torus:shape=4x4x8,twists=0x4x4")
    torus = open_cluster("torus:shape=4x4x8")

    assert degrees(twisted) == {6}
    assert (diameter(twisted), diameter(torus)) == (6, 8)
    assert mean_distance(twisted) < 0.9 * mean_distance(torus)


@pytest.mark.parametrize("vertices", [1, 6, 12, 64])
def test_lattices_of_a_size_are_as_many_as_there_are(vertices):
    """The sums over divisors, all in normal form and none twice."""
    divisors = [each for each in range(1, vertices + 1) if vertices % each == 0]
    plane = list(hermite_forms(vertices, 2))
    space = set(hermite_forms(vertices, 3))

    assert len(plane) == len(set(plane)) == sum(divisors)
    assert len(space) == sum(
        b * (vertices // a // b) ** 2 for a in divisors for b in divisors if vertices // a % b == 0
    )
    for shape, (first, second, third) in islice(space, 200):
        assert math.prod(shape) == vertices
        assert first in range(shape[1])
        assert {second, third} <= set(range(shape[2]))


def test_a_circulant_network_is_a_lattice():
    """x + 6 y is 0 mod 16 at the points of Z^2 that (2, 5) and (0, 8) span."""
    twisted = open_cluster("twisted-torus:shape=2x8,twists=5")

    assert networkx.is_isomorphic(graph_of(twisted), graph_of(open_cluster("circulant")))


@pytest.mark.parametrize("shape", ["4x4", "2x3x4", "8", "2x2x2x2"])
def test_hyperx_takes_a_link_for_each_dimension(shape):
    sides = [int(each) for each in shape.split("x")]
    topology = open_cluster(f"hyperx:shape={shape}")

    assert degrees(topology) == {sum(sides) - len(sides)}
    assert diameter(topology) == len(sides)


def test_trunks_are_parallel_links_along_a_dimension():
    """g0 and g3 differ in the first coordinate of 4 x 3, g0 and g1 in the second."""
    topology = open_cluster("hyperx:shape=4x3,trunks=1x2")

    assert topology.link("g0", "g3").count == 1
    assert (topology.link("g0", "g1").count, topology.link("g0", "g1").bandwidth) == (2, 100)


@pytest.mark.parametrize("order", [3, 4, 5, 7, 8, 9])
def test_a_slim_fly_has_diameter_two(order):
    """2 q^2 vertices of degree (3 q - e) / 2 with q = 4 w + e; more than d^2 + 1 cannot be."""
    topology = open_cluster(f"slim-fly:order={order}")
    excess = {0: 0, 1: 1, 3: -1}[order % 4]
    degree = (3 * order - excess) // 2

    assert len(topology.ranks) == 2 * order**2 <= degree**2 + 1
    assert degrees(topology) == {degree}
    assert diameter(topology) == 2


def test_routers_carry_the_gpus_of_a_slim_fly():
    """Besta and Hoefler's smallest: 50 routers of 7 + 4 ports for 200 GPUs."""
    topology = open_cluster("slim-fly:order=5,concentration=4")

    assert len(topology.ranks) == 200
    routers = [each.name for each in topology.devices if each.kind == "switch"]
    assert {len(topology.links_out[name]) for name in routers} == {7 + 4}
    assert degrees(topology) == {1}


@pytest.mark.parametrize("order", [2, 3, 4, 5, 8, 9, 27, 49])
def test_a_finite_field_obeys_its_axioms(order):
    field = finite_field(order)
    sums, products = field.sums, field.products
    elements = range(order)

    assert all(sorted(sums[a]) == list(elements) for a in elements)
    assert all(sorted(products[a]) == list(elements) for a in elements if a)
    for a in (1, order // 2, order - 1):
        assert (products[a][sums] == sums[products[a]][:, products[a]]).all()
        assert (products[products[a]] == products[a][products]).all()
    for times in range(len(field.basis)):
        power = field.conjugates(times)
        assert (power[sums] == sums[power][:, power]).all()
        assert (power[products] == products[power][:, power]).all()
    assert (sums[elements, field.negatives()] == 0).all()


@pytest.mark.parametrize("family", ["kautz", "de-bruijn"])
@pytest.mark.parametrize(("gpus", "degree"), [(9, 2), (12, 3), (17, 2), (30, 3), (64, 4), (65, 4)])
def test_any_number_of_gpus_is_within_the_logarithm(family, gpus, degree):
    topology = open_cluster(f"{family}:gpus={gpus},degree={degree}")

    assert diameter(topology) <= math.ceil(math.log(gpus, degree) - 1e-9)


@pytest.mark.parametrize(("gpus", "degree"), [(12, 3), (20, 4), (24, 2), (64, 4), (17, 3)])
def test_links_of_a_gpu_to_itself_are_left_out(gpus, degree):
    """As many as the docstrings say: d i + i + a = 0 mod n has solutions for some a."""
    kautz = open_cluster(f"kautz:gpus={gpus},degree={degree}")
    bruijn = open_cluster(f"de-bruijn:gpus={gpus},degree={degree}")

    spare = degree + 1 - math.gcd(gpus, degree + 1)
    assert sum(each.count for each in kautz.links) == gpus * degree - spare
    spare = degree - 1 + math.gcd(gpus, degree - 1)
    assert sum(each.count for each in bruijn.links) == gpus * degree - spare


def test_several_links_to_one_gpu_count():
    """-5 i - a mod 3: of five links one leads back and two to each of the others."""
    topology = open_cluster("kautz:gpus=3,degree=5")

    assert {each.count for each in topology.links} == {2}


def test_random_regular_networks_differ_by_seed_alone():
    drawn = [open_cluster(f"random-regular:vertices=20,seed={seed}") for seed in (1, 1, 2)]

    assert drawn[0] == drawn[1] != drawn[2]
    assert {*drawn[0].links} != {*drawn[2].links}
    assert all(degrees(each) == {4} for each in drawn)


@pytest.mark.parametrize(
    ("name", "duplex"),
    [
        ("full-mesh:gpus=6", False),
        ("kautz:gpus=12,degree=3", False),
        ("kautz:gpus=20,degree=4", False),
        ("slim-fly:order=5", True),
        ("ring:gpus=9", True),
        ("torus:shape=3x3", True),
    ],
)
def test_networks_that_reach_the_bound_of_moore(name, duplex):
    """Hoffman and Singleton's graph, rings, and what has diameter 2 and nothing to spare."""
    topology = open_cluster(name)
    [degree] = degrees(topology)

    assert mean_distance(topology) == pytest.approx(
        moore_mean(len(topology.ranks), degree, duplex=duplex)
    )


@pytest.mark.parametrize(
    "name", ["circulant", "twisted-torus", "slim-fly", "torus", "hypercube", "random-regular"]
)
def test_no_network_is_below_the_bound_of_moore(name):
    topology = open_cluster(name)
    [degree] = degrees(topology)
    gpus = len(topology.ranks)

    bounds = moore_mean(gpus, degree), moore_mean(gpus, degree, duplex=True)
    assert bounds[0] <= bounds[1] <= mean_distance(topology)


def test_the_bound_of_moore_by_hand():
    """64 of degree 4: 4 at 1, 16 at 2, 43 at 3; two-way 4, 12, 36 and 11 at 4. Petersen's 10."""
    assert moore_mean(64, 4) == (4 + 2 * 16 + 3 * 43) / 63
    assert moore_mean(64, 4, duplex=True) == (4 + 2 * 12 + 3 * 36 + 4 * 11) / 63
    assert moore_mean(10, 3, duplex=True) == 15 / 9
    assert moore_mean(2, 1) == 1
    for wrong in ((1, 1), (5, 0)):
        with pytest.raises(ProblemError, match="do not hang together"):
            moore_mean(*wrong)
    with pytest.raises(ProblemError, match="3 vertices with 1 links each"):
        moore_mean(3, 1, duplex=True)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("circulant:jumps=2x4", "do not join all 16 GPUs, as 2 divides all of these numbers"),
        ("circulant:jumps=1x9", "jump of a circulant network of 16 must be from 1 to 8, got 9"),
        ("circulant:jumps=1x1", "jumps 1x1 name one twice"),
        ("twisted-torus:twists=1x2", "a twisted torus 4x4 takes 1 twist from 0 on"),
        ("twisted-torus:shape=4", "must be 2 to 6 whole numbers from 1 on, such as 4x4"),
        ("twisted-torus:shape=0x4", "must be 2 to 6 whole numbers from 1 on, such as 4x4"),
        ("hyperx:shape=0x4", "shape 0x4 is not one; give up to 6 whole numbers"),
        ("hyperx:trunks=1x2x3", "must be one number from 1 to 64, or one for each dimension"),
        ("hyperx:concentration=300", "GPUs of each router must be from 0 to 256, got 300"),
        ("hyperx:shape=9000", "links of a HyperX must be from 1 to 1,000,000"),
        ("slim-fly:order=6", "a power of a prime of elements, such as 8 or 9, got 6"),
        ("slim-fly:order=2", "order of a Slim Fly must be from 3 to 64, got 2"),
        ("kautz:degree=1", "must be from 2 to 64, got 1"),
        ("de-bruijn:gpus=2", "gpus of a generalised de Bruijn network must be from 3"),
        ("random-regular:vertices=5,degree=3", "as both are odd; make one even"),
        ("random-regular:vertices=5,degree=5", "must be from 3 to 4, got 5"),
    ],
)
def test_a_number_that_makes_no_network_is_answered_in_one_sentence(text, answer):
    with pytest.raises(ProblemError) as caught:
        open_cluster(text)

    assert answer in str(caught.value)
    assert "\n" not in str(caught.value)
