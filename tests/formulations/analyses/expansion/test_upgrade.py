"""The cheapest upgrade: derived by hand, held against brute force and against the optimum."""

import itertools
import math

import cvxpy as cp
import numpy as np
import pytest

from ccl.collective import make_collective
from ccl.errors import Infeasible, LimitReached, ProblemError
from ccl.problem import Problem
from ccl.topology import SharedLimit, Topology, device, duplex
from formulations import cheapest_upgrade
from formulations.analyses.best_rate import optimum
from formulations.analyses.expansion.costs import EVEN, Costs, Price, read_costs
from formulations.analyses.expansion.offers import offers_of
from formulations.analyses.expansion.rates import CutRates, ProgramRates, TreeRates, rates_of
from formulations.engines.orbit_lp.lp import orbit_program
from gallery import open_cluster

NETWORK = read_costs({"links": [{"medium": "InfiniBand", "cost": 400}, {"cost": 60}]})
IN_STEPS = read_costs(
    {"links": [{"medium": "InfiniBand", "cost": 400, "step": 12.5}, {"cost": 60, "step": "link"}]}
)


def asked(cluster, *kinds):
    topology = open_cluster(cluster) if isinstance(cluster, str) else cluster
    return [Problem(topology, make_collective(each, len(topology.ranks), 1e9)) for each in kinds]


def small(seed):
    """Return four GPUs, three of which meet at a switch, with links of two media."""
    sizes = dict(zip("ab", np.random.default_rng(seed).integers(2, 9, 2).tolist(), strict=True))
    ends = (("g0", "g1"), ("g1", "g2"), ("g2", "g3"), ("g0", "s"), ("g3", "s"), ("g1", "s"))
    links = [
        link
        for (src, dst), medium in zip(ends, "ababab", strict=True)
        for link in duplex(src, dst, bandwidth=sizes[medium], medium=medium)
    ]
    devices = [device("gpu", f"g{i}") for i in range(4)] + [device("switch", "s")]
    return Topology(f"small {seed}", tuple(devices), tuple(links))


def reached(sale, problems, extra):
    """Return the best algbw of each problem with these amounts more, found from the start."""
    topology = sale.upgraded(np.array(extra, dtype=float))
    return [optimum(Problem(topology, each.collective)).algbw for each in problems]


def test_two_hosts_on_rails_need_both_kinds_of_links():
    """All-gather of two hosts of 8: a GPU takes in 15 shards, a host 8 over its 8 ports.

    At 1.5 times 346.67 GB/s a shard flows at 32.5 GB/s, so a port has 32.5 and with its NVLink
    15 x 32.5 = 487.5 GB/s: 7.5 GB/s at 400 and 155 GB/s at 60, for each of 16 GPUs.
    """
    (problem,) = asked("dgx-a100:hosts=2", "all-gather")
    best = cheapest_upgrade(problem, NETWORK, target="1.5x")

    assert best.cost == pytest.approx(16 * (7.5 * 400 + 155 * 60))
    assert best.proved
    assert {each.words: each.after for each in best.bought} == pytest.approx(
        {"NVLink 3 at 300 GB/s": 455, "InfiniBand HDR at 25 GB/s": 32.5}
    )
    assert [each.count for each in best.bought] == [16, 16]
    assert best.gains[0].before == pytest.approx(1040 / 3)
    assert best.gains[0].after == pytest.approx(520)
    assert best.gains[0].cut is not None


def test_whole_links_and_steps_round_up():
    """A step of 12.5 GB/s makes ports of 37.5; then NVLinks need 450 = 18 bricks of 25 GB/s."""
    (problem,) = asked("dgx-a100:hosts=2", "all-gather")
    best = cheapest_upgrade(problem, IN_STEPS, target="1.5x")

    assert best.cost == pytest.approx(16 * (12.5 * 400 + 150 * 60))
    nvlink = next(each for each in best.bought if "NVLink" in each.words)
    assert nvlink.after == pytest.approx(450)
    assert nvlink.whole == 6
    link = best.topology.link(*nvlink.links[0])
    assert link.bandwidth == pytest.approx(450)
    assert link.count == 18


