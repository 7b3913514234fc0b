"""Clusters of the gallery are known again, and nothing else is."""

from dataclasses import replace

import pytest

from ccl.topology import Topology
from gallery import catalog, open_cluster
from gallery.recognise import spec_of

ARGUED = (
    "ring:gpus=6,bandwidth=25.0",
    "star:gpus=6,wide=2,copies=true",
    "torus:shape=2x3x4",
    "mesh:shape=4x4,alpha=1.5",
    "hypercube:dimension=4",
    "dgx-a100:hosts=4,planes=true",
    "dgx-h100:hosts=4,reduces=true",
    "rail-only:hosts=2,gpus=4",
    "pcie-server:hosts=2,nvlink=true",
    "thesis-dgx-a100:used=all",
    "random:seed=3",
    "circulant:gpus=13,jumps=2x3",
    "twisted-torus:shape=4x4x8,twists=0x4x4",
    "twisted-torus:twists=1",
    "hyperx:shape=3x4,concentration=2",
    "hyperx:trunks=1x2",
    "slim-fly:order=4",
    "kautz:gpus=20,degree=4",
    "de-bruijn:gpus=9",
    "random-regular:seed=5",
    "hamming-mesh:board=2x3,shape=3x2",
    "dragonfly-plus:groups=5",
    "rail-optimised:units=3",
)


@pytest.mark.parametrize("name", [each.name for each in catalog()])
def test_every_entry_is_known_by_its_name(name):
    """Two names may make equal clusters; then either is right."""
    topology = open_cluster(name)
    found = spec_of(topology)

    assert found is not None
    assert open_cluster(found) == topology


@pytest.mark.parametrize("name", ARGUED)
def test_arguments_are_found_again(name):
    assert spec_of(open_cluster(name)) == name


def test_an_edited_cluster_is_not_known():
    topology = open_cluster("dgx-a100:hosts=2")
    faster = replace(topology.links[0], bandwidth=topology.links[0].bandwidth + 1)

    assert spec_of(replace(topology, links=(faster, *topology.links[1:]))) is None
    assert spec_of(replace(topology, links=topology.links[1:])) is None
    assert spec_of(replace(topology, name="mine")) is None
    assert spec_of(Topology("Ring of 8", (), ())) is None
