"""Forests and flows: weights, ways, reach and conservation."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import pytest

from ccl.collective import (
    Chunk,
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    custom,
    reduce,
    reduce_scatter,
)
from ccl.errors import ScheduleError
from ccl.plans import Flow, Forest, Rate, Tree
from ccl.problem import Problem
from ccl.topology import Link, Topology, device
from ccl.verify import verify
from tests.ccl.clusters import MB, gpus, line, mesh, star

HALF = Fraction(1, 2)


def refused(problem, plan):
    with pytest.raises(ScheduleError) as caught:
        verify(problem, plan)
    return caught.value


def around(root, count, step):
    """Routes once round a ring or mesh."""
    stops = [f"g{(root + step * k) % count}" for k in range(count)]
    return tuple(itertools.pairwise(stops))


def both_ways(count):
    """Half of each shard goes round one way and half the other."""
    return tuple(
        Tree(root, around(root, count, step), HALF) for root in range(count) for step in (1, -1)
    )


def upside_down(tree):
    """The same tree for a reduction."""
    return replace(tree, routes=tuple(route[::-1] for route in reversed(tree.routes)))


class TestForest:
    problem = Problem(mesh(4), all_gather(4, 4 * MB))

    def test_two_ways_round_carry_an_all_gather(self):
        verify(self.problem, Forest(both_ways(4)))

    def test_turned_round_they_carry_a_reduce_scatter(self):
        trees = tuple(upside_down(tree) for tree in both_ways(4))

        verify(Problem(mesh(4), reduce_scatter(4, 4 * MB)), Forest(trees, reduces=True))

    def test_weights_are_exact(self):
        """Three thirds are one; two halves and a millionth are not."""
        thirds = tuple(
            replace(tree, weight=Fraction(1, 3)) for tree in both_ways(4)[::2] for _ in range(3)
        )
        verify(self.problem, Forest(thirds))

        heavy = replace(both_ways(4)[2], weight=HALF + Fraction(1, 10**6))
        error = refused(self.problem, Forest((*both_ways(4)[:2], heavy, *both_ways(4)[3:])))
        assert error.where == "g1"
        assert "the trees of root 1 (g1) weigh 1000001/1000000 in all" in str(error)

    @pytest.mark.parametrize(
        ("weight", "told"),
        [
            (HALF + Fraction(1, 10**5000), "about 1 in all"),
            (Fraction(10**5000 + 1, 3), "about 1e+09 in all"),
        ],
    )
    def test_weights_of_thousands_of_digits_are_told_roughly(self, weight, told):
        """Python writes no whole number of more than 4,300 digits."""
        heavy = replace(both_ways(4)[0], weight=weight)
        assert told in str(refused(self.problem, Forest((heavy, *both_ways(4)[1:]))))

    def test_every_root_with_data_has_trees(self):
        assert refused(self.problem, Forest(both_ways(4)[2:])).where == "g0"

    @pytest.mark.parametrize("root", [1, 9])
    def test_other_roots_have_none(self, root):
        problem = Problem(mesh(4), broadcast(4, MB))
        tree = both_ways(4)[0]

        error = refused(problem, Forest((tree, tree, replace(tree, root=root))))

        assert f"a tree has the root {root}, which has no data" in str(error)

    def test_every_destination_is_reached(self):
        short = replace(both_ways(4)[0], routes=both_ways(4)[0].routes[:-1])

        error = refused(self.problem, Forest((short, *both_ways(4)[1:])))

        assert error.where == "g3"
        assert "a tree of root 0 does not reach g3" in str(error)

    def test_only_those_who_need_the_data_must_be_reached(self):
        problem = Problem(mesh(3), custom(3, [Chunk(MB, (0,), (1,))]))

        verify(problem, Forest((Tree(0, (("g0", "g1"),), Fraction(1)),)))

    @pytest.mark.parametrize(
        ("routes", "where", "says"),
        [
            ((("g0", "g1"), ("g2", "g3"), ("g1", "g2")), "g2", "which it has not reached before"),
            ((("g0", "g1"), ("g1", "g2"), ("g2", "g1"), ("g2", "g3")), "g1", "reaches g1 twice"),
            ((("g0", "g1"), ("g1", "g0")), "g0", "reaches g0 twice"),
            ((("g0", "g9"),), "g0->g9", "which is not a link of mesh"),
            ((("g0", "g1", "g2"),), "g1", "crosses g1 on the route g0->g1->g2"),
        ],
    )
    def test_routes_make_a_tree(self, routes, where, says):
        error = refused(Problem(mesh(4), broadcast(4, MB)), Forest((Tree(0, routes, Fraction(1)),)))

        assert error.where == where
        assert says in str(error)

    def test_routes_cross_switches_and_do_not_end_in_them(self):
        problem = Problem(star(3), broadcast(3, MB))
        routes = ("g0", "s", "g1"), ("g0", "s", "g2")

        verify(problem, Forest((Tree(0, routes, Fraction(1)),)))
        error = refused(problem, Forest((Tree(0, (("g0", "s"), ("s", "g1")), Fraction(1)),)))
        assert error.where == "s"
        assert "ends at s" in str(error)

    def test_a_branch_needs_a_device_that_copies(self):
        """A memory that cannot copy may pass on, and not to two."""
        memory = device("memory", "m", copies=False)
        links = (Link("g0", "m", 50), Link("m", "g1", 50), Link("m", "g2", 50), Link("g1", "g2", 1))
        problem = Problem(Topology("t", (*gpus(3), memory), links), broadcast(3, MB))
        chain = ("g0", "m"), ("m", "g1"), ("g1", "g2")
        fork = ("g0", "m"), ("m", "g1"), ("m", "g2")

        verify(problem, Forest((Tree(0, chain, Fraction(1)),)))
        error = refused(problem, Forest((Tree(0, fork, Fraction(1)),)))
        assert error.where == "m"
        assert "makes m copy, which it cannot" in str(error)

    def test_a_junction_needs_a_device_that_reduces(self):
        memory = device("memory", "m")
        links = (Link("g0", "m", 50), Link("m", "g2", 50), Link("g1", "m", 50), Link("g1", "g2", 1))
        problem = Problem(Topology("t", (*gpus(3), memory), links), reduce(3, MB, root=2))
        apart = ("g0", "m"), ("m", "g2"), ("g1", "g2")
        joined = ("g0", "m"), ("g1", "m"), ("m", "g2")

        verify(problem, Forest((Tree(2, apart, Fraction(1)),), reduces=True))
        error = refused(problem, Forest((Tree(2, joined, Fraction(1)),), reduces=True))
        assert error.where == "m"
        assert "makes m add, which it cannot" in str(error)

    @pytest.mark.parametrize(("holders", "adds"), [((0,), False), ((0, 1), True)])
    def test_a_root_with_a_contribution_of_its_own_adds(self, holders, adds):
        """g1 cannot reduce, and need not when only g0 contributes."""
        plain = replace(gpus(2)[1], reduces=False)
        topology = Topology("t", (gpus(2)[0], plain), mesh(2).links)
        problem = Problem(topology, custom(2, [Chunk(MB, holders, (1,), reduced=True)]))
        forest = Forest((Tree(1, (("g0", "g1"),), Fraction(1)),), reduces=True)

        if adds:
            assert refused(problem, forest).where == "g1"
        else:
            verify(problem, forest)

    @pytest.mark.parametrize(
        ("problem", "reduces"),
        [
            (Problem(mesh(4), all_reduce(4, 4 * MB)), True),
            (Problem(mesh(4), all_gather(4, 4 * MB)), True),
            (Problem(mesh(4), reduce_scatter(4, 4 * MB)), False),
            (Problem(mesh(4), custom(4, [Chunk(MB, (0, 1), (2,))])), False),
        ],
    )
    def test_carries_only_chunks_with_one_root(self, problem, reduces):
        assert "is not one that" in str(refused(problem, Forest(both_ways(4), reduces=reduces)))


class TestFlow:
    problem = Problem(line(3), all_to_all(3, 3 * MB))

    def rates(self):
        """Everything along the line."""
        return [
            Rate(number, f"g{r}", f"g{r + step}", 1.0)
            for number, chunk in enumerate(self.problem.collective.chunks)
            for step in ((1,) if chunk.holders < chunk.destinations else (-1,))
            for r in range(chunk.holders[0], chunk.destinations[0], step)
        ]

    def test_units_along_a_line_are_let_through(self):
        verify(self.problem, Flow(tuple(self.rates())))

    @pytest.mark.parametrize("lost", range(8))
    def test_a_missing_rate_is_missed_at_its_ends(self, lost):
        rates = self.rates()
        gone = rates.pop(lost)

        error = refused(self.problem, Flow(tuple(rates)))

        assert error.where in {gone.src, gone.dst}
        assert f"of chunk {gone.chunk}" in str(error)

    def test_says_how_much_is_missing(self):
        rates = self.rates()
        rates[0] = replace(rates[0], amount=0.75)

        error = refused(self.problem, Flow(tuple(rates)))

        assert str(error) == "0.25 of chunk 0 stays in g0; as much must leave as enters"

    def test_parts_join_and_split(self):
        problem = Problem(mesh(4), custom(4, [Chunk(MB, (0,), (3,))]))
        rates = [Rate(0, "g0", f"g{by}", 0.5) for by in (1, 2)]
        rates += [Rate(0, f"g{by}", "g3", 0.5) for by in (1, 2)]

        verify(problem, Flow(tuple(rates)))

    def test_rounding_errors_are_forgiven_and_solver_errors_are_not(self):
        problem = Problem(mesh(2), custom(2, [Chunk(MB, (0,), (1,))]))

        verify(problem, Flow((Rate(0, "g0", "g1", 0.1),) * 10))
        verify(problem, Flow((Rate(0, "g0", "g1", 1 - 1e-10),)))
        assert refused(problem, Flow((Rate(0, "g0", "g1", 1 - 1e-6),))).where == "g0"

    def test_links_and_chunks_exist(self):
        rates = self.rates()

        assert refused(self.problem, Flow((*rates, Rate(0, "g0", "g2", 1)))).where == "g0->g2"
        assert "no chunk 6; they go from 0 to 5" in str(
            refused(self.problem, Flow((*rates, Rate(6, "g0", "g1", 1))))
        )

    @pytest.mark.parametrize(
        "chunk",
        [Chunk(MB, (0,), (1, 2)), Chunk(MB, (0, 1), (2,)), Chunk(MB, (0,), (2,), reduced=True)],
    )
    def test_carries_only_chunks_with_two_ends(self, chunk):
        error = refused(Problem(mesh(3), custom(3, [chunk])), Flow(()))

        assert "cannot be a flow" in str(error)