@pytest.mark.parametrize(
    ("cluster", "kinds"),
    [
        ("dgx-1v", ("all-gather", "all-to-all", "all-reduce")),
        ("dgx-a100:hosts=2", ("all-reduce", "broadcast")),
        ("mi250:hosts=1", ("reduce-scatter", "all-to-all")),
        ("fat-tree", ("all-gather", "all-to-all")),
    ],
)
@pytest.mark.parametrize("costs", [NETWORK, IN_STEPS], ids=["any amount", "steps"])
def test_the_optimum_of_the_upgraded_cluster_meets_every_target(cluster, kinds, costs):
    problems = asked(cluster, *kinds)
    best = cheapest_upgrade(problems, costs, target="1.7x")

    assert best.proved
    for problem, gain in zip(problems, best.gains, strict=True):
        assert gain.before == pytest.approx(optimum(problem).algbw)
        after = optimum(Problem(best.topology, problem.collective)).algbw
        assert after == pytest.approx(gain.after, rel=1e-7)
        assert after >= 1.7 * gain.before * (1 - 1e-6)
    # Something is just enough: with a little less money of everything a target is missed.
    if costs is NETWORK:
        assert min(each.factor for each in best.gains) == pytest.approx(1.7, rel=1e-5)


STEPS = Costs(links=(Price(cost=3, medium="a", step=1), Price(cost=2, medium="b", step=1)))
ANY = Costs(links=(Price(cost=3, medium="a"), Price(cost=2, medium="b")))


@pytest.mark.parametrize("seed", range(2))
def test_brute_force_over_a_grid_finds_nothing_cheaper(seed):
    """Two media in steps of 1 GB/s: every cheaper pair of amounts misses a target."""
    problems = asked(small(seed), "all-gather", "all-to-all")
    sale = offers_of(problems[0].topology, STEPS)
    now = reached(sale, problems, [0, 0])
    best = cheapest_upgrade(problems, STEPS, target="1.4x")

    price = [each.price for each in sale.goods]
    grid = itertools.product(*(range(int(best.cost / each) + 1) for each in price))
    cheaper = [each for each in grid if np.dot(each, price) < best.cost - 1e-9]
    assert len(cheaper) > 5
    for extra in cheaper:
        assert min(np.divide(reached(sale, problems, extra), now)) < 1.4 * (1 - 1e-9)
    bought = [each.added for each in best.changes]
    assert min(np.divide(reached(sale, problems, bought), now)) >= 1.4 * (1 - 1e-6)


@pytest.mark.parametrize("seed", range(2))
def test_any_amount_is_no_dearer_than_steps_and_no_amount_at_random_is_cheaper(seed):
    problems = asked(small(seed), "all-reduce", "all-to-all")
    best = cheapest_upgrade(problems, ANY, target="1.4x")
    assert best.cost <= cheapest_upgrade(problems, STEPS, target="1.4x").cost * (1 + 1e-6)

    sale = offers_of(problems[0].topology, ANY)
    now = reached(sale, problems, [0, 0])
    dice = np.random.default_rng(seed)
    for _ in range(5):
        extra = dice.uniform(0, 1, 2)
        extra *= best.cost * 0.99 / sale.cost(extra)
        assert min(np.divide(reached(sale, problems, extra), now)) < 1.4


@pytest.mark.parametrize(
    ("seed", "kind"), [(0, "all-gather"), (1, "all-to-all"), (2, "all-reduce"), (3, "broadcast")]
)
def test_cuts_come_to_what_one_linear_program_with_capacities_in_it_does(seed, kind):
    """Time is fixed by the target, so busy[i] W <= (1 + y[i] / b[i]) T is linear in W and y."""
    (problem,) = asked(small(seed), kind)
    best = cheapest_upgrade(problem, ANY, target="1.6x")
    sale = offers_of(problem.topology, ANY)
    program = orbit_program(problem, classes=sale.labels, copies="exact").program
    time = problem.collective.size / (1.6 * best.gains[0].before) * 1e-3
    rows = np.unique(program.rows, return_index=True)[1]
    today = np.array([each.bandwidth for each in problem.topology.links])
    share = (sale.rows[rows][:, None] == np.arange(len(sale.goods))) / today[rows][:, None]
    amounts = cp.Variable(len(sale.goods), nonneg=True)
    rules = [each for each in program.rules if each is not program.cap]
    rules.append((program.busy / time) @ program.usage <= 1 + share @ amounts)
    price = np.array([each.price for each in sale.goods])
    whole = cp.Problem(cp.Minimize(price @ amounts), rules)
    whole.solve(solver=cp.HIGHS)

    assert best.cost > 0
    assert best.cost == pytest.approx(whole.value, rel=1e-6)


