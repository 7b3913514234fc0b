"""All-reduces in stages: patterns of words, and plans whose pieces begin with one of them."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from ccl.collective import make_collective
from ccl.errors import Infeasible
from ccl.plans import bits_of, choose_values
from ccl.problem import Problem
from ccl.topology import SharedLimit
from ccl.verify import verify
from formulations import solve
from formulations.core.registry import formulation
from formulations.engines.closed_forms.words import Word, words_over
from formulations.engines.list_scheduling.timed import transfers_of
from formulations.engines.tree_columns.all_reduce import InStages
from formulations.engines.tree_columns.patterns import Staged
from formulations.solving.api import solved
from gallery import open_cluster


def asked(cluster, size):
    topology = open_cluster(cluster)
    return Problem(topology, make_collective("all-reduce", len(topology.ranks), size))


def staged(topology):
    return Staged(topology, transfers_of(topology), nbytes=1e4)


def kept(topology, pattern):
    """Return the sums that each rank keeps if crossings carry what they name, one after the other.

    What one carries must be at its source: its own contribution and sums that came, all disjoint.
    """
    index = {topology.index[name]: rank for rank, name in enumerate(topology.ranks)}
    held = {rank: [frozenset({rank})] for rank in index.values()}
    for links, terms, waits in zip(pattern.routes, pattern.terms, pattern.waits, strict=True):
        src = index[topology.index[topology.links[links[0]].src]]
        dst = index[topology.index[topology.links[links[-1]].dst]]
        came = [pattern.terms[each] for each in waits]
        assert all(each in held[src] for each in came)
        own = terms.difference(*came)
        assert own <= {src}
        # Nothing is added twice, but for what spreads, which its rank has brought before.
        once = sum(map(len, came)) + len(own)
        assert once == len(terms) or terms in came
        assert terms not in held[dst]  # what a rank passed on it does not get once more
        held[dst].append(terms)
    return held


CLUSTERS = ("full-mesh:gpus=4", "torus:shape=4x4", "dgx-1v", "rail-optimised", "mi250", "kautz")


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_in_every_word_all_get_every_contribution(cluster):
    topology = open_cluster(cluster)
    everybody, here = frozenset(range(len(topology.ranks))), staged(topology)
    words = [
        each
        for each in words_over(topology)
        if ("h" in each.letters) == each.letters.endswith("s") and each.messages < 200
    ]
    assert words
    for word in words:
        patterns = here.patterns(word, min(3, word.owners))
        assert len(patterns) == len(word.axes) * min(3, word.owners)
        for pattern in patterns:
            for sums in kept(topology, pattern).values():
                values = [bits_of(each) for each in sums]
                assert choose_values(values, bits_of(everybody), adds=True) is not None


def test_an_exchange_of_pairs_and_then_of_pairs_of_pairs():
    """Ranks 0 and 1, 2 and 3 exchange what they have, then 0 and 2, 1 and 3 their sums."""
    topology = open_cluster("full-mesh:gpus=4")
    (pattern,) = staged(topology).patterns(Word("xx", np.arange(4).reshape(2, 2), ((1, 0),)), 1)

    ends = [
        (topology.links[links[0]].src, topology.links[links[-1]].dst) for links in pattern.routes
    ]
    first = [("g0", "g1"), ("g1", "g0"), ("g2", "g3"), ("g3", "g2")]
    second = [("g0", "g2"), ("g2", "g0"), ("g1", "g3"), ("g3", "g1")]
    assert ends[:4] == first
    assert sorted(ends[4:]) == sorted(second)
    assert [sorted(each) for each in pattern.terms[:4]] == [[0], [1], [2], [3]]
    carried = dict(zip(ends[4:], pattern.terms[4:], strict=True))
    assert carried["g0", "g2"] == carried["g1", "g3"] == {0, 1}
    assert carried["g2", "g0"] == carried["g3", "g1"] == {2, 3}


def test_owners_take_turns():
    """Of four ranks in pairs each choice of owners has another rank that adds all up."""
    topology = open_cluster("full-mesh:gpus=4")
    word = Word("hhs", np.arange(4).reshape(2, 2), ((1, 0),))
    assert word.owners == 4
    roots = []
    for pattern in staged(topology).patterns(word, 4):
        last = max(
            number
            for number, each in enumerate(pattern.terms)
            if len(each) < 4  # what is added up; then it spreads
        )
        links = pattern.routes[last]
        roots.append(topology.links[links[-1]].dst)
    assert sorted(roots) == ["g0", "g1", "g2", "g3"]


def test_a_ring_passes_on_what_it_exchanges_and_adds_nothing_to_it():
    """In a ring of four the sum of the rank opposite comes over a neighbour, as it is."""
    topology = open_cluster("ring:gpus=4")
    (pattern,) = staged(topology).patterns(Word("x", np.arange(4), ((0,),)), 1)

    assert len(pattern.routes) == 4 * 3
    assert {len(each) for each in pattern.terms} == {1}
    assert sum(rank is None for rank in pattern.ranks) == 4


def test_what_no_path_joins_has_no_patterns():
    whole = open_cluster("full-mesh:gpus=3")
    links = tuple(link for link in whole.links if "g2" not in link.ends)
    topology = replace(whole, links=links)
    here = staged(topology)

    assert here.patterns(Word("x", np.arange(3), ((0,),)), 1) == []
    with pytest.raises(Infeasible, match="no path joins ranks 0 and 2"):
        here.tree(0, [1, 2], inward=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cluster", "size", "most"),
    [
        # Trees alone take 2.77, 4.9, 11.09 and 15.13 us.
        ("dgx-1v", 64e3, 2.7),
        ("torus:shape=4x4", 256e3, 4.6),
        ("rail-optimised", 256e3, 10.5),
        ("rail-optimised", 1e6, 14.6),
    ],
)
def test_at_middle_sizes_pieces_in_stages_are_quicker_than_trees(cluster, size, most):
    problem = asked(cluster, size)

    result = solve(problem, "pieces", time_limit=12)

    assert result.bound.makespan <= result.makespan <= most
    verify(problem.cut_into(result.plan.chunks), result.plan)


def test_weights_choose_among_words_and_trees_together():
    """Of 64 KB, 1.28 µs on a link, four GPUs send a share f in two stages and the rest at once.

    Both fill links until 0.7 µs before the end, 0.64 f + 1.28 (1 - f) = T - 0.7, and the second
    stage has what is left after the first latency, 0.32 f = T - 1.4: T is 1.593. Either alone takes
    1.72 or more.
    """
    result = solve(asked("full-mesh:gpus=4", 64e3), "pieces", time_limit=8)

    assert result.bound.makespan <= result.makespan < 1.62


def limited():
    topology = open_cluster("full-mesh:gpus=4")
    out = tuple(link.ends for link in topology.links if link.src == "g0")
    return replace(topology, limits=(SharedLimit("out", out, 60.0),))


def test_under_limits_nothing_is_in_stages(monkeypatch):
    """Passes do not know limits."""

    def along(*_args, **_options):
        raise AssertionError

    monkeypatch.setattr(InStages, "along", along)
    problem = Problem(limited(), make_collective("all-reduce", 4, 1e6))

    result = solve(problem, "pieces", time_limit=4)

    assert result.bound.makespan <= result.makespan
    with pytest.raises(AssertionError):
        solve(asked("torus:shape=4x4", 64e3), "pieces", time_limit=20)


@pytest.mark.slow
@pytest.mark.parametrize("able", ["copies=true", "reduces=true", "copies=true,reduces=true"])
def test_switches_that_could_add_or_copy_may_only_forward(able):
    """64 KB: what a switch adds and then copies takes two crossings, 1.53 us, stages 1.445."""
    result = solve(asked(f"dgx-h100:{able}", 64e3), "pieces", time_limit=12)

    assert result.bound.makespan <= result.makespan < 1.45
    assert not result.log


def test_the_best_word_is_tried_in_more_pieces_beside_a_much_better_plan(monkeypatch):
    """In four pieces of each rank it takes 20.3 µs, in sixteen 16.7."""
    found: list[float] = []

    def along(stages, count):
        found.append(real(stages, count))
        return found[-1]

    real = InStages.along
    monkeypatch.setattr(InStages, "along", along)
    chosen = formulation("pieces")
    with suppress(Infeasible):
        solved(
            asked("dgx-2-te-ccl", 1e6), chosen, chosen.options(), time_limit=6, known=lambda: 16.5
        )

    assert math.isfinite(found[0])
