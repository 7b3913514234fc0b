"""Hierarchical forms: formulas with the costs of both levels, leaders, refusals."""

import pytest

from ccl.collective import make_collective
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.topology import Link, Topology, device, duplex
from formulations import formulation, solve
from gallery import open_cluster
from gallery.build import Wire, network, switched_hosts

SIZE = 1e6
A1, B1 = 1.0, 1 / 200e3
A2, B2 = 4.0, 1 / 25e3
"""µs, and µs per byte: two links of 0.5 µs at 200 GB/s in a host, two of 2 µs at 25 between."""

SHAPES = [(2, 2), (2, 3), (3, 2), (4, 4), (3, 5)]
"""Hosts, and GPUs in each."""


def rails(hosts: int, gpus: int) -> Topology:
    """Make hosts with a switch each, GPU i of all of them on a switch of their own.

    So GPUs of a host are joined by their switch only.
    """
    devices, links, boxes = switched_hosts(hosts, gpus, wire(200.0, 0.5), switch="s")
    more, far = network(boxes, wire(25.0, 2.0), fabric="rail-only")
    return Topology("rails", (*devices, *more), (*links, *far))


def wire(bandwidth: float, alpha: float) -> Wire:
    return Wire(bandwidth=bandwidth, alpha=alpha, medium="")


def solved(hosts: int, gpus: int, kind: str, *, chunks: int = 1, **options):
    ranks = hosts * gpus
    problem = Problem(rails(hosts, gpus), make_collective(kind, ranks, SIZE, chunks=chunks))
    return solve(problem, "hierarchical", options=options)


def as_written(result, makespan: float) -> None:
    """The formula, the steps on the hosts and what is derived agree; the replay is not later."""
    form = result.closed_form
    assert form.makespan == pytest.approx(makespan, rel=1e-9)
    assert form.in_steps == pytest.approx(makespan, rel=1e-9)
    assert result.makespan <= form.in_steps * (1 + 1e-9)


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter"])
@pytest.mark.parametrize(("hosts", "gpus"), SHAPES)
def test_multi_rooted_all_gather_sends_every_shard_once_to_each_host(hosts, gpus, kind):
    """Into a GPU: g - 1 shards of its host, k - 1 over its rail, those of g - 1 others' rails.

    (g-1) + (g-1)(k-1) = (g-1) k shards of m / (g k) pass its link in the host, (k-1) the other.
    """
    result = solved(hosts, gpus, kind, chunks=2)

    near = (gpus - 1) / gpus * SIZE * B1
    far = (hosts - 1) / (hosts * gpus) * SIZE * B2
    as_written(result, 2 * A1 + near + A2 + far)


@pytest.mark.parametrize(("hosts", "gpus"), SHAPES)
def test_multi_rooted_all_reduce_is_intra_inter_intra(hosts, gpus):
    """Reduce-scatter of m in hosts, all-reduce of m/g over rails, all-gather of m in hosts.

    A reduce-scatter or all-gather of n bytes among q, each to each at once, is α + (q-1)/q n β,
    an all-reduce both.
    """
    result = solved(hosts, gpus, "all-reduce")

    inside = A1 + (gpus - 1) / gpus * SIZE * B1
    between = A2 + (hosts - 1) / hosts * SIZE / gpus * B2
    as_written(result, inside + 2 * between + inside)


@pytest.mark.parametrize(("hosts", "gpus"), SHAPES)
def test_multi_rooted_all_to_all_gathers_by_destination_then_crosses(hosts, gpus):
    """Of m bytes a GPU gives (g-1)/g to others of its host and sends (k-1)/k over its rail."""
    result = solved(hosts, gpus, "all-to-all")

    near, far = (gpus - 1) / gpus * SIZE * B1, (hosts - 1) / hosts * SIZE * B2
    as_written(result, A1 + near + A2 + far)


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter"])
@pytest.mark.parametrize(("hosts", "gpus"), SHAPES)
def test_leaders_exchange_whole_hosts_and_pass_them_down(hosts, gpus, kind):
    """A leader takes in (k-1) m/k bytes and sends them to each of g - 1 others."""
    result = solved(hosts, gpus, kind, roots="single")

    other = (hosts - 1) / hosts * SIZE
    gather = A1 + (gpus - 1) / (gpus * hosts) * SIZE * B1
    as_written(result, gather + A2 + other * B2 + A1 + (gpus - 1) * other * B1)


@pytest.mark.parametrize(("hosts", "gpus"), SHAPES)
def test_leaders_reduce_their_hosts_then_all_reduce_then_pass_down(hosts, gpus):
    """g - 1 vectors reach a leader; leaders all-reduce m as in shards of m/k; the same back."""
    result = solved(hosts, gpus, "all-reduce", roots="single")

    inside = A1 + (gpus - 1) * SIZE * B1
    between = A2 + (hosts - 1) / hosts * SIZE * B2
    as_written(result, 2 * (inside + between))


@pytest.mark.parametrize(("hosts", "gpus"), SHAPES)
def test_leaders_collect_exchange_and_deal_out(hosts, gpus):
    """A leader collects p - g shards of m/p from g - 1 GPUs and sends g g shards to each host."""
    result = solved(hosts, gpus, "all-to-all", roots="single")

    ranks = hosts * gpus
    shard = SIZE / ranks
    near = A1 + (gpus - 1) * shard * B1
    collect = A1 + (gpus - 1) * (ranks - gpus) * shard * B1
    as_written(result, near + 2 * collect + A2 + (hosts - 1) * gpus**2 * shard * B2)