def test_links_that_look_alike_apart_are_cheaper_than_all_of_a_kind():
    """A fat tree needs less above: kinds make 48 links 75 GB/s, orbits 16 each 75, 70 and 60.

    Of 16 GPUs at 75 GB/s, 4 under each of 4 pods and 2 under each switch: what leaves a switch goes
    to 14 of 15 others and what leaves a pod to 12 of 15, so 14/15 and 12/15 of 75 GB/s for each
    link. A GPU's own link carries all 75.
    """
    problems = asked("fat-tree", "all-gather", "all-to-all")
    kind = cheapest_upgrade(problems, EVEN, target="1.5x")
    orbit = cheapest_upgrade(problems, EVEN, target="1.5x", by="orbit")

    assert kind.cost == pytest.approx(48 * 25)
    assert sorted(each.after for each in orbit.bought) == pytest.approx([60, 70, 75])
    assert orbit.cost == pytest.approx(16 * (25 + 20 + 10))


def test_a_target_that_is_met_costs_nothing_and_changes_nothing():
    (problem,) = asked("dgx-1v", "all-gather")
    best = cheapest_upgrade(problem, EVEN, target=100)

    assert (best.cost, best.bound, best.bought) == (0, 0, ())
    assert best.topology == problem.topology
    assert best.gains[0].after == pytest.approx(1200 / 7)


def test_targets_are_gigabytes_or_factors_of_each():
    """NDv2 hosts meet at one link of 12.5 GB/s: all-gather has 2 x 12.5, all-to-all 1/4 x 12.5."""
    problems = asked("ndv2:hosts=2", "all-gather", "all-to-all")
    best = cheapest_upgrade(problems, EVEN, target=[30, "3x"])

    assert [each.target for each in best.gains] == pytest.approx([30, 9.375])
    assert [each.after for each in best.bought] == pytest.approx([37.5])
    assert best.gains[0].after == pytest.approx(75)
    assert dict(best.gains[1].held) == pytest.approx({"InfiniBand EDR at 12.5 GB/s": 1})
    assert best.factor == pytest.approx(1.2)


def test_what_may_be_sold_most_is_not_exceeded():
    """Ports end at 30 GB/s, so shards flow at 30 at most: 480 GB/s, and 500 are out of reach."""
    (problem,) = asked("dgx-a100:hosts=2", "all-gather")
    costs = Costs(links=(Price(cost=4, medium="InfiniBand", most=30), Price(cost=1)))

    best = cheapest_upgrade(problem, costs, target=480)
    assert max(e.after for e in best.bought if "InfiniBand" in e.words) == pytest.approx(30)
    with pytest.raises(Infeasible, match=r"to 500 GB/s: 480 GB/s is the most, held by InfiniBand"):
        cheapest_upgrade(problem, costs, target=500)


def test_links_that_are_not_for_sale_stay():
    (problem,) = asked("dgx-a100:hosts=2", "all-gather")
    costs = Costs(links=(Price(cost=4, medium="InfiniBand"),))

    best = cheapest_upgrade(problem, costs, target="1.1x")
    # 15 shards of 381.33 / 16 GB/s into a GPU, 300 of them over its NVLink.
    assert [each.after for each in best.bought] == pytest.approx([15 * 1.1 * 1040 / 48 - 300])
    kept = [each for each in problem.topology.links if "NVLink" in each.medium]
    assert len(kept) == 32
    assert all(best.topology.link(*each.ends) == each for each in kept)


def two_over_a_bus(limit):
    """Return two GPUs with two ways between them that share a bus."""
    links = (
        *duplex("a", "b", bandwidth=10),
        *duplex("a", "s", bandwidth=10, medium="side"),
        *duplex("b", "s", bandwidth=10, medium="side"),
    )
    bus = SharedLimit("bus", (("a", "b"), ("a", "s")), limit)
    back = SharedLimit("back", (("b", "a"), ("b", "s")), limit)
    devices = (device("gpu", "a"), device("gpu", "b"), device("switch", "s"))
    return Topology("bus", devices, links, (bus, back))


