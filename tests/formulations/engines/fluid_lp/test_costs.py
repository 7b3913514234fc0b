"""Costs of links: the secondary objective of the thesis."""

import numpy as np
import pytest

from ccl.errors import ProblemError
from ccl.topology import Topology, device, duplex
from formulations.engines.fluid_lp.plain import COST_KINDS, default_costs, link_costs
from gallery import open_cluster


def cost(topology, src, dst, *, kind="ports"):
    return link_costs(topology, kind)[topology.link_index[src, dst]]


def test_gpus_upload_and_download_unless_something_else_is_said():
    """A link between GPUs is an upload and a download, with a switch in the middle or without."""
    direct = Topology("", (device("gpu", "a"), device("gpu", "b")), duplex("a", "b", bandwidth=1))
    hub = open_cluster("star:gpus=3")

    assert default_costs(direct).tolist() == [2, 2]
    assert default_costs(hub).tolist() == [1] * 6


def test_only_nvlink_costs_1_an_nvlink_edge_and_2_a_port():
    topology = open_cluster("dgx-a100:hosts=2,fabric=rail-only")

    assert cost(topology, "g0", "nvswitch0") == cost(topology, "nvswitch1", "g9") == 1
    assert cost(topology, "g0", "rail0") == cost(topology, "rail7", "g15") == 2
    assert cost(topology, "g0", "rail0", kind="gpus") == 1


def test_a_host_with_pcie_costs_1_at_gpus_and_1_between_port_and_rail():
    """So the ways of the drawing without PCIe cost as much as those of the one with it."""
    topology = open_cluster("pcie-server:hosts=2,nvlink=true")
    ends = {
        ("g0", "pcie0"): 1, ("pcie0", "mem0"): 0, ("mem0", "pcie1"): 0, ("pcie0", "nic0"): 0,
        ("nic0", "rail0"): 1, ("rail0", "nic8"): 1, ("g3", "nvswitch0"): 1,
    }  # fmt: skip

    assert {each: cost(topology, *each) for each in ends} == ends


def test_an_all_to_all_of_two_nodes_costs_960_and_704_without_the_ports():
    """The figure in the module's text, by the cheapest ways of all 240 pairs."""
    topology = open_cluster("dgx-a100:hosts=2,fabric=rail-only")
    found = {}
    for kind in ("ports", "gpus"):
        far = np.full((len(topology.devices),) * 2, np.inf)
        np.fill_diagonal(far, 0)
        for link, price in zip(topology.links, link_costs(topology, kind), strict=True):
            far[topology.index[link.src], topology.index[link.dst]] = price
        for middle in range(len(far)):
            far = np.minimum(far, far[:, middle, None] + far[None, middle])
        gpus = [topology.index[name] for name in topology.ranks]
        found[kind] = far[np.ix_(gpus, gpus)].sum()

    assert found == {"ports": 960, "gpus": 704}


def test_every_kind_has_a_cost_for_every_link():
    topology = open_cluster("ndv2")

    assert {kind: link_costs(topology, kind).shape for kind in COST_KINDS} == dict.fromkeys(
        COST_KINDS, (len(topology.links),)
    )
    assert link_costs(topology, "none").sum() == 0
    assert link_costs(topology, "links").sum() == len(topology.links)
    assert cost(topology, "g0", "g9") == 4


def test_an_unknown_name_is_answered():
    with pytest.raises(ProblemError, match="no costs called 'x'; there are gpus, ports"):
        link_costs(open_cluster("ring"), "x")