@pytest.mark.parametrize(("inside", "near"), [("direct", 1), ("ring", 3), ("doubling", 2)])
@pytest.mark.parametrize(("between", "far"), [("direct", 1), ("ring", 3), ("doubling", 2)])
def test_rings_and_doubling_have_other_latencies_and_the_same_bytes(inside, near, between, far):
    """Among 4: 1 latency, 3 or 2; bytes are n - 1 blocks in all three."""
    result = solved(4, 4, "all-reduce", inside=inside, between=between)

    bytes_near, bytes_far = 3 / 4 * SIZE * B1, 3 / 16 * SIZE * B2
    as_written(result, 2 * (near * A1 + bytes_near + far * A2 + bytes_far))


@pytest.mark.parametrize(
    ("inside", "steps", "share"), [("direct", 1, 3.0), ("ring", 18, 18 / 16), ("doubling", 2, 2.0)]
)
def test_leaders_pass_down_by_a_flat_tree_a_chain_or_a_binomial_tree(inside, steps, share):
    """4 hosts of 4 in 16 chunks: 3 times m at once; 4 + 16 - 2 steps of m/16; 2 steps of m."""
    result = solved(4, 4, "all-reduce", roots="single", inside=inside)

    down = steps * A1 + share * SIZE * B1
    as_written(result, 2 * (A2 + 3 / 4 * SIZE * B2 + down))


@pytest.mark.parametrize("inside", ["direct", "ring"])
@pytest.mark.parametrize("between", ["direct", "ring"])
def test_an_all_to_all_goes_round_by_pairs_at_a_distance(inside, between):
    """Each of 2 distances among 3 is a step of its own."""
    result = solved(3, 3, "all-to-all", inside=inside, between=between)

    near, far = (2 if each == "ring" else 1 for each in (inside, between))
    as_written(result, near * A1 + far * A2 + 2 / 3 * SIZE * (B1 + B2))


def test_the_expression_names_both_levels():
    form = solved(2, 2, "all-reduce").closed_form

    assert all(letter in form.expression for letter in ("α1", "β1", "α2", "β2"))
    assert "and so it is here" in form.why(form.in_steps)


def test_a_leader_is_the_gpu_with_the_best_way_out():
    """Hosts of 3 on a switch; only the last of the first host and the second of the other go out.

    All messages between hosts are theirs.
    """
    devices, links, _ = switched_hosts(2, 3, wire(200.0, 0.5), switch="s")
    links += duplex("g2", "g4", bandwidth=25.0, alpha=4.0)
    topology = Topology("two", tuple(devices), tuple(links))
    problem = Problem(topology, make_collective("all-gather", 6, SIZE))

    result = solve(problem, "hierarchical", options={"roots": "single"})

    hosts = {each.name: each.host for each in topology.devices}
    crossing = {(s.src, s.dst) for s in result.plan.sends if hosts[s.src] != hosts[s.dst]}
    assert crossing == {("g2", "g4"), ("g4", "g2")}


def test_every_link_between_hosts_carries_a_shard_once():
    """Multi-rooted, 3 hosts of 2: GPU i gets 2 shards over its rail, and nothing else crosses."""
    result = solved(3, 2, "all-gather")

    crossing = [send for send in result.plan.sends if send.via and send.via[0].startswith("rail")]
    assert len(crossing) == 6 * 2
    assert {int(send.dst[1:]) % 2 for send in crossing if send.via == ("rail0",)} == {0}


def hosts_of(*sizes: int) -> Topology:
    """Make hosts of so many GPUs, all in a clique."""
    devices = [
        device("gpu", f"g{host}.{i}", host=f"h{host}")
        for host, size in enumerate(sizes)
        for i in range(size)
    ]
    names = [each.name for each in devices]
    links = tuple(Link(a, b, 1.0) for a in names for b in names if a != b)
    return Topology("hosts", tuple(devices), links)


@pytest.mark.parametrize(
    ("topology", "message"),
    [
        (hosts_of(2, 3), "host h0 has 2 GPUs and host h1 has 3"),
        (hosts_of(4), "all its GPUs are in one host, h0"),
        (hosts_of(1, 1, 1), "one GPU each"),
        (open_cluster("star:gpus=4"), "g0 is in no host"),
    ],
)
def test_hosts_that_are_not_alike_are_refused_in_words(topology, message):
    problem = Problem(topology, make_collective("all-gather", len(topology.ranks), SIZE))

    assert message in (formulation("hierarchical").why_not(problem) or "")


@pytest.mark.parametrize(
    ("shape", "kind", "options", "message"),
    [
        ((2, 3), "all-gather", {"inside": "doubling"}, "hosts have 3 GPUs; doubling needs a power"),
        (
            (3, 2),
            "all-reduce",
            {"between": "doubling"},
            "there are 3 hosts; doubling needs a power",
        ),
        ((2, 2), "all-to-all", {"between": "doubling"}, "an all-to-all goes direct or ring"),
    ],
)
def test_what_cannot_double_is_refused_in_words(shape, kind, options, message):
    hosts, gpus = shape
    with pytest.raises(ProblemError, match=message):
        solved(hosts, gpus, kind, **options)


@pytest.mark.parametrize("roots", ["multi-rooted", "single"])
@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter", "all-reduce", "all-to-all"])
def test_two_ndv2_are_served_and_the_same_question_has_the_same_answer(kind, roots):
    """Some GPUs of an NDv2 are two links apart, and each host has one port."""
    problem = Problem(open_cluster("ndv2:hosts=2"), make_collective(kind, 16, SIZE))

    first, second = (
        solve(problem, "hierarchical", options={"roots": roots, "inside": "ring"}) for _ in range(2)
    )

    assert first.plan == second.plan