def test_a_shared_limit_that_does_not_bind_today_binds_once_its_links_grow():
    """20 GB/s leave each GPU under a limit of 20: 30 are 20 x 1.5, with 5 GB/s on each limit."""
    (problem,) = asked(two_over_a_bus(20), "all-gather")
    with pytest.raises(Infeasible, match="limit bus at 20 GB/s"):
        cheapest_upgrade(problem, EVEN, target="1.5x")

    costs = Costs(links=(Price(cost=1), Price(cost=7, limits=("bus", "back"))))
    best = cheapest_upgrade(problem, costs, target="1.5x")
    # The straight way is one link to pay for, the other one two.
    assert best.cost == pytest.approx(10 + 2 * 10 * 7)
    assert {each.words: each.after for each in best.bought} == pytest.approx(
        {"links at 10 GB/s": 20, "shared limit bus and 1 alike at 20 GB/s": 30}
    )
    after = optimum(Problem(best.topology, problem.collective)).algbw
    assert after == pytest.approx(best.gains[0].after)


def test_named_links_alone_get_more_and_what_was_declared_alike_is_no_longer():
    topology = open_cluster("dgx-a100:hosts=2")
    ends = ("g0", "rail0")
    price = Price(cost=1, between=(ends,), step="link")
    sale = offers_of(topology, Costs(links=(price,)))
    grown = sale.upgraded(np.array([25.0]))

    assert [each.count for each in sale.goods] == [1]
    assert grown.link(*ends).bandwidth == 50
    assert grown.link(*ends[::-1]).count == 2
    assert topology.declared
    assert not grown.declared
    assert sum(a != b for a, b in zip(grown.links, topology.links, strict=True)) == 2


@pytest.mark.parametrize(
    ("kind", "engine"),
    [
        ("all-gather", CutRates),
        ("reduce-scatter", CutRates),
        ("all-gather", ProgramRates),
        ("all-to-all", ProgramRates),
        ("reduce-scatter", TreeRates),
        ("all-reduce", TreeRates),
    ],
)
def test_cuts_hold_everywhere_and_are_met_where_they_were_found(kind, engine):
    """What `expansion.rates` says of its cuts, at amounts of which it knows nothing."""
    (problem,) = asked("dgx-1v", kind)
    sale = offers_of(problem.topology, EVEN)
    rates = engine(problem, sale)
    dice = np.random.default_rng(1)
    first, second = (dice.uniform(0, 20, len(sale.goods)).round(2) for _ in range(2))
    found = rates.at(first)

    allowed = found.slopes @ first + found.offsets
    assert allowed.min() == pytest.approx(found.algbw, rel=1e-7)
    assert found.shares.sum() == pytest.approx(1)
    (after,) = reached(sale, [problem], second)
    assert rates.at(second).algbw == pytest.approx(after, rel=1e-7)
    assert (found.slopes @ second + found.offsets).min() >= after * (1 - 1e-7)


def test_an_engine_is_chosen_by_what_decides_and_what_is_small():
    kinds = ("all-gather", "all-to-all", "all-reduce")
    problems = asked("mi250:hosts=2", *kinds)
    chosen = [rates_of(each, offers_of(each.topology, EVEN)) for each in problems]
    assert [type(each) for each in chosen] == [CutRates, ProgramRates, TreeRates]


def test_what_cannot_be_asked_is_refused_in_a_sentence():
    (first,), (second,) = asked("dgx-1v", "all-gather"), asked("ring", "all-gather")
    none = Costs(links=(Price(cost=1, medium="string"),))
    for problems, costs, target, said in (
        ([], EVEN, "1.5x", "no collective"),
        ([first, second], EVEN, "1.5x", "one cluster"),
        (first, EVEN, "fast", "no algbw"),
        (first, EVEN, "-1x", "no algbw"),
        (first, EVEN, "", "no algbw"),
        (first, EVEN, math.inf, "no algbw"),
        (first, EVEN, [1, 2], "2 targets for 1"),
        (first, none, "1.5x", "whose links are of NVLink 2"),
    ):
        with pytest.raises(ProblemError, match=said):
            cheapest_upgrade(problems, costs, target=target)
    with pytest.raises(LimitReached, match="time limit"):
        cheapest_upgrade(first, EVEN, target="2x", time_limit=0.0)
