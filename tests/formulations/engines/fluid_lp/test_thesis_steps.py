"""The thesis' programs in steps: few steps, the text's examples, and what a fluid wins."""

from dataclasses import replace
from itertools import pairwise

import pytest

from ccl.collective import Chunk, custom, make_collective
from ccl.errors import Infeasible
from ccl.problem import Problem
from ccl.topology import Link, Topology, device
from ccl.verify import verify
from formulations import formulation, solve
from formulations.engines.fluid_lp.plain import solve_plain
from gallery import open_cluster
from tests.formulations.engines.fluid_lp.clusters import around, ask, star
from tests.formulations.engines.fluid_lp.thesis_programs import fluid_steps

NAME = "thesis-steps"


def still(spec: str) -> Topology:
    """Return a cluster without latencies."""
    made = open_cluster(spec)
    return replace(made, links=tuple(replace(each, alpha=0.0) for each in made.links))


@pytest.mark.parametrize("chunks", [1, 2, 4])
def test_chunks_in_a_row_fill_a_pipeline(chunks):
    """Figure 2.1: K chunks over two links take K + 1 steps of 1 / K each; a fluid takes 1."""
    topology = still("line:gpus=3,bandwidth=1")
    asked = Problem(topology, make_collective("broadcast", 3, 1e6, chunks=chunks))
    result = solve(asked, NAME)
    assert result.epochs == chunks + 1
    assert result.makespan == pytest.approx(1e3 * (chunks + 1) / chunks)
    assert solve_plain(asked).makespan == pytest.approx(1e3)


def test_through_a_memory_two_gpus_are_served_in_two_steps():
    """Figure 2.2: written once, read twice at the same time. A switch that cannot copy is sent the
    chunk twice, one after the other: three steps."""
    memory = solve(ask(around(device("memory", "m"), 3), "broadcast"), NAME)
    switch = solve(ask(around(device("switch", "m"), 3), "broadcast"), NAME)
    assert memory.epochs == 2
    assert switch.epochs == 3


def test_the_first_server_of_the_thesis_gathers_in_four_steps():
    """Figure 3.1: 3 chunks come to each GPU from the memory, the first after one step."""
    result = solve(ask(open_cluster("thesis-3.1"), "all-gather"), NAME)
    assert result.epochs == 4


@pytest.mark.parametrize(
    ("cluster", "kind"),
    [
        (cluster, kind)
        for cluster in ("ring:gpus=4", "star:gpus=3", "te-ccl-1", "star:gpus=3,copies=true")
        for kind in ("all-gather", "reduce-scatter", "broadcast", "all-to-all")
    ],
)
def test_it_needs_as_few_epochs_as_the_smaller_program(cluster, kind):
    """On a grid of equal links where a send takes one epoch both say the same."""
    asked = ask(still(cluster), kind, gigabytes=1e-3)
    here = solve(asked, NAME, time_limit=20)
    there = solve(asked, "te-ccl-milp", options={"epoch": "slowest"}, time_limit=20)
    assert here.epochs == there.epochs


def test_plans_of_a_number_of_steps_move_the_least_data():
    """A star of 3: a plain switch is sent each chunk twice, and 3 x 4 ends of GPUs are passed."""
    asked = ask(star(1.0, 1.0, 1.0), "all-gather")
    result = solve(asked, NAME, options={"steps": 4})
    verify(asked, result.plan)
    assert len(result.plan.sends) == 12


def test_too_few_steps_are_infeasible():
    with pytest.raises(Infeasible):
        solve(ask(still("line:gpus=3"), "broadcast"), NAME, options={"steps": 1})


def test_slower_links_are_left_out_of_short_steps():
    """Two GPUs at 10 GB/s and a third at 1: by the fastest link nothing reaches the third in time,
    but the first schedule does."""
    asked = ask(star(10.0, 10.0, 1.0), "broadcast")
    result = solve(asked, NAME, options={"step": "fastest"})
    verify(asked, result.plan)
    assert any("are left out" in each for each in result.log)


def test_what_is_too_large_keeps_the_first_plan_and_says_so():
    asked = ask(open_cluster("dgx-a100:hosts=2"), "all-gather", gigabytes=1e-3)
    result = solve(asked, NAME)
    assert any("was not built" in each for each in result.log)


def test_a_fluid_in_steps_is_one_without_and_the_other_way_round():
    """Theorem 4: LP (3.10) has a solution with s T >= R only, and (4.2) one of as much data."""
    asked = ask(star(1.0, 1.0, 1.0), "all-gather")
    free = solve_plain(asked, steps=4)
    with pytest.raises(Infeasible):
        fluid_steps(asked, 4, free.makespan / 4 * 0.999)
    # 12 GB in all; in 30 steps of which each but one fills the links, 1/29 more time is enough.
    assert fluid_steps(asked, 30, free.makespan / 29 * 1.0001) == pytest.approx(12e9, rel=1e-6)
    assert free.cost == pytest.approx(12e9, rel=1e-6)


def test_it_refuses_in_words_what_steps_do_not_know():
    chosen = formulation(NAME)
    limited = Problem(open_cluster("pcie-server"), make_collective("all-gather", 8, 8e6))
    assert "has latency" in (chosen.why_not(limited) or "")


def test_data_does_not_part_at_a_switch_that_cannot_copy():
    """In four steps g0's chunk must come to the copying switch s twice, for g1 and a step later g2.

    For in the fourth step s->g1 has what g4 sends over two switches, and in the third s->g2 what
    g3 sends to g5 beyond it. From p lead a way of one link to s and one of two, over q: what came
    to p once could take both and spare g0 a send, if p could copy.
    """
    ways = ("g0 p s g1", "p q s g2 g5", "g3 r s", "g4 t u s")
    links = {pair for way in ways for pair in pairwise(way.split())}
    names = ("p", "q", "r", "t", "u")
    devices = (
        *(device("gpu", f"g{i}") for i in range(6)),
        *(device("switch", name) for name in names),
        device("switch", "s", copies=True),
    )
    topology = Topology("parting", devices, tuple(Link(a, b, 1.0) for a, b in sorted(links)))
    chunks = [Chunk(1e6, (0,), (1, 2)), Chunk(1e6, (3,), (5,)), Chunk(1e6, (4,), (1,))]
    asked = Problem(topology, custom(6, chunks))
    result = solve(asked, NAME, options={"steps": 4})
    verify(asked, result.plan)
    assert sum(send.src == "g0" for send in result.plan.sends) == 2
