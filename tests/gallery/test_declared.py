"""What the gallery declares of the symmetry of its clusters: true, and all there is."""

import pytest

from ccl.symmetry import automorphisms
from gallery import catalog, open_cluster

MORE = (
    "star:gpus=6,wide=2",
    "ring:gpus=4",
    "ring:gpus=7,chord_bandwidth=5",
    "torus:shape=4x2",
    "torus:shape=4x4x3",
    "torus:shape=6x1x6",
    "mesh:shape=2x3x3",
    "hypercube:dimension=5",
    "ndv2:hosts=5",
    "dgx-2:hosts=3",
    "dgx-a100:hosts=5",
    "dgx-a100:hosts=3,planes=true",
    "dgx-a100:hosts=3,fabric=rail-only",
    "dgx-h100:hosts=3,planes=true,fabric=flat",
    "gb200-nvl72:planes=true",
    "dgx-2-te-ccl:hosts=1",
    "amd-te-ccl:hosts=3",
    "mi250:hosts=3",
    "mi300x:hosts=3",
    "mi300x:hosts=3,fabric=flat",
    "fat-tree:radix=2",
    "fat-tree:radix=6",
    "dragonfly:groups=7,routers=3,gpus=1",
    "dragonfly-plus:groups=4,group_leaves=3,group_spines=4",
    "hamming-mesh:board=2x3,shape=3x2",
    "hamming-mesh:board=1x1,shape=3x3",
    "hamming-mesh:board=3x3,shape=3x3",
    "rail-optimised:units=3,unit_hosts=3,gpus=2,spines=3,trunk=2",
    "rail-optimised:units=1,unit_hosts=4,spines=1",
    "circulant:gpus=12,jumps=1x6",
    "hyperx:shape=2x3x4",
    "hyperx:shape=3x4x4,trunks=1x2x2",
    "hyperx:shape=3x3,concentration=2",
    "slim-fly:order=7",
    "kautz:gpus=24,degree=2",
    "rail-only:hosts=3,gpus=4",
    "leaf-spine:hosts=7,leaf_radix=6,spine_radix=64",
    "leaf-spine:hosts=4,gpus=4,nics=2,rails=false,joined=mesh",
    "leaf-spine:hosts=2,gpus=2,nics=4,leaf_radix=4",
    "leaf-spine:hosts=3,gpus=2,nics=4,rails=false,leaf_radix=16",
    "leaf-spine:hosts=3,gpus=4,nics=2,leaf_radix=4",
    "pcie-server:hosts=2",
    "pcie-server:hosts=3,nvlink=true",
    "pcie-server:hosts=3,memory_bandwidth=0",
    "pcie-server:nvlink=true",
    "te-ccl-internal-1:hosts=3",
    "te-ccl-internal-2:hosts=4",
    "thesis-dgx-a100:hosts=3,used=all",
    "thesis-dgx-a100:hosts=2,used=no-nvlink",
    "forestcoll-12:hosts=3",
    "tpu-v4:shape=2x2x3",
)
DECLARED = [
    name for name in (*(each.name for each in catalog()), *MORE) if open_cluster(name).declared
]

LESS = ("dragonfly", "twisted-torus", "de-bruijn")
"""Declared as far as it holds for every number of groups, twist or degree; some have more."""


@pytest.mark.parametrize("name", DECLARED)
def test_a_declaration_is_true_and_all_there_is(name):
    """Each generator passes the check, and the orbits are those that BLISS finds.

    The same for a stabiliser, which is where a declaration that misses something shows.
    """
    topology = open_cluster(name)
    declared = automorphisms(topology, method="declared")
    assert declared.whole
    if name.startswith(LESS):
        return
    found = automorphisms(topology, method="bliss")
    last = topology.index[topology.ranks[-1]]
    for mine, true in ((declared, found), (declared.stabiliser(last), found.stabiliser(last))):
        assert (mine.orbits() == true.orbits()).all()
        assert (mine.link_orbits() == true.link_orbits()).all()


def test_families_of_hosts_and_networks_declare():
    """What can be larger than BLISS is meant for says what it is made of."""
    families = {each.family for each in catalog() if not each.make().declared}

    assert families <= {"Papers", "Shapes", "Direct networks"}
    assert {each.name for each in catalog() if not each.make().declared} >= {
        "random", "random-regular",
    }  # fmt: skip


def test_thousands_of_hosts_cost_four_generators():
    """Two for hosts and two for rails, whatever their number."""
    for hosts in (16, 1024):
        group = automorphisms(open_cluster(f"dgx-a100:hosts={hosts}"))
        assert len(group.generators) == 4
        assert len(set(group.orbits())) == 4
        assert len(set(group.stabiliser(0).orbits())) == 9
