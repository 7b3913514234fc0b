"""Data labelled by who it is for: exact where memories copy, and trees come out of it."""

from fractions import Fraction

import pytest

from ccl.errors import ProblemError
from ccl.plans import Forest
from ccl.topology import device
from ccl.tree_embedding import steady_makespan
from ccl.verify import verify
from formulations.engines.fluid_lp.arborescences import fractions, trees_of
from formulations.engines.fluid_lp.multicast import labels_of
from formulations.engines.fluid_lp.plain import FluidSolution, solve_plain
from formulations.engines.steady_state import Group
from gallery import open_cluster
from tests.formulations.engines.fluid_lp.clusters import around, ask, butterfly, star

SPREADS = ("broadcast", "all-gather")
SUMS = ("reduce", "reduce-scatter")


def forest(solution: FluidSolution) -> Forest:
    [part] = solution.parts
    return Forest(trees_of(part), reduces=part.reduces)


def test_four_destinations_have_15_labels_and_25_splits():
    """2^4 - 1, and (3^4 - 2^5 + 1) / 2."""
    labels = labels_of([Group(0, (1, 2, 3, 4), 1.0)])
    assert len(labels.masks) == 15
    assert len(labels.splits) == 25
    whole, one, other = labels.masks[labels.splits].T
    assert (one + other == whole).all()
    assert not (one & other).any()


def test_memory_cannot_add_what_coding_would():
    """The butterfly: cuts allow 2 at a time, coding reaches that, trees pack 3/2 (known).

    Flows, and so (3.10), (3.13) and duplicates, say what cuts say. Counting destinations (3.14)
    and labels say what trees can do.
    """
    asked = ask(butterfly(), "broadcast")
    found = {
        copies: solve_plain(asked, copies=copies).makespan * 1e-6
        for copies in ("free", "relaxed", "exact", "counted", "subsets")
    }
    assert found == pytest.approx(
        {"free": 1 / 2, "relaxed": 1 / 2, "exact": 1 / 2, "counted": 2 / 3, "subsets": 2 / 3}
    )


def test_the_trees_of_the_butterfly_are_three_of_a_third_each():
    asked = ask(butterfly(), "broadcast")
    plan = forest(solve_plain(asked, copies="subsets"))
    verify(asked, plan)
    assert [tree.weight for tree in plan.trees] == [Fraction(1, 3)] * 3
    assert steady_makespan(asked, plan) == Fraction(2_000_000, 3)


@pytest.mark.parametrize(
    ("cluster", "kind"),
    [
        *((cluster, kind) for cluster in ("thesis-2.4", "thesis-3.1") for kind in SPREADS),
        *((cluster, kind) for cluster in ("star:gpus=4", "te-ccl-1") for kind in SPREADS + SUMS),
    ],
)
def test_trees_come_out_that_take_as_long_as_the_program_says(cluster, kind):
    asked = ask(open_cluster(cluster), kind)
    found = solve_plain(asked, copies="subsets", joined=True)
    plan = forest(found)
    verify(asked, plan)
    assert float(steady_makespan(asked, plan)) == pytest.approx(found.makespan, rel=1e-6)


def test_a_switch_that_copies_is_crossed_by_trees():
    """A broadcast over a copying switch sends up once: 1 GB at 50 GB/s."""
    asked = ask(open_cluster("star:gpus=4,copies=true"), "broadcast")
    plan = forest(solve_plain(asked, copies="subsets"))
    verify(asked, plan)
    assert float(steady_makespan(asked, plan)) == pytest.approx(1e6 / 50)


def test_memory_between_three_gpus_is_written_once():
    """Figure 2.2: GPU 1 writes once, two read: 3 GB in all. Over GPU 2 it would be written twice,
    which a switch in its place costs: 4 GB."""
    memory = around(device("memory", "m"), 3)
    switch = around(device("switch", "m"), 3)
    written = solve_plain(ask(memory, "broadcast"), copies="subsets")
    crossed = solve_plain(ask(switch, "broadcast"), copies="subsets")
    assert written.cost == pytest.approx(3e9, rel=1e-6)
    assert crossed.cost == pytest.approx(4e9, rel=1e-6)
    [tree] = trees_of(written.parts[0])
    assert sorted(tree.routes) == [("g1", "m"), ("m", "g2"), ("m", "g3")]


def test_a_limited_memory_broadcasts_a_third_faster_than_a_switch():
    """Figure 2.3 with x = 1 and y = 3 < 6 x: the switch is crossed by 6 GB in all (3 GPUs, in and
    out), y / 6; a memory that copies takes 1 GB in and 3 out, y / 4."""
    crossed = solve_plain(ask(around(device("switch", "m"), 4, limit=3.0), "broadcast"))
    copied = solve_plain(ask(around(device("memory", "m"), 4, limit=3.0), "broadcast"))
    assert crossed.makespan == pytest.approx(1e6 * 6 / 3)
    assert copied.makespan == pytest.approx(1e6 * 4 / 3)


def test_fractions_add_up_to_one_and_are_simple():
    assert fractions([1.0, 2.0 + 1e-9]) == [Fraction(1, 3), Fraction(2, 3)]
    assert sum(fractions([0.1234567891, 0.7654321, 3.0])) == 1


def test_trees_add_nothing_in_a_memory():
    """All ways between the GPUs of figure 3.1 lead through memory, which holds two parts apart."""
    with pytest.raises(ProblemError, match="cannot be reached"):
        solve_plain(ask(open_cluster("thesis-3.1"), "reduce"), joined=True)


def test_too_many_destinations_are_refused_in_words():
    asked = ask(star(*[1.0] * 9), "broadcast")
    with pytest.raises(ProblemError, match="data has 8 destinations"):
        solve_plain(asked, copies="subsets")
