"""Exact rates equal linear programs written here, and no network is above what its ports allow."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from ccl.errors import ProblemError
from ccl.symmetry import automorphisms
from ccl.topology import Topology
from formulations.proposals import Request, Use, all_to_all_rate, score
from formulations.proposals.families import closed, expansions, fits, lattices
from formulations.proposals.rewiring import Annealing, network_of
from formulations.proposals.scores import ports_bound
from gallery import open_cluster
from gallery.expansions import cartesian_product, expand_degree, in_planes, line_graph

KINDS = ("all-gather", "all-reduce", "all-to-all")


def rewired():
    annealing = Annealing(16, 3, seed=1)
    annealing.advance(runs=1)
    return network_of(annealing.pairs, gpus=16, name="rewired", bandwidth=50.0, alpha=0.7)


NAMED = (
    "torus:shape=4x4",
    "torus:shape=2x3x3",
    "twisted-torus:shape=4x8,twists=4",
    "circulant:gpus=16,jumps=1x6",
    "hyperx:shape=3x4",
    "hyperx:shape=3x3,concentration=2",
    "slim-fly:order=3",
    "slim-fly:order=3,concentration=2",
    "kautz:gpus=12",
    "de-bruijn:gpus=12",
    "random-regular:vertices=14",
    "hamming-mesh",
    "fat-tree:radix=4",
    "dragonfly:groups=5",
    "dragonfly-plus",
    "rail-only:hosts=2",
    "rail-optimised",
    "leaf-spine",
    "leaf-spine:oversubscription=2",
)
NETWORKS = {name: partial(open_cluster, name) for name in NAMED} | {
    "line graph": lambda: line_graph(open_cluster("full-mesh:gpus=4")),
    "product": lambda: cartesian_product(
        open_cluster("ring:gpus=5"), open_cluster("hyperx:shape=3")
    ),
    "copies": lambda: expand_degree(open_cluster("ring:gpus=5"), 2),
    "rewired": rewired,
    "planes of a dragonfly": lambda: in_planes(open_cluster("dragonfly:groups=3,routers=3"), 2),
    "planes of rails": lambda: in_planes(open_cluster("rail-only:hosts=2,gpus=4"), 2),
    "planes of boards": lambda: in_planes(open_cluster("hamming-mesh"), 2),
}


def balance(topology: Topology) -> sparse.csr_array:
    """Return what enters each device less what leaves it, of each link, (devices, links)."""
    src, dst = topology.ends
    many = np.arange(len(topology.links))
    ones = np.ones(len(many))
    shape = len(topology.devices), len(many)
    return sparse.csr_array((ones, (dst, many)), shape) - sparse.csr_array(
        (ones, (src, many)), shape
    )


def least_time(topology: Topology, supplies: list[np.ndarray]) -> float:
    """Return the time in which flows, each with what devices take in, fit the links together."""
    rates = np.array([each.bandwidth for each in topology.links])
    many, flows = len(rates), len(supplies)
    conserved = sparse.block_diag([balance(topology)] * flows)
    conserved = sparse.hstack([conserved, sparse.csr_array((conserved.shape[0], 1))])
    carried: Any = sparse.hstack([*[sparse.eye_array(many)] * flows, -rates[:, None]])
    found = linprog(
        np.append(np.zeros(many * flows), 1.0),
        A_ub=carried,
        b_ub=np.zeros(many),
        A_eq=conserved,
        b_eq=np.concatenate(supplies),
        method="highs",
    )
    assert found.status == 0
    return float(found.fun)


def gpus_of(topology: Topology) -> np.ndarray:
    return np.array([topology.index[name] for name in topology.ranks])


def all_to_all_by_sources(topology: Topology) -> float:
    """GB/s: every source sends 1 to every other; a buffer is as many as there are GPUs."""
    gpus = gpus_of(topology)
    supplies = []
    for source in gpus:
        taken = np.zeros(len(topology.devices))
        taken[gpus] = 1
        taken[source] = 1 - len(gpus)
        supplies.append(taken)
    return len(gpus) / least_time(topology, supplies)


def all_gather_by_destinations(topology: Topology) -> float:
    """GB/s: trees fill the worst cut (Edmonds), which is the worst flow from all GPUs to one."""
    gpus = gpus_of(topology)
    times = []
    for goal in gpus:
        taken = np.zeros(len(topology.devices))
        taken[gpus] = -1
        taken[goal] = len(gpus) - 1
        times.append(least_time(topology, [taken]))
    return len(gpus) / max(times)


@pytest.mark.parametrize("name", NETWORKS)
def test_rates_equal_an_independent_linear_program(name):
    """Where there is no symmetry a flow reaches, and prices prove, what is within 0.1 % of it."""
    topology = NETWORKS[name]()
    found = score(topology, KINDS, seconds=60)
    exchanged, gathered = all_to_all_by_sources(topology), all_gather_by_destinations(topology)

    assert found.rates["all-gather"].algbw == pytest.approx(gathered, rel=1e-6)
    rate = found.rates["all-to-all"]
    assert rate.algbw <= exchanged * (1 + 1e-6)
    assert rate.most >= exchanged * (1 - 1e-6)
    assert rate.gap <= (1e-3 if name in {"random-regular:vertices=14", "rewired"} else 1e-12)


REQUESTS = (
    Request(gpus=18, ports=4, one_way=True),
    Request(gpus=50, ports=7),
    Request(gpus=16, ports=4, radix=8),
    Request(gpus=72, ports=1, radix=12),
    Request(gpus=128, ports=1, radix=8),
    Request(gpus=64, ports=1, radix=16, host="dgx-h100"),
)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda each: f"{each.gpus} GPUs")
def test_every_draft_fits_its_ports_and_is_as_symmetric_as_declared(request_):
    families = set()
    for draft in (*closed(request_), *lattices(request_)[:8], *expansions(request_)):
        try:
            topology = draft.make()
        except ProblemError:  # there is none of such a size
            continue
        if not fits(topology, request_):
            continue
        families.add(draft.family)
        if topology.declared:
            assert automorphisms(topology, method="declared").whole, topology.name
        assert len(topology.ranks) == request_.gpus
    assert len(families) >= 2


def test_every_family_is_among_the_drafts():
    found = {
        draft.family
        for request_ in REQUESTS
        for draft in closed(request_)
        if _fitting(draft, request_)
    }

    direct = {"torus", "HyperX", "Slim Fly", "Kautz", "de Bruijn"}
    switched = {"leaf-spine", "rail-only", "fat-tree", "dragonfly", "dragonfly+", "HammingMesh"}
    assert found == direct | switched


def _fitting(draft, request_):
    try:
        return fits(draft.make(), request_)
    except ProblemError:
        return False


def test_a_thousand_gpus_are_few_amounts():
    """32 x 32: a side of a torus carries n / 8 shards a link (32 * 32 / 8 = 128 of 1,024 a GPU)."""
    rate = all_to_all_rate(open_cluster("torus:shape=32x32"), seconds=1)

    assert rate.algbw == pytest.approx(1024 * 50 / 4096)
    assert rate.gap == 0


def test_a_leaf_with_half_the_links_up_halves_what_leaves_it():
    """Of 16 GPUs 12 are beyond the leaf: full speed takes 15 / 16, half speed 2 * 12 / 16."""
    request = Request(gpus=16, ports=1, radix=6)
    found = {}
    for draft in closed(request):
        if draft.family == "leaf-spine":
            made = draft.make()
            found[made.name.split(",")[0]] = all_to_all_rate(made, seconds=5).algbw

    assert found["Leaf and spine 1:1"] == pytest.approx(50 * 16 / 15)
    assert found["Leaf and spine 2:1"] == pytest.approx(50 * 16 / 24)


@pytest.mark.parametrize(
    ("request_", "collective", "micros"),
    [
        # 4 GPUs at one link, 11 at two: 26 links for 15 shards of 1/16 GB over 200 GB/s.
        (Request(gpus=16, ports=4, one_way=True), "all-to-all", 1e9 / 16 * 26 / 200e3),
        (Request(gpus=16, ports=4, radix=16), "all-to-all", 1e9 / 16 * 15 / 200e3),
        (Request(gpus=16, ports=4), "all-gather", 1e9 / 16 * 15 / 200e3),
        (Request(gpus=16, ports=4), "all-reduce", 2e9 / 16 * 15 / 200e3),
    ],
)
def test_what_ports_allow_by_hand(request_, collective, micros):
    assert ports_bound(request_, Use(collective, 1e9)) == pytest.approx(micros)


def test_hosts_share_what_comes_in():
    """8 GPUs with 1 port each take in 8/16 of 1 GB once, over 8 ports of 50 GB/s."""
    request = Request(gpus=16, ports=1, radix=64, host="dgx-h100")

    found = ports_bound(request, Use("all-gather", 1e9), per_host=8)
    assert found == pytest.approx(1e9 * 8 / 16 / 400e3)
