"""The orbit linear program: the thesis' tables, sizes, collectives of every kind."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from ccl.collective import Chunk, all_gather, all_to_all, custom, make_collective
from ccl.errors import Infeasible, ProblemError
from ccl.problem import Problem
from ccl.symmetry import Group, automorphisms
from ccl.topology import Link, Topology, device, duplex
from formulations.engines.fluid_lp.plain import link_costs, solve_plain
from formulations.engines.orbit_lp.group import Uniform, loads_of
from formulations.engines.orbit_lp.lp import solve_orbits
from gallery import open_cluster

ALL_GATHER = {
    ("nvlink-only", 1): (0.0233, 112), ("nvlink-only", 2): (0.0462, 516.9),
    ("nvlink-only", 4): (0.12, 2176), ("nvlink-only", 8): (0.28, 8960),
    ("nvlink-only", 16): (0.60, 36350), ("nvlink-only", 32): (1.24, 146400),
    ("no-nvlink", 2): (0.469, 424), ("no-nvlink", 4): (0.969, 1808),
    ("no-nvlink", 8): (1.97, 7456), ("no-nvlink", 16): (3.97, 30270),
    ("all", 1): (0.0211, 109.7), ("all", 2): (0.0452, 504.9),
}  # fmt: skip
"""Tables 6.3, 6.4 and 6.5 of the thesis: s/GB and objective; the cells known to be wrong are not
here (6.4 of one node prints 0.0219 for 0.219; three objectives of 6.5 are below the optimum)."""

ALL_TO_ALL = {
    ("nvlink-only", 1): (0.0233, 112), ("nvlink-only", 2): (0.32, 960),
    ("nvlink-only", 4): (0.96, 4864), ("nvlink-only", 8): (2.24, 21500),
    ("nvlink-only", 16): (4.80, 90110), ("nvlink-only", 32): (9.92, 368600),
    ("no-nvlink", 1): (0.375, 112), ("no-nvlink", 2): (0.75, 736), ("no-nvlink", 4): (1.5, 3520),
    ("no-nvlink", 8): (3.0, 15230), ("no-nvlink", 16): (6.0, 63230),
    ("no-nvlink", 32): (12.0, 257500),
    ("all", 1): (0.0211, 112), ("all", 2): (0.32, 764.2), ("all", 4): (0.96, 3689),
    ("all", 8): (2.24, 16020), ("all", 16): (4.8, 66610), ("all", 32): (9.92, 271500),
}  # fmt: skip
"""Tables 6.6, 6.7 and 6.8; the first cell of 6.8 is printed as 0.021."""


def solved(used: str, hosts: int, *, kind: str):
    topology = open_cluster(f"thesis-dgx-a100:hosts={hosts},used={used}")
    size = 1e9 * len(topology.ranks)
    costs = link_costs(topology, "ports")
    return solve_orbits(Uniform(topology, kind, size), costs=costs)


def printed(value: float, *, digits: int) -> float:
    """Return a number as the thesis prints it."""
    return float(f"{value:.{digits - 1}e}")


@pytest.mark.parametrize(("used", "hosts"), ALL_GATHER)
def test_all_gather_is_that_of_the_thesis(used: str, hosts: int):
    """Latencies to three digits and objectives to four, as printed."""
    found = solved(used, hosts, kind="all-gather")
    latency, cost = ALL_GATHER[used, hosts]

    assert printed(found.makespan * 1e-6, digits=3) == pytest.approx(latency, rel=1e-9)
    assert printed(found.cost * 1e-9, digits=4) == pytest.approx(cost, rel=1e-9)
    # A memory that copies is no destination; then the program is a bound, in the thesis as here.
    assert found.exact == (used == "nvlink-only")


@pytest.mark.parametrize(("used", "hosts"), ALL_TO_ALL)
def test_all_to_all_is_that_of_the_thesis(used: str, hosts: int):
    found = solved(used, hosts, kind="all-to-all")
    latency, cost = ALL_TO_ALL[used, hosts]

    assert printed(found.makespan * 1e-6, digits=3) == pytest.approx(latency, rel=1e-9)
    assert printed(found.cost * 1e-9, digits=4) == pytest.approx(cost, rel=1e-9)


def test_all_links_cost_more_than_the_thesis_says():
    """Table 6.5 prints 2092 at 4 nodes; no flow at that R costs less than 2126.08.

    Relaxation (3.13), in which switches only keep the sums of what comes in and goes out, costs
    2114.6 at least, so 2092 is no rounding of this model's optimum.
    """
    assert solved("all", 4, kind="all-gather").cost * 1e-9 == pytest.approx(2126.08, rel=1e-6)


@pytest.mark.parametrize("hosts", [4, 16, 64])
def test_rails_have_as_many_columns_at_every_size(hosts: int):
    """87 for an all-gather and 15 for an all-to-all.

    By hand for the latter: of an origin o in host h on rail r there are the links between a GPU
    and its NVSwitch, up and down, for o, others of h, GPUs on r and others: 8 orbits; as many
    between GPUs and rails; less the two that enter o; and R.
    """
    topology = open_cluster(f"dgx-a100:hosts={hosts},fabric=rail-only")

    assert solve_orbits(Uniform(topology, "all-to-all", 1e9)).columns == 8 + 8 - 2 + 1
    assert solve_orbits(Uniform(topology, "all-gather", 1e9)).columns == 87


def test_symmetric_ring_of_one_look_is_three_times_slower_than_its_colours_say():
    """Six GPUs in a ring and two rings of three, all on one slow switch.

    Links in rings have 1 GB/s, those to the switch 0.1: every GPU has the same neighbourhood at
    every distance, so refinement tells no two apart, yet a triangle receives the data of 9 GPUs,
    1 GB each, over 3 links of 0.1 GB/s: 30 s. Quotients by colours would say 20.
    """
    names = [f"g{i}" for i in range(12)]
    rings = [(names[:6]), names[6:9], names[9:]]
    links = [
        link
        for ring in rings
        for a, b in zip(ring, ring[1:] + ring[:1], strict=True)
        for link in duplex(a, b, bandwidth=1.0)
    ]
    links += [link for name in names for link in duplex(name, "s", bandwidth=0.1)]
    devices = [*(device("gpu", name) for name in names), device("switch", "s")]
    topology = Topology("three rings", tuple(devices), tuple(links))

    gathered = solve_orbits(Uniform(topology, "all-gather", 12e9))
    exchanged = solve_orbits(Uniform(topology, "all-to-all", 12e9))

    assert gathered.makespan * 1e-6 == pytest.approx(30.0, rel=1e-6)
    assert exchanged.makespan * 1e-6 == pytest.approx(90.0, rel=1e-6)
    assert len(gathered.blocks) == 2  # ring of six, rings of three


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter", "all-to-all", "all-reduce",
                                  "broadcast", "reduce", "gather", "scatter"])  # fmt: skip
@pytest.mark.parametrize("cluster", ["dgx-a100:hosts=2,fabric=rail-only", "ndv2", "thesis-3.1"])
@pytest.mark.cover(8)
def test_a_problem_and_its_uniform_name_have_one_optimum(cluster: str, kind: str):
    topology = open_cluster(cluster)
    ranks = len(topology.ranks)
    listed = solve_orbits(Problem(topology, make_collective(kind, ranks, 1e9, root=1)))
    named = solve_orbits(Uniform(topology, kind, 1e9, root=1))

    assert listed.makespan == pytest.approx(named.makespan, rel=1e-7)
    assert listed.columns == named.columns


def test_who_wants_what_is_part_of_the_symmetry():
    """In a ring of 4 at 1 GB/s, g0 has 1 GB for g1 and g2 has 1 GB for g3: 2/3 s.

    With a share x sent directly and 1 - x the other way round, both long ways take g0-g3 and
    g2-g1 in the same direction: max(x, 2 (1 - x)) is least at x = 2/3. By what each has and gets
    g1 and g3 could change places, although they want data of different GPUs.
    """
    ring = [f"g{i}" for i in range(4)]
    links = [
        link
        for a, b in zip(ring, ring[1:] + ring[:1], strict=True)
        for link in duplex(a, b, bandwidth=1.0)
    ]
    topology = Topology("ring", tuple(device("gpu", name) for name in ring), tuple(links))
    wanted = custom(4, [Chunk(1e9, (0,), (1,)), Chunk(1e9, (2,), (3,))])

    found = solve_orbits(Problem(topology, wanted))

    assert found.makespan == pytest.approx(2e6 / 3, rel=1e-7)
    for each in found.group.generators:
        pairs = {(int(each[0]), int(each[1])), (int(each[2]), int(each[3]))}
        assert pairs == {(0, 1), (2, 3)}


def test_some_destinations_are_kept_apart_from_all():
    """A star of 5 at 1 GB/s: g0 has 1 GB for g1 and g2, and a broadcast of 1 GB by g3.

    g1 and g2 receive 2 GB, so 2 s; g0 sends its own to one of them only and that one passes it on.
    """
    star = open_cluster("star:gpus=5,bandwidth=1.0")
    chunks = [Chunk(1e9, (0,), (1, 2)), Chunk(1e9, (3,), (0, 1, 2, 4))]

    found = solve_orbits(Problem(star, custom(5, chunks)))

    assert found.makespan == pytest.approx(2e6, rel=1e-7)
    assert not found.exact


def test_costs_are_part_of_the_symmetry():
    """Where one link costs more, its GPU is no longer like the others, and is not sent through."""
    star = open_cluster("star:gpus=4,bandwidth=1.0")
    costs = link_costs(star, "links")
    plain = solve_orbits(Uniform(star, "broadcast", 1e9), costs=costs)
    costs[star.link_index["g1", "switch"]] = 9.0
    dear = solve_orbits(Uniform(star, "broadcast", 1e9), costs=costs)

    assert len(plain.group.generators) > 0
    assert dear.cost == pytest.approx(plain.cost, rel=1e-7)
    assert all(each[1] == 1 for each in dear.group.generators)


def test_a_group_that_does_not_keep_the_problem_is_refused():
    star = open_cluster("star:gpus=4")
    group = automorphisms(star)

    assert solve_orbits(Uniform(star, "all-gather", 1e9), group=group).makespan > 0
    with pytest.raises(ProblemError, match="does not keep the collective"):
        solve_orbits(Uniform(star, "broadcast", 1e9), group=group)


def test_any_subgroup_has_the_same_optimum():
    topology = open_cluster("torus:shape=3x3")
    asked, group = Uniform(topology, "all-gather", 1e9), automorphisms(topology)
    none = Group(topology, np.empty((0, len(topology.devices)), dtype=np.int64))
    some = Group(topology, group.generators[:1])

    optima = [solve_orbits(asked, group=each) for each in (group, some, none)]

    assert [each.columns for each in optima] == sorted(each.columns for each in optima)
    assert optima[0].columns < optima[2].columns
    for each in optima[1:]:
        assert each.makespan == pytest.approx(optima[0].makespan, rel=1e-7)


@pytest.mark.parametrize(("gigabytes", "steps"), [(4.0, 2), (4.0, 3), (1.0, 4), (1.0, 6)])
def test_fewer_steps_than_trees_are_deep_cost_rate(gigabytes: float, steps: int):
    """Two boxes of 4 at 10 GB/s on local switches, 1 GB/s to one for all (ForestColl, figure 12).

    With 2 or 3 hops all data of the other box comes over a GPU's own slow link: 4 GB. With 4 one
    GPU brings in what its box then shares: 4 GB over 4 links.
    """
    devices = [device("gpu", f"g{i}") for i in range(8)]
    devices += [device("switch", name) for name in ("s0", "s1", "all")]
    links = [link for i in range(8) for link in duplex(f"g{i}", f"s{i // 4}", bandwidth=10.0)]
    links += [link for i in range(8) for link in duplex(f"g{i}", "all", bandwidth=1.0)]
    topology = Topology("boxes", tuple(devices), tuple(links))

    found = solve_orbits(Uniform(topology, "all-gather", 8e9), steps=steps)

    assert found.makespan * 1e-6 == pytest.approx(gigabytes, rel=1e-7)
    with pytest.raises(Infeasible):
        solve_orbits(Uniform(topology, "all-gather", 8e9), steps=1)


def test_a_slower_way_up_needs_the_duplicates():
    """Rails of 4 hosts whose ports send 10 % slower: 0.1333 s/GB, and not 0.12 as if rails copied.

    Each host receives 24 GB over 8 links of 25 GB/s, but what 8 ports send at 22.5 has to be sent
    by the other hosts once for each receiving one, as a rail cannot copy: 24 / (8 x 22.5).
    """
    made = open_cluster("dgx-a100:hosts=4,fabric=rail-only")
    slow = tuple(
        replace(each, bandwidth=22.5) if each.dst.startswith("rail") else each
        for each in made.links
    )
    topology = Topology(made.name, made.devices, slow)
    asked = Uniform(topology, "all-gather", 32e9)

    assert solve_orbits(asked).makespan * 1e-6 == pytest.approx(24 / 180, rel=1e-6)
    assert solve_orbits(asked, copies="free").makespan * 1e-6 == pytest.approx(0.12, rel=1e-6)
    assert not solve_orbits(asked, copies="free").exact


def test_gpus_that_may_not_copy_are_answered():
    topology = Topology(
        "pair and one",
        (device("gpu", "g0"), device("gpu", "g1", copies=False), device("gpu", "g2")),
        (*duplex("g0", "g1", bandwidth=1.0), *duplex("g1", "g2", bandwidth=1.0)),
    )
    with pytest.raises(ProblemError, match="GPU g1 may not copy"):
        solve_orbits(Uniform(topology, "all-gather", 3e9))


def test_what_every_rank_gets_is_one_load():
    ring = open_cluster("ring:gpus=4")
    [load] = loads_of(Problem(ring, all_gather(4, 4e6)))
    [pairs] = loads_of(Problem(ring, all_to_all(4, 4e6)))
    [collected] = loads_of(Problem(ring, make_collective("gather", 4, 4e6)))

    assert load.spreads
    assert load.wants is pairs.wants is collected.wants is None
    assert len(pairs.roots) == 4
    assert collected.turned
    assert collected.roots.tolist() == [0]


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter", "all-reduce", "all-to-all"])
@pytest.mark.parametrize(
    "cluster",
    [
        *(f"random:gpus=4,switches=2,seed={seed}" for seed in range(3)),
        "star:gpus=5,copies=true,reduces=true",
        "thesis-2.4",
        "thesis-3.1",
        "te-ccl-1",
        "ring:gpus=5",
    ],
)
def test_orbits_and_the_plain_program_have_one_optimum(cluster: str, kind: str):
    """Both objectives; the plain program has every link and every pair of ranks."""
    topology = open_cluster(cluster)
    if kind in ("reduce-scatter", "all-reduce") and cluster == "thesis-2.4":
        kind = "broadcast"  # its memory, the only way, cannot add
    asked = Problem(topology, make_collective(kind, len(topology.ranks), 1e9))
    costs = link_costs(topology, "links")

    plain = solve_plain(asked, costs=costs)
    found = solve_orbits(asked, costs=costs)

    assert found.makespan == pytest.approx(plain.makespan, rel=1e-6)
    assert found.cost == pytest.approx(plain.cost, rel=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_relays_that_are_balanced_need_no_duplicates(seed: int):
    """GPUs may take in more than they give out, or less; only relays have to be balanced.

    Each switch gives out to the next GPU in a random order what it takes in from the one before.
    """
    chance = np.random.default_rng(seed)
    gpus = [f"g{i}" for i in range(4)]
    links: dict[tuple[str, str], float] = {}
    for switch in ("s0", "s1"):
        order = chance.permutation(gpus).tolist()
        for a, b in zip(order, order[1:] + order[:1], strict=True):
            bandwidth = float(chance.integers(1, 6))
            links[a, switch] = links.get((a, switch), 0.0) + bandwidth
            links[switch, b] = links.get((switch, b), 0.0) + bandwidth
    for a, b in pairwise(gpus):
        links[a, b] = float(chance.integers(1, 6))
    devices = [device("gpu", name) for name in gpus] + [device("switch", s) for s in ("s0", "s1")]
    topology = Topology(
        "balanced", tuple(devices), tuple(Link(a, b, rate) for (a, b), rate in links.items())
    )
    asked = Uniform(topology, "all-gather", 4e9)

    quick, exact = solve_orbits(asked), solve_orbits(asked, copies="exact")

    assert quick.columns < exact.columns
    assert quick.exact
    assert quick.makespan == pytest.approx(exact.makespan, rel=1e-6)


def drawn(seed: int) -> Problem:
    """Draw a cluster and one or two demands: data for some or all, sums for one or all."""
    chance = np.random.default_rng(seed)
    clusters = ("ring:gpus=4", "star:gpus=4", "torus:shape=2x3", "full-mesh:gpus=4", "te-ccl-1")
    topology = open_cluster(str(chance.choice(clusters)))
    every = tuple(range(len(topology.ranks)))
    chunks = []
    for _ in range(int(chance.integers(1, 3))):
        size, many = float(chance.choice([1e6, 2e6])), int(chance.integers(2, len(every) + 1))
        root, *others = chance.permutation(every)[:many].tolist()
        some = tuple(sorted(others))
        chunks.append(
            [
                Chunk(size, (root,), some),
                Chunk(size, tuple(sorted((root, *some))), (root,), reduced=True),
                Chunk(size, every, every, reduced=True),
            ][int(chance.choice(3, p=[0.6, 0.25, 0.15]))]
        )
    return Problem(topology, custom(len(every), chunks))


@pytest.mark.parametrize("seed", range(12))
def test_any_demands_have_the_optimum_of_the_plain_program(seed: int):
    """Symmetries of the cluster that do not keep the demands would make the optimum too small."""
    asked = drawn(seed)
    costs = link_costs(asked.topology, "links")

    plain = solve_plain(asked, costs=costs)
    found = solve_orbits(asked, costs=costs)

    assert found.makespan == pytest.approx(plain.makespan, rel=1e-6)
    assert found.cost == pytest.approx(plain.cost, rel=1e-5)


def test_some_of_the_demands_drawn_are_symmetric():
    """Else the test above would not see a symmetry that is taken where there is none."""
    trivial = [solve_orbits(drawn(seed)).group.trivial for seed in range(12)]
    assert trivial.count(False) >= 4
